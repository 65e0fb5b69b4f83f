#include "kernels/cpu/linalg/inverse_blocks.h"

#include <algorithm>

#include "core/complex.h"
#include "kernels/cpu/linalg/pivot_size.h"
#include "kernels/cpu/linalg/triangular_blocks.h"
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/matmul/gemm.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t narrow = 32;  // columns that are eliminated one by one

// x - a * b
template <class T>
T less(T x, T a, T b) {
  if constexpr (is_complex_v<T>)
    return x - a * b;
  else
    return multiply_add<T>(-a, b, x);
}

// dst (cols x rows) is src (rows x cols) with rows as columns, both row by row.
template <class T>
void turn(T* dst, int64_t dst_rs, const T* src, int64_t src_rs, int64_t rows, int64_t cols) {
  if constexpr (is_complex_v<T>)
    transpose_elements(dst, dst_rs, src, src_rs, cols, rows);
  else
    copy_transposed(dst, dst_rs, src, src_rs, cols, rows);
}

// Up to `narrow` columns of m elements, column by column, so that a step of the elimination goes
// along vectors of rows. The room below the last row is filled up with zeros, which stay harmless.
template <class T>
class NarrowPanel {
  static constexpr int64_t lanes = max_of(vector_bytes / static_cast<int>(sizeof(T)), 1);

 public:
  NarrowPanel(T* a, int64_t a_rs, int64_t m, int64_t n)
      : a_(a), a_rs_(a_rs), m_(m), n_(n), height_(round_up(m, lanes)), columns_(n * height_) {
    turn(columns_.get(), height_, a, a_rs, m, n);
    for (int64_t j = 0; j < n; ++j) std::fill(column(j) + m, column(j) + height_, T(0));
  }

  // Leaves L and U, with the row that came to each place in `pivots`; the number of the first pivot
  // that is zero, from 1, or 0. m >= n.
  int64_t factor(int64_t* pivots) {
    int64_t singular = 0;
    for (int64_t k = 0; k < n_; ++k) {
      pivots[k] = pivot_of(k);
      for (int64_t j = 0; j < n_; ++j) std::swap(column(j)[k], column(j)[pivots[k]]);
      if (column(k)[k] != T(0))
        eliminate(k);
      else if (singular == 0)
        singular = k + 1;
    }
    turn(a_, a_rs_, columns_.get(), height_, n_, m_);
    return singular;
  }

 private:
  T* column(int64_t j) const { return columns_.get() + j * height_; }

  // The first of the largest from row k on.
  int64_t pivot_of(int64_t k) const {
    using Size = decltype(size_of(T()));
    const T* x = column(k);
    Size most[lanes];
    for (Size& size : most) size = size_of(x[k]);
    int64_t i = k;
    for (; i % lanes != 0; ++i) most[0] = std::max(most[0], size_of(x[i]));
    for (; i < height_; i += lanes)
      for (int64_t l = 0; l < lanes; ++l) {
        const Size size = size_of(x[i + l]);
        most[l] = size > most[l] ? size : most[l];
      }
    const Size largest = *std::max_element(most, most + lanes);
    for (i = k; i < m_; ++i)
      if (size_of(x[i]) == largest) return i;
    return k;  // of numbers that are not
  }

  void eliminate(int64_t k) {
    T* const x = column(k);
    const T pivot = x[k];
    const int64_t begin = (k + 1) / lanes * lanes;
    // Rows that are done take part with a factor of zero where they share a vector with others.
    T kept[lanes];
    const int64_t done = k + 1 - begin;
    std::copy_n(x + begin, done, kept);
    std::fill_n(x + begin, done, T(0));
    for (int64_t i = begin; i < height_; i += lanes)
      for (int64_t l = i; l < i + lanes; ++l) x[l] = x[l] / pivot;
    for (int64_t j = k + 1; j < n_; ++j) subtract(column(j), x, column(j)[k], begin);
    std::copy_n(kept, done, x + begin);
  }
  // y -= factor * x from row `begin` on
  void subtract(T* __restrict y, const T* __restrict x, T factor, int64_t begin) const {
    for (int64_t i = begin; i < height_; i += lanes)
      for (int64_t l = i; l < i + lanes; ++l) y[l] = less(y[l], factor, x[l]);
  }

  T* a_;
  int64_t a_rs_, m_, n_, height_;
  Scratch<T> columns_;
};

