#include "kernels/cpu/sparse/products.h"

#include "core/scalar.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/vector.h"
#include "kernels/cpu/sparse/row_chunks.h"

namespace facula::cpu::FACULA_ISA {
namespace {

using sparse::checked_column;
using sparse::Reduce;
using sparse::row_range;
using sparse::RowMatrix;

template <class F>
void visit(DType d, const char* what, F&& f) {
  const bool known = visit_floating(d, f) || visit_complex(d, f) || visit_integral(d, f);
  check_kind(ErrorKind::NotImplemented, known, what, ": not implemented for ", name(d));
}

// Elements that take about 2 us, where each meets `width` numbers.
int64_t elements_grain(int64_t width) {
  return std::max<int64_t>(sparse::chunk_tenth_ns / (10 + width), 1);
}

// One row of a sparse matrix: blocks of `width` elements each, `step` elements apart.
template <class T>
struct Row {
  const int64_t* columns;
  const T* values;
  int64_t blocks, width, step, limit;

  // Calls f(value, row of the dense matrix) in the order of the elements.
  template <class F>
  [[gnu::always_inline]] void each(F&& f) const {
    const T* from = values;
    for (int64_t i = 0; i < blocks; ++i, from += step) {
      const int64_t first = checked_column(columns + i, limit) * width;
      for (int64_t j = 0; j < width; ++j) f(from[j], first + j);
    }
  }
};

// --- a row times a dense matrix of n columns

// Results [column, column + count vectors), held in registers.
template <class T, int count>
[[gnu::always_inline]] inline void row_vectors(const Row<T>& row, const T* dense, int64_t n,
                                               int64_t column, T* to) {
  using S = Simd<T>;
  using V = typename S::Vec;
  V sum[count] = {};
  row.each([&](T value, int64_t k) {
    const V factor = S::broadcast(value);
    const T* line = dense + k * n + column;
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v)
      sum[v] = multiply_add<V>(S::load(line + v * S::lanes), factor, sum[v]);
  });
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) S::store(to + column + v * S::lanes, sum[v]);
}

// The last vector of columns overlaps the one before: a result is the same whichever lane makes it.
template <class T>
void real_row(const Row<T>& row, const T* dense, int64_t n, T* to) {
  constexpr int64_t lanes = Simd<T>::lanes;
  int64_t at = 0;
  for (; at + 8 * lanes <= n; at += 8 * lanes) row_vectors<T, 8>(row, dense, n, at, to);
  if (at + 4 * lanes <= n) row_vectors<T, 4>(row, dense, n, at, to), at += 4 * lanes;
  if (at + 2 * lanes <= n) row_vectors<T, 2>(row, dense, n, at, to), at += 2 * lanes;
  if (at + lanes <= n) row_vectors<T, 1>(row, dense, n, at, to), at += lanes;
  if (at == n) return;
  if (n >= lanes) return row_vectors<T, 1>(row, dense, n, n - lanes, to);
  T sum[lanes] = {};
  row.each([&](T value, int64_t k) {
    for (int64_t j = 0; j < n; ++j) sum[j] = multiply_add<T>(dense[k * n + j], value, sum[j]);
  });
  for (int64_t j = 0; j < n; ++j) to[j] = sum[j];
}

inline constexpr int64_t block_columns = 64;

// Sums in a buffer, for types that are added up in another one.
template <class T>
void buffered_row(const Row<T>& row, const T* dense, int64_t n, T* to) {
  using S = accumulate_t<T>;
  for (int64_t at = 0; at < n; at += block_columns) {
    const int64_t count = min_of(block_columns, n - at);
    S sum[block_columns] = {};
    row.each([&](T value, int64_t k) {
      const S factor = convert<S>(value);
      const T* line = dense + k * n + at;
      by_lanes(count, [&](int64_t j) { sum[j] = S(sum[j] + factor * convert<S>(line[j])); });
    });
    for (int64_t j = 0; j < count; ++j) to[at + j] = convert<T>(sum[j]);
  }
}

