// Complex and signed convolutions as real and unsigned ones.
#pragma once
#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
struct ConvElement {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct ConvElement<T> {
  using type = std::make_unsigned_t<T>;
};
template <class R>
struct ConvElement<Complex<R>> {
  using type = R;
};
// What a convolution of T computes with: the unsigned type of an integer (arithmetic modulo 2^n is
// the same), the parts of a complex number.
template <class T>
using conv_element_t = typename ConvElement<std::remove_const_t<T>>::type;

template <class To, class T>
auto* element_pointer(T* p) {
  if constexpr (std::is_const_v<T>) {
    return reinterpret_cast<const To*>(p);
  } else {
    return reinterpret_cast<To*>(p);
  }
}

// Part 0 or 1 of a complex tensor; anything else as it is.
template <class T>
auto element_view(const ConvTensor<T>& t, int part) {
  constexpr bool split = is_complex_v<std::remove_const_t<T>>;
  auto* data = element_pointer<conv_element_t<T>>(t.data) + part;
  ConvTensor<std::remove_pointer_t<decltype(data)>> view{data, {}};
  for (int d = 0; d < 5; ++d) view.strides[d] = t.strides[d] * (split ? 2 : 1);
  return view;
}

// How one real product of parts enters the result.
struct PartProduct {
  int left, right, result;
  bool subtract, add;
};

// Calls body(PartProduct) for every real product that a product of T consists of.
template <class T, class F>
void for_each_part(F&& body) {
  body(PartProduct{0, 0, 0, false, false});
  if constexpr (is_complex_v<T>) {
    body(PartProduct{1, 1, 0, true, true});
    body(PartProduct{0, 1, 1, false, false});
    body(PartProduct{1, 0, 1, false, true});
  }
}

}  // namespace facula::cpu::FACULA_ISA
