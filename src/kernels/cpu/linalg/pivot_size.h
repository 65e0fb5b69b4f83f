// The size by which pivots are compared.
#pragma once
#include "core/complex.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
T size_of(T x) {
  return x < T(0) ? -x : x;
}
template <class T>
T size_of(Complex<T> x) {
  return size_of(x.re) + size_of(x.im);  // as LAPACK compares complex pivots
}

}  // namespace facula::cpu::FACULA_ISA
