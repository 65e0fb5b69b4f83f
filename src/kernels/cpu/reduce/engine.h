// The reduction engine, a template over what is computed, built once per instruction set.
//
// An Op states In (element type), Acc (what is accumulated), Out, and
//   Acc init();  Acc step(Acc, In, Acc center);  Acc combine(Acc, Acc);  Out finish(Acc, Acc
//   center);
// `centered` says that step and finish need a number of their result (a mean, a maximum); `costly`
// that a step is long. An Op whose sums are integers may state Narrow, a type that holds the sum of
// a block's rows, and narrow_step(Narrow, In): more lanes go into a register then.
//
// Rows of `lanes` elements are added to as many accumulators; after `block_rows` rows those go into
// a cascade of partial results, merged pairwise. All of that follows from the shape alone: the bits
// are the same for any number of threads and any instruction set.
#pragma once
#include <bit>
#include <type_traits>

#include "core/threads.h"
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/loop/scratch.h"
#include "kernels/cpu/reduce/plan.h"
#include "kernels/cpu/reduce/row_groups.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/cpu/simd/block_sizes.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

template <class Acc>
inline constexpr int reduce_lanes =
    sizeof(Acc) >= 16 ? 8 : 128 / static_cast<int>(sizeof(Acc) < 4 ? 4 : sizeof(Acc));
// Long chains of additions lose digits: short rows alternate between two sets of accumulators.
inline constexpr int64_t block_rows = 32, short_rows = 2 * block_rows;

// Rows of neighbouring elements, eight at a time: the compiler turns the loop over columns into
// vectors.
template <class Op>
[[gnu::always_inline]] inline void add_rows(const Op& op, typename Op::Acc* __restrict acc,
                                            const typename Op::In* __restrict x, int64_t step,
                                            int64_t rows, int width,
                                            const typename Op::Acc* __restrict center) {
  constexpr int together = Op::costly ? 1 : 8;
  // Shorter chains lose fewer digits.
  constexpr int chains = together > 1 && std::is_floating_point_v<typename Op::Acc> ? 2 : 1;
  int64_t r = 0;
  for (; r + together <= rows; r += together, x += together * step) {
    for (int c = 0; c < width; ++c) {
      typename Op::Acc sums[2] = {acc[c], op.init()};
#pragma GCC unroll 8
      for (int k = 0; k < together; ++k)
        sums[k % chains] = op.step(sums[k % chains], x[c + k * step],
                                   Op::centered ? center[c] : typename Op::Acc());
      acc[c] = chains == 1 ? sums[0] : op.combine(sums[0], sums[1]);
    }
  }
  if constexpr (together > 1)
    for (; r < rows; ++r, x += step)
      for (int c = 0; c < width; ++c)
        acc[c] = op.step(acc[c], x[c], Op::centered ? center[c] : typename Op::Acc());
}

template <class In, int count>
[[gnu::always_inline]] inline void prefetch_lines(const In* x) {
#pragma GCC unroll 16
  for (int at = 0; at < count * static_cast<int>(sizeof(In)); at += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(x) + at);
}

// Dense rows of a fixed number of lanes, two at a time: the accumulators stay in registers. Memory
// `ahead` elements further on is prefetched, if any.
template <class Op, int lanes>
[[gnu::noinline]] void add_lanes(const Op& op, typename Op::Acc* __restrict acc,
                                 const typename Op::In* __restrict x, int64_t rows, int64_t ahead,
                                 typename Op::Acc center) {
  if constexpr (requires { op.narrow_step({}, *x); }) {
    using Narrow = typename Op::Narrow;
    Narrow few[2 * lanes] = {};
    for (; rows >= 2; rows -= 2, x += 2 * lanes)
      for (int i = 0; i < 2 * lanes; ++i) few[i] = op.narrow_step(few[i], x[i]);
    for (int i = 0; i < lanes; ++i)
      acc[i] = op.combine(acc[i], static_cast<Narrow>(few[i] + few[lanes + i]));
  }
  typename Op::Acc both[2 * lanes];
  for (int i = 0; i < lanes; ++i) both[i] = acc[i];
  for (int i = lanes; i < 2 * lanes; ++i) both[i] = op.init();
  for (; rows >= 2; rows -= 2, x += 2 * lanes) {
    if (ahead != 0) prefetch_lines<typename Op::In, 2 * lanes>(x + ahead);
    for (int i = 0; i < 2 * lanes; ++i) both[i] = op.step(both[i], x[i], center);
  }
  for (int i = 0; rows > 0 && i < lanes; ++i) both[i] = op.step(both[i], x[i], center);
  for (int i = 0; i < lanes; ++i) acc[i] = op.combine(both[i], both[lanes + i]);
}

