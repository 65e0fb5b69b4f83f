#include "kernels/cpu/linalg/side_by_side.h"

#include "kernels/cpu/linalg/side_by_side_vectors.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int most = static_cast<int>(side_by_side_order);

// --- Cholesky

template <class T>
class CholeskyGroup {
  using Vec = VecOf<T>;

 public:
  void run(const T* a, bool lower, T* factor, int n, int32_t* info) {
    n_ = n;
    load(at_, a, n * n, int64_t{n} * n);
    keep_upper(lower);
    Vec failed{};
    for (int k = 0; k < n; ++k) {
      int j = k;
      for (; j + 8 <= n; j += 8) take_rows_out<8>(k, j);
      for (; j + 4 <= n; j += 4) take_rows_out<4>(k, j);
      for (; j < n; ++j) take_rows_out<1>(k, j);
      Vec* row = at_ + k * n;
      const auto positive = row[k] > Vec{};
      failed = (~positive & (failed == Vec{})) ? all<T>(k + 1) : failed;
      row[k] = root<T>(positive ? row[k] : all<T>(1));
      const Vec scale = all<T>(1) / row[k];
      for (int i = k + 1; i < n; ++i) row[i] *= scale;
    }
    store(factor, at_, n * n, int64_t{n} * n);
    store_numbers<T>(info, failed);
  }

 private:
  // Zeros below the diagonal, and above it what stands there or, of a lower triangle, opposite.
  void keep_upper(bool lower) {
    for (int i = 1; i < n_; ++i) {
      for (int j = 0; j < i; ++j) {
        if (lower) at_[j * n_ + i] = at_[i * n_ + j];
        at_[i * n_ + j] = Vec{};
      }
    }
  }
  // Takes the products with the rows above k out of some columns of row k.
  template <int columns>
  void take_rows_out(int k, int first) {
    Vec sum[columns];
    for (int c = 0; c < columns; ++c) sum[c] = at_[k * n_ + first + c];
    for (int i = 0; i < k; ++i) {
      const Vec *other = at_ + i * n_ + first, x = at_[i * n_ + k];
      for (int c = 0; c < columns; ++c) take_product(sum[c], x, other[c]);
    }
    for (int c = 0; c < columns; ++c) at_[k * n_ + first + c] = sum[c];
  }

  Vec at_[most * most];
  int n_;
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
      apply_to_columns(v, j, m, n);
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
    for (int l = 0; l < Simd<T>::lanes; ++l)
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
    apply_to_columns(v, j, m, n);
  }
  void apply_to_columns(const Vec* v, int j, int m, int n) {
    int c = j + 1;
    for (; c + 4 <= n; c += 4) apply<4>(v, j, at_ + c * m, m);
    for (; c < n; ++c) apply<1>(v, j, at_ + c * m, m);
  }
  // Reflector j, of the vector below v[j], to some columns: their sums need not wait for each
  // other.
  template <int columns>
  void apply(const Vec* v, int j, Vec* first, int m) {
    Vec w[columns];
    for (int c = 0; c < columns; ++c) w[c] = first[c * m + j];
    for (int i = j + 1; i < m; ++i)
      for (int c = 0; c < columns; ++c) w[c] = multiply_add<Vec>(v[i], first[c * m + i], w[c]);
    for (int c = 0; c < columns; ++c) {
      w[c] *= tau_[j];
      first[c * m + j] -= w[c];
    }
    for (int i = j + 1; i < m; ++i)
      for (int c = 0; c < columns; ++c) take_product(first[c * m + i], w[c], v[i]);
  }

  Vec at_[most * most];
  Vec tau_[most];
};

// --- inverse

template <class T, int N = 0>
class InverseGroup {
  using Vec = VecOf<T>;

