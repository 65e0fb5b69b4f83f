#include "kernels/cpu/linalg/turned.h"

#include "kernels/cpu/loop/copy_transposed.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
void turn_matrices(T* to, const T* from, int64_t count, int64_t m, int64_t n) {
  for (int64_t i = 0; i < count; ++i) copy_transposed(to + i * m * n, m, from + i * m * n, n, n, m);
}

template void turn_matrices(float*, const float*, int64_t, int64_t, int64_t);
template void turn_matrices(double*, const double*, int64_t, int64_t, int64_t);

}  // namespace facula::cpu::FACULA_ISA
