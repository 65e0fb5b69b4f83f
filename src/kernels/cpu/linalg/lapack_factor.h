// LAPACK's routines of factors (LU, QR, LDL) and of what is solved with them. Matrices stand column
// by column; each function returns info: 0, or what failed.
#pragma once
#include <cstdint>

#include "kernels/cpu/linalg/lapack.h"

namespace facula::cpu::lapack {

// --- LU

template <class T>
int getrf(int m, int n, T* a, int lda, int32_t* pivots) {
  return call<"getrf", T>(m, n, a, lda, pivots);
}
// trans: 'N', 'T' or 'C', the matrix that is solved with.
template <class T>
int getrs(char trans, int n, int nrhs, const T* lu, int lda, const int32_t* pivots, T* b, int ldb) {
  return call<"getrs", T>(trans, n, nrhs, lu, lda, pivots, b, ldb);
}

// --- QR

template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau) {
  return with_work<T>(
      [&](T* work, int size) { return call<"geqrf", T>(m, n, a, lda, tau, work, size); });
}
// The first n columns of the product of k reflectors.
template <class T>
int orgqr(int m, int n, int k, T* a, int lda, const T* tau) {
  return with_work<T>([&](T* work, int size) {
    return call<"orgqr", "ungqr", T>(m, n, k, a, lda, tau, work, size);
  });
}
template <class T>
int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          int ldc) {
  return with_work<T>([&](T* work, int size) {
    return call<"ormqr", "unmqr", T>(side, trans, m, n, k, a, lda, tau, c, ldc, work, size);
  });
}

// --- least squares

template <class T>
int gels(char trans, int m, int n, int nrhs, T* a, int lda, T* b, int ldb) {
  return with_work<T>([&](T* work, int size) {
    return call<"gels", T>(trans, m, n, nrhs, a, lda, b, ldb, work, size);
  });
}
// By a QR with pivots; columns_order is what jpvt is in LAPACK, zeros to begin with.
template <class T>
int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* columns_order, Real<T> rcond,
          int* rank) {
  std::vector<Real<T>> reals(static_cast<size_t>(2 * n + 1));
  return with_work<T>([&](T* work, int size) {
    if constexpr (is_complex_v<T>)
      return call<"gelsy", T>(m, n, nrhs, a, lda, b, ldb, columns_order, rcond, rank, work, size,
                              reals.data());
    else
      return call<"gelsy", T>(m, n, nrhs, a, lda, b, ldb, columns_order, rcond, rank, work, size);
  });
}
// By singular values.
template <class T>
int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Real<T>* values, Real<T> rcond,
          int* rank) {
  std::vector<Real<T>> reals(static_cast<size_t>(5 * std::min(m, n) + 1));
  return with_work<T>([&](T* work, int size) {
    if constexpr (is_complex_v<T>)
      return call<"gelss", T>(m, n, nrhs, a, lda, b, ldb, values, rcond, rank, work, size,
                              reals.data());
    else
      return call<"gelss", T>(m, n, nrhs, a, lda, b, ldb, values, rcond, rank, work, size);
  });
}
// By singular values, divide and conquer.
template <class T>
int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Real<T>* values, Real<T> rcond,
          int* rank) {
  // How much of the other two it wants it says in them when it is asked for the size of `work`.
  T said(0);
  Real<T> reals_said = 0;
  int ints_said = 1;
  auto run = [&](T* work, int size, Real<T>* reals, int* ints) {
    if constexpr (is_complex_v<T>)
      return call<"gelsd", T>(m, n, nrhs, a, lda, b, ldb, values, rcond, rank, work, size, reals,
                              ints);
    else
      return call<"gelsd", T>(m, n, nrhs, a, lda, b, ldb, values, rcond, rank, work, size, ints);
  };
  if (const int info = run(&said, -1, &reals_said, &ints_said)) return info;
  std::vector<T> work(wanted(said));
  std::vector<Real<T>> reals(wanted(reals_said));
  std::vector<int> ints(static_cast<size_t>(std::max(1, ints_said)));
  return run(work.data(), static_cast<int>(work.size()), reals.data(), ints.data());
}

// --- LDL of symmetric and Hermitian matrices

template <class T>
int sytrf(char uplo, int n, T* a, int lda, int32_t* pivots) {
  return with_work<T>(
      [&](T* work, int size) { return call<"sytrf", T>(uplo, n, a, lda, pivots, work, size); });
}
template <class T>
int hetrf(char uplo, int n, T* a, int lda, int32_t* pivots) {
  return with_work<T>([&](T* work, int size) {
    return call<"sytrf", "hetrf", T>(uplo, n, a, lda, pivots, work, size);
  });
}
template <class T>
int sytrs(char uplo, int n, int nrhs, const T* a, int lda, const int32_t* pivots, T* b, int ldb) {
  return call<"sytrs", T>(uplo, n, nrhs, a, lda, pivots, b, ldb);
}
template <class T>
int hetrs(char uplo, int n, int nrhs, const T* a, int lda, const int32_t* pivots, T* b, int ldb) {
  return call<"sytrs", "hetrs", T>(uplo, n, nrhs, a, lda, pivots, b, ldb);
}

}  // namespace facula::cpu::lapack
