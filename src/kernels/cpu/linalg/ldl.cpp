#include "kernels/cpu/linalg/ldl.h"

#include <cstdlib>

#include "kernels/cpu/linalg/lapack_factor.h"
#include "kernels/cpu/linalg/matrices.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

template <class T>
void factor_all(const Tensor& LD, bool hermitian, int32_t* pivots, int32_t* info) {
  const int n = lapack_size(LD.size(-1));
  const int64_t count = matrix_count(LD), area = int64_t{n} * n;
  std::fill_n(info, count, 0);
  if (n == 0) return;
  lapack::open();
  for_each_matrix(count, area * n / 3, [&](int64_t i) {
    T* a = LD.data<T>() + i * area;
    info[i] = hermitian ? lapack::hetrf('L', n, a, n, pivots + i * n)
                        : lapack::sytrf('L', n, a, n, pivots + i * n);
    for (int64_t c = 1; c < n; ++c) std::fill_n(a + c * n, c, T(0));
  });
}

template <class T>
void solve_all(const Tensor& LD, const Tensor& pivots, bool hermitian, const Tensor& X) {
  if (X.numel() == 0) return;
  const int n = lapack_size(X.size(-2)), k = lapack_size(X.size(-1));
  const std::vector<int64_t> factors = batch_offsets(LD, batch_sizes(X), 2),
                             swaps = batch_offsets(pivots, batch_sizes(X), 1);
  lapack::open();
  for_each_matrix(matrix_count(X), int64_t{n} * n * k, [&](int64_t i) {
    const auto item = static_cast<size_t>(i);
    const T* a = LD.data<T>() + factors[item];
    const int32_t* order = pivots.data<int32_t>() + swaps[item];
    T* x = X.data<T>() + i * n * k;
    if (hermitian)
      lapack::hetrs('L', n, k, a, n, order, x, n);
    else
      lapack::sytrs('L', n, k, a, n, order, x, n);
  });
}

// A negative pivot stands for a block of two rows, which two neighbours share: others would make
// LAPACK read beyond the matrix.
void check_pivots(const Tensor& pivots) {
  const int64_t n = pivots.size(-1);
  const int32_t* p = pivots.data<int32_t>();
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    check(p[i] != 0 && std::abs(int64_t{p[i]}) <= n,
          "linalg.ldl_solve(): expected pivots from 1 to ", n, " or their negatives; got ", p[i]);
    if (p[i] > 0) continue;
    const bool has_next = i % n + 1 < n && p[i + 1] < 0;
    check(has_next, "linalg.ldl_solve(): expected negative pivots in pairs; got ", p[i], " alone");
    ++i;
    check(p[i] >= -n, "linalg.ldl_solve(): expected pivots from 1 to ", n,
          " or their negatives; got ", p[i]);
  }
}

}  // namespace

void ldl_factor(const Tensor& A, bool hermitian, const Tensor& LD, const Tensor& pivots,
                const Tensor& info) {
  const ColumnResult factors(LD);
  const ContiguousResult swaps(pivots), codes(info);
  copy(factors.tensor(), A);
  auto run = [&]<class T>(Type<T>) {
    factor_all<T>(factors.tensor(), hermitian && is_complex_v<T>, swaps.tensor().data<int32_t>(),
                  codes.tensor().data<int32_t>());
  };
  dispatch<float, double, ComplexTypes>(A.dtype(), "ldl_factor_cpu", run);
  factors.store();
  swaps.store();
  codes.store();
}

void ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian,
               const Tensor& X) {
  const ColumnResult solution(X);
  const Tensor factors = columns(LD), swaps = contiguous(pivots);
  check_pivots(swaps);
  copy(solution.tensor(), B);
  auto run = [&]<class T>(Type<T>) {
    solve_all<T>(factors, swaps, hermitian && is_complex_v<T>, solution.tensor());
  };
  dispatch<float, double, ComplexTypes>(LD.dtype(), "ldl_solve_cpu", run);
  solution.store();
}

}  // namespace facula::cpu
