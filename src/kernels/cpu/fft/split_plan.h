// One long line as a matrix, so that vectors and threads share its work: Bailey, FFTs in external
// or hierarchical memory (1990).
//
// With n = rows * columns, element r * columns + c stands in row r and column c. Columns are
// transformed, several in the lanes of vectors; element k of column c is turned by c * k / n; then
// rows are transformed in the same way. Coefficient q of row k is coefficient q * rows + k.
#pragma once
#include "kernels/cpu/fft/line_block.h"
#include "kernels/cpu/fft/plans.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
class SplitPlan {
 public:
  explicit SplitPlan(size_t length) : n_(static_cast<int64_t>(length)) {
    choose_sides();
    if (!serves()) return;
    column_plan_ = plan_of<ComplexPlan<T>>(rows_);
    row_plan_ = plan_of<ComplexPlan<T>>(columns_);
    make_turns();
  }

  size_t length() const { return static_cast<size_t>(n_); }
  // Whether the length has factors with which this is worth while.
  bool serves() const { return rows_ > 0; }
  // Numbers of the scratch memory that `run` wants.
  int64_t scratch() const { return blocks(rows_) * columns_ * row; }

  // n complex numbers from `from` to `to`, which may be the same memory.
  void run(const T* from, T* to, T* scratch, T scale, bool forward) const {
    if (rows_ % lanes != 0)
      std::fill_n(scratch + (blocks(rows_) - 1) * columns_ * row, columns_ * row, T(0));
    const int64_t whole = line_cost(n_);
    parallel_for(blocks(columns_), chunk_of(whole / (6 * blocks(columns_))),
                 [&](int64_t begin, int64_t end) {
                   const Scratch<T> block(rows_ * row);
                   for (int64_t b = begin; b < end; ++b)
                     transform_columns(from, b * lanes, block.get(), scratch, forward);
                 });
    parallel_for(blocks(rows_), chunk_of(whole / (6 * blocks(rows_))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b)
                     transform_rows(scratch + b * columns_ * row, to, b * lanes, scale, forward);
                 });
  }

 private:
  static constexpr int64_t lanes = lanes_of<T>, row = 2 * lanes;  // real parts, imaginary parts
  using Vectors = PlanComplex<PlanVector<T>>;
  static int64_t blocks(int64_t side) { return ceil_div(side, lanes); }

  // The sides that take the fewest operations, lanes that stay empty counted in.
  void choose_sides() {
    double least = plan_cost(n_) / 2;
    for (int64_t d = 2; d * d <= n_; ++d) {
      if (n_ % d != 0) continue;
      const int64_t e = n_ / d;
      const double cost = static_cast<double>(blocks(d)) * plan_cost(e) +
                          static_cast<double>(blocks(e)) * plan_cost(d);
      if (cost > least) continue;
      least = cost;
      rows_ = d;
      columns_ = e;
    }
  }

  void make_turns() {
    const PlanRoots<T> roots(length());
    turns_.resize(static_cast<size_t>(blocks(columns_) * rows_ * row));
    T* to = turns_.data();
    for (int64_t first = 0; first < columns_; first += lanes)
      for (int64_t k = 0; k < rows_; ++k, to += row)
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const auto root = roots[static_cast<size_t>((first + lane) * k % n_)];
          to[lane] = root.r;
          to[lanes + lane] = root.i;
        }
  }

  template <bool forward>
  static void turn(T* numbers, const T* turns, int64_t count) {
    for (int64_t k = 0; k < count; ++k, numbers += row, turns += row)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const T re = numbers[lane], im = numbers[lanes + lane], c = turns[lane],
                s = forward ? -turns[lanes + lane] : turns[lanes + lane];
        numbers[lane] = re * c - im * s;
        numbers[lanes + lane] = re * s + im * c;
      }
  }

  // Columns first, first + 1, ... to rows of the scratch memory, where lanes are rows.
  void transform_columns(const T* from, int64_t first, T* block, T* scratch, bool forward) const {
    LineStarts<lanes> at;
    at.count = min_of(lanes, columns_ - first);
    at.step = columns_;
    for (int64_t k = 0; k < at.count; ++k) at.start[k] = first + k;
    load_lines<2>(block, from, at, rows_);
    column_plan_->exec(reinterpret_cast<Vectors*>(block), T(1), forward);
    const T* turns = turns_.data() + first * rows_ * 2;
    forward ? turn<true>(block, turns, rows_) : turn<false>(block, turns, rows_);
    for (int64_t k = 0; k < rows_; k += lanes) {
      T* to = scratch + (k * columns_ + first * lanes) * 2;
      const T* source = block + k * row;
      const int64_t high = min_of(lanes, rows_ - k);
      turn_into_lines<lanes>(to, row, source, high, at.count, row);
      turn_into_lines<lanes>(to + lanes, row, source + lanes, high, at.count, row);
    }
  }

  void transform_rows(T* block, T* to, int64_t first, T scale, bool forward) const {
    row_plan_->exec(reinterpret_cast<Vectors*>(block), scale, forward);
    LineStarts<lanes> at;
    at.count = min_of(lanes, rows_ - first);
    at.step = rows_;
    for (int64_t k = 0; k < at.count; ++k) at.start[k] = first + k;
    store_lines<2>(to, block, at, columns_);
  }

  int64_t n_, rows_ = 0, columns_ = 0;
  std::shared_ptr<const ComplexPlan<T>> column_plan_, row_plan_;
  PlanArray<T> turns_;  // as blocks of columns lie
};

