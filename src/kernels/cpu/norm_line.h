// The straight lines that normalisations put their elements on.
#pragma once
#include <cmath>

#include "kernels/cpu/norm_sums.h"

namespace facula::cpu::FACULA_ISA {

// (x - mean) * scale + shift with one rounding where products are fused: `offset` is then
// shift - mean * scale, and `rest` what that lost, which counts where the mean is far from zero.
// Where they are not, the difference comes first: `offset` is the mean and `rest` the shift.
template <class A>
struct Line {
  A scale, offset, rest;

  [[gnu::always_inline]] A operator()(A x) const {
#ifdef __FMA__
    return fused(x, scale, offset) + rest;
#else
    return (x - offset) * scale + rest;
#endif
  }
};

template <class A>
Line<A> line(A mean, A scale, A shift) {
#ifdef __FMA__
  const A product = mean * scale, lost = fused(mean, scale, -product);
  const A offset = shift - product, back = offset - shift;
  const A rest = (shift - (offset - back)) - (product + back) - lost;
  return {scale, offset, std::isfinite(rest) ? rest : A(0)};
#else
  return {scale, mean, shift};
#endif
}

// Lines of many channels, each part in an array of its own, so that loops over channels vectorise.
template <class A>
struct Lines {
  A *scale, *offset, *rest;  // of as many numbers as there are channels

  void set(int64_t c, const Line<A>& l) const {
    scale[c] = l.scale;
    offset[c] = l.offset;
    rest[c] = l.rest;
  }
  [[gnu::always_inline]] A operator()(A x, int64_t c) const {
    return Line<A>{scale[c], offset[c], rest[c]}(x);
  }
};

}  // namespace facula::cpu::FACULA_ISA
