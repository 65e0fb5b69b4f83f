#include "kernels/cpu/linalg/triangular.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/linalg/parts.h"
#include "kernels/cpu/linalg/side_by_side.h"
#include "kernels/cpu/linalg/triangular_blocks.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

constexpr int64_t block = 48;  // rows that stay in the first cache while others are updated

template <class T>
T conjugate(T x) {
  if constexpr (is_complex_v<T>)
    return T(x.re, -x.im);
  else
    return x;
}
template <class T>
auto real_part(T x) {
  if constexpr (is_complex_v<T>)
    return x.re;
  else
    return x;
}

// row -= factor * other
template <class T>
void subtract(T* row, const T* other, T factor, int64_t n) {
  for (int64_t j = 0; j < n; ++j) row[j] -= factor * other[j];
}

// Turns the upper triangle of a Hermitian matrix, row by row, into U with U^H U equal to it. Rows
// are finished by blocks; each block is then taken out of all rows below.
template <class T>
class Cholesky {
 public:
  Cholesky(T* a, int64_t n) : a_(a), n_(n) {}

  int32_t run() {
    for (int64_t begin = 0; begin < n_; begin += block) {
      const int64_t end = std::min(n_, begin + block);
      if (const int32_t order = factor_block(begin, end)) return order;
      const int64_t work = (end - begin) * std::max<int64_t>(1, (n_ - end) / 2);
      const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work));
      parallel_for(n_ - end, grain, [&](int64_t first, int64_t last) {
        for (int64_t i = end + first; i < end + last; ++i) take_out(begin, end, i);
      });
    }
    return 0;
  }

 private:
  T* row(int64_t i) const { return a_ + i * n_; }
  int32_t factor_block(int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      take_out(begin, k, k);
      const auto pivot = real_part(row(k)[k]);
      if (!(pivot > 0)) return static_cast<int32_t>(k + 1);
      const auto root = std::sqrt(pivot);
      row(k)[k] = T(root);
      for (int64_t j = k + 1; j < n_; ++j) row(k)[j] = row(k)[j] / T(root);
    }
    return 0;
  }
  // Takes the products with rows [begin, end) out of row i.
  void take_out(int64_t begin, int64_t end, int64_t i) {
    for (int64_t k = begin; k < end; ++k)
      subtract(row(i) + i, row(k) + i, conjugate(row(k)[i]), n_ - i);
  }

  T* a_;
  int64_t n_;
};

template <class T>
void clear_lower(T* a, int64_t n) {
  for (int64_t r = 1; r < n; ++r) std::fill_n(a + r * n, r, T(0));
}

template <class T>
void factor_large(const Tensor& rows, int32_t* status) {
  const int64_t n = rows.size(-1);
  T* a = rows.data<T>();
  for_each_matrix(matrix_count(rows), n * n * n / 3, [&](int64_t i) {
    status[i] = Cholesky<T>(a + i * n * n, n).run();
    clear_lower(a + i * n * n, n);
  });
}

// The upper triangle of `from`, or the lower one turned over.
template <class T>
void copy_triangle(const T* from, bool lower, T* to, int64_t n) {
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = r; c < n; ++c) to[r * n + c] = lower ? from[c * n + r] : from[r * n + c];
}

// `rows` gets U of matrices given row by row by one of their triangles.
template <class T>
void factor_small_matrices(const T* from, bool lower, const Tensor& rows, int32_t* status) {
  const int64_t n = rows.size(-1), area = n * n;
  T* to = rows.data<T>();
  for_each_part(matrix_count(rows), area * n / 3, [&](int64_t first, int64_t many) {
    int64_t done = 0;
    if constexpr (!is_complex_v<T>)
      done = FACULA_OF_ISA(cholesky_side_by_side<T>)(from + first * area, lower, to + first * area,
                                                     many, n, status + first);
    for (int64_t i = first + done; i < first + many; ++i) {
      copy_triangle(from + i * area, lower, to + i * area, n);
      status[i] = Cholesky<T>(to + i * area, n).run();
      clear_lower(to + i * area, n);
    }
  });
}

// Memory of a batch that stands row by row, of a copy where it does not.
Tensor in_rows(const Tensor& t) {
  if (t.is_contiguous() && !t->conj && !t->neg) return t;
  const Tensor made = empty_tensor(t.sizes(), t.dtype());
  copy(made, t);
  return made;
}

// Rows of X, which start as those of B, from the first to the last for a lower triangle and the
// other way round for an upper one.
template <class T>
void solve_rows(const T* a, T* x, int64_t n, int64_t k, bool upper, bool unit) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    const int64_t from = upper ? i + 1 : 0, to = upper ? n : i;
    T* row = x + i * k;
    for (int64_t j = from; j < to; ++j) subtract(row, x + j * k, a[i * n + j], k);
    if (unit) continue;
    const T pivot = a[i * n + i];
    for (int64_t c = 0; c < k; ++c) row[c] = row[c] / pivot;
  }
}