 public:
  void run(const T* a, int rows, T* inverse, int32_t* info) {
    rows_ = rows;
    const int n = this->n();
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
  int n() const { return N == 0 ? rows_ : N; }
  Vec pivot_of(int k) const {
    const Vec first = a_[k * n() + k];
    Vec seen = first < Vec{} ? -first : first, best = all<T>(k);
    for (int i = k + 1; i < n(); ++i) {
      const Vec x = a_[i * n() + k], size = x < Vec{} ? -x : x;
      const auto better = size > seen;
      best = better ? all<T>(i) : best;
      seen = better ? size : seen;
    }
    return best;
  }
  void exchange(Vec* upper, Vec* lower, Vec pivot, int i, int from) const {
    const auto here = pivot == all<T>(i);
    for (int j = from; j < n(); ++j) {
      const Vec x = upper[j], y = lower[j];
      upper[j] = here ? y : x;
      lower[j] = here ? x : y;
    }
  }
  void subtract(Vec* row, const Vec* other, Vec factor, int from) const {
    for (int j = from; j < n(); ++j) take_product(row[j], factor, other[j]);
  }
  void eliminate(int k, Vec pivot) {
    uint64_t chosen = 0;  // rows that are the pivot of some matrix
    for (int l = 0; l < Simd<T>::lanes; ++l) chosen |= uint64_t{1} << static_cast<int>(pivot[l]);
    for (chosen &= ~(uint64_t{1} << k); chosen != 0; chosen &= chosen - 1) {
      const int i = __builtin_ctzll(chosen);
      exchange(a_ + k * n(), a_ + i * n(), pivot, i, k);
      exchange(b_ + k * n(), b_ + i * n(), pivot, i, 0);
    }
    Vec& diagonal = a_[k * n() + k];
    const auto zero = diagonal == Vec{};
    singular_ = (zero & (singular_ == Vec{})) ? all<T>(k + 1) : singular_;
    const Vec divisor = zero ? all<T>(1) : diagonal;
    for (int i = k + 1; i < n(); ++i) {
      const Vec factor = a_[i * n() + k] / divisor;
      subtract(a_ + i * n(), a_ + k * n(), factor, k + 1);
      subtract(b_ + i * n(), b_ + k * n(), factor, 0);
    }
  }

  Vec a_[most * most], b_[most * most];
  Vec singular_;
  int rows_;
};

// --- solutions

// Columns of the unknowns at once, which share what is read of the triangles.
constexpr int columns_at_once = 8;

// Calls body.operator()<columns>(first) for runs of 8, 4 or 1 of k columns.
template <class F>
void for_each_run_of_columns(int64_t k, F&& body) {
  int64_t c = 0;
  for (; c + 8 <= k; c += 8) body.template operator()<8>(c);
  for (; c + 4 <= k; c += 4) body.template operator()<4>(c);
  for (; c < k; ++c) body.template operator()<1>(c);
}

template <class T>
class TriangularGroup {
  using Vec = VecOf<T>;

 public:
  void run(const T* a, T* x, int n, int64_t k, bool upper, bool unit) {
    load_triangle(a, n, upper);
    for_each_run_of_columns(k, [&]<int columns>(int64_t c) {
      move(n, k, columns, [&](int64_t from, int64_t to, int64_t many) {
        load(x_ + to, x + c + from, many, n * k);
      });
      for (int step = 0; step < n; ++step)
        solve_row<columns>(upper ? n - 1 - step : step, n, upper, unit);
      move(n, k, columns, [&](int64_t to, int64_t from, int64_t many) {
        store(x + c + to, x_ + from, many, n * k);
      });
    });
  }

 private:
  // Whole vectors of the rows' elements, without those that the triangle has none of.
  void load_triangle(const T* a, int n, bool upper) {
    constexpr int lanes = Simd<T>::lanes;
    if (n <= lanes) return load(a_, a, n * n, int64_t{n} * n);
    for (int i = 0; i < n; ++i) {
      const int whole = i / lanes * lanes, first = upper ? whole : 0;
      const int end = upper || whole + lanes > n ? n : whole + lanes;
      load(a_ + i * n + first, a + i * n + first, end - first, int64_t{n} * n);
    }
  }
  // Calls body(outside, inside, many) for each run of elements: all rows at once where they follow
  // each other.
  template <class F>
  static void move(int n, int64_t k, int columns, F&& body) {
    if (k == columns) return body(0, 0, n * k);
    for (int i = 0; i < n; ++i) body(i * k, i * columns, columns);
  }
  template <int columns>
  void solve_row(int i, int n, bool upper, bool unit) {
    Vec sum[columns], *row = x_ + i * columns;
    for (int c = 0; c < columns; ++c) sum[c] = row[c];
    const int from = upper ? i + 1 : 0, to = upper ? n : i;
    for (int j = from; j < to; ++j)
      for (int c = 0; c < columns; ++c) take_product(sum[c], a_[i * n + j], x_[j * columns + c]);
    for (int c = 0; c < columns; ++c) row[c] = unit ? sum[c] : sum[c] / a_[i * n + i];
  }

