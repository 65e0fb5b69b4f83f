#include "kernels/cpu/linalg/side_by_side.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Of the set that this file is compiled for: the compiler takes longer vectors apart.
#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

constexpr int most = static_cast<int>(side_by_side_order);

template <class T>
struct Lanes {
  typedef T Vec __attribute__((vector_size(vector_bytes)));
  static constexpr int count = vector_bytes / static_cast<int>(sizeof(T));
};
template <class T>
using VecOf = typename Lanes<T>::Vec;

template <class T>
VecOf<T> all(int number) {
  return VecOf<T>{} + static_cast<T>(number);
}
template <class T>
VecOf<T> root(VecOf<T> v) {
  VecOf<T> r;
  for (int l = 0; l < Lanes<T>::count; ++l) r[l] = static_cast<T>(__builtin_sqrt(v[l]));
  return r;
}

// `n` elements of each matrix, whose first ones are `step` apart.
template <class T>
void load(VecOf<T>* to, const T* from, int n, int64_t step) {
  for (int e = 0; e < n; ++e)
    for (int l = 0; l < Lanes<T>::count; ++l) to[e][l] = from[l * step + e];
}
template <class T>
void store(T* to, const VecOf<T>* from, int n, int64_t step) {
  for (int e = 0; e < n; ++e)
    for (int l = 0; l < Lanes<T>::count; ++l) to[l * step + e] = from[e][l];
}
template <class T>
void store_numbers(int32_t* to, VecOf<T> numbers) {
  for (int l = 0; l < Lanes<T>::count; ++l) to[l] = static_cast<int32_t>(numbers[l]);
}

// Calls body(first) for the first matrix of each whole vector while it returns true; how many
// matrices were done.
template <class T, class F>
int64_t for_each_group(int64_t count, F&& body) {
  int64_t i = 0;
  while (i + Lanes<T>::count <= count && body(i)) i += Lanes<T>::count;
  return i;
}

// --- Cholesky

template <class T>
class CholeskyGroup {
  using Vec = VecOf<T>;

 public:
  void run(T* a, int n, int32_t* info) {
    load(at_, a, n * n, int64_t{n} * n);
    Vec failed{};
    for (int k = 0; k < n; ++k) {
      Vec* row = at_ + k * n;
      for (int i = 0; i < k; ++i) {
        const Vec *other = at_ + i * n, x = other[k];
        for (int j = k; j < n; ++j) row[j] -= x * other[j];
      }
      const auto positive = row[k] > Vec{};
      failed = (~positive & (failed == Vec{})) ? all<T>(k + 1) : failed;
      row[k] = root<T>(positive ? row[k] : all<T>(1));
      for (int j = k + 1; j < n; ++j) row[j] = row[j] / row[k];
    }
    store(a, at_, n * n, int64_t{n} * n);
    store_numbers<T>(info, failed);
  }

 private:
  Vec at_[most * most];
};

// --- QR

template <class T>
class QrGroup {
  using Vec = VecOf<T>;

 public:
  // False, and nothing written, where squares of elements leave the range of T.
  bool factor(T* a, int m, int n, T* tau) {
    const int k = m < n ? m : n;
    load(at_, a, m * n, int64_t{m} * n);
    if (!is_in_range(m * n)) return false;
    for (int j = 0; j < k; ++j) reflect(j, m, n);
    store(a, at_, m * n, int64_t{m} * n);
    store(tau, tau_, k, k);
    return true;
  }

  void expand(T* q, int m, int n, int k, const T* tau) {
    load(at_, q, m * n, int64_t{m} * n);
    load(tau_, tau, k, k);
    for (int j = k; j < n; ++j)
      for (int i = 0; i < m; ++i) at_[j * m + i] = all<T>(i == j);
    for (int j = k - 1; j >= 0; --j) {
      Vec* v = at_ + j * m;
      for (int c = j + 1; c < n; ++c) apply(v, j, at_ + c * m, m);
      for (int i = 0; i < j; ++i) v[i] = Vec{};
      v[j] = all<T>(1) - tau_[j];
      for (int i = j + 1; i < m; ++i) v[i] *= -tau_[j];
    }
    store(q, at_, m * n, int64_t{m} * n);
  }