// Sums of the products with the real and with the imaginary parts of the row: no parts of complex
// numbers are shuffled before the end.
template <class R>
void complex_row(const Row<Complex<R>>& row, const Complex<R>* dense, int64_t n, Complex<R>* to) {
  for (int64_t at = 0; at < n; at += block_columns) {
    const int64_t count = min_of(block_columns, n - at);
    R real[2 * block_columns] = {}, imaginary[2 * block_columns] = {};
    row.each([&](Complex<R> value, int64_t k) {
      const R* line = reinterpret_cast<const R*>(dense + k * n + at);
      by_lanes(2 * count, [&](int64_t j) {
        real[j] += value.re * line[j];
        imaginary[j] += value.im * line[j];
      });
    });
    for (int64_t j = 0; j < count; ++j)
      to[at + j] = {real[2 * j] - imaginary[2 * j + 1], real[2 * j + 1] + imaginary[2 * j]};
  }
}

// --- a row times a vector

// Four sums, so that no addition waits for the one before.
template <class T>
T row_times_vector(const Row<T>& row, const T* x) {
  using S = accumulate_t<T>;
  S sum[4] = {S(0), S(0), S(0), S(0)};
  const auto product = [&](int64_t i) {
    return S(convert<S>(row.values[i]) * convert<S>(x[checked_column(row.columns + i, row.limit)]));
  };
  int64_t i = 0;
  for (; i + 4 <= row.blocks; i += 4)
    for (int64_t l = 0; l < 4; ++l) sum[l] = S(sum[l] + product(i + l));
  for (int64_t l = 0; i + l < row.blocks; ++l) sum[l] = S(sum[l] + product(i + l));
  return convert<T>(S(S(sum[0] + sum[2]) + S(sum[1] + sum[3])));
}

// The sum of `count` numbers, lane by lane; memory behind them may be read.
template <class T>
[[gnu::always_inline]] inline T masked_sum(const T* from, int64_t count) {
  using Number = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Vec __attribute__((vector_size(lanes * sizeof(T))));
  typedef Number Lanes __attribute__((vector_size(lanes * sizeof(T))));
  constexpr Lanes number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Vec sum = {};
  for (int64_t i = 0; i < count; i += lanes) {
    Vec next;
    __builtin_memcpy(&next, from + i, sizeof next);
    sum += number < static_cast<Number>(count - i) ? next : Vec{};
  }
  T all[lanes];
  __builtin_memcpy(all, &sum, sizeof sum);
  return fold(all);
}

// Some rows of single elements, at most `room` in all: first all products, in one loop, then the
// sums of the rows, so that nothing hangs on where each row ends.
template <class T>
class RowGroup {
 public:
  static constexpr int64_t room = 1024, most_rows = 256;

  // Takes as many of the rows from `row` on as fit; how many.
  int64_t take(const int64_t* starts, int64_t row, int64_t end, int64_t n) {
    begin_ = row_range(starts, row, n).begin;
    rows_ = 0;
    for (; row < end && rows_ < most_rows; ++row, ++rows_) {
      const int64_t last = row_range(starts, row, n).end;
      if (last < begin_ + before(rows_) || last - begin_ > room) break;
      ends_[rows_] = last - begin_;
    }
    return rows_;
  }
  void multiply(const int64_t* columns, const T* values, int64_t limit, const T* x, T* to) {
    const int64_t count = before(rows_);
    // Four at a time, from pointers that stores to the products cannot change.
    columns += begin_, values += begin_;
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; ++i)
      products_[i] = values[i] * x[checked_column(columns + i, limit)];
    for (int64_t r = 0; r < rows_; ++r)
      to[r] = masked_sum(products_ + before(r), ends_[r] - before(r));
  }

 private:
  int64_t before(int64_t row) const { return row == 0 ? 0 : ends_[row - 1]; }

  int64_t begin_ = 0, rows_ = 0;
  int64_t ends_[most_rows];
  T products_[room + lanes];
};

