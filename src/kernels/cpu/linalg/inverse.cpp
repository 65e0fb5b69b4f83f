#include "kernels/cpu/linalg/inverse.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/linalg/inverse_blocks.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/linalg/parts.h"
#include "kernels/cpu/linalg/side_by_side.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

// |re| + |im|, by which LAPACK chooses pivots too.
template <class T>
auto weight_of(T x) {
  if constexpr (is_complex_v<T>)
    return std::abs(x.re) + std::abs(x.im);
  else
    return std::abs(x);
}

// Row elimination of [A | I] with partial pivoting; both are n x n, row by row.
template <class T>
class Elimination {
 public:
  Elimination(T* a, T* b, int64_t n) : a_(a), b_(b), n_(n) {}

  int32_t run() {
    int32_t singular = 0;
    for (int64_t k = 0; k < n_; ++k) {
      bring_up(k, pivot_of(k));
      if (a_[k * n_ + k] == T(0)) {
        if (!singular) singular = static_cast<int32_t>(k + 1);
        continue;
      }
      for (int64_t i = k + 1; i < n_; ++i) eliminate(i, k);
    }
    for (int64_t i = n_ - 1; i >= 0; --i) solve_row(i);
    return singular;
  }

 private:
  int64_t pivot_of(int64_t k) const {
    int64_t best = k;
    for (int64_t i = k + 1; i < n_; ++i)
      if (weight_of(a_[i * n_ + k]) > weight_of(a_[best * n_ + k])) best = i;
    return best;
  }
  void bring_up(int64_t k, int64_t i) {
    if (i == k) return;
    std::swap_ranges(a_ + k * n_, a_ + (k + 1) * n_, a_ + i * n_);
    std::swap_ranges(b_ + k * n_, b_ + (k + 1) * n_, b_ + i * n_);
  }
  // row -= factor * other, over n elements
  void subtract(T* row, const T* other, T factor, int64_t n) const {
    for (int64_t j = 0; j < n; ++j) row[j] -= factor * other[j];
  }
  void eliminate(int64_t i, int64_t k) {
    const T factor = a_[i * n_ + k] / a_[k * n_ + k];
    if (factor == T(0)) return;
    subtract(a_ + i * n_ + k, a_ + k * n_ + k, factor, n_ - k);
    subtract(b_ + i * n_, b_ + k * n_, factor, n_);
  }
  void solve_row(int64_t i) {
    for (int64_t j = i + 1; j < n_; ++j) subtract(b_ + i * n_, b_ + j * n_, a_[i * n_ + j], n_);
    const T pivot = a_[i * n_ + i];
    for (int64_t j = 0; j < n_; ++j) b_[i * n_ + j] = b_[i * n_ + j] / pivot;
  }

  T* a_;
  T* b_;
  int64_t n_;
};

// Batches of small matrices, row by row.
template <class T>
void invert_small(const Tensor& from, const Tensor& to, int32_t* status) {
  const int64_t n = from.size(-1), area = n * n, count = area == 0 ? 0 : from.numel() / area;
  auto invert_one = [&](int64_t i) {
    std::vector<T> work(static_cast<size_t>(area));
    std::copy_n(from.data<T>() + i * area, area, work.data());
    T* result = to.data<T>() + i * area;
    std::fill_n(result, area, T(0));
    for (int64_t d = 0; d < n; ++d) result[d * n + d] = T(1);
    status[i] = Elimination<T>(work.data(), result, n).run();
  };
  for_each_part(count, area * n, [&](int64_t first, int64_t many) {
    int64_t done = 0;
    if constexpr (!is_complex_v<T>)
      done = FACULA_OF_ISA(invert_side_by_side<T>)(from.data<T>() + first * area, many, n,
                                                   to.data<T>() + first * area, status + first);
    for (int64_t i = done; i < many; ++i) invert_one(first + i);
  });
}

// Matrices row by row into inverses column by column.
template <class T>
void invert_large(const Tensor& from, const Tensor& to, int32_t* status) {
  const int64_t n = from.size(-1), area = n * n;
  for_each_matrix(matrix_count(from), area * n, [&](int64_t i) {
    status[i] =
        FACULA_OF_ISA(invert_by_blocks<T>)(from.data<T>() + i * area, n, to.data<T>() + i * area);
  });
}

}  // namespace

void invert(const Tensor& A, const Tensor& inverse, const Tensor& status) {
  if (A.size(-1) > side_by_side_order) {
    const Tensor from = contiguous(A);
    const ColumnResult result(inverse);
    const ContiguousResult codes(status);
    auto run = [&]<class T>(Type<T>) {
      invert_large<T>(from, result.tensor(), codes.tensor().data<int32_t>());
    };
    dispatch<float, double, ComplexTypes>(A.dtype(), "linalg_inv_cpu", run);
    result.store();
    return codes.store();
  }
  fill(status, 0);
  const Tensor from = contiguous(A), rows = empty_tensor(A.sizes(), A.dtype()),
               codes = contiguous(status);
  auto run = [&]<class T>(Type<T>) { invert_small<T>(from, rows, codes.data<int32_t>()); };
  dispatch<float, double, ComplexTypes>(A.dtype(), "linalg_inv_cpu", run);
  copy(inverse, rows);
  if (!codes.is_same(status)) copy(status, codes);
}

}  // namespace facula::cpu
