// What kernels of matrices side by side share (side_by_side.h): vectors with one matrix a lane, and
// how elements come into them and out again.
#pragma once
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
using VecOf = typename Simd<T>::Vec;

template <class T>
VecOf<T> all(int number) {
  return VecOf<T>{} + static_cast<T>(number);
}

template <class T>
VecOf<T> root(VecOf<T> v) {
  T numbers[Simd<T>::lanes];
  __builtin_memcpy(numbers, &v, sizeof v);
  for (T& x : numbers) x = static_cast<T>(__builtin_sqrt(x));
  __builtin_memcpy(&v, numbers, sizeof v);
  return v;
}

// x -= a * b
template <class V>
[[gnu::always_inline]] inline void take_product(V& x, V a, V b) {
  x = multiply_add<V>(-a, b, x);
}

// `n` elements of each matrix, whose first ones are `step` apart. Squares of them are transposed in
// registers: matrices of 4 KiB lie in the same few places of the first cache, so that a line which
// is not used whole at once is gone before it is used again.
template <class T>
void load(VecOf<T>* to, const T* from, int64_t n, int64_t step) {
  constexpr int64_t lanes = Simd<T>::lanes;
  copy_transposed(reinterpret_cast<T*>(to), lanes, from, step, n, lanes);
}
template <class T>
void store(T* to, const VecOf<T>* from, int64_t n, int64_t step) {
  constexpr int64_t lanes = Simd<T>::lanes;
  copy_transposed(to, step, reinterpret_cast<const T*>(from), lanes, lanes, n);
}
template <class T>
void store_numbers(int32_t* to, VecOf<T> numbers) {
  for (int l = 0; l < Simd<T>::lanes; ++l) to[l] = static_cast<int32_t>(numbers[l]);
}

// Calls body(first) for the first matrix of each whole vector while it returns true; how many
// matrices were done.
template <class T, class F>
int64_t for_each_group(int64_t count, F&& body) {
  int64_t i = 0;
  while (i + Simd<T>::lanes <= count && body(i)) i += Simd<T>::lanes;
  return i;
}

// body.operator()<N>() with the order N of matrices where kernels for it are worth their room, else
// with 0: loops over rows of a number that the compiler knows have no counters.
template <class F>
int64_t for_order(int64_t n, F&& body) {
  if (n == 2) return body.template operator()<2>();
  if (n == 3) return body.template operator()<3>();
  if (n == 4) return body.template operator()<4>();
  return body.template operator()<0>();
}

}  // namespace facula::cpu::FACULA_ISA
