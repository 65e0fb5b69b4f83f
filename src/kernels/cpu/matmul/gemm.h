// Matrix product on raw pointers. Results depend on the shape and the instruction set only, never
// on the number of threads.
#pragma once
#include <cstdint>

#include "kernels/cpu/simd/accumulate.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// A function of n elements, given as a loop of pointwise.h: data and steps of the result and of the
// one input.
using Activation = void (*)(char* const* data, const int64_t* steps, int64_t n, const void* params);

// C[m,n] = alpha * A[m,k] B[k,n] + beta * C. Strides count elements and may be anything for A and B
// (zero and negative ones too); C must not overlap A, B or itself. With beta == 0, C is not read;
// with alpha == 0, A and B are not read. Integers wrap around; 16-bit floats are summed in float.
// An activation is applied to each result in the type of alpha, before the one rounding to T;
// complex products take none.
template <class T>
struct GemmArgs {
  int64_t m, n, k;
  const T* a;
  int64_t a_rs, a_cs;
  const T* b;
  int64_t b_rs, b_cs;
  T* c;
  int64_t c_rs, c_cs;
  accumulate_t<T> alpha = accumulate_t<T>(1), beta = accumulate_t<T>(0);
  Activation activation = nullptr;
  const T* row = nullptr;  // n elements side by side, which stand for each row of C where beta is 1
};

namespace FACULA_ISA {

// One product. Instantiated for float, double, Half, BFloat16, complex64, complex128 and all
// integers from 8 to 64 bits. Throws facula::Error when scratch memory runs out.
template <class T>
void gemm(const GemmArgs<T>& args);

// `batch` products; matrix i of each operand starts at i times its batch stride (0 to share it;
// not for C).
template <class T>
void gemm_batched(const GemmArgs<T>& args, int64_t batch, int64_t a_bs, int64_t b_bs, int64_t c_bs);

}  // namespace FACULA_ISA
}  // namespace facula::cpu
