#include "kernels/cpu/linalg/singular.h"

#include <optional>

#include "kernels/cpu/linalg/eigen.h"
#include "kernels/cpu/linalg/finite.h"
#include "kernels/cpu/linalg/lapack_spectral.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// Singular vectors of matrices without elements: any basis will do.
template <class T>
void identities(const Tensor& t) {
  const int64_t n = t.size(-1), area = t.size(-2) * n;
  std::fill_n(t.data<T>(), t.numel(), T(0));
  for (int64_t i = 0; i < matrix_count(t) && area > 0; ++i)
    for (int64_t d = 0; d < std::min(t.size(-2), n); ++d)
      t.data<T>()[i * area + d * (t.size(-2) + 1)] = T(1);
}

// The jobs of gesdd.
char job_of(const Tensor& A, const Tensor& U, const Tensor& Vh) {
  if (!U.defined()) return 'N';
  const bool whole = U.size(-1) == U.size(-2) && Vh.size(-1) == Vh.size(-2);
  return whole && A.size(-1) != A.size(-2) ? 'A' : 'S';
}

template <class T>
void svd_all(const Tensor& work, const Tensor& U, const Tensor& S, const Tensor& Vh,
             int32_t* status) {
  const int64_t m = work.size(-2), n = work.size(-1), k = std::min(m, n);
  if (k == 0 && U.defined()) {
    identities<T>(U);
    identities<T>(Vh);
  }
  if (work.numel() == 0) return;
  lapack::open();
  const char job = job_of(work, U, Vh);
  const int64_t left = job == 'N' ? 0 : U.size(-2) * U.size(-1),
                right_rows = job == 'N' ? 1 : Vh.size(-2), right = job == 'N' ? 0 : right_rows * n;
  lapack_size(m);
  lapack_size(n);
  for_each_matrix(matrix_count(work), 20 * m * n * k, [&](int64_t i) {
    T* a = work.data<T>() + i * m * n;
    if (!all_finite(a, m * n)) {
      status[i] = not_finite;
      return;
    }
    lapack::SpectralWork<T> room;
    T* none = nullptr;
    status[i] = lapack::gesdd<T>(
        job, static_cast<int>(m), static_cast<int>(n), a, S.data<lapack::Real<T>>() + i * k,
        left ? U.data<T>() + i * left : none, right ? Vh.data<T>() + i * right : none,
        static_cast<int>(right_rows), room);
  });
}

}  // namespace

void svd(const Tensor& A, const Tensor& U, const Tensor& S, const Tensor& Vh,
         const Tensor& status) {
  const Tensor work = empty_columns(A.sizes(), A.dtype());
  copy(work, A);
  const ContiguousResult values(S), codes(status);
  fill(codes.tensor(), 0);
  std::optional<ColumnResult> left, right;
  if (U.defined()) {
    left.emplace(U);
    right.emplace(Vh);
  }
  auto run = [&]<class T>(Type<T>) {
    svd_all<T>(work, left ? left->tensor() : Tensor(), values.tensor(),
               right ? right->tensor() : Tensor(), codes.tensor().data<int32_t>());
  };
  dispatch<float, double, ComplexTypes>(A.dtype(), "linalg_svd_cpu", run);
  if (left) {
    left->store();
    right->store();
  }
  values.store();
  codes.store();
}

}  // namespace facula::cpu