// The same for elements apart.
template <class Op>
[[gnu::noinline]] void add_apart(const Op& op, typename Op::Acc* __restrict acc,
                                 const typename Op::In* __restrict x, int64_t step, int64_t rows,
                                 int width, int64_t column,
                                 const typename Op::Acc* __restrict center) {
  for (int64_t r = 0; r < rows; ++r, x += step)
    for (int c = 0; c < width; ++c)
      acc[c] = op.step(acc[c], x[c * column], Op::centered ? center[c] : typename Op::Acc());
}

// Accumulators of one task with the cascade of full blocks below them.
template <class Op>
class Cascade {
 public:
  using Acc = typename Op::Acc;
  using In = typename Op::In;
  // Integers lose no digits: where their sums are not narrow ones, blocks are longer.
  static constexpr int64_t block =
      std::is_integral_v<Acc> && !requires { typename Op::Narrow; } ? 16 * block_rows : block_rows;

  // room: (2 + levels(rows)) * width accumulators
  Cascade(const Op& op, Acc* room, int width)
      : op_(op), acc_(room), levels_(room + width), width_(width) {
    clear();
  }
  static int64_t levels(int64_t rows) {
    return std::bit_width(static_cast<uint64_t>(rows / block + 1)) + 1;
  }

  // Adds rows of `width` elements.
  void add(const In* x, int64_t step, int64_t rows, int64_t column, const Acc* center) {
    while (rows > 0) {
      const int64_t n = rows < block - rows_ ? rows : block - rows_;
      if (column == 1)
        add_rows(op_, acc_, x, step, n, width_, center);
      else
        add_apart(op_, acc_, x, step, n, width_, column, center);
      rows -= n;
      x += n * step;
      if ((rows_ += n) == block) push();
    }
  }
  // Adds dense rows of all lanes, prefetching `ahead` elements further on.
  template <int lanes>
  void add_dense(const In* x, int64_t rows, int64_t ahead, Acc center) {
    // Short lines stay whole: a block may end before it is full.
    if (rows_ > 0 && rows_ + rows > block) push();
    while (rows > 0) {
      const int64_t n = rows < block - rows_ ? rows : block - rows_;
      add_lanes<Op, lanes>(op_, acc_, x, n, ahead, center);
      rows -= n;
      x += n * lanes;
      if ((rows_ += n) == block) push();
    }
  }
  // Adds the elements that are left of a row, fewer than `width`.
  void add_rest(const In* x, int count, int64_t column, const Acc* center) {
    if (column == 1)
      add_rows(op_, acc_, x, 0, 1, count, center);
    else
      add_apart(op_, acc_, x, 0, 1, count, column, center);
  }
  // The results of the columns.
  const Acc* finish() {
    for (uint64_t left = blocks_; left; left &= left - 1)
      merge(acc_, level(std::countr_zero(left)));
    return acc_;
  }
  // The one result of all lanes.
  Acc finish_lanes() {
    finish();
    for (int w = width_ / 2; w > 0; w /= 2)
      for (int i = 0; i < w; ++i) acc_[i] = op_.combine(acc_[i], acc_[i + w]);
    return acc_[0];
  }

 private:
  Acc* level(int k) { return levels_ + static_cast<int64_t>(k) * width_; }
  void clear() {
    for (int i = 0; i < width_; ++i) acc_[i] = op_.init();
    rows_ = 0;
  }
  void merge(Acc* __restrict into, const Acc* __restrict from) {
    for (int i = 0; i < width_; ++i) into[i] = op_.combine(from[i], into[i]);
  }
  void push() {
    int k = 0;
    for (; blocks_ >> k & 1; ++k) merge(acc_, level(k));
    Acc* to = level(k);
    for (int i = 0; i < width_; ++i) to[i] = acc_[i];
    ++blocks_;
    clear();
  }

