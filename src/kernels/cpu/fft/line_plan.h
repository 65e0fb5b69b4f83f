// Lines of powers of two whose numbers lie side by side in memory: vectors hold neighbours of one
// line, so lines need not be turned into lanes and back.
//
// With n = 16 m, a line is a matrix of 16 rows with m numbers each, as in split_plan.h: its columns
// are transformed in lanes and turned; squares of 16 columns are transposed; then the rows, in
// lanes in their turn, are transformed, and their coefficients come out as memory wants them.
#pragma once
#include "kernels/cpu/fft/lane_plan.h"
#include "kernels/cpu/fft/line_block.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)

class LinePlan {
 public:
  static constexpr int64_t longest = 1024;  // more would not stay in the first cache
  static bool serves(int64_t n) { return n >= shortest && n <= longest && (n & (n - 1)) == 0; }

  explicit LinePlan(size_t length) : n_(static_cast<int64_t>(length)), columns_(n_ / rows) {
    if (LanePlan<float>::serves(columns_)) row_plan_ = plan_of<LanePlan<float>>(columns_);
    const PlanRoots<float> roots(length);
    for (int64_t first = 0; first < columns_; first += rows)
      for (int64_t k = 1; k < rows; ++k)
        for (const auto part : {&PlanComplex<float>::r, &PlanComplex<float>::i})
          for (int64_t c = first; c < first + rows; ++c)
            turns_.push_back(roots[static_cast<size_t>(c % columns_ * k)].*part);
  }

  size_t length() const { return static_cast<size_t>(n_); }
  // How many lines fill the vectors.
  int64_t lines_at_once() const { return max_of<int64_t>(1, rows / columns_); }
  // Numbers of the scratch memory that `transform` wants.
  int64_t scratch() const { return 4 * max_of(n_, rows * rows) + square; }

  // Calls sink(line, k, re, im) with coefficients k, k + 1, ... of line 0 at `first`, and of line 1
  // at `second` where two are done at once. Backward is forward with real and imaginary parts
  // exchanged, here before, and by the sink after.
  template <bool forward, class Sink>
  [[gnu::always_inline]] void transform(const float* first, const float* second, float* scratch,
                                        float scale, Sink&& sink) const {
    auto* const line = reinterpret_cast<Number*>(scratch + square);
    transform_columns<forward>(first, columns_ < rows ? second : first + rows, scratch,
                               scratch + square);
    if (columns_ == 8) {
      transform_rows<8>(line, 0, scale, sink);
      transform_rows<8>(line + 8, 1, scale, sink);
    } else if (columns_ == 16) {
      transform_rows<16>(line, 0, scale, sink);
    } else {
      const Number* result = row_plan_->run(line, line + columns_, scale, true);
      for (int64_t i = 0; i < columns_; ++i) sink(0, i * rows, result[i].r, result[i].i);
    }
  }

 private:
  using Vec = Simd<float>::Vec;
  using Number = PlanComplex<PlanVector<float>>;
  static constexpr int64_t rows = Simd<float>::lanes, shortest = 8 * rows, square = 2 * rows * rows;

  // a exp(-2 pi i x), for roots exp(2 pi i x).
  [[gnu::always_inline]] static Number turned_by(const Number& a, const float* roots) {
    const Vec c = Simd<float>::load(roots), s = Simd<float>::load(roots + rows);
    return {multiply_add<Vec>(s, a.i, a.r * c), multiply_add<Vec>(-s, a.r, a.i * c)};
  }

