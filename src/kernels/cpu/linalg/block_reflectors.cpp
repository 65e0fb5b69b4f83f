#include "kernels/cpu/linalg/block_reflectors.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t narrow = 16;  // columns that are factored one by one
constexpr int64_t wide = 64;  // columns whose reflectors are applied together to those behind them

// --- a few columns

// Sums of squares below these bounds may have lost terms, or be near to leaving the range.
template <class T>
constexpr T least_squares = std::is_same_v<T, float> ? T(0x1p-62f) : T(0x1p-500);
template <class T>
constexpr T largest_squares = T(1) / least_squares<T>;

// Some columns of m elements, row by row: a column's products with all others are one sum of
// vectors, and so is what its reflector takes out of them.
template <class T>
class NarrowPanel {
 public:
  NarrowPanel(T* a, int64_t lda, int64_t m, int64_t n)
      : a_(a), lda_(lda), m_(m), n_(n), rows_(m * narrow) {
    if (n < narrow) std::fill_n(rows_.get(), m * narrow, T(0));
    copy_transposed<T>(rows_.get(), narrow, a, lda, m, n);
  }

  // m >= n.
  void factor(T* tau) {
    for (int64_t j = 0; j < n_; ++j) tau[j] = eliminate(j);
    copy_transposed<T>(a_, lda_, rows_.get(), narrow, n_, m_);
  }

 private:
  using S = Simd<T>;
  using Vec = typename S::Vec;
  static constexpr int64_t parts = narrow / S::lanes;

  T* row(int64_t i) const { return rows_.get() + i * narrow; }

  // The products of column j with each, from the row below the diagonal on. Sums are of few terms
  // first, so that they are as good as sums by pairs.
  void products(int64_t j, T* found) const {
    constexpr int64_t together = 4, block = 64;
    Vec all[parts] = {};
    for (int64_t begin = j + 1; begin < m_; begin += block) {
      const int64_t end = min_of(begin + block, m_);
      Vec sums[together][parts] = {};
      int64_t i = begin;
      for (; i + together <= end; i += together)
        for (int64_t k = 0; k < together; ++k) add_row(sums[k], row(i + k), row(i + k)[j]);
      for (; i < end; ++i) add_row(sums[0], row(i), row(i)[j]);
      for (int64_t p = 0; p < parts; ++p)
        all[p] += (sums[0][p] + sums[1][p]) + (sums[2][p] + sums[3][p]);
    }
    for (int64_t p = 0; p < parts; ++p) S::store(found + p * S::lanes, all[p]);
  }
  [[gnu::always_inline]] static void add_row(Vec* sums, const T* row, T by) {
    const Vec factor = S::broadcast(by);
    for (int64_t p = 0; p < parts; ++p)
      sums[p] = multiply_add(factor, S::load(row + p * S::lanes), sums[p]);
  }

  // Makes the reflector of column j, whose factor it returns, and applies it to those behind it.
  T eliminate(int64_t j) {
    alignas(vector_bytes) T with_others[narrow];
    products(j, with_others);
    int exponent = 0;
    if (with_others[j] < least_squares<T>) {
      if (!rescale(j, exponent)) return T(0);
      products(j, with_others);
    }
    const T first = row(j)[j],
            left = std::copysign(std::sqrt(first * first + with_others[j]), -first),
            tau = (left - first) / left, to_vector = T(1) / (first - left);
    alignas(vector_bytes) T change[narrow] = {};
    for (int64_t c = j + 1; c < narrow; ++c) {
      change[c] = -tau * (row(j)[c] + with_others[c] * to_vector);
      row(j)[c] += change[c];
    }
    row(j)[j] = std::scalbn(left, exponent);
    for (int64_t i = j + 1; i < m_; ++i) {
      const T v = row(i)[j] * to_vector;
      const Vec factor = S::broadcast(v);
      for (int64_t p = 0; p < parts; ++p) {
        T* const at = row(i) + p * S::lanes;
        S::store(at, multiply_add(factor, S::load(change + p * S::lanes), S::load(at)));
      }
      row(i)[j] = v;
    }
    return tau;
  }

  // Brings column j, from the diagonal on, near to one by a power of two; false where all below
  // the diagonal are zeros.
  bool rescale(int64_t j, int& exponent) {
    T below = 0;
    for (int64_t i = j + 1; i < m_; ++i) below = std::max(below, std::abs(row(i)[j]));
    if (below == T(0)) return false;
    exponent = std::ilogb(std::max(below, std::abs(row(j)[j])));
    for (int64_t i = j; i < m_; ++i) row(i)[j] = std::scalbn(row(i)[j], -exponent);
    return true;
  }

  T* a_;
  int64_t lda_, m_, n_;
  Scratch<T> rows_;
};

// --- blocks

// H = I - V T V^T of k reflectors of m rows, which are read from below the diagonal of `a`.
template <class T>
class BlockReflector {
 public:
  BlockReflector(const T* a, int64_t lda, const T* tau, int64_t m, int64_t k)
      : m_(m), k_(k), columns_(m * k), rows_(m * k), factor_(k * k) {
    for (int64_t j = 0; j < k; ++j) {
      T* const v = columns_.get() + j * m;
      std::fill_n(v, j, T(0));
      v[j] = T(1);
      std::copy_n(a + j * lda + j + 1, m - j - 1, v + j + 1);
      for (int64_t i = 0; i < m; ++i) rows_[i * k + j] = v[i];
    }
    make_factor(tau);
  }

