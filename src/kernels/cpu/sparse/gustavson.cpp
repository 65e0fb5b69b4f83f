// Products of two sparse matrices, row by row (F. G. Gustavson, "Two fast algorithms for sparse
// matrices", ACM Transactions on Mathematical Software 4, 1978): the rows of b that the elements of
// a row of a name are added up in a dense row. A first pass counts what each row will have.
#include <bit>

#include "core/scalar.h"
#include "kernels/cpu/loop/scratch.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/cpu/sparse/products.h"
#include "kernels/cpu/sparse/row_chunks.h"

namespace facula::cpu::sparse {

void column_outside(int64_t column, int64_t limit) {
  throw Error(ErrorKind::Runtime, "size is inconsistent with indices: for dim 1, size is ", limit,
              " but found index ", column);
}
void row_outside(int64_t begin, int64_t end, int64_t n) {
  throw Error(ErrorKind::Runtime, "compressed indices must ascend from 0 to nnz (", n, "); got ",
              end, " after ", begin);
}

namespace {

using FACULA_ISA::Scratch;

[[noreturn]] void changed_meanwhile() {
  throw Error(ErrorKind::Runtime, "mm(): expected sparse matrices that nobody changes meanwhile");
}

// The columns that a row has, a byte each: bits would make each column wait for the one before in
// its word.
class ColumnSet {
 public:
  explicit ColumnSet(int64_t columns) : words_((columns + 63) / 64), found_(words_ * 64) {
    std::fill_n(found_.get(), words_ * 64, uint8_t{0});
  }
  // A byte for each column: 1 where it is in the set.
  uint8_t* bytes() const { return found_.get(); }
  void remove(int64_t column) { found_[column] = 0; }
  int64_t words() const { return words_; }

  // Lists all columns as they ascend, and empties the set; how many there were. Some places are
  // written at once for each word, as many as rows often fill, so that no branch hangs on how many
  // there are: the list has room for `most` columns and `group` more.
  static constexpr int64_t group = 8;
  int64_t drain(int64_t* list, int64_t most) {
    int64_t count = 0;
    for (int64_t w = 0; w < words_; ++w) {
      constexpr uint64_t last_bit = uint64_t{1} << 63;  // zero would be a case of its own
      uint64_t rest = take_word(w);
      const int64_t end = count + std::popcount(rest);
      if (end > most) changed_meanwhile();
      for (int64_t at = count; at < end; at += group)
        for (int64_t i = 0; i < group; ++i, rest &= rest - 1)
          list[at + i] = w * 64 + std::countr_zero(rest | last_bit);
      count = end;
    }
    return count;
  }

 private:
  // 64 columns as bits, by a product that moves the low bit of each byte into the highest one.
  uint64_t take_word(int64_t w) {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) {
      uint64_t eight;
      __builtin_memcpy(&eight, found_.get() + w * 64 + i * 8, sizeof eight);
      word |= (eight * 0x0102040810204080) >> 56 << (8 * i);
    }
    std::fill_n(found_.get() + w * 64, 64, uint8_t{0});
    return word;
  }

  int64_t words_;
  Scratch<uint8_t> found_;
};

// Both matrices, and a walk over the products that a row of the result is the sum of.
struct Factors {
  const int64_t *a_starts, *a_columns, *b_starts, *b_columns;
  int64_t a_count, b_rows, b_count, columns;

  Factors(const RowMatrix& a, const RowMatrix& b, int64_t width)
      : a_starts(a.starts.data<int64_t>()),
        a_columns(a.columns.data<int64_t>()),
        b_starts(b.starts.data<int64_t>()),
        b_columns(b.columns.data<int64_t>()),
        a_count(a.columns.numel()),
        b_rows(b.starts.numel() - 1),
        b_count(b.columns.numel()),
        columns(width) {}

  // Calls f(element of a, element of b, column).
  template <class F>
  [[gnu::always_inline]] void each(int64_t row, F&& f) const {
    // What f stores could be a member, as far as a compiler can tell.
    const Factors own = *this;
    const auto [begin, end] = row_range(own.a_starts, row, own.a_count);
    for (int64_t i = begin; i < end; ++i) {
      const auto [first, last] =
          row_range(own.b_starts, checked_column(own.a_columns + i, own.b_rows), own.b_count);
      for (int64_t j = first; j < last; ++j)
        f(i, j, checked_column(own.b_columns + j, own.columns));
    }
  }
};

// A byte for each column: bits would make each product wait for the one before in its word.
void count_rows(const Factors& f, int64_t begin, int64_t end, int64_t* counts) {
  const Scratch<uint8_t> memory(f.columns);
  uint8_t* const found = memory.get();
  std::fill_n(found, f.columns, uint8_t{0});
  for (int64_t r = begin; r < end; ++r) {
    int64_t count = 0, products = 0;
    f.each(r, [&](int64_t, int64_t, int64_t column) {
      count += 1 - found[column];
      found[column] = 1;
      ++products;
    });
    counts[r] = count;
    if (products < f.columns / 64) {
      f.each(r, [&](int64_t, int64_t, int64_t column) { found[column] = 0; });
    } else {
      std::fill_n(found, f.columns, uint8_t{0});
    }
  }
}

// One chunk of rows of the result.
template <class T>
class RowSums {
  using S = accumulate_t<T>;

