// LAPACK's routines of eigenvalues and singular values. Matrices stand column by column and are
// overwritten; each function returns info: 0, or what failed.
#pragma once
#include <cstdint>
#include <limits>

#include "kernels/cpu/linalg/lapack.h"

namespace facula::cpu::lapack {

// Memory that the routines work in, grown when it is asked for; one object serves many matrices.
template <class T>
class WorkSpace {
 public:
  int ask(const T& said) {
    const size_t n = wanted(said);
    if (n > room_.size()) room_.resize(n);
    return static_cast<int>(std::min<size_t>(room_.size(), std::numeric_limits<int>::max()));
  }
  T* at_least(size_t n) {
    if (n > room_.size()) room_.resize(n);
    return room_.data();
  }
  T* data() { return room_.data(); }

 private:
  std::vector<T> room_;
};

template <class T>
struct SpectralWork {
  WorkSpace<T> elements;
  WorkSpace<Real<T>> reals;
  WorkSpace<int> ints;
};

// Eigenvalues, in ascending order, of a Hermitian matrix of which the triangle `uplo` ('L' or 'U')
// is read; job 'V': the eigenvectors replace the matrix, 'N': none.
template <class T>
int syevd(char job, char uplo, int n, T* a, Real<T>* values, SpectralWork<T>& room) {
  auto run = [&](T* work, int size, Real<T>* reals, int reals_size, int* ints, int ints_size) {
    if constexpr (is_complex_v<T>)
      return call<"syevd", "heevd", T>(job, uplo, n, a, n, values, work, size, reals, reals_size,
                                       ints, ints_size);
    else
      return call<"syevd", T>(job, uplo, n, a, n, values, work, size, ints, ints_size);
  };
  T said(0);
  Real<T> reals_said = 0;
  int ints_said = 1;
  if (const int info = run(&said, -1, &reals_said, -1, &ints_said, -1)) return info;
  const int size = room.elements.ask(said), reals = room.reals.ask(reals_said);
  room.ints.at_least(static_cast<size_t>(std::max(1, ints_said)));
  return run(room.elements.data(), size, room.reals.data(), reals, room.ints.data(), ints_said);
}

// Eigenvalues of any square matrix. Real matrices give real and imaginary parts, and vectors as
// real columns: of a complex pair the real part, then the imaginary part. right == nullptr: none.
template <class T>
int geev(int n, T* a, T* values, T* imaginary, T* right, SpectralWork<T>& room) {
  auto run = [&](T* work, int size) {
    const char none = 'N', vectors = right ? 'V' : 'N';
    T* unused = nullptr;
    if constexpr (is_complex_v<T>)
      return call<"geev", T>(none, vectors, n, a, n, values, unused, 1, right, n, work, size,
                             room.reals.at_least(static_cast<size_t>(2 * n)));
    else
      return call<"geev", T>(none, vectors, n, a, n, values, imaginary, unused, 1, right, n, work,
                             size);
  };
  T said(0);
  if (const int info = run(&said, -1)) return info;
  const int size = room.elements.ask(said);
  return run(room.elements.data(), size);
}

// Singular values in descending order. job: 'A' all singular vectors, 'S' the first min(m, n), 'N'
// none. `right` has the conjugated vectors as rows.
template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* values, T* left, T* right, int right_rows,
          SpectralWork<T>& room) {
  const size_t least = static_cast<size_t>(std::min(m, n)),
               most = static_cast<size_t>(std::max(m, n));
  int* ints = room.ints.at_least(8 * least);
  auto run = [&](T* work, int size) {
    if constexpr (is_complex_v<T>) {
      const size_t with_vectors =
          std::max(5 * least * least + 5 * least, 2 * most * least + 2 * least * least + least);
      Real<T>* reals = room.reals.at_least(job == 'N' ? 7 * least : with_vectors);
      return call<"gesdd", T>(job, m, n, a, m, values, left, m, right, right_rows, work, size,
                              reals, ints);
    } else {
      return call<"gesdd", T>(job, m, n, a, m, values, left, m, right, right_rows, work, size,
                              ints);
    }
  };
  T said(0);
  if (const int info = run(&said, -1)) return info;
  const int size = room.elements.ask(said);
  return run(room.elements.data(), size);
}

}  // namespace facula::cpu::lapack
