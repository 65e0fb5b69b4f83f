#include "kernels/cpu/reduce/cosine.h"

#include "core/threads.h"
#include "kernels/cpu/simd/lanes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// What a row is multiplied with to be of length 1. A NaN stays.
template <class T>
T factor_of(const T* row, int64_t n, T eps) {
  const T square = lane_sum<T>(0, n, [row](int64_t i) { return row[i] * row[i]; });
  const T length = std::is_same_v<T, float> ? static_cast<T>(__builtin_sqrtf(square))
                                            : static_cast<T>(__builtin_sqrt(square));
  return T(1) / (length < eps ? eps : length);
}

}  // namespace

void cosine_of_rows(const Tensor& x, const Tensor& y, double eps, const Tensor& out) {
  const int64_t n = x.sizes()[x.dim() - 1];
  dispatch<float, double>(x.dtype(), "cosine_similarity", [&]<class T>(Type<T>) {
    const T *a = x.data<T>(), *b = y.data<T>();
    T* to = out.data<T>();
    parallel_for(out.numel(), chunk_of(2 * n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *p = a + r * n, *q = b + r * n;
        const T left = factor_of(p, n, static_cast<T>(eps)),
                right = factor_of(q, n, static_cast<T>(eps));
        to[r] = lane_sum<T>(0, n, [=](int64_t i) { return (p[i] * left) * (q[i] * right); });
      }
    });
  });
}

}  // namespace facula::cpu::FACULA_ISA