template <class T>
void vector_product(const RowMatrix& m, const T* x, int64_t limit, T* to) {
  const int64_t rows = m.starts.numel() - 1, n = m.columns.numel();
  const int64_t *starts = m.starts.data<int64_t>(), *columns = m.columns.data<int64_t>();
  const T* values = m.values.data<T>();
  sparse::for_row_chunks(starts, rows, n, elements_grain(1), [=](int64_t begin, int64_t end) {
    RowGroup<T> group;
    for (int64_t r = begin; r < end;) {
      const int64_t taken = group.take(starts, r, end, n);
      if (taken > 0) group.multiply(columns, values, limit, x, to + r);
      r += taken;
      if (taken > 0 || r == end) continue;
      const auto [first, last] = row_range(starts, r, n);
      to[r++] =
          row_times_vector(Row<T>{columns + first, values + first, last - first, 1, 1, limit}, x);
    }
  });
}

template <class T>
T blocks_times_vector(const Row<T>& row, const T* x) {
  using S = accumulate_t<T>;
  S sum = S(0);
  row.each([&](T value, int64_t k) { sum = S(sum + convert<S>(value) * convert<S>(x[k])); });
  return convert<T>(sum);
}

template <class T>
void one_row(const Row<T>& row, const T* dense, int64_t n, T* to) {
  if (n == 1) {
    *to = row.width == 1 ? row_times_vector(row, dense) : blocks_times_vector(row, dense);
  } else if constexpr (is_complex_v<T>) {
    complex_row(row, dense, n, to);
  } else if constexpr (std::is_floating_point_v<T>) {
    real_row(row, dense, n, to);
  } else {
    buffered_row(row, dense, n, to);
  }
}

// Calls f(row, its number) for all rows of elements, in parallel.
template <class T, class F>
void each_row(const RowMatrix& m, int64_t limit, int64_t width, F&& f) {
  const int64_t block_rows = m.starts.numel() - 1, n = m.columns.numel();
  const int64_t *starts = m.starts.data<int64_t>(), *columns = m.columns.data<int64_t>();
  const T* values = m.values.data<T>();
  const int64_t cells = m.height * m.width, grain = elements_grain(width * cells);
  sparse::for_row_chunks(starts, block_rows, n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto [first, last] = row_range(starts, r, n);
      for (int64_t h = 0; h < m.height; ++h)
        f(Row<T>{columns + first, values + first * cells + h * m.width, last - first, m.width,
                 cells, limit},
          r * m.height + h, first);
    }
  });
}

// --- a row reduced otherwise

// The products of a row in `count` columns: the best of each, and which element it comes from.
template <class T>
void picked_row(const Row<T>& row, const T* dense, int64_t n, int64_t at, int64_t count, bool most,
                accumulate_t<T>* best, int64_t* which) {
  using S = accumulate_t<T>;
  for (int64_t j = 0; j < count; ++j) best[j] = S(0), which[j] = -1;
  int64_t i = 0;
  row.each([&](T value, int64_t k) {
    const S factor = convert<S>(value);
    const T* line = dense + k * n + at;
    for (int64_t j = 0; j < count; ++j) {
      const S product = factor * convert<S>(line[j]);
      const bool better =
          (i == 0) | (product != product) | (most ? product > best[j] : product < best[j]);
      best[j] = better ? product : best[j];
      which[j] = better ? i : which[j];
    }
    ++i;
  });
}

template <class T>
void picked_rows(const RowMatrix& m, const Tensor& dense, bool most, const Tensor& out,
                 const Tensor& chosen) {
  const int64_t n = dense.sizes()[1];
  each_row<T>(m, dense.sizes()[0], n, [&](const Row<T>& row, int64_t r, int64_t first) {
    accumulate_t<T> best[block_columns];
    int64_t which[block_columns];
    for (int64_t at = 0; at < n; at += block_columns) {
      const int64_t count = min_of(block_columns, n - at);
      picked_row(row, dense.data<T>(), n, at, count, most, best, which);
      T* to = out.data<T>() + r * n + at;
      for (int64_t j = 0; j < count; ++j) to[j] = convert<T>(best[j]);
      if (!chosen.defined()) continue;
      int64_t* number = chosen.data<int64_t>() + r * n + at;
      for (int64_t j = 0; j < count; ++j) number[j] = which[j] < 0 ? -1 : first + which[j];
    }
  });
}

