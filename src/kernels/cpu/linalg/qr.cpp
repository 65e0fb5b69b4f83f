#include "kernels/cpu/linalg/qr.h"

#include "kernels/cpu/linalg/block_reflectors.h"
#include "kernels/cpu/linalg/lapack_factor.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/linalg/parts.h"
#include "kernels/cpu/linalg/side_by_side.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// Routines raise for sizes that they cannot have, which what calls them has looked at.
void expect_done(int info, const char* routine) {
  check(info == 0, "LAPACK: expected ", routine, " to take its arguments; got ", info);
}

template <class T>
void factor_all(const Tensor& a, const Tensor& tau) {
  const int m = lapack_size(a.size(-2)), n = lapack_size(a.size(-1)), k = std::min(m, n);
  if (a.numel() == 0) return;
  lapack::open();
  const int64_t area = int64_t{m} * n;
  T *at = a.data<T>(), *scales = tau.data<T>();
  auto factor = [&](int64_t i) {
    if constexpr (!is_complex_v<T>)
      if (m > side_by_side_order &&
          FACULA_OF_ISA(geqrf_blocks<T>)(at + i * area, m, n, scales + i * k))
        return;
    expect_done(lapack::geqrf(m, n, at + i * area, m, scales + i * k), "geqrf");
  };
  if (std::max(m, n) > side_by_side_order)
    return for_each_matrix(matrix_count(a), area * k, factor);
  for_each_part(matrix_count(a), area * k, [&](int64_t first, int64_t many) {
    int64_t done = 0;
    if constexpr (!is_complex_v<T>)
      done =
          FACULA_OF_ISA(geqrf_side_by_side<T>)(at + first * area, many, m, n, scales + first * k);
    for (int64_t i = done; i < many; ++i) factor(first + i);
  });
}

// Reflectors in Q become the columns of their product.
template <class T>
void expand_all(const Tensor& Q, const Tensor& tau) {
  const int m = lapack_size(Q.size(-2)), n = lapack_size(Q.size(-1)), k = lapack_size(tau.size(-1));
  if (Q.numel() == 0) return;
  lapack::open();
  const int64_t area = int64_t{m} * n, work = area * std::max(k, 1);
  T *at = Q.data<T>(), *scales = tau.data<T>();
  auto expand = [&](int64_t i) {
    if constexpr (!is_complex_v<T>)
      if (m > side_by_side_order)
        return FACULA_OF_ISA(orgqr_blocks<T>)(at + i * area, m, n, k, scales + i * k);
    expect_done(lapack::orgqr(m, n, k, at + i * area, m, scales + i * k), "orgqr");
  };
  if (std::max(m, n) > side_by_side_order) return for_each_matrix(matrix_count(Q), work, expand);
  for_each_part(matrix_count(Q), work, [&](int64_t first, int64_t many) {
    int64_t done = 0;
    if constexpr (!is_complex_v<T>)
      done = FACULA_OF_ISA(orgqr_side_by_side<T>)(at + first * area, many, m, n, k,
                                                  scales + first * k);
    for (int64_t i = done; i < many; ++i) expand(first + i);
  });
}

template <class T>
void multiply_all(const Tensor& a, const Tensor& tau, const Tensor& C, bool left, bool adjoint) {
  const int m = lapack_size(C.size(-2)), n = lapack_size(C.size(-1)), k = lapack_size(tau.size(-1)),
            rows = left ? m : n;
  if (C.numel() == 0 || k == 0) return;
  lapack::open();
  const char side = left ? 'L' : 'R', trans = !adjoint ? 'N' : is_complex_v<T> ? 'C' : 'T';
  const int64_t area = int64_t{m} * n, step = int64_t{rows} * a.size(-1);
  for_each_matrix(matrix_count(C), area * k, [&](int64_t i) {
    expect_done(lapack::ormqr(side, trans, m, n, k, a.data<T>() + i * step, rows,
                              tau.data<T>() + i * k, C.data<T>() + i * area, m),
                "ormqr");
  });
}

// The first columns of each matrix, or rows, as a view.
Tensor first_columns(const Tensor& t, int64_t n) {
  IntVec sizes(t.sizes());
  sizes[sizes.size() - 1] = n;
  return alias_tensor(t, sizes, t.strides(), t.storage_offset());
}
Tensor first_rows(const Tensor& t, int64_t n) {
  IntVec sizes(t.sizes());
  sizes[sizes.size() - 2] = n;
  return alias_tensor(t, sizes, t.strides(), t.storage_offset());
}

template <class T>
void clear_below_diagonal(const Tensor& R) {
  const int64_t m = R.size(-2), n = R.size(-1);
  for_each_matrix(matrix_count(R), m * n, [&](int64_t i) {
    T* r = R.data<T>() + i * m * n;
    for (int64_t c = 0; c < std::min(m, n); ++c) std::fill_n(r + c * m + c + 1, m - c - 1, T(0));
  });
}

}  // namespace

void geqrf(const Tensor& A, const Tensor& a, const Tensor& tau) {
  const ColumnResult factors(a);
  const ContiguousResult scales(tau);
  copy_to_columns(factors.tensor(), A);
  auto run = [&]<class T>(Type<T>) { factor_all<T>(factors.tensor(), scales.tensor()); };
  dispatch<float, double, ComplexTypes>(A.dtype(), "geqrf_cpu", run);
  factors.store();
  scales.store();
}

void householder_product(const Tensor& a, const Tensor& tau, const Tensor& Q) {
  const ColumnResult product(Q);
  copy(product.tensor(), a);
  const Tensor scales = contiguous(tau);
  auto run = [&]<class T>(Type<T>) { expand_all<T>(product.tensor(), scales); };
  dispatch<float, double, ComplexTypes>(a.dtype(), "orgqr_cpu", run);
  product.store();
}

void multiply_reflectors(const Tensor& a, const Tensor& tau, const Tensor& C, bool left,
                         bool adjoint, const Tensor& product) {
  const ColumnResult result(product);
  copy(result.tensor(), C);
  const Tensor vectors = columns(a), scales = contiguous(tau);
  auto run = [&]<class T>(Type<T>) {
    multiply_all<T>(vectors, scales, result.tensor(), left, adjoint);
  };
  dispatch<float, double, ComplexTypes>(a.dtype(), "ormqr_cpu", run);
  result.store();
}

void qr(const Tensor& A, const Tensor& Q, const Tensor& R) {
  const int64_t n = A.size(-1), k = std::min(A.size(-2), n);
  IntVec scale_sizes(batch_sizes(A));
  scale_sizes.push_back(k);
  const Tensor a = empty_columns(A.sizes(), A.dtype()), tau = empty_tensor(scale_sizes, A.dtype());
  geqrf(A, a, tau);
  const ColumnResult upper(R);
  copy(upper.tensor(), first_rows(a, R.size(-2)));
  auto clear = [&]<class T>(Type<T>) { clear_below_diagonal<T>(upper.tensor()); };
  dispatch<float, double, ComplexTypes>(A.dtype(), "qr_cpu", clear);
  upper.store();
  if (!Q.defined()) return;
  const ColumnResult vectors(Q);
  const int64_t known = std::min(n, Q.size(-1));
  copy(first_columns(vectors.tensor(), known), first_columns(a, known));
  auto expand = [&]<class T>(Type<T>) { expand_all<T>(vectors.tensor(), tau); };
  dispatch<float, double, ComplexTypes>(A.dtype(), "orgqr_cpu", expand);
  vectors.store();
}

}  // namespace facula::cpu
