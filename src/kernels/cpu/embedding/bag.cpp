#include "kernels/cpu/embedding/bag.h"

#include <algorithm>

#include "core/threads.h"
#include "kernels/cpu/embedding/rows.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// RuntimeError unless all numbers are rows of the table.
void check_rows(const Bags& bags, int64_t rows) {
  const int64_t *numbers = bags.numbers.data<int64_t>(), n = bags.numbers.numel();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t number = numbers[i];
    check(number >= 0 && number < rows, "embedding_bag(): index ", i, " must be a row from 0 to ",
          rows - 1, "; got ", number);
  }
}

template <class T>
struct Reducer {
  using A = accumulate_t<T>;
  TableBags<T> bags;  // all of them
  BagMode mode;
  bool (*sum_bags)(const TableBags<T>&, A*, int64_t*) = FACULA_OF_ISA(sum_bags<T>);
  int64_t (*max_rows)(const TableBags<T>&, A*, int64_t*) = FACULA_OF_ISA(max_rows<T>);

  // Sums or maxima of some bags; false where a number is no row.
  bool reduce(const TableBags<T>& some, A* to, int64_t* sizes, int64_t* chosen) const {
    if (mode != BagMode::Max) return sum_bags(some, to, sizes);
    *sizes = max_rows(some, to, chosen);
    return *sizes >= 0;
  }

  // The same for bags from `begin` on: sums in place go by many, others bag by bag.
  bool run(int64_t begin, int64_t end, const BagResults& to) const {
    constexpr bool direct = std::is_same_v<T, A>;
    const int64_t width = bags.width, many = direct && mode != BagMode::Max ? end - begin : 1;
    std::vector<A> room(direct ? 0 : static_cast<size_t>(width));
    int64_t* chosen = mode == BagMode::Max ? to.chosen.data<int64_t>() : nullptr;
    for (int64_t b = begin; b < end; b += many) {
      T* out = to.values.data<T>() + b * width;
      TableBags<T> some = bags;
      some.starts += b;
      some.count = many;
      A* into = room.data();
      if constexpr (direct) into = out;
      if (!reduce(some, into, to.sizes.data<int64_t>() + b, chosen ? chosen + b * width : nullptr))
        return false;
      if constexpr (!direct)
        std::transform(room.begin(), room.end(), out, [](A v) { return static_cast<T>(v); });
    }
    return true;
  }
};

}  // namespace

void embedding_bags(const Tensor& weight, const Bags& bags, BagMode mode, const Tensor& scales,
                    const BagResults& results) {
  const Tensor table = contiguous(weight), factors = scales.defined() ? contiguous(scales) : scales;
  const int64_t rows = table.size(0), width = table.size(1), count = bags.count();
  const int64_t total = bags.numbers.numel();
  if (count == 0) return check_rows(bags, rows);
  // Tasks of some microseconds: rows at their beginning were asked for by nobody.
  constexpr int64_t task_elements = 131072;
  const int64_t elements = std::max<int64_t>((total / count + 1) * width, 1);
  const int64_t* starts = bags.starts.data();
  dispatch<FloatingTypes>(table.dtype(), "embedding_bag", [&]<class T>(Type<T>) {
    const Reducer<T> reducer{{table.data<T>(), rows, width, bags.numbers.data<int64_t>(),
                              factors.defined() ? factors.data<T>() : nullptr, starts, count,
                              bags.padding, mode == BagMode::Mean},
                             mode};
    parallel_for(
        count, std::max<int64_t>(1, task_elements / elements), [&](int64_t begin, int64_t end) {
          int64_t* bag_of = results.bag_numbers.data<int64_t>();
          for (int64_t b = begin; b < end && results.bag_numbers.numel() > 0; ++b)
            std::fill(bag_of + starts[b], bag_of + starts[b + 1], b);
          if (reducer.run(begin, end, results)) return;
          check_rows(bags, rows);
          throw Error(ErrorKind::Runtime, "embedding_bag(): indices changed while they were read");
        });
  });
}

}  // namespace facula::cpu
