#include "kernels/cpu/embedding/bag.h"

#include <algorithm>
#include <memory>

#include "core/threads.h"
#include "kernels/cpu/embedding/rows.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// The row numbers of some bags in a list of our own, so that nobody changes them after they were
// tested.
class TestedNumbers {
 public:
  TestedNumbers(const Bags& bags, int64_t begin, int64_t end, int64_t rows)
      : starts_(bags.starts.data()),
        first_(starts_[begin]),
        list_(std::make_unique_for_overwrite<int64_t[]>(size_t(starts_[end] - first_))) {
    const int64_t count = starts_[end] - first_;
    std::copy_n(bags.numbers.data<int64_t>() + first_, count, list_.get());
    check_rows(list_.get(), count, rows, first_);
  }
  const int64_t* of(int64_t bag) const { return list_.get() + (starts_[bag] - first_); }

  // RuntimeError unless all n numbers, the first of which stands at `place`, are rows of the table.
  static void check_rows(const int64_t* numbers, int64_t n, int64_t rows, int64_t place) {
    if (FACULA_OF_ISA(are_rows)(numbers, n, rows)) return;
    for (int64_t i = 0; i < n; ++i)
      check(numbers[i] >= 0 && numbers[i] < rows, "embedding_bag(): index ", place + i,
            " must be a row from 0 to ", rows - 1, "; got ", numbers[i]);
  }

 private:
  const int64_t* starts_;
  int64_t first_;
  std::unique_ptr<int64_t[]> list_;
};

template <class T>
struct Reducer {
  using A = accumulate_t<T>;
  const Bags& bags;
  const T* table;
  int64_t width;
  const T* scales;
  BagMode mode;
  int64_t (*sum_rows)(const TableRows<T>&, A*) = FACULA_OF_ISA(sum_rows<T>);
  int64_t (*max_rows)(const TableRows<T>&, A*, int64_t*) = FACULA_OF_ISA(max_rows<T>);

  int64_t start(int64_t bag) const { return bags.starts[static_cast<size_t>(bag)]; }
  int64_t length(int64_t bag) const { return start(bag + 1) - start(bag); }

  // How many rows of the bag count; `known` numbers follow the bag's, of rows soon needed.
  int64_t sum(int64_t bag, const int64_t* numbers, A* into, int64_t known) const {
    return sum_rows({table, width, numbers, scales ? scales + start(bag) : nullptr, length(bag),
                     bags.padding, known, mode == BagMode::Mean},
                    into);
  }
  int64_t most(int64_t bag, const int64_t* numbers, A* into, int64_t* chosen) const {
    return max_rows({table, width, numbers, nullptr, length(bag), bags.padding}, into, chosen);
  }

  void run(int64_t begin, int64_t end, const TestedNumbers& numbers, const BagResults& to) const {
    constexpr bool direct = std::is_same_v<T, A>;
    std::vector<A> room(direct ? 0 : static_cast<size_t>(width));
    const int64_t last = start(end);
    T* out = to.values.data<T>() + begin * width;
    int64_t* sizes = to.sizes.data<int64_t>();
    int64_t* chosen = mode == BagMode::Max ? to.chosen.data<int64_t>() + begin * width : nullptr;
    for (int64_t b = begin; b < end; ++b, out += width) {
      A* into = room.data();
      if constexpr (direct) into = out;
      if (mode == BagMode::Max) {
        sizes[b] = most(b, numbers.of(b), into, chosen);
        chosen += width;
      } else {
        sizes[b] = sum(b, numbers.of(b), into, last - start(b + 1));
      }
      if constexpr (!direct)
        std::transform(room.begin(), room.end(), out, [](A v) { return static_cast<T>(v); });
    }
  }
};

}  // namespace

void embedding_bags(const Tensor& weight, const Bags& bags, BagMode mode, const Tensor& scales,
                    const BagResults& results) {
  const Tensor table = contiguous(weight), factors = scales.defined() ? contiguous(scales) : scales;
  const int64_t width = table.size(1), count = bags.count(), total = bags.numbers.numel();
  const int64_t* numbers = bags.numbers.data<int64_t>();
  if (count == 0) return TestedNumbers::check_rows(numbers, total, table.size(0), 0);
  const int64_t elements = std::max<int64_t>((total / count + 1) * width, 1);
  dispatch<FloatingTypes>(table.dtype(), "embedding_bag", [&]<class T>(Type<T>) {
    const Reducer<T> reducer{bags, table.data<T>(), width,
                             factors.defined() ? factors.data<T>() : nullptr, mode};
    parallel_for(count, std::max<int64_t>(1, 32768 / elements), [&](int64_t begin, int64_t end) {
      const TestedNumbers tested(bags, begin, end, table.size(0));
      int64_t* bag_of = results.bag_numbers.data<int64_t>();
      for (int64_t b = begin; b < end && results.bag_numbers.numel() > 0; ++b)
        std::fill(bag_of + reducer.start(b), bag_of + reducer.start(b + 1), b);
      reducer.run(begin, end, tested, results);
    });
  });
}

}  // namespace facula::cpu
