#include "kernels/cpu/linalg/small.h"

#include "core/complex.h"
#include "kernels/cpu/linalg/pivot_size.h"
#include "kernels/cpu/linalg/side_by_side_vectors.h"

// Columns stand in room of a height that the compiler knows, so that loops over them are a few
// vectors without a rest. What such a loop must leave alone it subtracts nothing from.
namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int order = static_cast<int>(small_order);

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

// x - a * b, rounded as several matrices at once are.
template <class T>
T less(T x, T a, T b) {
  if constexpr (is_complex_v<T>)
    return x - a * b;
  else
    return multiply_add<T>(-a, b, x);
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
      for (int i = 0; i < height; ++i) other[i] = i > k ? less(other[i], x, column[i]) : other[i];
    }
  }
  M.store(a, m, n);
  return singular;
}

// --- several matrices at once

// As many matrices side by side as fill a vector, an element of each in one place: no loop has a
// rest, and only rows that are a pivot of some matrix are exchanged.
// With N known to the compiler its loops over rows have no counters.
template <class T, int N = 0>
class SideBySide {
  using Vec = VecOf<T>;

 public:
  static constexpr int lanes = Simd<T>::lanes;

  void factor(T* a, int rows, int32_t* pivots, int32_t* info) {
    rows_ = rows;
    const int n = this->n();
    const int64_t area = int64_t{n} * n;
    for_each_run(
        [&](int inside, int outside, int many) { load(at_ + inside, a + outside, many, area); });
    singular_ = Vec{};
    for (int k = 0; k < n; ++k) {
      choose(k);
      uint64_t chosen = 0;
      for (int l = 0; l < lanes; ++l) {
        const int row = static_cast<int>(pivot_[l]);
        pivots[l * n + k] = row + 1;
        chosen |= uint64_t{1} << row;
      }
      exchange_rows(k, chosen & ~(uint64_t{1} << k));
      eliminate(k);
    }
    for_each_run(
        [&](int inside, int outside, int many) { store(a + outside, at_ + inside, many, area); });
    store_numbers<T>(info, singular_);
  }

 private:
  int n() const { return N == 0 ? rows_ : N; }
  // Of a column: rows at steps of a power of two would share few places of the cache.
  int room() const { return n() < 16 ? n() : n() + 1; }
  Vec* column(int j) { return at_ + j * room(); }
  // Calls body(inside, outside, many) for elements that follow each other in both places.
  template <class F>
  void for_each_run(F&& body) {
    if (room() == n()) return body(0, 0, n() * n());
    for (int j = 0; j < n(); ++j) body(j * room(), j * n(), n());
  }

  void choose(int k) {
    const Vec *x = column(k), first = x[k];
    Vec most_seen = first < Vec{} ? -first : first;
    pivot_ = all<T>(k);
    for (int i = k + 1; i < n(); ++i) {
      const Vec size = x[i] < Vec{} ? -x[i] : x[i];
      const auto better = size > most_seen;
      pivot_ = better ? all<T>(i) : pivot_;
      most_seen = better ? size : most_seen;
    }
  }
  // Row k with each of those whose bit is set in `chosen`, in the lanes whose pivot that is.
  void exchange_rows(int k, uint64_t chosen) {
    if (chosen == 0) return;
    Vec old[order];
    for (int j = 0; j < n(); ++j) old[j] = column(j)[k];
    for (; chosen != 0; chosen &= chosen - 1) {
      const int i = __builtin_ctzll(chosen);
      const auto here = pivot_ == all<T>(i);
      for (int j = 0; j < n(); ++j) {
        Vec &upper = column(j)[k], &lower = column(j)[i];
        upper = here ? lower : upper;
        lower = here ? old[j] : lower;
      }
    }
  }
  void eliminate(int k) {
    Vec* factors = column(k);
    const auto zero = factors[k] == Vec{};
    singular_ = (zero & (singular_ == Vec{})) ? all<T>(k + 1) : singular_;
    const Vec divisor = zero ? all<T>(1) : factors[k];
    for (int i = k + 1; i < n(); ++i) factors[i] = factors[i] / divisor;
    int j = k + 1;
    for (; j + 4 <= n(); j += 4) subtract<4>(k, j);
    for (; j < n(); ++j) subtract<1>(k, j);
  }
  // What column k holds below its pivot out of some columns, as often as row k says.
  template <int columns>
  void subtract(int k, int first) {
    const Vec* factors = column(k);
    Vec *other = column(first), x[columns];
    for (int c = 0; c < columns; ++c) x[c] = other[c * room() + k];
    for (int i = k + 1; i < n(); ++i)
      for (int c = 0; c < columns; ++c) take_product(other[c * room() + i], x[c], factors[i]);
  }

  Vec at_[order * (order + 1)];
  Vec pivot_, singular_;  // numbers of rows, exact in any type
  int rows_;
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
    if (m == n && n > 1) {
      i = for_order(n, [&]<int N>() {
        SideBySide<T, N> group;
        return for_each_group<T>(count, [&](int64_t first) {
          group.factor(a + first * n * n, static_cast<int>(n), pivots + first * n, info + first);
          return true;
        });
      });
    }
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
