#include "kernels/cpu/linalg/determinant.h"

#include <cmath>

#include "kernels/cpu/linalg/lapack.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// What factors of one matrix say of its determinant.
template <class T>
class Factors {
 public:
  Factors(const T* lu, const int32_t* pivots, int64_t n) : lu_(lu), pivots_(pivots), n_(n) {}

  T determinant() const {
    T product = permutation();
    for (int64_t k = 0; k < n_; ++k) product *= diagonal(k);
    return product;
  }
  T sign() const {
    T product = permutation();
    for (int64_t k = 0; k < n_; ++k) product *= sign_of(diagonal(k));
    return product;
  }
  lapack::Real<T> logarithm() const {
    lapack::Real<T> sum = 0;
    for (int64_t k = 0; k < n_; ++k) sum += std::log(size_of(diagonal(k)));
    return sum;
  }

 private:
  T diagonal(int64_t k) const { return lu_[k * n_ + k]; }
  T permutation() const {
    bool odd = false;
    for (int64_t k = 0; k < n_; ++k) odd ^= pivots_[k] != k + 1;
    return T(odd ? -1 : 1);
  }
  static lapack::Real<T> size_of(T x) {
    if constexpr (is_complex_v<T>)
      return facula::abs(x);
    else
      return std::abs(x);
  }
  static T sign_of(T x) {
    const auto size = size_of(x);
    return size == 0 ? T(0) : x / T(size);
  }

  const T* lu_;
  const int32_t* pivots_;
  int64_t n_;
};

// Calls use(i, factors) for each matrix.
template <class T, class F>
void for_each_factors(const Tensor& LU, const Tensor& pivots, F&& use) {
  const int64_t n = LU.size(-1);
  const T* lu = LU.data<T>();
  const int32_t* p = pivots.data<int32_t>();
  for_each_matrix(matrix_count(LU), n * 16,
                  [&](int64_t i) { use(i, Factors<T>(lu + i * n * n, p + i * n, n)); });
}

}  // namespace

void determinant(const Tensor& LU, const Tensor& pivots, const Tensor& result) {
  const Tensor factors = columns(LU), swaps = contiguous(pivots);
  const ContiguousResult values(result);
  auto run = [&]<class T>(Type<T>) {
    T* to = values.tensor().data<T>();
    for_each_factors<T>(factors, swaps,
                        [&](int64_t i, const Factors<T>& f) { to[i] = f.determinant(); });
  };
  dispatch<float, double, ComplexTypes>(LU.dtype(), "linalg_det_cpu", run);
  values.store();
}

void log_determinant(const Tensor& LU, const Tensor& pivots, const Tensor& sign,
                     const Tensor& logarithm) {
  const Tensor factors = columns(LU), swaps = contiguous(pivots);
  const ContiguousResult signs(sign), logarithms(logarithm);
  auto run = [&]<class T>(Type<T>) {
    T* sign_to = signs.tensor().data<T>();
    auto* log_to = logarithms.tensor().data<lapack::Real<T>>();
    for_each_factors<T>(factors, swaps, [&](int64_t i, const Factors<T>& f) {
      sign_to[i] = f.sign();
      log_to[i] = f.logarithm();
    });
  };
  dispatch<float, double, ComplexTypes>(LU.dtype(), "linalg_slogdet_cpu", run);
  signs.store();
  logarithms.store();
}

}  // namespace facula::cpu
