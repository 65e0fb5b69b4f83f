// Some lines side by side, one in each lane of vectors, and how they come from tensors and go back.
#pragma once
#include <bit>

#include "core/threads.h"
#include "kernels/cpu/fft/line_pairs.h"
#include "kernels/cpu/fft/neighbours.h"
#include "kernels/cpu/fft/pocketfft.h"
#include "kernels/cpu/fft/turn_lines.h"
#include "kernels/cpu/loop/copy_transposed.h"

namespace facula::cpu::FACULA_ISA {

// Lines in memory: where they begin, how many there are, and the steps between their elements.
// Complex numbers are `Width` = 2 numbers side by side, real ones 1; starts and steps count those.
template <int64_t Lanes>
struct LineStarts {
  int64_t start[Lanes];
  int64_t count = Lanes, step = 1;

  // The distance from each line to the next where it is always the same, else 0.
  int64_t distance() const {
    const int64_t d = count > 1 ? start[1] - start[0] : 1;
    int64_t off = 0;
    for (int64_t k = 0; k < count; ++k) off |= start[k] - start[0] - k * d;
    return off == 0 ? d : 0;
  }
  // Where the lines that lie beside line k end.
  int64_t end_of_neighbours(int64_t k) const {
    do ++k;
    while (k < count && start[k] == start[k - 1] + 1);
    return k;
  }
};

// Calls body(begin, end, start) for lines that lie beside each other, whose first begins there,
// and returns true, if there are few such groups, as where a block goes on in the next matrix.
template <int64_t Lanes, class Body>
bool for_few_neighbours(const LineStarts<Lanes>& at, Body&& body) {
  constexpr int64_t most = 4;
  int64_t groups = 0;
  for (int64_t k = 0; k < at.count && groups <= most; ++groups) k = at.end_of_neighbours(k);
  if (groups > most) return false;
  for (int64_t k = 0, end; k < at.count; k = end) {
    end = at.end_of_neighbours(k);
    body(k, end, at.start[k]);
  }
  return true;
}

// Fills `rows`, one row of lanes for each number of the lines, with n elements of each line.
template <int Width, int64_t Lanes, class T>
void load_lines(T* rows, const T* from, const LineStarts<Lanes>& at, int64_t n) {
  const int64_t distance = at.distance();
  const T* first = from + at.start[0] * Width;
  const bool in_rows = at.step == 1 && distance != 0;
  if constexpr (Lanes > 1) {
    if (!in_rows && distance == 1) {
      for (int64_t i = 0; i < n; ++i)
        load_neighbours<Width>(rows + i * Width * Lanes, first + i * at.step * Width, at.count);
      return;
    }
  }
  if (at.count < Lanes) std::fill_n(rows, n * Width * Lanes, T(0));
  if constexpr (Lanes > 1) {
    if (in_rows) return turn_into_lanes<Lanes>(rows, first, distance * Width, n * Width, at.count);
    const bool done = for_few_neighbours(at, [&](int64_t k, int64_t end, int64_t start) {
      for (int64_t i = 0; i < n; ++i)
        load_neighbours_between<Width>(rows + i * Width * Lanes,
                                       from + (start - k + i * at.step) * Width, k, end);
    });
    if (done) return;
  }
  for (int64_t k = 0; k < at.count; ++k) {
    const T* line = from + at.start[k] * Width;
    for (int64_t i = 0; i < n; ++i)
      for (int part = 0; part < Width; ++part)
        rows[(i * Width + part) * Lanes + k] = line[i * at.step * Width + part];
  }
}

// The way back.
template <int Width, int64_t Lanes, class T>
void store_lines(T* to, const T* rows, const LineStarts<Lanes>& at, int64_t n) {
  const int64_t distance = at.distance();
  T* first = to + at.start[0] * Width;
  if constexpr (Lanes > 1) {
    if (at.step == 1 && distance != 0)
      return turn_into_lines<Lanes>(first, distance * Width, rows, n * Width, at.count);
    if (distance == 1) {
      for (int64_t i = 0; i < n; ++i)
        store_neighbours<Width>(first + i * at.step * Width, rows + i * Width * Lanes, at.count);
      return;
    }
    const bool done = for_few_neighbours(at, [&](int64_t k, int64_t end, int64_t start) {
      for (int64_t i = 0; i < n; ++i)
        store_neighbours_between<Width>(to + (start - k + i * at.step) * Width,
                                        rows + i * Width * Lanes, k, end);
    });
    if (done) return;
  }
  for (int64_t k = 0; k < at.count; ++k) {
    T* line = to + at.start[k] * Width;
    for (int64_t i = 0; i < n; ++i)
      for (int part = 0; part < Width; ++part)
        line[i * at.step * Width + part] = rows[(i * Width + part) * Lanes + k];
  }
}

// --- all lines of two tensors

// Lines of more numbers than this are done one by one: the lanes would not fit into the caches.
inline constexpr int64_t lane_bytes = int64_t{1} << 20;

// Lines, or parts of one, that take about 2 us if one takes `cost`, in tenths of nanoseconds: what
// a chunk of a parallel loop is, as elsewhere. Threads that spin join a loop within a part of that.
inline int64_t chunk_of(int64_t cost) {
  constexpr int64_t chunk_cost = 20'000;
  return std::max<int64_t>(1, chunk_cost / std::max<int64_t>(1, cost));
}

// What a line takes, in tenths of nanoseconds.
inline int64_t line_cost(int64_t n) {
  return n * (2 + 3 * std::bit_width(static_cast<uint64_t>(n)));
}

// Calls body(Lanes, from, to, rows) for blocks of lines, on several threads; `rows` is room for
// `numbers` rows of lanes. Blocks follow from the shape alone.
template <class T, class Body>
void for_each_block(const LinePairs& lines, int64_t n, int64_t numbers, Body&& body) {
  constexpr int64_t wide = lanes_of<T>;
  const bool side_by_side =
      lines.count() > 1 && numbers * wide * static_cast<int64_t>(sizeof(T)) <= lane_bytes;
  auto run = [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes> lanes, int64_t first,
                                int64_t count, T* rows) {
    LineStarts<Lanes> from, to;
    from.count = to.count = count;
    from.step = lines.from_step();
    to.step = lines.to_step();
    lines.starts(first, count, from.start, to.start);
    body(lanes, from, to, rows);
  };
  const int64_t block = side_by_side ? wide : 1, blocks = ceil_div(lines.count(), block);
  const int64_t cost = side_by_side ? 3 * line_cost(n) : line_cost(n);
  parallel_for(blocks, chunk_of(cost), [&](int64_t begin, int64_t end) {
    const Scratch<T> rows(numbers * block);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * block, count = min_of(block, lines.count() - first);
      if (8 * count > wide && side_by_side) {
        run(std::integral_constant<int64_t, wide>(), first, count, rows.get());
        continue;
      }
      for (int64_t k = 0; k < count; ++k)
        run(std::integral_constant<int64_t, 1>(), first + k, 1, rows.get());
    }
  });
}

}  // namespace facula::cpu::FACULA_ISA