  // Vectors begin with numbers of `low` and go on with as many of `high`.
  template <bool forward>
  [[gnu::noinline]] void transform_columns(const float* low, const float* high, float* scratch,
                                           float* lines) const {
    constexpr std::make_index_sequence<size_t{rows}> each;
    const float* turns = turns_.data();
    for (int64_t c = 0; c < columns_; c += rows) {
      Number in[rows], out[rows];
#pragma GCC unroll 16
      for (int64_t k = 0; k < rows; ++k) {
        const int64_t at = 2 * (k * columns_ + c);
        const Vec a = Simd<float>::load(low + at), b = Simd<float>::load(high + at);
        in[k] = {every_second<forward ? 0 : 1, false>(a, b, each),
                 every_second<forward ? 1 : 0, false>(a, b, each)};
      }
      transform_halves<rows, 1, true, float>(in, out);
#pragma GCC unroll 16
      for (int64_t k = 0; k < rows; ++k) {
        if (k > 0) out[k] = turned_by(out[k], turns + 2 * rows * (k - 1));
        Simd<float>::store(scratch + k * rows, out[k].r);
        Simd<float>::store(scratch + (rows + k) * rows, out[k].i);
      }
      turns += 2 * rows * (rows - 1);
      lanes_to_lines(lines + 2 * rows * c, 2 * rows, scratch, rows);
      lanes_to_lines(lines + 2 * rows * c + rows, 2 * rows, scratch + rows * rows, rows);
    }
  }

  template <int columns, class Sink>
  [[gnu::always_inline]] void transform_rows(const Number* from, int line, float scale,
                                             Sink&& sink) const {
    Number in[columns], out[columns];
#pragma GCC unroll 16
    for (int i = 0; i < columns; ++i) in[i] = from[i];
    transform_halves<columns, 1, true, float>(in, out);
#pragma GCC unroll 16
    for (int i = 0; i < columns; ++i) {
      if (scale != 1.0F) out[i] = out[i] * scale;
      sink(line, i * rows, out[i].r, out[i].i);
    }
  }

  int64_t n_, columns_;
  std::shared_ptr<const LanePlan<float>> row_plan_;
  std::vector<float> turns_;  // of each square of columns: for each row but the first
};

// Calls body(from, to, scratch) on several threads with arrays of where `at_once` lines begin,
// the last line again where there are no more.
template <int WidthFrom, int WidthTo, class Body>
void for_each_whole_line(const LinePairs& lines, const float* from, float* to, int64_t at_once,
                         int64_t cost, int64_t scratch, Body&& body) {
  constexpr int64_t most = 16;  // lines whose starts are looked up together
  parallel_for(ceil_div(lines.count(), at_once), chunk_of(cost * at_once),
               [&](int64_t begin, int64_t end) {
                 const Scratch<float> room(scratch);
                 end = min_of(end * at_once, lines.count());
                 for (int64_t first = begin * at_once; first < end; first += most) {
                   int64_t in[most], out[most];
                   const int64_t count = min_of(most, end - first);
                   lines.starts(first, count, in, out);
                   for (int64_t k = 0; k < count; k += at_once) {
                     const int64_t next = min_of(k + at_once, count) - 1;
                     body(from + WidthFrom * in[k], from + WidthFrom * in[next],
                          to + WidthTo * out[k], to + WidthTo * out[next], room.get());
                   }
                 }
               });
}

template <bool forward>
void transform_whole_lines(const LinePairs& lines, const float* from, float* to, int64_t n,
                           float scale) {
  const auto plan = plan_of<LinePlan>(n);
  for_each_whole_line<2, 2>(
      lines, from, to, plan->lines_at_once(), line_cost(n) / 4, plan->scratch(),
      [&](const float* first, const float* second, float* to_first, float* to_second,
          float* scratch) {
        plan->transform<forward>(first, second, scratch, scale,
                                 [=](int line, int64_t k, auto re, auto im) {
                                   using Numbers = ComplexLanes<decltype(re)>;
                                   store_complex((line == 0 ? to_first : to_second) + 2 * k,
                                                 forward ? Numbers{re, im} : Numbers{im, re});
                                 });
      });
}

#endif

// Transforms lines by LinePlan where it serves, and returns whether it does.
template <class T>
bool transform_as_whole_lines([[maybe_unused]] const LinePairs& lines,
                              [[maybe_unused]] const T* from, [[maybe_unused]] T* to,
                              [[maybe_unused]] int64_t n, [[maybe_unused]] T scale,
                              [[maybe_unused]] bool forward) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    if (lines.from_step() != 1 || lines.to_step() != 1 || !LinePlan::serves(n)) return false;
    forward ? transform_whole_lines<true>(lines, from, to, n, scale)
            : transform_whole_lines<false>(lines, from, to, n, scale);
    return true;
  }
#endif
  return false;
}

}  // namespace facula::cpu::FACULA_ISA