 private:
  bool is_in_range(int elements) const {
    constexpr T greatest = sizeof(T) == 4 ? T(0x1p50f) : T(0x1p400);
    constexpr T least = 1 / greatest;
    Vec outside{};
    for (int e = 0; e < elements; ++e) {
      const Vec x = at_[e], size = x < Vec{} ? -x : x;
      const auto fits = (size == Vec{}) | ((size < Vec{} + greatest) & (size > Vec{} + least));
      outside = fits ? outside : all<T>(1);
    }
    for (int l = 0; l < Lanes<T>::count; ++l)
      if (outside[l] != T(0)) return false;
    return true;
  }
  // Column j below its diagonal becomes the vector of the reflector that clears it.
  void reflect(int j, int m, int n) {
    Vec* v = at_ + j * m;
    Vec below{};
    for (int i = j + 1; i < m; ++i) below += v[i] * v[i];
    const auto none = below == Vec{};
    const Vec first = v[j], norm = root<T>(first * first + below);
    const Vec diagonal = first < Vec{} ? norm : -norm;
    tau_[j] = none ? Vec{} : (diagonal - first) / diagonal;
    const Vec scale = all<T>(1) / (none ? all<T>(1) : first - diagonal);
    for (int i = j + 1; i < m; ++i) v[i] *= scale;
    v[j] = none ? first : diagonal;
    for (int c = j + 1; c < n; ++c) apply(v, j, at_ + c * m, m);
  }
  // Reflector j, of the vector below v[j], to one column.
  void apply(const Vec* v, int j, Vec* column, int m) {
    Vec w = column[j];
    for (int i = j + 1; i < m; ++i) w += v[i] * column[i];
    w *= tau_[j];
    column[j] -= w;
    for (int i = j + 1; i < m; ++i) column[i] -= v[i] * w;
  }

  Vec at_[most * most];
  Vec tau_[most];
};

// --- inverse

template <class T>
class InverseGroup {
  using Vec = VecOf<T>;

 public:
  void run(const T* a, int n, T* inverse, int32_t* info) {
    n_ = n;
    load(a_, a, n * n, int64_t{n} * n);
    for (int e = 0; e < n * n; ++e) b_[e] = all<T>(e % (n + 1) == 0);
    singular_ = Vec{};
    for (int k = 0; k < n; ++k) eliminate(k, pivot_of(k));
    for (int i = n - 1; i >= 0; --i) {
      for (int j = i + 1; j < n; ++j) subtract(b_ + i * n, b_ + j * n, a_[i * n + j], 0);
      for (int j = 0; j < n; ++j) b_[i * n + j] = b_[i * n + j] / a_[i * n + i];
    }
    store(inverse, b_, n * n, int64_t{n} * n);
    store_numbers<T>(info, singular_);
  }

 private:
  Vec pivot_of(int k) const {
    const Vec first = a_[k * n_ + k];
    Vec seen = first < Vec{} ? -first : first, best = all<T>(k);
    for (int i = k + 1; i < n_; ++i) {
      const Vec x = a_[i * n_ + k], size = x < Vec{} ? -x : x;
      const auto better = size > seen;
      best = better ? all<T>(i) : best;
      seen = better ? size : seen;
    }
    return best;
  }
  void exchange(Vec* upper, Vec* lower, Vec here, int from) const {
    const auto chosen = here != Vec{};
    for (int j = from; j < n_; ++j) {
      const Vec x = upper[j], y = lower[j];
      upper[j] = chosen ? y : x;
      lower[j] = chosen ? x : y;
    }
  }
  void subtract(Vec* row, const Vec* other, Vec factor, int from) const {
    for (int j = from; j < n_; ++j) row[j] -= factor * other[j];
  }
  void eliminate(int k, Vec pivot) {
    for (int i = k + 1; i < n_; ++i) {
      const Vec here = pivot == all<T>(i) ? all<T>(1) : Vec{};
      exchange(a_ + k * n_, a_ + i * n_, here, k);
      exchange(b_ + k * n_, b_ + i * n_, here, 0);
    }
    Vec& diagonal = a_[k * n_ + k];
    const auto zero = diagonal == Vec{};
    singular_ = (zero & (singular_ == Vec{})) ? all<T>(k + 1) : singular_;
    const Vec divisor = zero ? all<T>(1) : diagonal;
    for (int i = k + 1; i < n_; ++i) {
      const Vec factor = a_[i * n_ + k] / divisor;
      subtract(a_ + i * n_, a_ + k * n_, factor, k + 1);
      subtract(b_ + i * n_, b_ + k * n_, factor, 0);
    }
  }