  Vec a_[most * most], x_[most * columns_at_once];
};

// Of n x n matrices; with N known to the compiler its loops over rows have no counters.
template <class T, int N = 0>
class LuGroup {
  using Vec = VecOf<T>;

 public:
  void solve(const T* lu, const int32_t* pivots, T* x, int rows, int64_t k) {
    rows_ = rows;
    const int n = this->n();
    load(lu_, lu, n * n, int64_t{n} * n);
    load_pivots(pivots);
    for_each_run_of_columns(k, [&]<int columns>(int64_t c) {
      T* first = x + c * n;
      load(x_, first, columns * n, n * k);
      for (int i = 0; i < n; ++i) exchange_rows<columns>(i);
      for (int i = 0; i < n; ++i) take_out<columns>(i, 0, i);
      for (int i = n - 1; i >= 0; --i) {
        take_out<columns>(i, i + 1, n);
        for (int s = 0; s < columns; ++s) x_[s * n + i] = x_[s * n + i] / lu_[i * n + i];
      }
      store(first, x_, columns * n, n * k);
    });
  }

 private:
  int n() const { return N == 0 ? rows_ : N; }
  void load_pivots(const int32_t* pivots) {
    const int n = this->n();
    T rows[most * Simd<T>::lanes];
    for (int e = 0; e < n * Simd<T>::lanes; ++e) rows[e] = static_cast<T>(pivots[e] - 1);
    load(pivot_, rows, n, n);
    for (int i = 0; i < n; ++i) {
      chosen_[i] = 0;
      for (int l = 0; l < Simd<T>::lanes; ++l) chosen_[i] |= 1u << (pivots[l * n + i] - 1);
      chosen_[i] &= ~(1u << i);
    }
  }
  // Row i with the pivot of each lane.
  template <int columns>
  void exchange_rows(int i) {
    for (uint32_t left = chosen_[i]; left != 0; left &= left - 1) {
      const int row = __builtin_ctz(left);
      const auto here = pivot_[i] == all<T>(row);
      for (int s = 0; s < columns; ++s) {
        Vec &upper = x_[s * n() + i], &lower = x_[s * n() + row];
        const Vec kept = upper;
        upper = here ? lower : upper;
        lower = here ? kept : lower;
      }
    }
  }
  // Takes the unknowns from one to another, which are known, out of equation i.
  template <int columns>
  void take_out(int i, int from, int to) {
    Vec sum[columns];
    for (int s = 0; s < columns; ++s) sum[s] = x_[s * n() + i];
    for (int j = from; j < to; ++j)
      for (int s = 0; s < columns; ++s) take_product(sum[s], lu_[j * n() + i], x_[s * n() + j]);
    for (int s = 0; s < columns; ++s) x_[s * n() + i] = sum[s];
  }

  Vec lu_[most * most], x_[most * columns_at_once];
  Vec pivot_[most];        // row i changed places with it, exact in any type
  uint32_t chosen_[most];  // a bit for each other row that is such a pivot in some lane
  int rows_;
};

}  // namespace

template <class T>
int64_t cholesky_side_by_side(const T* a, bool lower, T* factor, int64_t count, int64_t n,
                              int32_t* info) {
  CholeskyGroup<T> group;
  return for_each_group<T>(count, [&](int64_t i) {
    group.run(a + i * n * n, lower, factor + i * n * n, static_cast<int>(n), info + i);
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
  return for_order(n, [&]<int N>() {
    InverseGroup<T, N> group;
    return for_each_group<T>(count, [&](int64_t i) {
      group.run(a + i * n * n, static_cast<int>(n), inverse + i * n * n, info + i);
      return true;
    });
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
  return for_order(n, [&]<int N>() {
    LuGroup<T, N> group;
    return for_each_group<T>(count, [&](int64_t i) {
      group.solve(lu + i * n * n, pivots + i * n, x + i * n * k, static_cast<int>(n), k);
      return true;
    });
  });
}

template int64_t cholesky_side_by_side(const float*, bool, float*, int64_t, int64_t, int32_t*);
template int64_t cholesky_side_by_side(const double*, bool, double*, int64_t, int64_t, int32_t*);
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
