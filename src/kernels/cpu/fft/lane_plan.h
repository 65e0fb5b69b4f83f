// Transforms of complex lines that stand side by side in lanes, of powers of two: few passes with
// radices up to 16, whose numbers stay in registers, so that caches see each number seldom.
//
// Stockham's order ("High speed convolution and correlation", 1966): a pass with radix R takes its
// R numbers n / R from each other, and what later passes need of it ends up close together, so that
// the result is in order without a pass that sorts it.
#pragma once
#include <bit>
#include <vector>

#include "kernels/cpu/fft/neighbours.h"
#include "kernels/cpu/fft/plans.h"
#include "kernels/cpu/fft/short_lines.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

// The numbers of as many lines side by side in memory as a vector has lanes, `step` numbers apart
// from one element to the next; with their parts exchanged where it goes backward.
template <class T, bool forward>
struct Columns {
  const T* from;
  T* to;
  int64_t from_step, to_step;

  using Number = PlanComplex<PlanVector<T>>;
  [[gnu::always_inline]] Number load(int64_t i) const {
    const auto v = load_complex(from + i * from_step);
    return forward ? Number{v.re, v.im} : Number{v.im, v.re};
  }
  [[gnu::always_inline]] void store(int64_t i, const Number& v) const {
    using Numbers = ComplexLanes<typename Simd<T>::Vec>;
    store_complex(to + i * to_step, forward ? Numbers{v.r, v.i} : Numbers{v.i, v.r});
  }
};

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
  // Backward is forward with real and imaginary parts exchanged, before and after.
  template <class V>
  PlanComplex<V>* run(PlanComplex<V>* line, PlanComplex<V>* room, T scale, bool forward) const {
    PlanComplex<V>* const result = passes_.size() % 2 != 0 ? line : room;
    forward ? run_between<V>(Rows<V, true>{line}, Rows<V, true>{result}, line, room, scale)
            : run_between<V>(Rows<V, false>{line}, Rows<V, false>{result}, line, room, scale);
    return result;
  }

  // Transforms columns of memory to columns, with room for two lines.
  template <bool forward>
  void run_columns(const Columns<T, forward>& columns, T* rows, T scale) const {
    auto* const line = reinterpret_cast<PlanComplex<PlanVector<T>>*>(rows);
    run_between(columns, columns, line, line + n_, scale);
  }

 private:
  // Transforms numbers source.load(i) to sink.store(i, number), with room for two lines.
  template <class V, class Source, class Sink>
  void run_between(const Source& source, const Sink& sink, PlanComplex<V>* line,
                   PlanComplex<V>* room, T scale) const {
    const size_t last = passes_.size() - 1;  // lengths above 16 have at least two passes
    run_pass<false>(passes_[0], source, Rows<V, true>{line}, scale);
    for (size_t k = 1; k < last; ++k, std::swap(line, room))
      run_pass<false>(passes_[k], Rows<V, true>{line}, Rows<V, true>{room}, scale);
    run_pass<true>(passes_[last], Rows<V, true>{line}, sink, scale);
  }

  struct Pass {
    int64_t radix, inner, outer;  // the product of these is the length
    size_t turns;                 // where its roots of unity begin
  };
  static constexpr int most_bits = std::countr_zero(uint64_t{longest_short_line});

  // Numbers in order, or with their parts exchanged.
  template <class V, bool in_order>
  struct Rows {
    PlanComplex<V>* at;
    [[gnu::always_inline]] PlanComplex<V> load(int64_t i) const { return ordered(at[i]); }
    [[gnu::always_inline]] void store(int64_t i, const PlanComplex<V>& v) const {
      at[i] = ordered(v);
    }
    static PlanComplex<V> ordered(const PlanComplex<V>& v) {
      return in_order ? v : PlanComplex<V>{v.i, v.r};
    }
  };

  template <bool is_last, class Source, class Sink>
  void run_pass(const Pass& pass, const Source& source, const Sink& sink, T scale) const {
    switch (pass.radix) {  // a length above 16 has none below 4
      case 4:
        return run_radix<4, is_last>(pass, source, sink, scale);
      case 8:
        return run_radix<8, is_last>(pass, source, sink, scale);
      default:
        return run_radix<16, is_last>(pass, source, sink, scale);
    }
  }

  // a exp(-2 pi i x), for the root exp(2 pi i x).
  template <class V>
  [[gnu::always_inline]] static PlanComplex<V> times(const PlanComplex<V>& a,
                                                     const PlanComplex<T>& root) {
    const V c = V{} + root.r, s = V{} + root.i;
    return {multiply_add<V>(s, a.i, a.r * c), multiply_add<V>(-s, a.r, a.i * c)};
  }

  // The last pass turns nothing, but scales.
  template <int radix, bool is_last, class Source, class Sink>
  [[gnu::noinline]] void run_radix(const Pass& pass, Source source, Sink sink, T scale) const {
    using Number = decltype(source.load(0));
    const int64_t inner = is_last ? 1 : pass.inner, step = inner * pass.outer;
    for (int64_t k = 0; k < pass.outer; ++k) {
      const PlanComplex<T>* turns = turns_.data() + pass.turns;
      for (int64_t i = 0; i < inner; ++i, turns += radix - 1) {
        Number in[radix], out[radix];
#pragma GCC unroll 16
        for (int m = 0; m < radix; ++m) in[m] = source.load(i + inner * (radix * k + m));
        transform_halves<radix, 1, true, T>(in, out);
#pragma GCC unroll 16
        for (int m = 0; m < radix; ++m) {
          if (!is_last && m > 0) out[m] = times(out[m], turns[m - 1]);
          if (is_last && scale != T(1)) out[m] = out[m] * scale;
          sink.store(i + inner * k + step * m, out[m]);
        }
      }
    }
  }

  int64_t n_;
  std::vector<Pass> passes_;
  std::vector<PlanComplex<T>> turns_;
};

}  // namespace facula::cpu::FACULA_ISA