  // C (m x n, column by column) becomes H^T C.
  void apply(T* c, int64_t ldc, int64_t n) const {
    if (n <= 0) return;
    const Scratch<T> found(n * k_);
    multiply_columns(c, ldc, n, found.get());
    subtract(c, ldc, n, found.get(), true);
  }

  // C becomes H times columns of which the first k are those of an identity matrix.
  void expand(T* c, int64_t ldc, int64_t n) const {
    const Scratch<T> found(n * k_);
    for (int64_t j = 0; j < k_; ++j) {
      std::fill_n(c + j * ldc, m_, T(0));
      c[j * ldc + j] = T(1);
    }
    std::copy_n(rows_.get(), k_ * k_, found.get());
    multiply_columns(c + k_ * ldc, ldc, n - k_, found.get() + k_ * k_);
    subtract(c, ldc, n, found.get(), false);
  }

 private:
  // Column j of T is -tau(j) T (V^T V)(j) above the diagonal, and tau(j) on it.
  void make_factor(const T* tau) {
    const Scratch<T> products(k_ * k_);
    gemm<T>({k_, k_, m_, columns_.get(), m_, 1, rows_.get(), k_, 1, products.get(), k_, 1});
    std::fill_n(factor_.get(), k_ * k_, T(0));
    for (int64_t j = 0; j < k_; ++j) {
      T* const column = factor_.get() + j * k_;
      for (int64_t l = 0; l < j; ++l) {
        const T by = -tau[j] * products[j * k_ + l];
        const T* const other = factor_.get() + l * k_;
        for (int64_t i = 0; i <= l; ++i) column[i] += by * other[i];
      }
      column[j] = tau[j];
    }
  }

  // C^T V, of n rows.
  void multiply_columns(const T* c, int64_t ldc, int64_t n, T* found) const {
    if (n > 0) gemm<T>({n, k_, m_, c, ldc, 1, rows_.get(), k_, 1, found, k_, 1});
  }

  // Takes V T (V^T C) out of C, or V T^T (V^T C); `found` is C^T V.
  void subtract(T* c, int64_t ldc, int64_t n, const T* found, bool transposed) const {
    const Scratch<T> turned(n * k_);
    const int64_t rs = transposed ? 1 : k_, cs = transposed ? k_ : 1;
    gemm<T>({n, k_, k_, found, k_, 1, factor_.get(), rs, cs, turned.get(), k_, 1});
    gemm<T>({n, m_, k_, turned.get(), k_, 1, columns_.get(), m_, 1, c, ldc, 1, T(-1), T(1)});
  }

  int64_t m_, k_;
  Scratch<T> columns_, rows_, factor_;  // V column by column and row by row, T column by column
};

// Whether no product of two columns of a matrix can leave the range of T. Reflections change no
// column's length, so this holds to the end.
template <class T>
bool has_safe_squares(const T* a, int64_t count) {
  constexpr int64_t lanes = Simd<T>::lanes;
  typename Simd<T>::Vec sums{};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = Simd<T>::load(a + i);
    sums = multiply_add(v, v, sums);
  }
  T sum = 0;
  for (int64_t k = 0; k < lanes; ++k) sum += sums[k];
  for (; i < count; ++i) sum += a[i] * a[i];
  return sum < largest_squares<T>;  // no NaN is
}

// Halves the columns until they are narrow; m >= n.
template <class T>
void factor_wide(T* a, int64_t lda, int64_t m, int64_t n, T* tau) {
  if (n <= narrow) return NarrowPanel<T>(a, lda, m, n).factor(tau);
  const int64_t half = round_up((n + 1) / 2, narrow);
  factor_wide(a, lda, m, half, tau);
  BlockReflector<T>(a, lda, tau, m, half).apply(a + half * lda, lda, n - half);
  factor_wide(a + half * lda + half, lda, m - half, n - half, tau + half);
}

}  // namespace

template <class T>
bool geqrf_blocks(T* a, int64_t m, int64_t n, T* tau) {
  if (!has_safe_squares(a, m * n)) return false;
  const int64_t k = min_of(m, n);
  for (int64_t j = 0; j < k; j += wide) {
    const int64_t count = min_of(wide, k - j), rest = n - j - count;
    T* const block = a + j * m + j;
    factor_wide(block, m, m - j, count, tau + j);
    if (rest > 0)
      BlockReflector<T>(block, m, tau + j, m - j, count).apply(block + count * m, m, rest);
  }
  return true;
}

template <class T>
void orgqr_blocks(T* q, int64_t m, int64_t n, int64_t k, const T* tau) {
  for (int64_t j = k; j < n; ++j) {
    std::fill_n(q + j * m, m, T(0));
    q[j * m + j] = T(1);
  }
  for (int64_t j = round_up(k, wide) - wide; j >= 0; j -= wide) {
    T* const block = q + j * m + j;
    BlockReflector<T>(block, m, tau + j, m - j, min_of(wide, k - j)).expand(block, m, n - j);
    for (int64_t c = j; c < min_of(j + wide, k); ++c) std::fill_n(q + c * m, j, T(0));
  }
}

template bool geqrf_blocks(float*, int64_t, int64_t, float*);
template bool geqrf_blocks(double*, int64_t, int64_t, double*);
template void orgqr_blocks(float*, int64_t, int64_t, int64_t, const float*);
template void orgqr_blocks(double*, int64_t, int64_t, int64_t, const double*);

}  // namespace facula::cpu::FACULA_ISA
