// Transforms of complex lines that stand side by side in lanes, of powers of two: few passes with
// radices up to 16, whose numbers stay in registers, so that caches see each number seldom.
//
// Stockham's order ("High speed convolution and correlation", 1966): a pass with radix R takes its
// R numbers n / R from each other, and what later passes need of it ends up close together, so that
// the result is in order without a pass that sorts it.
#pragma once
#include <bit>
#include <vector>

#include "kernels/cpu/fft/plans.h"
#include "kernels/cpu/fft/short_lines.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
class LanePlan {
 public:
  static bool serves(int64_t n) { return n > longest_short_line && (n & (n - 1)) == 0; }

  explicit LanePlan(size_t length) : n_(static_cast<int64_t>(length)) {
    const PlanRoots<T> roots(length);
    int64_t outer = 1;
    for (int bits = std::countr_zero(length); bits > 0;) {
      const int passes = (bits + most_bits - 1) / most_bits, now = (bits + passes - 1) / passes;
      const int64_t radix = int64_t{1} << now, inner = n_ / outer / radix;
      passes_.push_back({radix, inner, outer, turns_.size()});
      for (int64_t i = 0; inner > 1 && i < inner; ++i)
        for (int64_t k = 1; k < radix; ++k)
          turns_.push_back(roots[static_cast<size_t>(i * k * outer)]);
      outer *= radix;
      bits -= now;
    }
  }

  size_t length() const { return static_cast<size_t>(n_); }

  // Transforms `line`, with `room` for another one, and returns which of both has the result.
  template <class V>
  PlanComplex<V>* run(PlanComplex<V>* line, PlanComplex<V>* room, T scale, bool forward) const {
    PlanComplex<V>*from = line, *to = line;  // the first pass writes where it has read
    for (const Pass& pass : passes_) {
      run_pass(pass, from, to, scale, forward);
      from = to;
      to = from == line ? room : line;
    }
    return from;
  }

 private:
  struct Pass {
    int64_t radix, inner, outer;  // the product of these is the length
    size_t turns;                 // where its roots of unity begin
  };
  static constexpr int most_bits = std::countr_zero(uint64_t{longest_short_line});

  template <class V>
  void run_pass(const Pass& pass, const PlanComplex<V>* from, PlanComplex<V>* to, T scale,
                bool forward) const {
    const auto run = [&]<int radix>(std::integral_constant<int, radix>) {
      pass.inner > 1 ? run_radix<radix, false>(pass, from, to, scale, forward)
                     : run_radix<radix, true>(pass, from, to, scale, forward);
    };
    switch (pass.radix) {  // a length above 16 has none below 4
      case 4:
        return run(std::integral_constant<int, 4>());
      case 8:
        return run(std::integral_constant<int, 8>());
      default:
        return run(std::integral_constant<int, 16>());
    }
  }

  // a exp(-2 pi i x), for the root exp(2 pi i x).
  template <class V>
  [[gnu::always_inline]] static PlanComplex<V> times(const PlanComplex<V>& a,
                                                     const PlanComplex<T>& root) {
    const V c = V{} + root.r, s = V{} + root.i;
    return {multiply_add<V>(s, a.i, a.r * c), multiply_add<V>(-s, a.r, a.i * c)};
  }

  // Backward is forward with real and imaginary parts exchanged, before and after. The last pass
  // turns nothing, but scales.
  template <int radix, bool is_last, class V>
  [[gnu::noinline]] void run_radix(const Pass& pass, const PlanComplex<V>* from, PlanComplex<V>* to,
                                   T scale, bool forward) const {
    const int64_t inner = is_last ? 1 : pass.inner, re = forward ? 0 : 1, im = 1 - re;
    const int64_t step = 2 * inner * pass.outer;
    for (int64_t k = 0; k < pass.outer; ++k) {
      const PlanComplex<T>* turns = turns_.data() + pass.turns;
      for (int64_t i = 0; i < inner; ++i, turns += radix - 1) {
        const V* source = reinterpret_cast<const V*>(from + i + inner * radix * k);
        V* target = reinterpret_cast<V*>(to + i + inner * k);
        PlanComplex<V> in[radix], out[radix];
#pragma GCC unroll 16
        for (int m = 0; m < radix; ++m)
          in[m] = {source[2 * inner * m + re], source[2 * inner * m + im]};
        transform_halves<radix, 1, true, T>(in, out);
#pragma GCC unroll 16
        for (int m = 0; m < radix; ++m) {
          if (!is_last && m > 0) out[m] = times(out[m], turns[m - 1]);
          if (is_last && scale != T(1)) out[m] = out[m] * scale;
          target[step * m + re] = out[m].r;
          target[step * m + im] = out[m].i;
        }
      }
    }
  }

  int64_t n_;
  std::vector<Pass> passes_;
  std::vector<PlanComplex<T>> turns_;
};

}  // namespace facula::cpu::FACULA_ISA
