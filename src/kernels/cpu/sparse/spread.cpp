#include "kernels/cpu/sparse/spread.h"

#include <algorithm>
#include <cstring>

#include "core/dtype.h"
#include "core/error.h"
#include "core/threads.h"

namespace facula::cpu::sparse {
namespace {

constexpr int64_t bytes_of_a_job = 64 << 10;

template <class T>
void spread(const Tensor& values, const Tensor& at, int64_t places, int64_t inner,
            const Tensor& into) {
  const int64_t n = at.numel(), grain = std::max<int64_t>(bytes_of_a_job / (inner * sizeof(T)), 1);
  const int64_t* const place = at.data<int64_t>();
  const T* const from = static_cast<const T*>(values.data());
  T* const to = static_cast<T*>(into.data());
  parallel_for(places, grain, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<void*>(to + begin * inner), 0, (end - begin) * inner * sizeof(T));
    int64_t i = std::lower_bound(place, place + n, begin) - place;
    for (int64_t least = begin; i < n; ++i) {
      const int64_t row = place[i];  // read once, since a user may change it meanwhile
      if (row >= end) break;
      check(row >= least, "to_dense(): expected ascending indices; they changed meanwhile");
      least = row + 1;
      for (int64_t k = 0; k < inner; ++k) {
        const T x = from[i * inner + k];
        to[row * inner + k] = x == T(0) ? T(0) : x;
      }
    }
  });
}

}  // namespace

Tensor spread_rows(const Tensor& values, const Tensor& at, int64_t places) {
  const int64_t n = at.numel();
  check(n == 0 || (at.data<int64_t>()[0] >= 0 && at.data<int64_t>()[n - 1] < places),
        "to_dense(): expected indices from 0 to ", places - 1);
  IntVec sizes(values.sizes());
  sizes[0] = places;
  const Tensor into = empty_tensor(sizes, values.dtype());
  if (into.numel() == 0) return into;
  // Parts of complex numbers stand by themselves, since each may be a negative zero.
  const DType part = real_of(values.dtype());
  const int64_t inner = into.numel() / places * (is_complex(values.dtype()) ? 2 : 1);
  dispatch<FloatingTypes, IntegralTypes, WideUnsignedTypes, bool>(
      part, "to_dense", [&]<class T>(Type<T>) { spread<T>(values, at, places, inner, into); });
  return into;
}

}  // namespace facula::cpu::sparse
