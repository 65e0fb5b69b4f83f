#include "kernels/cpu/sparse/products.h"

#include <algorithm>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu::sparse {
namespace {

// Half types are added up as float, bool as int64.
template <class T>
struct SumOf {
  using type = T;
};
template <>
struct SumOf<Half> {
  using type = float;
};
template <>
struct SumOf<BFloat16> {
  using type = float;
};
template <class T>
using sum_t = typename SumOf<T>::type;

template <class F>
void visit(DType d, const char* what, F&& f) {
  const bool known = visit_floating(d, f) || visit_complex(d, f) || visit_integral(d, f);
  check_kind(ErrorKind::NotImplemented, known, what, ": not implemented for ", name(d));
}

// Rows that are worth a thread of their own, for this many products a row.
int64_t rows_grain(int64_t products) {
  return std::max<int64_t>(1, parallel_grain(std::max<int64_t>(1, products * 3)));
}

// A copy of the columns of some rows, checked: nobody can change them any more.
class OwnColumns {
 public:
  OwnColumns(const RowMatrix& m, int64_t begin, int64_t end, int64_t limit) {
    const int64_t* starts = m.starts.data<int64_t>();
    const int64_t n = m.columns.numel();
    check(begin >= 0 && begin <= end && end <= n, "compressed indices must ascend from 0 to nnz (",
          n, "); got ", begin, " and ", end, " of ", starts[0]);
    list_.assign(m.columns.data<int64_t>() + begin, m.columns.data<int64_t>() + end);
    for (int64_t c : list_)
      check(c >= 0 && c < limit, "size is inconsistent with indices: for dim 1, size is ", limit,
            " but found index ", c);
  }
  int64_t operator[](int64_t i) const { return list_[static_cast<size_t>(i)]; }
  int64_t size() const { return static_cast<int64_t>(list_.size()); }

 private:
  std::vector<int64_t> list_;
};

template <class T, class Row>
void each_row(const RowMatrix& m, const Tensor& dense, const Tensor& out, Row&& row) {
  const int64_t rows = m.starts.numel() - 1, n = m.columns.numel(), width = dense.sizes()[1];
  const int64_t per_row = rows ? (n / rows + 1) * width : 1;
  const int64_t* starts = m.starts.data<int64_t>();
  const T* values = m.values.data<T>();
  parallel_for(rows, rows_grain(per_row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = starts[r], last = starts[r + 1];
      const OwnColumns columns(m, first, last, dense.sizes()[0]);
      row(columns, values + first, first, out.data<T>() + r * width, r);
    }
  });
}

}  // namespace

void multiply(const RowMatrix& m, const Tensor& dense, const Tensor& out) {
  const int64_t width = dense.sizes()[1];
  visit(dense.dtype(), "mm() of a sparse matrix", [&]<class T>(Type<T>) {
    using S = sum_t<T>;
    const T* from = dense.data<T>();
    each_row<T>(m, dense, out,
                [=](const OwnColumns& columns, const T* values, int64_t, T* to, int64_t) {
                  std::vector<S> sum(static_cast<size_t>(width), S(0));
                  for (int64_t i = 0; i < columns.size(); ++i) {
                    const S v = convert<S>(values[i]);
                    const T* line = from + columns[i] * width;
                    for (int64_t k = 0; k < width; ++k)
                      sum[static_cast<size_t>(k)] += v * convert<S>(line[k]);
                  }
                  for (int64_t k = 0; k < width; ++k)
                    to[k] = convert<T>(sum[static_cast<size_t>(k)]);
                });
  });
}

void multiply_reduce(const RowMatrix& m, const Tensor& dense, Reduce how, const Tensor& out,
                     const Tensor& chosen) {
  const int64_t width = dense.sizes()[1];
  const bool known = visit_floating(dense.dtype(), [&]<class T>(Type<T>) {
    using S = sum_t<T>;
    const T* from = dense.data<T>();
    int64_t* chosen_all = chosen.defined() ? chosen.data<int64_t>() : nullptr;
    each_row<T>(m, dense, out,
                [=](const OwnColumns& columns, const T* values, int64_t first, T* to, int64_t r) {
                  for (int64_t k = 0; k < width; ++k) {
                    S found(0);
                    int64_t which = -1;
                    for (int64_t i = 0; i < columns.size(); ++i) {
                      const S product =
                          convert<S>(values[i]) * convert<S>(from[columns[i] * width + k]);
                      if (how == Reduce::Sum || how == Reduce::Mean) {
                        found += product;
                      } else if (which < 0 || product != product ||
                                 (how == Reduce::Amax ? product > found : product < found)) {
                        found = product;
                        which = first + i;
                      }
                    }
                    if (how == Reduce::Mean && columns.size() > 0)
                      found /= static_cast<S>(columns.size());
                    to[k] = convert<T>(found);
                    if (chosen_all) chosen_all[r * width + k] = which;
                  }
                });
  });
  check_kind(ErrorKind::NotImplemented, known, "sparse.mm() with reduce: not implemented for ",
             name(dense.dtype()));
}

void sampled_products(const Tensor& rows, const Tensor& columns, const Tensor& a, const Tensor& b,
                      const Tensor& out) {
  const int64_t width = a.sizes()[1], n = rows.numel();
  visit(a.dtype(), "sampled_addmm()", [&]<class T>(Type<T>) {
    using S = sum_t<T>;
    const T *x = a.data<T>(), *y = b.data<T>();
    T* to = out.data<T>();
    const int64_t *at = rows.data<int64_t>(), *by = columns.data<int64_t>();
    parallel_for(n, rows_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = at[i], column = by[i];
        check(row >= 0 && row < a.sizes()[0] && column >= 0 && column < b.sizes()[0],
              "sampled_addmm(): an index lies outside of the size");
        S sum(0);
        for (int64_t k = 0; k < width; ++k)
          sum += convert<S>(x[row * width + k]) * convert<S>(y[column * width + k]);
        to[i] = convert<T>(sum);
      }
    });
  });
}

}  // namespace facula::cpu::sparse
