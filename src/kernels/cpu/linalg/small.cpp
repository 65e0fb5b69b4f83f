#include "kernels/cpu/linalg/small.h"

#include "core/complex.h"

// Columns stand in room of a height that the compiler knows, so that loops over them are a few
// vectors without a rest. What such a loop must leave alone it subtracts nothing from.
namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int order = static_cast<int>(small_order);

// Of the set that this file is compiled for: the compiler takes longer vectors apart.
#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T>
T size_of(T x) {
  return x < T(0) ? -x : x;
}
template <class T>
T size_of(Complex<T> x) {
  return size_of(x.re) + size_of(x.im);  // as LAPACK compares complex pivots
}
template <class T>
T conjugate(T x) {
  return x;
}
template <class T>
Complex<T> conjugate(Complex<T> x) {
  return {x.re, -x.im};
}
template <class T>
void exchange(T& a, T& b) {
  const T kept = a;
  a = b;
  b = kept;
}

template <class T, int height>
struct SmallMatrix {
  alignas(64) T at[order * height];

  T* column(int j) { return at + j * height; }
  const T* column(int j) const { return at + j * height; }

  void load(const T* from, int m, int n) {
    for (int j = 0; j < n; ++j) {
      T* to = column(j);
      for (int i = 0; i < m; ++i) to[i] = from[j * m + i];
      for (int i = m; i < height; ++i) to[i] = T(0);
    }
  }
  void load_transposed(const T* from, int n, bool conjugated) {
    for (int j = 0; j < n; ++j) {
      T* to = column(j);
      for (int i = 0; i < n; ++i) to[i] = conjugated ? conjugate(from[i * n + j]) : from[i * n + j];
      for (int i = n; i < height; ++i) to[i] = T(0);
    }
  }
  void store(T* to, int m, int n) const {
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) to[j * m + i] = column(j)[i];
  }
};

template <class T>
int pivot_of(const T* column, int k, int m) {
  int best = k;
  auto most = size_of(column[k]);
  for (int i = k + 1; i < m; ++i) {
    const auto size = size_of(column[i]);
    if (!(size > most)) continue;
    most = size;
    best = i;
  }
  return best;
}

template <class T, int height>
int32_t factor(T* a, int m, int n, int32_t* pivots) {
  SmallMatrix<T, height> M;
  M.load(a, m, n);
  int32_t singular = 0;
  for (int k = 0; k < (m < n ? m : n); ++k) {
    T* column = M.column(k);
    const int p = pivot_of(column, k, m);
    pivots[k] = p + 1;
    if (p != k)
      for (int j = 0; j < n; ++j) exchange(M.column(j)[k], M.column(j)[p]);
    const T pivot = column[k];
    if (pivot == T(0)) {
      if (!singular) singular = k + 1;
      continue;
    }
    for (int i = 0; i < height; ++i) column[i] = i > k ? column[i] / pivot : column[i];
    for (int j = k + 1; j < n; ++j) {
      T* other = M.column(j);
      const T x = other[k];
      for (int i = 0; i < height; ++i) other[i] -= i > k ? column[i] * x : T(0);
    }
  }
  M.store(a, m, n);
  return singular;
}

// --- several matrices at once

// As many matrices side by side as fill a vector, an element of each in one place: no loop has a
// rest, and no pivot a branch.
template <class T>
class SideBySide {
 public:
  static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
  static constexpr int most = 16;  // rows, beyond which they would leave the first cache

  SideBySide(T* a, int n) : a_(a), n_(n) {}

  void factor(int32_t* pivots, int32_t* info) {
    const int area = n_ * n_;
    for (int e = 0; e < area; ++e)
      for (int l = 0; l < lanes; ++l) at_[e][l] = a_[l * area + e];
    singular_ = Vec{};
    for (int k = 0; k < n_; ++k) {
      choose(k);
      for (int i = k + 1; i < n_; ++i) exchange_rows(k, i);
      for (int l = 0; l < lanes; ++l) pivots[l * n_ + k] = static_cast<int32_t>(pivot_[l]) + 1;
      eliminate(k);
    }
    for (int e = 0; e < area; ++e)
      for (int l = 0; l < lanes; ++l) a_[l * area + e] = at_[e][l];
    for (int l = 0; l < lanes; ++l) info[l] = static_cast<int32_t>(singular_[l]);
  }

 private:
  typedef T Vec __attribute__((vector_size(vector_bytes)));

  static Vec all(int number) { return Vec{} + static_cast<T>(number); }
  Vec& element(int i, int j) { return at_[j * n_ + i]; }

  void choose(int k) {
    const Vec first = element(k, k);
    Vec most_seen = first < Vec{} ? -first : first;
    pivot_ = all(k);
    for (int i = k + 1; i < n_; ++i) {
      const Vec x = element(i, k), size = x < Vec{} ? -x : x;
      const auto better = size > most_seen;
      pivot_ = better ? all(i) : pivot_;
      most_seen = better ? size : most_seen;
    }
  }
  // In the lanes whose pivot is row i.
  void exchange_rows(int k, int i) {
    const auto here = pivot_ == all(i);
    for (int j = 0; j < n_; ++j) {
      const Vec upper = element(k, j), lower = element(i, j);
      element(k, j) = here ? lower : upper;
      element(i, j) = here ? upper : lower;
    }
  }
  void eliminate(int k) {
    const Vec pivot = element(k, k);
    const auto zero = pivot == Vec{};
    singular_ = (zero & (singular_ == Vec{})) ? all(k + 1) : singular_;
    const Vec divisor = zero ? all(1) : pivot;
    for (int i = k + 1; i < n_; ++i) element(i, k) = element(i, k) / divisor;
    for (int j = k + 1; j < n_; ++j) {
      const Vec x = element(k, j);
      for (int i = k + 1; i < n_; ++i) element(i, j) -= element(i, k) * x;
    }
  }