 public:
  // `most` is the longest row's length.
  RowSums(const Factors& f, const T* a, const T* b, int64_t most)
      : f_(f), a_(a), b_(b), found_(f.columns), list_(most + found_.group), sums_(f.columns) {
    std::fill_n(sums_.get(), f.columns, S(0));
  }

  // Fills the `count` places of a row. Columns are sorted by walking over all of them where these
  // are few beside the columns found, else as a list.
  void run(int64_t row, int64_t count, int64_t* columns, T* values) {
    if (count * 8 >= found_.words()) {
      add_up(row, [](int64_t) {});
      const int64_t* const list = list_.get();
      if (found_.drain(list_.get(), count) != count) changed_meanwhile();
      for (int64_t i = 0; i < count; ++i) {
        columns[i] = list[i];
        values[i] = take(list[i]);
      }
      return;
    }
    int64_t at = 0;
    add_up(row, [&](int64_t column) {
      if (at == count) changed_meanwhile();
      columns[at++] = column;
    });
    if (at != count) changed_meanwhile();
    std::sort(columns, columns + count);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = take(columns[i]);
      found_.remove(columns[i]);
    }
  }

 private:
  template <class New>
  void add_up(int64_t row, New&& is_new) {
    S* const sums = sums_.get();
    const T *a = a_, *b = b_;
    uint8_t* const found = found_.bytes();  // a byte's store could change a member
    f_.each(row, [&, a, b, sums, found](int64_t i, int64_t j, int64_t column) {
      sums[column] = S(sums[column] + convert<S>(a[i]) * convert<S>(b[j]));
      if (found[column] == 0) is_new(column);
      found[column] = 1;
    });
  }
  T take(int64_t column) {
    const S sum = sums_[column];
    sums_[column] = S(0);
    return convert<T>(sum);
  }

  const Factors& f_;
  const T *a_, *b_;
  ColumnSet found_;
  Scratch<int64_t> list_;
  Scratch<S> sums_;
};

// Elements of a that are worth a call which clears a dense row first.
int64_t chunk_grain(const Factors& f) {
  const int64_t each = 1 + f.b_count / std::max<int64_t>(f.b_rows, 1);
  return std::max(chunk_tenth_ns / (4 * each), f.columns / (4 * each));
}

}  // namespace

RowMatrix multiply_sparse(const RowMatrix& a, const RowMatrix& b, int64_t columns) {
  const Factors f(a, b, columns);
  const int64_t rows = a.starts.numel() - 1, grain = chunk_grain(f);
  RowMatrix out;
  out.starts = empty_tensor(IntVec(1, rows + 1), DType::Int64);
  int64_t* starts = out.starts.data<int64_t>();
  starts[0] = 0;
  for_row_chunks(f.a_starts, rows, f.a_count, grain,
                 [&](int64_t begin, int64_t end) { count_rows(f, begin, end, starts + 1); });
  for (int64_t r = 0; r < rows; ++r) starts[r + 1] += starts[r];
  const IntVec total(1, starts[rows]);
  out.columns = empty_tensor(total, DType::Int64);
  out.values = empty_tensor(total, a.values.dtype());
  int64_t* places = out.columns.data<int64_t>();
  const auto fill = [&]<class T>(Type<T>) {
    T* values = out.values.data<T>();
    for_row_chunks(f.a_starts, rows, f.a_count, grain, [&](int64_t begin, int64_t end) {
      int64_t most = 0;
      for (int64_t r = begin; r < end; ++r) most = std::max(most, starts[r + 1] - starts[r]);
      RowSums<T> sums(f, a.values.data<T>(), b.values.data<T>(), most);
      for (int64_t r = begin; r < end; ++r)
        sums.run(r, starts[r + 1] - starts[r], places + starts[r], values + starts[r]);
    });
  };
  const DType d = a.values.dtype();
  const bool known = visit_floating(d, fill) || visit_complex(d, fill) || visit_integral(d, fill);
  check_kind(ErrorKind::NotImplemented, known, "mm() of sparse matrices: not implemented for ",
             name(d));
  return out;
}

}  // namespace facula::cpu::sparse
