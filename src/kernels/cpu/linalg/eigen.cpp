#include "kernels/cpu/linalg/eigen.h"

#include <optional>

#include "kernels/cpu/linalg/finite.h"
#include "kernels/cpu/linalg/lapack_spectral.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// The triangle of a matrix that is read, column by column.
template <class T>
bool triangle_is_finite(const T* a, int64_t n, bool upper) {
  for (int64_t j = 0; j < n; ++j) {
    const T* column = a + j * n;
    if (!all_finite(upper ? column : column + j, upper ? j + 1 : n - j)) return false;
  }
  return true;
}

template <class T>
void eigh_all(const Tensor& work, bool upper, bool wants_vectors, const Tensor& values,
              int32_t* status) {
  const int64_t n = work.size(-1), count = matrix_count(work);
  if (n == 0) return;
  lapack::open();
  const int size = lapack_size(n);
  for_each_matrix(count, 8 * n * n * n, [&](int64_t i) {
    T* a = work.data<T>() + i * n * n;
    if (!triangle_is_finite(a, n, upper)) {
      status[i] = not_finite;
      return;
    }
    lapack::SpectralWork<T> room;
    status[i] = lapack::syevd<T>(wants_vectors ? 'V' : 'N', upper ? 'U' : 'L', size, a,
                                 values.data<lapack::Real<T>>() + i * n, room);
  });
}

// From LAPACK's columns, of complex pairs the real parts and then the imaginary parts, which stand
// for both vectors of the pair.
template <class T>
void complex_vectors(const T* columns, const T* imaginary, int64_t n, Complex<T>* to) {
  for (int64_t j = 0; j < n; ++j) {
    const T* re = columns + j * n;
    if (imaginary[j] == T(0) || j + 1 == n) {
      for (int64_t k = 0; k < n; ++k) to[j * n + k] = Complex<T>(re[k]);
      continue;
    }
    const T* im = re + n;
    for (int64_t k = 0; k < n; ++k) {
      to[j * n + k] = Complex<T>(re[k], im[k]);
      to[(j + 1) * n + k] = Complex<T>(re[k], -im[k]);
    }
    ++j;
  }
}

// One matrix, which is overwritten.
template <class T>
int eig_one(T* a, int64_t n, Complex<T>* values, Complex<T>* vectors) {
  lapack::SpectralWork<T> room;
  std::vector<T> parts(static_cast<size_t>(2 * n)), columns;
  if (vectors) columns.resize(static_cast<size_t>(n * n));
  T *re = parts.data(), *im = re + n;
  const int info =
      lapack::geev<T>(static_cast<int>(n), a, re, im, vectors ? columns.data() : nullptr, room);
  if (info != 0) return info;
  for (int64_t k = 0; k < n; ++k) values[k] = Complex<T>(re[k], im[k]);
  if (vectors) complex_vectors(columns.data(), im, n, vectors);
  return 0;
}
template <class R>
int eig_one(Complex<R>* a, int64_t n, Complex<R>* values, Complex<R>* vectors) {
  lapack::SpectralWork<Complex<R>> room;
  return lapack::geev<Complex<R>>(static_cast<int>(n), a, values, nullptr, vectors, room);
}

template <class T>
void eig_all(const Tensor& work, const Tensor& values, const Tensor& vectors, int32_t* status) {
  using C = Complex<lapack::Real<T>>;
  const int64_t n = work.size(-1), count = matrix_count(work);
  if (n == 0) return;
  lapack::open();
  lapack_size(n);
  for_each_matrix(count, 25 * n * n * n, [&](int64_t i) {
    T* a = work.data<T>() + i * n * n;
    if (!all_finite(a, n * n)) {
      status[i] = not_finite;
      return;
    }
    status[i] = eig_one(a, n, values.data<C>() + i * n,
                        vectors.defined() ? vectors.data<C>() + i * n * n : nullptr);
  });
}

}  // namespace

void eigh(const Tensor& A, bool upper, const Tensor& values, const Tensor& vectors,
          const Tensor& status) {
  const bool wants_vectors = vectors.defined();
  const Tensor scratch = wants_vectors ? vectors : empty_columns(A.sizes(), A.dtype());
  const ColumnResult work(scratch);
  const ContiguousResult sorted(values), codes(status);
  copy(work.tensor(), A);
  fill(codes.tensor(), 0);
  auto run = [&]<class T>(Type<T>) {
    eigh_all<T>(work.tensor(), upper, wants_vectors, sorted.tensor(),
                codes.tensor().data<int32_t>());
  };
  dispatch<float, double, ComplexTypes>(A.dtype(), "linalg_eigh_cpu", run);
  work.store();
  sorted.store();
  codes.store();
}

void eig(const Tensor& A, const Tensor& values, const Tensor& vectors, const Tensor& status) {
  const Tensor work = empty_columns(A.sizes(), A.dtype());
  const ContiguousResult found(values), codes(status);
  copy(work, A);
  fill(codes.tensor(), 0);
  std::optional<ColumnResult> kept;
  if (vectors.defined()) kept.emplace(vectors);
  auto run = [&]<class T>(Type<T>) {
    eig_all<T>(work, found.tensor(), kept ? kept->tensor() : Tensor(),
               codes.tensor().data<int32_t>());
  };
  dispatch<float, double, ComplexTypes>(A.dtype(), "linalg_eig_out_cpu", run);
  if (kept) kept->store();
  found.store();
  codes.store();
}

}  // namespace facula::cpu