// A (n x n row by row) as P L U in place, by halves of its columns (Toledo, Locality of reference
// in LU decomposition with partial pivoting, 1997).
template <class T>
class LuByHalves {
 public:
  LuByHalves(T* a, int64_t n, int64_t* pivots) : a_(a), n_(n), pivots_(pivots) {}

  // The number of the first pivot that is zero, from 1, or 0.
  int64_t run() {
    factor(0, n_);
    return singular_;
  }

 private:
  T* at(int64_t row, int64_t column) const { return a_ + row * n_ + column; }

  // Columns [begin, end) from row `begin` on; those before are done.
  void factor(int64_t begin, int64_t end) {
    if (end - begin <= narrow) return factor_narrow(begin, end);
    const int64_t middle = begin + round_up((end - begin) / 2, narrow), high = middle - begin,
                  wide = end - middle;
    factor(begin, middle);
    exchange_rows(begin, middle, middle, end);
    solve_triangular_blocks<T>(
        {high, wide, at(begin, begin), n_, 1, at(begin, middle), n_, 1, false, true});
    gemm<T>({n_ - middle, wide, high, at(middle, begin), n_, 1, at(begin, middle), n_, 1,
             at(middle, middle), n_, 1, T(-1), T(1)});
    factor(middle, end);
    exchange_rows(middle, end, begin, middle);
  }
  void factor_narrow(int64_t begin, int64_t end) {
    NarrowPanel<T> panel(at(begin, begin), n_, n_ - begin, end - begin);
    const int64_t singular = panel.factor(pivots_ + begin);
    if (singular != 0 && singular_ == 0) singular_ = begin + singular;
    for (int64_t k = begin; k < end; ++k) pivots_[k] += begin;
  }
  // What the pivots of rows [first, last) did, in columns [begin, end).
  void exchange_rows(int64_t first, int64_t last, int64_t begin, int64_t end) const {
    for (int64_t k = first; k < last; ++k)
      if (pivots_[k] != k) std::swap_ranges(at(k, begin), at(k, end), at(pivots_[k], begin));
  }

  T* a_;
  int64_t n_;
  int64_t* pivots_;
  int64_t singular_ = 0;
};

// The inverse of the lower triangle of a with ones as its diagonal, into the lower triangle of x,
// whose other elements stay; both n x n with rows `rs` apart.
template <class T>
void invert_lower(const T* a, T* x, int64_t n, int64_t rs) {
  if (n <= narrow) {
    for (int64_t i = 0; i < n; ++i) x[i * rs + i] = T(1);
    return solve_triangular_blocks<T>({n, n, a, rs, 1, x, rs, 1, false, true});
  }
  const int64_t half = round_up(n / 2, narrow), rest = n - half, low = half * rs;
  invert_lower(a, x, half, rs);
  gemm<T>({rest, half, half, a + low, rs, 1, x, rs, 1, x + low, rs, 1, T(-1), T(0)});
  solve_triangular_blocks<T>({rest, half, a + low + half, rs, 1, x + low, rs, 1, false, true});
  invert_lower(a + low + half, x + low + half, rest, rs);
}

}  // namespace

template <class T>
int32_t invert_by_blocks(const T* a, int64_t n, T* inverse) {
  const Scratch<T> lu(n * n), x(n * n);
  const Scratch<int64_t> pivots(n);
  std::copy_n(a, n * n, lu.get());
  const int64_t singular = LuByHalves<T>(lu.get(), n, pivots.get()).run();
  std::fill_n(x.get(), n * n, T(0));
  invert_lower(lu.get(), x.get(), n, n);
  solve_triangular_blocks<T>({n, n, lu.get(), n, 1, x.get(), n, 1, true, false});
  turn(inverse, n, x.get(), n, n, n);
  for (int64_t k = n - 1; k >= 0; --k)
    if (pivots[k] != k)
      std::swap_ranges(inverse + k * n, inverse + (k + 1) * n, inverse + pivots[k] * n);
  return static_cast<int32_t>(singular);
}

template int32_t invert_by_blocks(const float*, int64_t, float*);
template int32_t invert_by_blocks(const double*, int64_t, double*);
template int32_t invert_by_blocks(const complex64*, int64_t, complex64*);
template int32_t invert_by_blocks(const complex128*, int64_t, complex128*);

}  // namespace facula::cpu::FACULA_ISA
