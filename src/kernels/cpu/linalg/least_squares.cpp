#include "kernels/cpu/linalg/least_squares.h"

#include "kernels/cpu/linalg/lapack_factor.h"
#include "kernels/cpu/linalg/matrices.h"

namespace facula::cpu {
namespace {

template <class T>
class Problem {
 public:
  Problem(LeastSquares driver, const Tensor& A, const Tensor& B, double rcond, const Tensor& rank,
          const Tensor& values)
      : driver_(driver),
        m_(lapack_size(A.size(-2))),
        n_(lapack_size(A.size(-1))),
        k_(lapack_size(B.size(-1))),
        rows_(lapack_size(B.size(-2))),
        rcond_(static_cast<lapack::Real<T>>(rcond)),
        A_(A),
        B_(B),
        rank_(rank),
        values_(values) {}

  void solve() const {
    lapack::open();
    const int64_t work = int64_t{m_} * n_ * std::min(m_, n_);
    for_each_matrix(matrix_count(A_), work, [&](int64_t i) {
      int rank = 0;
      const int info = run(i, rank);
      if (rank_.defined()) rank_.data<int64_t>()[i] = rank;
      if (info == 0) return;
      const std::string where = A_.dim() == 2 ? "" : concat(" of matrix ", i);
      if (driver_ == LeastSquares::Gels)
        throw Error(ErrorKind::LinAlg, "linalg.lstsq(): column ", info, where,
                    " depends on others: the driver gels wants full rank");
      throw Error(ErrorKind::LinAlg, "linalg.lstsq(): the singular values", where,
                  " did not converge");
    });
  }

 private:
  int run(int64_t i, int& rank) const {
    T* a = A_.data<T>() + i * m_ * n_;
    T* b = B_.data<T>() + i * rows_ * k_;
    const int lda = std::max(1, m_), ldb = std::max(1, rows_);
    using R = lapack::Real<T>;
    R* values = values_.defined() ? values_.data<R>() + i * std::min(m_, n_) : nullptr;
    switch (driver_) {
      case LeastSquares::Gels:
        return lapack::gels('N', m_, n_, k_, a, lda, b, ldb);
      case LeastSquares::Gelsy: {
        std::vector<int> order(static_cast<size_t>(std::max(1, n_)), 0);
        return lapack::gelsy(m_, n_, k_, a, lda, b, ldb, order.data(), rcond_, &rank);
      }
      case LeastSquares::Gelsd:
        return lapack::gelsd(m_, n_, k_, a, lda, b, ldb, values, rcond_, &rank);
      case LeastSquares::Gelss:
        return lapack::gelss(m_, n_, k_, a, lda, b, ldb, values, rcond_, &rank);
    }
    return 0;
  }

  const LeastSquares driver_;
  const int m_, n_, k_, rows_;
  const lapack::Real<T> rcond_;
  const Tensor &A_, &B_, &rank_, &values_;
};

}  // namespace

void least_squares(LeastSquares driver, const Tensor& A, const Tensor& B, double rcond,
                   const Tensor& rank, const Tensor& values) {
  auto run = [&]<class T>(Type<T>) { Problem<T>(driver, A, B, rcond, rank, values).solve(); };
  dispatch<float, double, ComplexTypes>(A.dtype(), "linalg_lstsq_cpu", run);
}

}  // namespace facula::cpu
