// Products of a few rows with a matrix that is contiguous along k: dot products, nothing packed.
#pragma once
#include <utility>

#include "core/threads.h"
#include "kernels/cpu/matmul/gemm_epilogue.h"

namespace facula::cpu::FACULA_ISA {

inline constexpr int dot_tile_columns = 4;
inline constexpr int dot_tile_rows = max_accumulators >= 24 ? 6 : 2;
inline constexpr int64_t dot_buffer_columns = 64;

template <class V, size_t... I>
[[gnu::always_inline]] inline auto vector_half(V v, size_t offset, std::index_sequence<I...>) {
  return offset == 0 ? __builtin_shufflevector(v, v, I...)
                     : __builtin_shufflevector(v, v, (I + sizeof...(I))...);
}

// The sum of a vector's elements, by halves.
template <class T, class V>
[[gnu::always_inline]] inline T sum_of(V v) {
  constexpr size_t half = sizeof(V) / sizeof(T) / 2;
  using Half = std::make_index_sequence<half>;
  if constexpr (half == 1) {
    return v[0] + v[1];
  } else {
    return sum_of<T>(vector_half(v, 0, Half{}) + vector_half(v, half, Half{}));
  }
}

template <class T>
struct DotProduct {
  int64_t m, n, k;
  const T* a;  // rows contiguous
  int64_t a_rs;
  const T* b;  // columns contiguous
  int64_t b_cs;
  T* c;
  int64_t c_rs, c_cs;
  T alpha, beta;
  Activation activation = nullptr;
};

template <class T>
[[gnu::always_inline]] inline T scaled_sum(T sum, const T& c, T alpha, T beta) {
  return beta == T(0) ? alpha * sum : alpha * sum + beta * c;
}
template <class T>
[[gnu::always_inline]] inline void put(T* c, T sum, T alpha, T beta) {
  *c = scaled_sum(sum, *c, alpha, beta);
}

// C[row, col] for M rows and N columns from (row, col) on.
template <class T, int M, int N>
void dot_tile(const DotProduct<T>& p, int64_t row, int64_t col) {
  using S = Simd<T>;
  using V = typename S::Vec;
  const T* a = p.a + row * p.a_rs;
  const T* b = p.b + col * p.b_cs;
  V sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) sum[i][j] = V{};
  }
  int64_t x = 0;
  for (; x + S::lanes <= p.k; x += S::lanes) {
    V right[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) right[j] = S::load(b + j * p.b_cs + x);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const V left = S::load(a + i * p.a_rs + x);
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) sum[i][j] = multiply_add<V>(left, right[j], sum[i][j]);
    }
  }
  T* c = p.c + row * p.c_rs + col * p.c_cs;
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      T total = sum_of<T>(sum[i][j]);
      for (int64_t y = x; y < p.k; ++y) total += a[i * p.a_rs + y] * b[j * p.b_cs + y];
      put(c + i * p.c_rs + j * p.c_cs, total, p.alpha, p.beta);
    }
  }
}

// The product of one row and one column: its many sums do not wait for each other.
template <class T>
void single_dot(const DotProduct<T>& p) {
  using S = Simd<T>;
  using V = typename S::Vec;
  constexpr int64_t sums = 8;
  V sum[sums] = {};
  int64_t x = 0;
  for (; x + sums * S::lanes <= p.k; x += sums * S::lanes) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < sums; ++i)
      sum[i] =
          multiply_add<V>(S::load(p.a + x + i * S::lanes), S::load(p.b + x + i * S::lanes), sum[i]);
  }
  for (; x + S::lanes <= p.k; x += S::lanes)
    sum[0] = multiply_add<V>(S::load(p.a + x), S::load(p.b + x), sum[0]);
  T total =
      sum_of<T>(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
  for (; x < p.k; ++x) total += p.a[x] * p.b[x];
  put(p.c, total, p.alpha, p.beta);
}

template <class T, int M>
void dot_rows(const DotProduct<T>& p, int64_t row, int64_t col, int64_t end) {
  for (; col + dot_tile_columns <= end; col += dot_tile_columns)
    dot_tile<T, M, dot_tile_columns>(p, row, col);
  for (; col < end; ++col) dot_tile<T, M, 1>(p, row, col);
}

template <class T, int M>
void dot_last_rows(const DotProduct<T>& p, int64_t row, int64_t col, int64_t end) {
  if (p.m - row == M) return dot_rows<T, M>(p, row, col, end);
  if constexpr (M > 1) dot_last_rows<T, M - 1>(p, row, col, end);
}

template <class T>
void dot_columns(const DotProduct<T>& p, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + dot_tile_rows <= p.m; row += dot_tile_rows)
    dot_rows<T, dot_tile_rows>(p, row, begin, end);
  if constexpr (dot_tile_rows > 1) dot_last_rows<T, dot_tile_rows - 1>(p, row, begin, end);
}

// The same through a buffer in which results are activated; at most dot_buffer_columns.
template <class T>
void dot_activated(const DotProduct<T>& p, int64_t begin, int64_t end) {
  alignas(vector_bytes) T buffer[2 * dot_tile_rows * dot_buffer_columns];
  const int64_t width = end - begin;
  T* c = p.c + begin * p.c_cs;
  if (p.beta != T(0)) copy_matrix(buffer, width, c, p.c_rs, p.c_cs, p.m, width);
  DotProduct<T> part = p;
  part.n = width;
  part.b += begin * p.b_cs;
  part.c = buffer;
  part.c_rs = width;
  part.c_cs = 1;
  dot_columns(part, 0, width);
  activate_padded(p.activation, buffer, p.m * width);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < width; ++j) c[i * p.c_rs + j * p.c_cs] = buffer[i * width + j];
}

// Needs m, n, k >= 1, and an activation at most 2 * dot_tile_rows rows.
template <class T>
void dot_product(const DotProduct<T>& p) {
  if (p.m == 1 && p.n == 1 && !p.activation) return single_dot(p);
  const int64_t fit = (int64_t{1} << 18) / max_of(int64_t{1}, p.m * p.k);
  const int64_t grain = max_of(round_up(fit, dot_tile_columns), int64_t{4} * dot_tile_columns);
  parallel_for(p.n, grain, [&](int64_t begin, int64_t end) {
    if (!p.activation) return dot_columns(p, begin, end);
    for (int64_t col = begin; col < end; col += dot_buffer_columns)
      dot_activated(p, col, min_of(end, col + dot_buffer_columns));
  });
}

}  // namespace facula::cpu::FACULA_ISA