  Vec a_[most * most], b_[most * most];
  Vec singular_;
  int n_;
};

// --- solutions

// Columns of the unknowns at once, which share what is read of the triangles.
constexpr int columns_at_once = 8;

template <class T>
struct Unknowns {
  using Vec = VecOf<T>;
  Vec row[most][columns_at_once];

  // Takes the known row j, times a, out of row i.
  void take_out(int i, int j, Vec a, int columns) {
    for (int c = 0; c < columns; ++c) row[i][c] -= a * row[j][c];
  }
  void divide(int i, Vec a, int columns) {
    for (int c = 0; c < columns; ++c) row[i][c] = row[i][c] / a;
  }
};

template <class T>
class TriangularGroup {
  using Vec = VecOf<T>;

 public:
  void run(const T* a, T* x, int n, int64_t k, bool upper, bool unit) {
    load(a_, a, n * n, int64_t{n} * n);
    for (int64_t c = 0; c < k; c += columns_at_once) {
      const int columns = static_cast<int>(k - c < columns_at_once ? k - c : columns_at_once);
      for (int i = 0; i < n; ++i) load(x_.row[i], x + i * k + c, columns, n * k);
      for (int step = 0; step < n; ++step)
        solve_row(upper ? n - 1 - step : step, n, upper, unit, columns);
      for (int i = 0; i < n; ++i) store(x + i * k + c, x_.row[i], columns, n * k);
    }
  }

 private:
  void solve_row(int i, int n, bool upper, bool unit, int columns) {
    const int from = upper ? i + 1 : 0, to = upper ? n : i;
    for (int j = from; j < to; ++j) x_.take_out(i, j, a_[i * n + j], columns);
    if (!unit) x_.divide(i, a_[i * n + i], columns);
  }

  Vec a_[most * most];
  Unknowns<T> x_;
};

template <class T>
class LuGroup {
  using Vec = VecOf<T>;

 public:
  LuGroup(const T* lu, const int32_t* pivots, int n) : n_(n) {
    load(lu_, lu, n * n, int64_t{n} * n);
    for (int l = 0; l < Lanes<T>::count; ++l) {
      for (int i = 0; i < n; ++i) order_[i][l] = i;
      for (int i = 0; i < n; ++i) {
        const int p = pivots[l * n + i] - 1, kept = order_[i][l];
        order_[i][l] = order_[p][l];
        order_[p][l] = kept;
      }
    }
  }

  void solve(T* x, int64_t k) {
    for (int64_t c = 0; c < k; c += columns_at_once) {
      const int columns = static_cast<int>(k - c < columns_at_once ? k - c : columns_at_once);
      load_in_order(x + c * n_, columns, n_ * k);
      for (int i = 0; i < n_; ++i)
        for (int j = 0; j < i; ++j) x_.take_out(i, j, lu_[j * n_ + i], columns);
      for (int i = n_ - 1; i >= 0; --i) {
        for (int j = i + 1; j < n_; ++j) x_.take_out(i, j, lu_[j * n_ + i], columns);
        x_.divide(i, lu_[i * n_ + i], columns);
      }
      for (int i = 0; i < n_; ++i)
        for (int s = 0; s < columns; ++s)
          for (int l = 0; l < Lanes<T>::count; ++l)
            x[l * n_ * k + (c + s) * n_ + i] = x_.row[i][s][l];
    }
  }

