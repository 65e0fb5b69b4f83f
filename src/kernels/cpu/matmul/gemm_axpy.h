// Products of one row with a matrix that is contiguous along n: multiples of its rows are added up,
// and memory is read in its order.
#pragma once
#include "kernels/cpu/matmul/gemm_dot.h"

namespace facula::cpu::FACULA_ISA {

inline constexpr int64_t axpy_depth = 256;  // terms that one sum takes before it joins the total
inline constexpr int64_t axpy_columns = 1536;

template <class T>
struct RowProduct {
  int64_t n, k;
  const T* a;
  int64_t a_cs;
  const T* b;  // rows contiguous
  int64_t b_rs;
  T* c;
  int64_t c_cs;
  T alpha, beta;
  Activation activation = nullptr;
};

// sum[j] += a[i] b[i, j] for `count` rows from the first on; whole vectors of columns.
template <class T, int count>
[[gnu::always_inline]] inline void add_rows_to(const RowProduct<T>& p, int64_t row, int64_t col,
                                               int64_t vectors, T* sum) {
  using S = Simd<T>;
  using V = typename S::Vec;
  const T* b = p.b + row * p.b_rs + col;
  V factor[count];
#pragma GCC unroll 8
  for (int r = 0; r < count; ++r) factor[r] = S::broadcast(p.a[(row + r) * p.a_cs]);
  for (int64_t j = 0; j < vectors * S::lanes; j += S::lanes) {
    V total = S::load(sum + j);
#pragma GCC unroll 8
    for (int r = 0; r < count; ++r)
      total = multiply_add<V>(S::load(b + r * p.b_rs + j), factor[r], total);
    S::store(sum + j, total);
  }
}

// Columns [begin, end), at most axpy_columns.
template <class T>
void row_columns(const RowProduct<T>& p, int64_t begin, int64_t end) {
  using S = Simd<T>;
  const int64_t width = end - begin, vectors = width / S::lanes, whole = vectors * S::lanes;
  T total[axpy_columns] = {}, sum[axpy_columns];
  for (int64_t first = 0; first < p.k; first += axpy_depth) {
    const int64_t last = min_of(p.k, first + axpy_depth);
    for (int64_t j = 0; j < width; ++j) sum[j] = T(0);
    int64_t row = first;
    for (; row + 8 <= last; row += 8) add_rows_to<T, 8>(p, row, begin, vectors, sum);
    for (; row < last; ++row) add_rows_to<T, 1>(p, row, begin, vectors, sum);
    for (int64_t j = whole; j < width; ++j)
      for (int64_t i = first; i < last; ++i)
        sum[j] += p.a[i * p.a_cs] * p.b[i * p.b_rs + begin + j];
    for (int64_t j = 0; j < width; ++j) total[j] += sum[j];
  }
  T* c = p.c + begin * p.c_cs;
  for (int64_t j = 0; j < width; ++j)
    total[j] = scaled_sum(total[j], c[j * p.c_cs], p.alpha, p.beta);
  if (p.activation) activate(p.activation, total, width);
  for (int64_t j = 0; j < width; ++j) c[j * p.c_cs] = total[j];
}

// Wide parts keep to a page for long; they follow from n alone.
template <class T>
void row_product(const RowProduct<T>& p) {
  constexpr int64_t least = 2048 / static_cast<int64_t>(sizeof(T));
  const int64_t part = min_of(axpy_columns, max_of(least, round_up(ceil_div(p.n, int64_t{4}), 64)));
  const int64_t grain = p.k * p.n < (int64_t{1} << 16) ? p.n : part;
  parallel_for(p.n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t col = begin; col < end; col += part) row_columns(p, col, min_of(end, col + part));
  });
}

}  // namespace facula::cpu::FACULA_ISA
