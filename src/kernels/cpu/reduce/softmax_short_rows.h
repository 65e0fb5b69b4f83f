// Softmax of rows that hold too few numbers to fill vectors: as many rows as a register has numbers
// are transposed, so that each lane is a row. Sums are added up in the order of `lane_sum`, and the
// results are the bits that rows one by one have.
#pragma once
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/reduce/softmax_parts.h"

namespace facula::cpu::FACULA_ISA {

template <class A>
struct ShortRows {
  static constexpr int64_t width = native_lanes<A>;
  static constexpr int64_t longest = 64, longest_by_gradient = lanes - 1, sure = 2 * lanes;

  // Whether rows of this length are faster together. Lengths of whole vectors go well by
  // themselves; where nothing is fused, neither do exponentials become vectors.
  static bool serve_forward(int64_t n, int64_t count) {
    if (!enough(count) || n < 2 || n > longest) return false;
    return n <= sure || n % lanes != 0;
  }
  static bool serve_backward(int64_t n, int64_t count) {
    return enough(count) && n > 1 && n <= longest_by_gradient && n != lanes / 2;
  }
  static bool enough(int64_t count) {
#if defined(__FMA__)
    return count >= width / 2;
#else
    return count < 0;
#endif
  }
  // Numbers that a kernel's room must have.
  static int64_t room_of(int64_t n) { return 3 * width * n; }

  template <class Body>
  [[gnu::always_inline]] static void each_lane(Body&& body) {
    for (int64_t l = 0; l < width; ++l) body(l);
  }

  // Rows of T as columns of A; `wide` is room for as many numbers.
  template <class T>
  static void turn_in(const T* from, int64_t n, int64_t rows, A* wide, A* columns) {
    copy_transposed(columns, width, widened_row(from, wide, n * rows), n, n, rows);
  }
  template <class T>
  static void turn_out(const A* columns, int64_t n, int64_t rows, A* wide, T* to) {
    if constexpr (std::is_same_v<T, A>) {
      copy_transposed(to, n, columns, width, rows, n);
    } else {
      copy_transposed(wide, n, columns, width, rows, n);
      narrow_row(wide, to, n * rows);
    }
  }

  using Across = LaneVector<A, width>;
  using V = typename Across::type;

  // The sum of term(j) over every `lanes`th column from this one on.
  template <class Term>
  [[gnu::always_inline]] static V lane_of(int64_t first, int64_t n, const Term& term) {
    V sum = {};
    for (int64_t j = first; j < n; j += lanes) sum += term(j);
    return sum;
  }
  // The sum over the lanes first, first + step, ...; halves onto halves, as fold() does it.
  template <int64_t first = 0, int64_t step = 1, class Term>
  [[gnu::always_inline]] static V sum(int64_t n, const Term& term) {
    if constexpr (step == lanes) {
      return lane_of(first, n, term);
    } else {
      const V low = sum<first, 2 * step>(n, term);
      return first + step < n ? low + sum<first + step, 2 * step>(n, term) : low;
    }
  }

  // Two columns at a time: a comparison has a longer latency than a load takes.
  [[gnu::always_inline]] static V largest(const A* x, int64_t n) {
    const auto larger = [](V a, V b) { return b > a ? b : a; };
    V most = V{} - static_cast<A>(__builtin_inf()), other = most;
    int64_t j = 0;
    for (; j + 2 <= n; j += 2) {
      most = larger(most, Across::load(x + j * width));
      other = larger(other, Across::load(x + (j + 1) * width));
    }
    if (j < n) most = larger(most, Across::load(x + j * width));
    return larger(most, other);
  }

  template <bool Log>
  static void forward_columns(A* __restrict x, A* __restrict e, int64_t n) {
    A most[width], total[width];
    const V m = largest(x, n);
    __builtin_memcpy(most, &m, sizeof most);
    for (int64_t j = 0; j < n; ++j)
      each_lane([&](int64_t l) { e[j * width + l] = exp_below(x[j * width + l] - most[l]); });
    const V sums = sum(n, [&](int64_t j) { return Across::load(e + j * width); });
    __builtin_memcpy(total, &sums, sizeof total);
    if constexpr (Log) {
      each_lane([&](int64_t l) { total[l] = scalar::math::log_by_parts(total[l]); });
      for (int64_t j = 0; j < n; ++j)
        each_lane([&](int64_t l) { x[j * width + l] = x[j * width + l] - most[l] - total[l]; });
    } else {
      A inverse[width];
      each_lane([&](int64_t l) { inverse[l] = A(1) / total[l]; });
      for (int64_t j = 0; j < n; ++j)
        each_lane([&](int64_t l) {
          x[j * width + l] = share_of(e[j * width + l], total[l], inverse[l]);
        });
    }
  }

  template <bool Log, class T>
  static void forward(const T* from, T* to, int64_t n, int64_t count, A* room) {
    A *columns = room, *wide = room + width * n;
    for (int64_t i = 0; i < width * n; ++i) columns[i] = 0;  // lanes that have no row
    for (int64_t r = 0; r < count; r += width) {
      const int64_t rows = min_of(width, count - r);
      turn_in(from + r * n, n, rows, wide, columns);
      forward_columns<Log>(columns, room + 2 * width * n, n);
      turn_out(columns, n, rows, wide, to + r * n);
    }
  }

  template <bool Log>
  static void backward_columns(A* g, const A* y, int64_t n) {
    A total[width];
    const V sums = sum(n, [&](int64_t j) {
      return weighted<Log>(Across::load(g + j * width), Across::load(y + j * width));
    });
    __builtin_memcpy(total, &sums, sizeof total);
    for (int64_t j = 0; j < n; ++j)
      each_lane([&](int64_t l) {
        g[j * width + l] = slope<Log>(g[j * width + l], y[j * width + l], total[l]);
      });
  }

  template <bool Log, class T>
  static void backward(const T* grad, const T* y, T* to, int64_t n, int64_t count, A* room) {
    A *columns = room, *results = room + width * n, *wide = room + 2 * width * n;
    for (int64_t i = 0; i < 2 * width * n; ++i) room[i] = 0;
    for (int64_t r = 0; r < count; r += width) {
      const int64_t rows = min_of(width, count - r);
      turn_in(grad + r * n, n, rows, wide, columns);
      turn_in(y + r * n, n, rows, wide, results);
      backward_columns<Log>(columns, results, n);
      turn_out(columns, n, rows, wide, to + r * n);
    }
  }
};

}  // namespace facula::cpu::FACULA_ISA
