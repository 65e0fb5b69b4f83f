#include "kernels/cpu/linalg/lu.h"

#include <numeric>

#include "kernels/cpu/linalg/lapack_factor.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/linalg/parts.h"
#include "kernels/cpu/linalg/side_by_side.h"
#include "kernels/cpu/linalg/small.h"
#include "kernels/cpu/linalg/triangular.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

template <class T>
void factor_all(const Tensor& LU, int32_t* pivots, int32_t* info) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n), count = matrix_count(LU);
  T* a = LU.data<T>();
  if (k == 0) {
    std::fill_n(info, count, 0);
    return;
  }
  const int64_t area = m * n, work = area * k / 3;
  if (std::max(m, n) <= small_order) {
    return for_each_part(count, work, [&](int64_t first, int64_t many) {
      FACULA_OF_ISA(factor_small_batch<T>)
      (a + first * area, many, m, n, pivots + first * k, info + first);
    });
  }
  lapack::open();
  for_each_matrix(count, work, [&](int64_t i) {
    info[i] =
        lapack::getrf(lapack_size(m), lapack_size(n), a + i * area, lapack_size(m), pivots + i * k);
  });
}

void check_pivots(const Tensor& pivots, int64_t rows, const char* op) {
  const int32_t* p = pivots.data<int32_t>();
  for (int64_t i = 0; i < pivots.numel(); ++i)
    check(p[i] >= 1 && p[i] <= rows, op, "(): expected pivots from 1 to the ", rows,
          " rows of LU; got ", p[i]);
}

template <class T>
void conjugate_in_place(const Tensor& t) {
  if constexpr (is_complex_v<T>) {
    T* x = t.data<T>();
    for (int64_t i = 0; i < t.numel(); ++i) x[i].im = -x[i].im;
  }
}

// Whether each system has factors of its own, in the order of the systems.
bool one_by_one(const Tensor& LU, const Tensor& pivots, const Tensor& X) {
  return matrix_count(LU) == matrix_count(X) && pivots.numel() == matrix_count(X) * X.size(-2);
}

// Solves the first systems of the batch, as many as make whole vectors; how many these are.
template <class T>
int64_t solve_groups(const Tensor& LU, const Tensor& pivots, const Tensor& X) {
  const int64_t n = X.size(-2), k = X.size(-1);
  constexpr int64_t lanes = 16;  // the most of any instruction set
  const int64_t count = matrix_count(X) / lanes * lanes;
  for_each_part(count, n * n * k, [&](int64_t first, int64_t many) {
    FACULA_OF_ISA(solve_side_by_side<T>)(LU.data<T>() + first * n * n,
                                         pivots.data<int32_t>() + first * n,
                                         X.data<T>() + first * n * k, many, n, k);
  });
  return count;
}

// One call for at most this many columns, so that those of a single matrix are shared out.
constexpr int64_t columns_of_a_part = 64;

template <class T>
void solve_all(const Tensor& LU, const Tensor& pivots, char trans, const Tensor& X) {
  const int64_t n = X.size(-2), k = X.size(-1);
  if (X.numel() == 0) return;
  const bool small = n <= small_order;
  int64_t done = 0;
  if constexpr (!is_complex_v<T>)
    if (small && trans == 'N' && one_by_one(LU, pivots, X)) done = solve_groups<T>(LU, pivots, X);
  if (done == matrix_count(X)) return;
  const std::vector<int64_t> factors = batch_offsets(LU, batch_sizes(X), 2),
                             swaps = batch_offsets(pivots, batch_sizes(X), 1);
  if (!small) lapack::open();
  const auto solve_one = FACULA_OF_ISA(solve_small<T>);
  const int64_t parts = (k + columns_of_a_part - 1) / columns_of_a_part;
  const int64_t left = (matrix_count(X) - done) * parts;
  for_each_matrix(left, n * n * std::min(k, columns_of_a_part), [&](int64_t number) {
    const int64_t i = done * parts + number;
    const auto item = static_cast<size_t>(i / parts);
    const int64_t first = i % parts * columns_of_a_part,
                  columns = std::min(k - first, columns_of_a_part);
    const T* lu = LU.data<T>() + factors[item];
    const int32_t* order = pivots.data<int32_t>() + swaps[item];
    T* x = X.data<T>() + (i / parts * k + first) * n;
    if (small) return solve_one(lu, order, trans, x, n, columns);
    const int size = lapack_size(n);
    lapack::getrs(trans, size, static_cast<int>(columns), lu, size, order, x, size);
  });
}