  Vec at_[most * most];
  Vec pivot_, singular_;  // numbers of rows, exact in any type
  T* a_;
  int n_;
};

// Some columns of b at once, so that one need not wait for the other.
template <class T, int height>
class SmallSolver {
 public:
  SmallSolver(const T* lu, const int32_t* pivots, char trans, int n)
      : pivots_(pivots), n_(n), plain_(trans == 'N') {
    if (plain_)
      M_.load(lu, n, n);
    else
      M_.load_transposed(lu, n, trans == 'C');
  }

  static constexpr int most = 4;
  void solve(T* b, int k) {
    for (int c = 0; c < k; ++c) load(x_[c], b + c * n_);
    if (plain_)
      for (int i = 0; i < n_; ++i) exchange_rows(i, k);
    for (int j = 0; j < n_; ++j) eliminate<true>(j, k, !plain_);
    for (int j = n_ - 1; j >= 0; --j) eliminate<false>(j, k, plain_);
    if (!plain_)
      for (int i = n_ - 1; i >= 0; --i) exchange_rows(i, k);
    for (int c = 0; c < k; ++c)
      for (int i = 0; i < n_; ++i) b[c * n_ + i] = x_[c][i];
  }

 private:
  void load(T* x, const T* from) const {
    for (int i = 0; i < n_; ++i) x[i] = from[i];
    for (int i = n_; i < height; ++i) x[i] = T(0);
  }
  void exchange_rows(int i, int k) {
    const int p = pivots_[i] - 1;
    if (p == i) return;
    for (int c = 0; c < k; ++c) exchange(x_[c][i], x_[c][p]);
  }
  // Takes unknown j, which is known now, out of those below or above it.
  template <bool below>
  void eliminate(int j, int k, bool divided) {
    const T* column = M_.column(j);
    for (int c = 0; c < k; ++c) {
      T* x = x_[c];
      if (divided) x[j] = x[j] / column[j];
      const T known = x[j];
      for (int i = 0; i < height; ++i) x[i] -= (below ? i > j : i < j) ? column[i] * known : T(0);
    }
  }

  SmallMatrix<T, height> M_;
  alignas(64) T x_[most][height];
  const int32_t* pivots_;
  int n_;
  bool plain_;
};

template <class T, int height>
void solve(const T* lu, const int32_t* pivots, char trans, T* b, int n, int k) {
  using Solver = SmallSolver<T, height>;
  Solver solver(lu, pivots, trans, n);
  for (int c = 0; c < k; c += Solver::most)
    solver.solve(b + c * n, k - c < Solver::most ? k - c : Solver::most);
}

}  // namespace

template <class T>
int32_t factor_small(T* a, int64_t m, int64_t n, int32_t* pivots) {
  const int rows = static_cast<int>(m), cols = static_cast<int>(n);
  if (rows <= 4) return factor<T, 4>(a, rows, cols, pivots);
  if (rows <= 8) return factor<T, 8>(a, rows, cols, pivots);
  if (rows <= 16) return factor<T, 16>(a, rows, cols, pivots);
  return factor<T, order>(a, rows, cols, pivots);
}

template <class T>
void factor_small_batch(T* a, int64_t count, int64_t m, int64_t n, int32_t* pivots, int32_t* info) {
  const int64_t k = m < n ? m : n;
  int64_t i = 0;
  if constexpr (sizeof(T) <= 8 && !is_complex_v<T>) {
    using Group = SideBySide<T>;
    if (m == n && n > 1 && n <= Group::most)
      for (; i + Group::lanes <= count; i += Group::lanes)
        Group(a + i * n * n, static_cast<int>(n)).factor(pivots + i * n, info + i);
  }
  for (; i < count; ++i) info[i] = factor_small(a + i * m * n, m, n, pivots + i * k);
}

template <class T>
void solve_small(const T* lu, const int32_t* pivots, char trans, T* b, int64_t n, int64_t k) {
  const int size = static_cast<int>(n), count = static_cast<int>(k);
  if (size <= 4) return solve<T, 4>(lu, pivots, trans, b, size, count);
  if (size <= 8) return solve<T, 8>(lu, pivots, trans, b, size, count);
  if (size <= 16) return solve<T, 16>(lu, pivots, trans, b, size, count);
  return solve<T, order>(lu, pivots, trans, b, size, count);
}

template void factor_small_batch(float*, int64_t, int64_t, int64_t, int32_t*, int32_t*);
template void factor_small_batch(double*, int64_t, int64_t, int64_t, int32_t*, int32_t*);
template void factor_small_batch(complex64*, int64_t, int64_t, int64_t, int32_t*, int32_t*);
template void factor_small_batch(complex128*, int64_t, int64_t, int64_t, int32_t*, int32_t*);
template void solve_small(const float*, const int32_t*, char, float*, int64_t, int64_t);
template void solve_small(const double*, const int32_t*, char, double*, int64_t, int64_t);
template void solve_small(const complex64*, const int32_t*, char, complex64*, int64_t, int64_t);
template void solve_small(const complex128*, const int32_t*, char, complex128*, int64_t, int64_t);

}  // namespace facula::cpu::FACULA_ISA