  const Op& op_;
  Acc* acc_;
  Acc* levels_;
  int width_;
  int64_t rows_ = 0;
  uint64_t blocks_ = 0;
};

// Walks every reduced position of one part: calls line(pointer, length) for the innermost
// dimension.
template <class In, class Line>
void walk_reduced(const ReducePlan& p, const In* x, int64_t part, Line&& line) {
  IntVec sizes = p.reduced;
  const int64_t first = part * p.part_length;
  sizes[0] = sizes[0] - first < p.part_length ? sizes[0] - first : p.part_length;
  x += first * p.reduced_in[0];
  const int last = static_cast<int>(sizes.size()) - 1;
  IntVec index(sizes.size());
  while (true) {
    line(x, sizes[last]);
    int d = last - 1;
    for (; d >= 0; --d) {
      x += p.reduced_in[d];
      if (++index[d] < sizes[d]) break;
      x -= sizes[d] * p.reduced_in[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// Whether a task reads one row of few rows of lanes.
inline bool is_short_row(const ReducePlan& p, int lanes) {
  return !p.columns && p.reduced.size() == 1 && p.parts == 1 && p.reduced_in[0] == 1 &&
         p.count <= int64_t{lanes} * short_rows;
}

// Adds the elements that are left of a row to the first accumulators. All lanes are computed: a
// loop over the few that count would keep the accumulators in memory.
template <class Op, int lanes>
[[gnu::always_inline]] inline void add_short_rest(const Op& op, typename Op::Acc* acc,
                                                  const typename Op::In* x, int64_t left,
                                                  typename Op::Acc center) {
  if constexpr (std::is_floating_point_v<typename Op::Acc>) {
    if (left == 0) return;
    typename Op::In rest[lanes] = {};
    for (int64_t i = 0; i < left; ++i) rest[i] = x[i];
    for (int i = 0; i < lanes; ++i) {
      const typename Op::Acc next = op.step(acc[i], rest[i], center);
      acc[i] = i < left ? next : acc[i];
    }
  } else {
    for (int64_t i = 0; i < left; ++i) acc[i] = op.step(acc[i], x[i], center);
  }
}

// Such a row, without a cascade: a fixed number of lanes stays in registers. Long
// rows take two sets of them in turns, so that one sum need not wait for the one before.
template <class Op>
typename Op::Acc short_row(const Op& op, const typename Op::In* x, int64_t n, int64_t ahead,
                           const typename Op::Acc* centers) {
  using Acc = typename Op::Acc;
  constexpr int lanes = reduce_lanes<Acc>;
  const Acc center = Op::centered ? centers[0] : Acc();
  // Both sets in one array: GCC unrolls a loop over 16 doubles before it looks for vectors.
  Acc acc[2 * lanes];
  for (int i = 0; i < 2 * lanes; ++i) acc[i] = op.init();
  int64_t at = 0;
  if (n >= 4 * lanes) {
    for (; at + 2 * lanes <= n; at += 2 * lanes) {
      if (ahead != 0) prefetch_lines<typename Op::In, 2 * lanes>(x + at + ahead);
      for (int i = 0; i < 2 * lanes; ++i) acc[i] = op.step(acc[i], x[at + i], center);
    }
    for (int i = 0; i < lanes; ++i) acc[i] = op.combine(acc[i], acc[lanes + i]);
  }
  for (; at + lanes <= n; at += lanes)
    for (int i = 0; i < lanes; ++i) acc[i] = op.step(acc[i], x[at + i], center);
  constexpr int half = lanes / 2;
  if (n - at >= half) {
    for (int i = 0; i < half; ++i) acc[i] = op.step(acc[i], x[at + i], center);
    add_short_rest<Op, half>(op, acc + half, x + at + half, n - at - half, center);
  } else {
    add_short_rest<Op, half>(op, acc, x + at, n - at, center);
  }
  fold_lanes<lanes / 2>(op, acc);
  return acc[0];
}

// The prefetch distance of a task in elements: further on in its row or in the rows that follow, or
// in the next of the short rows that the task walks; 0 for none.
template <class In>
int64_t elements_ahead(const ReducePlan& p) {
  const int64_t elements = block_sizes().prefetch_distance / static_cast<int64_t>(sizeof(In));
  if (elements == 0) return 0;
  const size_t inner = p.reduced.size() - 1;
  if (p.reduced[inner] > 2 * elements) return elements;
  if (inner > 0) return p.reduced_in[inner - 1];
  return p.kept.empty() || p.kept_in.back() == p.count ? elements : 0;
}

// Columns that are rows of memory, short ones side by side: blocks of them are transposed first, by
// squares of vectors where elements have 4 or 8 bytes. Half types keep the order of floats.
template <class Op>
inline constexpr bool by_squares =
    std::is_arithmetic_v<typename Op::In> && sizeof(typename Op::In) >= 4;
template <class Op>
inline constexpr bool transposes =
    !Op::costly && (by_squares<Op> || std::is_floating_point_v<accumulate_t<typename Op::In>>);
// With fewer rows or columns squares of vectors do not pay.
inline constexpr int64_t least_transposed = 4;

template <class Op>
bool is_transposed(const ReducePlan& p, int64_t columns) {
  return transposes<Op> && p.width_in != 1 && p.reduced_in.back() == 1 &&
         columns >= least_transposed && p.reduced.back() >= least_transposed;
}

template <class Op>
void add_transposed(Cascade<Op>& sums, const typename Op::In* x, int64_t rows, int64_t columns,
                    int64_t column, const typename Op::Acc* center) {
  if constexpr (transposes<Op>) {
    alignas(64) typename Op::In block[block_rows * ReducePlan::strided];
    for (int64_t r = 0; r < rows; r += block_rows) {
      const int64_t n = min_of(block_rows, rows - r);
      if constexpr (by_squares<Op>)
        copy_transposed(block, ReducePlan::strided, x + r, column, n, columns);
      else
        transpose_elements(block, ReducePlan::strided, x + r, column, n, columns);
      sums.add(block, ReducePlan::strided, n, 1, center);
    }
  }
}

// Whether columns are short rows of memory that go one by one.
template <class Op>
bool are_row_groups(const ReducePlan& p) {
  return p.reduced.size() == 1 && p.parts == 1 && p.reduced_in[0] == 1 && p.width_in != 1 &&
         p.count >= group_lanes<Op> && p.count <= short_rows;
}

// Columns, a few rows of them as one where the plan says so.
template <class Op>
void run_columns(const Op& op, const ReducePlan& p, const typename Op::In* x, int64_t columns,
                 int64_t part, const typename Op::Acc* center, typename Op::Acc* room,
                 typename Op::Acc* to) {
  if constexpr (groups_rows<Op>)
    if (are_row_groups<Op>(p))
      return reduce_rows(op, x, p.width_in, p.count, columns, block_sizes().prefetch_distance, to);
  const int64_t inner = p.reduced_in.back(), wide = columns * p.folded;
  const bool transposed = is_transposed<Op>(p, columns);
  typename Op::Acc centers[Op::centered ? ReducePlan::widest : 1];
  for (int64_t i = 0; Op::centered && i < wide; ++i) centers[i] = center[i % columns];
  Cascade<Op> c(op, room, static_cast<int>(wide));
  walk_reduced(p, x, part, [&](const typename Op::In* at, int64_t n) {
    if (transposed) return add_transposed(c, at, n, columns, p.width_in, centers);
    const int64_t rows = n / p.folded, rest = n % p.folded;
    c.add(at, p.folded * inner, rows, p.width_in, centers);
    if (rest > 0) c.add_rest(at + rows * wide, static_cast<int>(rest * columns), 1, centers);
  });
  const typename Op::Acc* done = c.finish();
  for (int64_t i = 0; i < columns; ++i) to[i] = done[i];
  for (int64_t k = 1; k < p.folded; ++k)
    for (int64_t i = 0; i < columns; ++i) to[i] = op.combine(to[i], done[k * columns + i]);
}

// One task of one part; the results of its columns go to `to`.
template <class Op>
void run_task(const Op& op, const ReducePlan& p, const typename Op::In* x, int64_t columns,
              int64_t part, const typename Op::Acc* center, typename Op::Acc* room,
              typename Op::Acc* to) {
  using Acc = typename Op::Acc;
  const int64_t inner = p.reduced_in.back();
  if (p.columns) return run_columns(op, p, x, columns, part, center, room, to);
  constexpr int lanes = reduce_lanes<Acc>;
  Acc same[Op::centered ? lanes : 1];
  if (Op::centered)
    for (Acc& a : same) a = *center;
  Cascade<Op> c(op, room, lanes);
  const int64_t ahead = elements_ahead<typename Op::In>(p);
  walk_reduced(p, x, part, [&](const typename Op::In* at, int64_t n) {
    const int64_t full = n / lanes;
    if (inner == 1)
      c.template add_dense<lanes>(at, full, ahead, Op::centered ? *center : Acc());
    else
      c.add(at, lanes * inner, full, inner, same);
    if (n % lanes) c.add_rest(at + full * lanes * inner, static_cast<int>(n % lanes), inner, same);
  });
  *to = c.finish_lanes();
}

template <class Op>
void finish_task(const Op& op, const ReducePlan& p, int64_t task, const typename Op::Acc* acc,
                 const typename Op::Acc* center, typename Op::Out* out) {
  const ReducePlan::Place at = p.place(task);
  for (int64_t i = 0; i < at.columns; ++i) {
    const int64_t o = at.out + i * p.width_out;
    out[o] = op.finish(acc[i], Op::centered ? center[o] : typename Op::Acc());
  }
}

// Merges the parts of a task pairwise into the first.
template <class Op>
void merge_parts(const Op& op, const ReducePlan& p, typename Op::Acc* acc) {
  for (int64_t gap = 1; gap < p.parts; gap *= 2)
    for (int64_t i = 0; i + gap < p.parts; i += 2 * gap)
      for (int64_t c = 0; c < p.tile; ++c)
        acc[i * p.tile + c] = op.combine(acc[i * p.tile + c], acc[(i + gap) * p.tile + c]);
}

// Fills contiguous `out` from `in`; `center` is laid out as out. Nothing to reduce gives
// finish(init).
template <class Op>
void reduce(const Op& op, const ReducePlan& p, const typename Op::In* in, typename Op::Out* out,
            const typename Op::Acc* center = nullptr) {
  using Acc = typename Op::Acc;
  if (p.results == 0) return;
  if (p.count == 0) {
    for (int64_t i = 0; i < p.results; ++i)
      out[i] = op.finish(op.init(), Op::centered ? center[i] : Acc());
    return;
  }
  if (p.results == 1 && is_short_row(p, reduce_lanes<Acc>)) {
    *out = op.finish(short_row(op, in, p.count, 0, center), Op::centered ? *center : Acc());
    return;
  }
  const int64_t work = p.task_work(), grain = work >= 32768 ? 1 : 32768 / work;
  if (is_short_row(p, reduce_lanes<Acc>)) {
    const int64_t ahead = elements_ahead<typename Op::In>(p);
    parallel_for(p.tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const ReducePlan::Place at = p.place(i);
        const Acc* c = Op::centered ? center + at.out : nullptr;
        out[at.out] =
            op.finish(short_row(op, in + at.in, p.count, ahead, c), Op::centered ? *c : Acc());
      }
    });
    return;
  }
  const int64_t width = p.columns ? p.tile * p.folded : reduce_lanes<Acc>;
  const int64_t room = (2 + Cascade<Op>::levels(p.count)) * width;
  const bool whole = p.parts == 1;
  Scratch<Acc> partial(whole ? 0 : p.tasks * p.parts * p.tile);
  parallel_for(p.tasks * p.parts, grain, [&](int64_t begin, int64_t end) {
    Scratch<Acc> scratch(room + p.tile + (Op::centered ? p.tile : 0));
    Acc* done = scratch.get() + room;
    Acc* centers = done + p.tile;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t task = i / p.parts;
      const ReducePlan::Place at = p.place(task);
      if (Op::centered)
        for (int64_t c = 0; c < at.columns; ++c) centers[c] = center[at.out + c * p.width_out];
      Acc* to = whole ? done : partial.get() + i * p.tile;
      run_task(op, p, in + at.in, at.columns, i % p.parts, centers, scratch.get(), to);
      if (whole) finish_task(op, p, task, to, center, out);
    }
  });
  if (whole) return;
  for (int64_t t = 0; t < p.tasks; ++t) {
    Acc* acc = partial.get() + t * p.parts * p.tile;
    merge_parts(op, p, acc);
    finish_task(op, p, t, acc, center, out);
  }
}

}  // namespace facula::cpu::FACULA_ISA