// Whether lines are too few or too long to stand side by side. Those that lie beside each other
// in memory do it as long as they fit into the second cache. Rows of memory do it as long as they
// fit into the first, and longer where a matrix would leave lanes empty, but for few lines, which
// are shared out among threads one by one. An element is of `width` numbers.
template <class T>
bool should_split(const LinePairs& lines, int64_t n, int64_t width) {
  constexpr int64_t lanes = lanes_of<T>, first_cache = 64 * 1024, second_cache = 192 * 1024;
  if (n * width < 16 * lanes) return false;
  if (2 * lines.count() < lanes) return true;
  const int64_t bytes = width * n * lanes * static_cast<int64_t>(sizeof(T));
  if (lines.from_step() != 1 || lines.to_step() != 1) return bytes > lane_bytes;
  const bool fills_lanes = width * n / 2 % (lanes * lanes) == 0;
  return bytes >= (fills_lanes || lines.count() < 4 * lanes ? first_cache : second_cache);
}

// Calls body(from, to, scratch) for each line by itself, with `scratch` numbers of memory. Lines
// with gaps between their elements are copied to memory without and back.
template <int WidthFrom, int WidthTo, class T, class Body>
void for_each_split_line(const LinePairs& lines, const T* from, T* to, int64_t from_length,
                         int64_t to_length, int64_t scratch, Body&& body) {
  const int64_t cost = line_cost(std::max(from_length, to_length)) / 3;
  const bool packed = lines.from_step() != 1, unpacked = lines.to_step() != 1;
  parallel_for(lines.count(), chunk_of(cost), [&](int64_t begin, int64_t end) {
    const Scratch<T> room(scratch), source(packed ? WidthFrom * from_length : 0),
        target(unpacked ? WidthTo * to_length : 0);
    for (int64_t k = begin; k < end; ++k) {
      LineStarts<1> in, out;
      lines.starts(k, 1, in.start, out.start);
      in.step = lines.from_step();
      out.step = lines.to_step();
      if (packed) load_lines<WidthFrom>(source.get(), from, in, from_length);
      body(packed ? source.get() : from + WidthFrom * in.start[0],
           unpacked ? target.get() : to + WidthTo * out.start[0], room.get());
      if (unpacked) store_lines<WidthTo>(to, target.get(), out, to_length);
    }
  });
}

}  // namespace facula::cpu::FACULA_ISA