// Where the rows of the permuted matrix come from.
void row_order(const int32_t* pivots, int64_t count, std::vector<int64_t>& order) {
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t k = 0; k < count; ++k)
    std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(pivots[k] - 1)]);
}

template <class T>
void unpack_permutation(const Tensor& pivots, const Tensor& P) {
  const int64_t m = P.size(-1), k = pivots.size(-1);
  for_each_matrix(matrix_count(P), m * m, [&](int64_t i) {
    std::vector<int64_t> order(static_cast<size_t>(m));
    row_order(pivots.data<int32_t>() + i * k, k, order);
    T* p = P.data<T>() + i * m * m;
    std::fill_n(p, m * m, T(0));
    for (int64_t r = 0; r < m; ++r) p[order[static_cast<size_t>(r)] * m + r] = T(1);
  });
}

template <class T>
void unpack_triangles(const Tensor& LU, const Tensor& L, const Tensor& U) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  for_each_matrix(matrix_count(LU), m * n, [&](int64_t i) {
    const T* lu = LU.data<T>() + i * m * n;
    T *l = L.data<T>() + i * m * k, *u = U.data<T>() + i * k * n;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < k; ++c) l[r * k + c] = r > c ? lu[c * m + r] : T(r == c ? 1 : 0);
    for (int64_t r = 0; r < k; ++r)
      for (int64_t c = 0; c < n; ++c) u[r * n + c] = r > c ? T(0) : lu[c * m + r];
  });
}

}  // namespace

void lu_factor(const Tensor& A, const Tensor& LU, const Tensor& pivots, const Tensor& info) {
  const ColumnResult factors(LU);
  const ContiguousResult swaps(pivots), codes(info);
  copy_to_columns(factors.tensor(), A);
  auto run = [&]<class T>(Type<T>) {
    factor_all<T>(factors.tensor(), swaps.tensor().data<int32_t>(), codes.tensor().data<int32_t>());
  };
  dispatch<float, double, ComplexTypes>(A.dtype(), "lu_cpu", run);
  factors.store();
  swaps.store();
  codes.store();
}

void lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint,
              const Tensor& X) {
  // X A = B is A^T X^T = B^T; with the adjoint, A conj(X^T) = conj(B^T).
  const Tensor unknowns = left ? X : matrix_transposed(X);
  const ColumnResult solution(unknowns);
  const Tensor factors = columns(LU), swaps = contiguous(pivots);
  check_pivots(swaps, LU.size(-2), "linalg.lu_solve");
  copy_to_columns(solution.tensor(), left ? B : matrix_transposed(B));
  const char trans = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
  const bool conjugated = !left && adjoint;
  auto run = [&]<class T>(Type<T>) {
    if (conjugated) conjugate_in_place<T>(solution.tensor());
    solve_all<T>(factors, swaps, trans, solution.tensor());
    if (conjugated) conjugate_in_place<T>(solution.tensor());
  };
  dispatch<float, double, ComplexTypes>(LU.dtype(), "lu_solve_cpu", run);
  solution.store();
}

void lu_unpack(const Tensor& LU, const Tensor& pivots, const Tensor& P, const Tensor& L,
               const Tensor& U) {
  const Tensor factors = columns(LU), swaps = contiguous(pivots);
  if (P.defined()) check_pivots(swaps, LU.size(-2), "lu_unpack");
  auto run = [&]<class T>(Type<T>) {
    if (P.defined()) {
      const ContiguousResult permutation(P);
      unpack_permutation<T>(swaps, permutation.tensor());
      permutation.store();
    }
    if (!L.defined()) return;
    const ContiguousResult lower(L), upper(U);
    unpack_triangles<T>(factors, lower.tensor(), upper.tensor());
    lower.store();
    upper.store();
  };
  dispatch<FloatingTypes, ComplexTypes, IntegralTypes, bool>(LU.dtype(), "lu_unpack_cpu", run);
}

}  // namespace facula::cpu