 private:
  void load_in_order(const T* x, int columns, int64_t step) {
    for (int i = 0; i < n_; ++i)
      for (int s = 0; s < columns; ++s)
        for (int l = 0; l < Lanes<T>::count; ++l)
          x_.row[i][s][l] = x[l * step + s * n_ + order_[i][l]];
  }

  Vec lu_[most * most];
  Unknowns<T> x_;
  int order_[most][Lanes<T>::count];  // the row of the matrix that stands in row i of its factors
  int n_;
};

}  // namespace

template <class T>
int64_t cholesky_side_by_side(T* a, int64_t count, int64_t n, int32_t* info) {
  CholeskyGroup<T> group;
  return for_each_group<T>(count, [&](int64_t i) {
    group.run(a + i * n * n, static_cast<int>(n), info + i);
    return true;
  });
}

template <class T>
int64_t geqrf_side_by_side(T* a, int64_t count, int64_t m, int64_t n, T* tau) {
  QrGroup<T> group;
  const int64_t k = m < n ? m : n;
  return for_each_group<T>(count, [&](int64_t i) {
    return group.factor(a + i * m * n, static_cast<int>(m), static_cast<int>(n), tau + i * k);
  });
}

template <class T>
int64_t orgqr_side_by_side(T* q, int64_t count, int64_t m, int64_t n, int64_t k, const T* tau) {
  QrGroup<T> group;
  return for_each_group<T>(count, [&](int64_t i) {
    group.expand(q + i * m * n, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
                 tau + i * k);
    return true;
  });
}

template <class T>
int64_t invert_side_by_side(const T* a, int64_t count, int64_t n, T* inverse, int32_t* info) {
  InverseGroup<T> group;
  return for_each_group<T>(count, [&](int64_t i) {
    group.run(a + i * n * n, static_cast<int>(n), inverse + i * n * n, info + i);
    return true;
  });
}

template <class T>
int64_t solve_triangular_side_by_side(const T* a, T* x, int64_t count, int64_t n, int64_t k,
                                      bool upper, bool unit) {
  TriangularGroup<T> group;
  return for_each_group<T>(count, [&](int64_t i) {
    group.run(a + i * n * n, x + i * n * k, static_cast<int>(n), k, upper, unit);
    return true;
  });
}

template <class T>
int64_t solve_side_by_side(const T* lu, const int32_t* pivots, T* x, int64_t count, int64_t n,
                           int64_t k) {
  return for_each_group<T>(count, [&](int64_t i) {
    LuGroup<T>(lu + i * n * n, pivots + i * n, static_cast<int>(n)).solve(x + i * n * k, k);
    return true;
  });
}

template int64_t cholesky_side_by_side(float*, int64_t, int64_t, int32_t*);
template int64_t cholesky_side_by_side(double*, int64_t, int64_t, int32_t*);
template int64_t geqrf_side_by_side(float*, int64_t, int64_t, int64_t, float*);
template int64_t geqrf_side_by_side(double*, int64_t, int64_t, int64_t, double*);
template int64_t orgqr_side_by_side(float*, int64_t, int64_t, int64_t, int64_t, const float*);
template int64_t orgqr_side_by_side(double*, int64_t, int64_t, int64_t, int64_t, const double*);
template int64_t invert_side_by_side(const float*, int64_t, int64_t, float*, int32_t*);
template int64_t invert_side_by_side(const double*, int64_t, int64_t, double*, int32_t*);
template int64_t solve_triangular_side_by_side(const float*, float*, int64_t, int64_t, int64_t,
                                               bool, bool);
template int64_t solve_triangular_side_by_side(const double*, double*, int64_t, int64_t, int64_t,
                                               bool, bool);
template int64_t solve_side_by_side(const float*, const int32_t*, float*, int64_t, int64_t,
                                    int64_t);
template int64_t solve_side_by_side(const double*, const int32_t*, double*, int64_t, int64_t,
                                    int64_t);

}  // namespace facula::cpu::FACULA_ISA
