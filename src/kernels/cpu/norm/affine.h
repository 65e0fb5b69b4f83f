// The affine map y = (x - mean) * scale + shift that a normalisation applies to its elements.
#pragma once
#include <cmath>

#include "kernels/cpu/norm/sums.h"

namespace facula::cpu::FACULA_ISA {

// With fma, y = fma(x, scale, offset) + rest: `offset` is shift - mean * scale as rounded, `rest`
// the rounding error of that, which matters where the mean is far from zero. Without fma the
// difference is taken first: `offset` is the mean and `rest` the shift.
template <class A>
struct Affine {
  A scale, offset, rest;

  [[gnu::always_inline]] A operator()(A x) const {
#ifdef __FMA__
    return multiply_add(x, scale, offset) + rest;
#else
    return (x - offset) * scale + rest;
#endif
  }
};

template <class A>
Affine<A> affine_of(A mean, A scale, A shift) {
#ifdef __FMA__
  const A product = mean * scale, lost = multiply_add(mean, scale, -product);
  const A offset = shift - product, back = offset - shift;
  const A rest = (shift - (offset - back)) - (product + back) - lost;
  return {scale, offset, std::isfinite(rest) ? rest : A(0)};
#else
  return {scale, mean, shift};
#endif
}

// The maps of all channels as three arrays, so that loops over channels vectorise.
template <class A>
struct AffineChannels {
  A *scale, *offset, *rest;  // of as many numbers as there are channels

  void set(int64_t c, const Affine<A>& l) const {
    scale[c] = l.scale;
    offset[c] = l.offset;
    rest[c] = l.rest;
  }
  [[gnu::always_inline]] A operator()(A x, int64_t c) const {
    return Affine<A>{scale[c], offset[c], rest[c]}(x);
  }
};

}  // namespace facula::cpu::FACULA_ISA
