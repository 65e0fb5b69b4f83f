#include "kernels/cpu/linalg/turned.h"

#include "kernels/cpu/loop/copy_transposed.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Of few rows and columns: with numbers that the compiler knows there are no loops within one.
template <int m, int n, class T>
void turn_tiny(T* to, const T* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i, to += m * n, from += m * n)
#pragma GCC unroll 4
    for (int r = 0; r < m; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < n; ++c) to[c * m + r] = from[r * n + c];
}

template <int m, class T>
bool turn_if_tiny(T* to, const T* from, int64_t count, int64_t n) {
  if (n == 2) return turn_tiny<m, 2>(to, from, count), true;
  if (n == 3) return turn_tiny<m, 3>(to, from, count), true;
  if (n == 4) return turn_tiny<m, 4>(to, from, count), true;
  return false;
}

}  // namespace

template <class T>
void turn_matrices(T* to, const T* from, int64_t count, int64_t m, int64_t n) {
  if (m == 2 && turn_if_tiny<2>(to, from, count, n)) return;
  if (m == 3 && turn_if_tiny<3>(to, from, count, n)) return;
  if (m == 4 && turn_if_tiny<4>(to, from, count, n)) return;
  for (int64_t i = 0; i < count; ++i) copy_transposed(to + i * m * n, m, from + i * m * n, n, n, m);
}

template void turn_matrices(float*, const float*, int64_t, int64_t, int64_t);
template void turn_matrices(double*, const double*, int64_t, int64_t, int64_t);

}  // namespace facula::cpu::FACULA_ISA
