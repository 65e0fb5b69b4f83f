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
  const T* table;
  const T* scales;
  int64_t width;
  const Bags& bags;
  const int64_t* numbers = bags.numbers.data<int64_t>();
  int64_t (*sum_rows)(const TableRows<T>&, A*) = FACULA_OF_ISA(sum_rows<T>);

  // How many rows of the bag count.
  int64_t sum(int64_t bag, A* into) const {
    const int64_t first = bags.starts[static_cast<size_t>(bag)];
    const int64_t last = bags.starts[static_cast<size_t>(bag) + 1];
    return sum_rows({table, width, numbers + first, scales ? scales + first : nullptr, last - first,
                     bags.padding, std::min<int64_t>(bags.starts.back() - last, 16)},
                    into);
  }
  int64_t most(int64_t bag, A* into, int64_t* chosen) const {
    int64_t met = 0;
    for (int64_t i = bags.starts[static_cast<size_t>(bag)];
         i < bags.starts[static_cast<size_t>(bag) + 1]; ++i) {
      const int64_t row = numbers[i];
      if (row == bags.padding) continue;
      const T* from = table + row * width;
      for (int64_t k = 0; k < width; ++k) {
        const A value = static_cast<A>(from[k]);
        if (met > 0 && !(value > into[k])) continue;
        into[k] = value;
        chosen[k] = row;
      }
      ++met;
    }
    return met;
  }
};

}  // namespace

void embedding_bags(const Tensor& weight, const Bags& bags, BagMode mode, const Tensor& scales,
                    const Tensor& out, const Tensor& sizes, const Tensor& chosen) {
  const Tensor table = contiguous(weight), factors = scales.defined() ? contiguous(scales) : scales;
  const int64_t width = table.size(1);
  int64_t* count = sizes.data<int64_t>();
  int64_t* rows = mode == BagMode::Max ? chosen.data<int64_t>() : nullptr;
  visit_floating(table.dtype(), [&]<class T>(Type<T>) {
    using A = row_sum_t<T>;
    const Reducer<T> reducer{table.data<T>(), factors.defined() ? factors.data<T>() : nullptr,
                             width, bags};
    parallel_for(bags.count(), std::max<int64_t>(1, 4096 / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<A> sum(static_cast<size_t>(width));
                   for (int64_t b = begin; b < end; ++b) {
                     if (rows) std::fill(sum.begin(), sum.end(), A(0));
                     count[b] = rows ? reducer.most(b, sum.data(), rows + b * width)
                                     : reducer.sum(b, sum.data());
                     const A share =
                         mode == BagMode::Mean && count[b] > 0 ? static_cast<A>(count[b]) : A(1);
                     T* to = out.data<T>() + b * width;
                     if (share != A(1))
                       for (A& x : sum) x /= share;
                     for (int64_t k = 0; k < width; ++k)
                       to[k] = static_cast<T>(sum[static_cast<size_t>(k)]);
                   }
                 });
  });
}

}  // namespace facula::cpu