// Small matrices, row by row.
template <class T>
void solve_small_matrices(const Tensor& A, const Tensor& X, bool upper, bool unit) {
  const int64_t n = A.size(-1), k = X.size(-1);
  const T* a = A.data<T>();
  T* x = X.data<T>();
  for_each_part(matrix_count(X), n * n * k, [&](int64_t first, int64_t many) {
    int64_t done = 0;
    if constexpr (!is_complex_v<T>)
      done = FACULA_OF_ISA(solve_triangular_side_by_side<T>)(a + first * n * n, x + first * n * k,
                                                             many, n, k, upper, unit);
    for (int64_t i = first + done; i < first + many; ++i)
      solve_rows<T>(a + i * n * n, x + i * n * k, n, k, upper, unit);
  });
}

template <class T>
void solve_large_matrices(const Tensor& A, const Tensor& X, bool upper, bool unit) {
  const int64_t n = A.size(-1), k = X.size(-1);
  const auto a_at = batch_offsets(A, batch_sizes(X), 2), x_at = batch_offsets(X, batch_sizes(X), 2);
  const T* a = A.data<T>();
  T* x = X.data<T>();
  for_each_matrix(matrix_count(X), n * n * k / 16, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    FACULA_OF_ISA(solve_triangular_blocks<T>)
    ({n, k, a + a_at[at], A.stride(-2), A.stride(-1), x + x_at[at], X.stride(-2), X.stride(-1),
      upper, unit});
  });
}

// Whether a result can hold B first and then X.
bool solves_in_place(const Tensor& X, const Tensor& A) {
  return !X->conj && !X->neg && X->storage != A->storage &&
         is_dense_non_overlapping(X.sizes(), X.strides());
}

}  // namespace

Tensor matrix_transposed(const Tensor& t) {
  IntVec sizes(t.sizes()), strides(t.strides());
  const size_t n = sizes.size();
  std::swap(sizes[n - 2], sizes[n - 1]);
  std::swap(strides[n - 2], strides[n - 1]);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

void cholesky(const Tensor& A, bool upper, const Tensor& factor, const Tensor& status) {
  fill(status, 0);
  const Tensor codes = contiguous(status);
  const Tensor result = upper ? factor : matrix_transposed(factor);  // U, or the transpose of L
  const bool in_place = result.is_contiguous() && !result->conj && result->storage != A->storage;
  const Tensor rows = in_place ? result : empty_tensor(A.sizes(), A.dtype());
  const bool small = A.size(-1) <= side_by_side_order;
  const Tensor from = small ? in_rows(A) : rows;
  if (!small) copy(rows, upper ? A : matrix_transposed(A));
  auto run = [&]<class T>(Type<T>) {
    if (!small) return factor_large<T>(rows, codes.data<int32_t>());
    factor_small_matrices<T>(from.data<T>(), !upper, rows, codes.data<int32_t>());
  };
  dispatch<float, double, ComplexTypes>(A.dtype(), "cholesky_cpu", run);
  if (!in_place) copy(result, rows);
  if (!codes.is_same(status)) copy(status, codes);
}

void solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool unit, const Tensor& X) {
  if (A.size(-1) > side_by_side_order) {
    const Tensor plain = A->conj || A->neg ? empty_tensor(A.sizes(), A.dtype()) : A;
    if (!plain.is_same(A)) copy(plain, A);
    const Tensor work = solves_in_place(X, A) ? X : empty_tensor(X.sizes(), X.dtype());
    copy(work, B);
    const auto run = [&]<class T>(Type<T>) { solve_large_matrices<T>(plain, work, upper, unit); };
    dispatch<float, double, ComplexTypes>(A.dtype(), "triangular_solve_cpu", run);
    if (!work.is_same(X)) copy(X, work);
    return;
  }
  IntVec sizes(X.sizes());
  sizes[sizes.size() - 1] = A.size(-1);
  const bool own = std::ranges::equal(A.sizes(), sizes);
  const Tensor rows = own ? in_rows(A) : empty_tensor(sizes, A.dtype());
  if (!own) copy(rows, A);
  const Tensor work = empty_tensor(X.sizes(), X.dtype());
  copy(work, B);
  auto run = [&]<class T>(Type<T>) { solve_small_matrices<T>(rows, work, upper, unit); };
  dispatch<float, double, ComplexTypes>(A.dtype(), "triangular_solve_cpu", run);
  copy(X, work);
}

}  // namespace facula::cpu
