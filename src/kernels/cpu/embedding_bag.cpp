#include "kernels/cpu/embedding_bag.h"

#include <algorithm>

#include "core/threads.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/embedding_rows.h"

namespace facula::cpu {
namespace {

template <class T>
struct Reducer {
  using A = row_sum_t<T>;
  const Bags& bags;
  const T* table;
  int64_t width;
  const T* scales;
  BagMode mode;
  const int64_t* numbers = bags.numbers.data<int64_t>();
  int64_t (*sum_rows)(const TableRows<T>&, A*) = FACULA_OF_ISA(sum_rows<T>);

  int64_t start(int64_t bag) const { return bags.starts[static_cast<size_t>(bag)]; }

  // How many rows of the bag count; numbers before `known` are those of rows soon needed.
  int64_t sum(int64_t bag, A* into, int64_t known) const {
    const int64_t first = start(bag), last = start(bag + 1);
    return sum_rows({table, width, numbers + first, scales ? scales + first : nullptr, last - first,
                     bags.padding, known - last, mode == BagMode::Mean},
                    into);
  }
  int64_t most(int64_t bag, A* into, int64_t* chosen) const {
    std::fill_n(into, width, A(0));
    int64_t met = 0;
    for (int64_t i = start(bag); i < start(bag + 1); ++i) {
      const int64_t row = numbers[i];
      if (row == bags.padding) continue;
      const T* from = table + row * width;
      for (int64_t k = 0; k < width; ++k) {
        const A value = static_cast<A>(from[k]);
        const bool better = met == 0 || value > into[k];
        into[k] = better ? value : into[k];
        chosen[k] = better ? row : chosen[k];
      }
      ++met;
    }
    return met;
  }

  void run(int64_t begin, int64_t end, const BagResults& to) const {
    constexpr bool direct = std::is_same_v<T, A>;
    std::vector<A> room(direct ? 0 : static_cast<size_t>(width));
    for (int64_t b = begin; b < end; ++b) {
      T* out = to.values.data<T>() + b * width;
      A* into = room.data();
      if constexpr (direct) into = out;
      to.sizes.data<int64_t>()[b] = mode == BagMode::Max
                                        ? most(b, into, to.chosen.data<int64_t>() + b * width)
                                        : sum(b, into, start(end));
      if constexpr (!direct)
        std::transform(room.begin(), room.end(), out, [](A v) { return static_cast<T>(v); });
    }
  }
};

// RuntimeError unless all numbers from the first to before the last are rows of the table.
void check_rows(const int64_t* numbers, int64_t first, int64_t last, int64_t rows) {
  if (FACULA_OF_ISA(are_rows)(numbers + first, last - first, rows)) return;
  for (int64_t i = first; i < last; ++i)
    check(numbers[i] >= 0 && numbers[i] < rows, "embedding_bag(): index ", i,
          " must be a row from 0 to ", rows - 1, "; got ", numbers[i]);
}

}  // namespace

void embedding_bags(const Tensor& weight, const Bags& bags, BagMode mode, const Tensor& scales,
                    const BagResults& results) {
  const Tensor table = contiguous(weight), factors = scales.defined() ? contiguous(scales) : scales;
  const int64_t width = table.size(1), count = bags.count(), total = bags.numbers.numel();
  const int64_t* numbers = bags.numbers.data<int64_t>();
  check_rows(numbers, 0, count > 0 ? 0 : total, table.size(0));
  if (count == 0) return;
  const int64_t elements = std::max<int64_t>((total / count + 1) * width, 1);
  visit_floating(table.dtype(), [&]<class T>(Type<T>) {
    const Reducer<T> reducer{bags, table.data<T>(), width,
                             factors.defined() ? factors.data<T>() : nullptr, mode};
    parallel_for(count, std::max<int64_t>(1, 32768 / elements), [&](int64_t begin, int64_t end) {
      check_rows(numbers, reducer.start(begin), reducer.start(end), table.size(0));
      int64_t* bag_of = results.bag_numbers.data<int64_t>();
      for (int64_t b = begin; b < end && results.bag_numbers.numel() > 0; ++b)
        std::fill(bag_of + reducer.start(b), bag_of + reducer.start(b + 1), b);
      reducer.run(begin, end, results);
    });
  });
}

}  // namespace facula::cpu