// Sums and means are divided before they are rounded.
template <class T>
void added_rows(const RowMatrix& m, const Tensor& dense, bool mean, const Tensor& out) {
  using S = accumulate_t<T>;
  const int64_t n = dense.sizes()[1];
  each_row<T>(m, dense.sizes()[0], n, [&](const Row<T>& row, int64_t r, int64_t) {
    const S by = mean && row.blocks > 0 ? static_cast<S>(row.blocks) : S(1);
    for (int64_t at = 0; at < n; at += block_columns) {
      const int64_t count = min_of(block_columns, n - at);
      S sum[block_columns] = {};
      row.each([&](T value, int64_t k) {
        const S factor = convert<S>(value);
        const T* line = dense.data<T>() + k * n + at;
        by_lanes(count, [&](int64_t j) { sum[j] += factor * convert<S>(line[j]); });
      });
      T* to = out.data<T>() + r * n + at;
      for (int64_t j = 0; j < count; ++j) to[j] = convert<T>(sum[j] / by);
    }
  });
}

template <class T>
[[gnu::always_inline]] inline accumulate_t<T> dot(const T* x, const T* y, int64_t n) {
  using S = accumulate_t<T>;
  if constexpr (std::is_floating_point_v<S>) {
    return lane_sum<S>(0, n, [=](int64_t k) { return convert<S>(x[k]) * convert<S>(y[k]); });
  } else {
    S sum = S(0);
    for (int64_t k = 0; k < n; ++k) sum = S(sum + x[k] * y[k]);
    return sum;
  }
}

}  // namespace

void multiply_rows(const RowMatrix& m, const Tensor& dense, const Tensor& out) {
  const int64_t n = dense.sizes()[1], limit = dense.sizes()[0] / m.width;
  visit(dense.dtype(), "mm() of a sparse matrix", [&]<class T>(Type<T>) {
    const T* from = dense.data<T>();
    T* to = out.data<T>();
    if constexpr (std::is_floating_point_v<T>)
      if (n == 1 && m.width == 1 && m.height == 1) return vector_product(m, from, limit, to);
    each_row<T>(m, limit, n,
                [=](const Row<T>& row, int64_t r, int64_t) { one_row(row, from, n, to + r * n); });
  });
}

void reduce_rows(const RowMatrix& m, const Tensor& dense, Reduce how, const Tensor& out,
                 const Tensor& chosen) {
  const bool known = visit_floating(dense.dtype(), [&]<class T>(Type<T>) {
    if (how == Reduce::Sum || how == Reduce::Mean)
      return added_rows<T>(m, dense, how == Reduce::Mean, out);
    picked_rows<T>(m, dense, how == Reduce::Amax, out, chosen);
  });
  check_kind(ErrorKind::NotImplemented, known, "sparse.mm() with reduce: not implemented for ",
             name(dense.dtype()));
}

void sampled_products(const Tensor& rows, const Tensor& columns, const Tensor& a, const Tensor& b,
                      const Tensor& out) {
  const int64_t width = a.sizes()[1], n = rows.numel();
  const int64_t rows_limit = a.sizes()[0], columns_limit = b.sizes()[0];
  visit(a.dtype(), "sampled_addmm()", [&]<class T>(Type<T>) {
    const T *x = a.data<T>(), *y = b.data<T>();
    T* to = out.data<T>();
    const int64_t *at = rows.data<int64_t>(), *by = columns.data<int64_t>();
    parallel_for(n, elements_grain(width), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = checked_column(at + i, rows_limit),
                      column = checked_column(by + i, columns_limit);
        to[i] = convert<T>(dot(x + row * width, y + column * width, width));
      }
    });
  });
}

}  // namespace facula::cpu::FACULA_ISA
