// Indexing along one dimension: gather, scatter, index_select, index_add and their kin, take, put.
#include "ops/index/scatter.h"

#include <limits>

#include "dispatch/out_dtype.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/index/batch.h"
#include "ops/index/index.h"
#include "ops/index/indexed.h"
#include "ops/index/scatter_gradients.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using cpu::Reduction;
using indexed::apart_from;
using indexed::at_least_1d;
using indexed::element;
using indexed::spread_along;
using indexed::start_from;
using indexed::still;
using indexed::widened;

bool is_index_dtype(DType d) { return d == DType::Int64 || d == DType::Int32; }

// Values at every position: one element seen in the given sizes.
Tensor repeated(const Tensor& value, IntSpan sizes) {
  return alias_tensor(value, sizes, IntVec(sizes.size()), value.storage_offset());
}

// --- gather and scatter: an index for every element

void check_index_sizes(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor* src) {
  check(index.numel() == 0 || is_index_dtype(index.dtype()), op,
        "(): index must have dtype int32 or int64; got ", name(index.dtype()));
  if (index.numel() == 0) return;
  const Tensor s = at_least_1d(self), i = at_least_1d(index);
  check(s.dim() == i.dim(), "index must have as many dimensions as ", src ? "self" : "input",
        "; got ", i.dim(), " and ", s.dim());
  if (src)
    check(at_least_1d(*src).dim() == i.dim(), "index must have as many dimensions as src; got ",
          i.dim(), " and ", src->dim());
}

void meta_gather(Meta& m, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const int64_t d = wrap_dim(dim, self.dim());
  check_index_sizes("gather", self, d, index, nullptr);
  for (int64_t k = 0; index.numel() > 0 && k < at_least_1d(self).dim(); ++k)
    check(k == d || at_least_1d(index).sizes()[k] <= at_least_1d(self).sizes()[k],
          "gather(): index must not be larger than self outside dim ", d, "; got one in dimension ",
          k);
  indexed::check_out(m, self.dtype(), {0, 2});
  m.result(0, index.sizes(), self.dtype());
}

// Offsets of an index tensor along one dimension of `t`, for every position of the index.
Tensor offsets_along(const Tensor& t, int64_t dim, const Tensor& index) {
  const cpu::IndexedDim d{&index, t.sizes()[dim], t.strides()[dim], dim, false};
  return cpu::byte_offsets({&d, 1}, t.itemsize(), &cpu::index_out_of_bounds_runtime);
}

void gather(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  if (index.numel() == 0) return;
  const Tensor from = at_least_1d(self), at = at_least_1d(index);
  const int64_t d = wrap_dim(dim, self.dim());
  const cpu::IndexedDim along{&at, from.sizes()[d], from.strides()[d], d, false};
  cpu::gather_along(at_least_1d(out), still(from, at.sizes(), d), along,
                    &cpu::index_out_of_bounds_runtime);
}

void check_scatter_sizes(const Tensor& self, int64_t d, const Tensor& index, const Tensor* src) {
  const Tensor s = at_least_1d(self), i = at_least_1d(index);
  bool fits = true;
  for (int64_t k = 0; k < s.dim() && fits; ++k) fits = k == d || i.sizes()[k] <= s.sizes()[k];
  for (int64_t k = 0; src && k < s.dim() && fits; ++k)
    fits = i.sizes()[k] <= at_least_1d(*src).sizes()[k];
  if (fits) return;
  throw Error(ErrorKind::Runtime, "index must not be larger than self outside dim ", d,
              src ? ", nor than src anywhere; got index " : "; got index ", str(index.sizes()),
              " and self ", str(self.sizes()), src ? concat(" and src ", str(src->sizes())) : "");
}

// `family` stands in errors about sizes.
void state_scattered(Meta& m, const char* family, const Tensor& self, int64_t dim,
                     const Tensor& index, const Value& src) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor* values = src.is_tensor() ? &src.as_tensor() : nullptr;
  check_index_sizes(family, self, d, index, values);
  if (index.numel() > 0) check_scatter_sizes(self, d, index, values);
  check(!values || values->dtype() == self.dtype(), m.op_name(), "(): src must have self's dtype, ",
        name(self.dtype()));
  indexed::check_out(m, self.dtype(), {2, 3});
  m.result(0, self.sizes(), self.dtype());
}
void meta_scatter(Meta& m, const Tensor& self, int64_t dim, const Tensor& index, const Value& src) {
  state_scattered(m, m.op_name().c_str(), self, dim, index, src);
}

// How scatter, scatter_reduce and index_reduce combine.
struct Combination {
  Reduction how;
  bool mean = false;
};
Combination old_reduction(std::string_view reduce) {
  if (reduce == "add") return {Reduction::Sum};
  check(reduce == "multiply", "scatter_(): reduce must be 'add' or 'multiply'; got '", reduce, "'");
  return {Reduction::Product};
}
std::optional<Combination> reduction(std::string_view reduce) {
  if (reduce == "sum") return Combination{Reduction::Sum};
  if (reduce == "prod") return Combination{Reduction::Product};
  if (reduce == "mean") return Combination{Reduction::Sum, true};
  if (reduce == "amax") return Combination{Reduction::Maximum};
  if (reduce == "amin") return Combination{Reduction::Minimum};
  return std::nullopt;
}
Combination scatter_reduction(std::string_view reduce) {
  const auto c = reduction(reduce);
  check(c.has_value(), "reduce must be sum, prod, mean, amax or amin; got ", reduce);
  return *c;
}
Combination index_reduction(std::string_view reduce) {
  const auto c = reduction(reduce);
  check(c && reduce != "sum", "index_reduce(): reduce must be prod, mean, amax or amin; got ",
        reduce);
  return *c;
}

// What leaves another value unchanged.
Tensor neutral(Reduction how, DType dtype) {
  const Tensor t = empty_tensor({}, dtype);
  if (how == Reduction::Sum || how == Reduction::Product) {
    cpu::fill(t, how == Reduction::Product);
    return t;
  }
  const bool lowest = how == Reduction::Maximum;
  if (is_floating(dtype)) {
    cpu::fill(t, lowest ? -__builtin_inf() : __builtin_inf());
    return t;
  }
  dispatch<IntegralTypes, bool>(dtype, "scatter_reduce", [&]<class T>(Type<T>) {
    *t.data<T>() = lowest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  });
  return t;
}

// One combination of values into places of a tensor: `place` brings a tensor of self's sizes into
// the loop's shape, `offsets` makes its offsets there.
template <class Place, class Offsets>
void combine(const Tensor& out, const Tensor& values, Combination c, bool include_self,
             const char* op, Place&& place, Offsets&& offsets) {
  const Tensor to = widened(out), from = widened(values);
  const Tensor seen = place(to), at = offsets(to);
  if (!include_self)
    cpu::scatter_elements(seen, at, repeated(neutral(c.how, to.dtype()), at.sizes()));
  cpu::scatter_reduce_elements(seen, at, from, c.how, op);
  if (c.mean) {
    const Tensor counts = empty_tensor(out.sizes(), DType::Int64);
    cpu::fill(counts, include_self);
    cpu::scatter_reduce_elements(place(counts), offsets(counts),
                                 repeated(element(1, DType::Int64), at.sizes()), Reduction::Sum,
                                 op);
    cpu::divide_by_counts(to, counts);
  }
  if (!to.is_same(out)) cpu::copy(out, to);
}

void scatter_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  std::optional<Combination> c, bool include_self, const char* op,
                  const Tensor& out) {
  const Tensor apart = apart_from(src, out), at = at_least_1d(apart_from(index, out));
  start_from(self, out);
  if (index.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor values =
      src.dim() == 0 ? repeated(apart, at.sizes())
                     : alias_tensor(apart, at.sizes(), apart.strides(), apart.storage_offset());
  auto place = [&](const Tensor& t) { return still(at_least_1d(t), at.sizes(), d); };
  auto offsets = [&](const Tensor& t) { return offsets_along(at_least_1d(t), d, at); };
  const bool adds = c && c->how == Reduction::Sum && !c->mean && include_self;
  if (at.dtype() == DType::Int64 && (!c || adds)) {
    const Tensor to = adds ? widened(out) : out, whole = at_least_1d(to);
    cpu::scatter_along(place(to), adds ? widened(values) : values,
                       {&at, whole.sizes()[d], whole.strides()[d], d, false}, adds ? op : nullptr,
                       &cpu::index_out_of_bounds_runtime);
    if (!to.is_same(out)) cpu::copy(out, to);
    return;
  }
  if (c) return combine(out, values, *c, include_self, op, place, offsets);
  cpu::scatter_elements(place(out), offsets(out), values);
}

void scatter_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 const Tensor& out) {
  scatter_into(self, dim, index, src, std::nullopt, true, "scatter", out);
}
void scatter_value(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                   const Tensor& out) {
  scatter_into(self, dim, index, element(value, out.dtype()), std::nullopt, true, "scatter", out);
}
void scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                    std::string_view reduce, const Tensor& out) {
  scatter_into(self, dim, index, src, old_reduction(reduce), true, "scatter_reduce", out);
}
void scatter_value_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                          std::string_view reduce, const Tensor& out) {
  scatter_into(self, dim, index, element(value, out.dtype()), old_reduction(reduce), true,
               "scatter_reduce", out);
}
void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 const Tensor& out) {
  scatter_into(self, dim, index, src, Combination{Reduction::Sum}, true, "scatter_add", out);
}
void scatter_reduce_two(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self, const Tensor& out) {
  scatter_into(self, dim, index, src, scatter_reduction(reduce), include_self, "scatter_reduce",
               out);
}
void meta_scatter_old(Meta& m, const Tensor& self, int64_t dim, const Tensor& index,
                      const Value& src, std::string_view reduce) {
  old_reduction(reduce);
  meta_scatter(m, self, dim, index, src);
}
void meta_scatter_two(Meta& m, const Tensor& self, int64_t dim, const Tensor& index,
                      const Value& src, std::string_view reduce, bool) {
  scatter_reduction(reduce);
  state_scattered(m, "scatter", self, dim, index, src);
}

// --- one index for a whole slice

void check_vector(const char* op, const Tensor& index) {
  check_index(index.dim() <= 1, op, "(): index must have at most 1 dimension; got ", index.dim());
}

void meta_index_select(Meta& m, const Tensor& self, int64_t dim, const Tensor& index) {
  check_vector("index_select", index);
  check(is_index_dtype(index.dtype()), "index_select(): index must have dtype int32 or int64; got ",
        name(index.dtype()));
  const int64_t d = wrap_dim(dim, self.dim());
  check(self.dim() > 0 || index.numel() == 1, "index_select(): a 0-dim input takes one index; got ",
        index.numel());
  IntVec sizes(self.sizes());
  if (self.dim() > 0) sizes[d] = index.numel();
  indexed::check_out(m, self.dtype(), {0, 2});
  m.result(0, sizes, self.dtype());
}

Error select_out_of_range(int64_t, const cpu::IndexedDim&) {
  return Error(ErrorKind::Index, "index out of range in self");
}

// Offsets of a vector of indices along a dimension, over the given sizes.
Tensor slice_offsets(const Tensor& t, int64_t dim, const Tensor& index, IntSpan sizes, bool wrap,
                     cpu::IndexError error) {
  const Tensor at = at_least_1d(index);
  const cpu::IndexedDim d{&at, t.sizes()[dim], t.strides()[dim], dim, wrap};
  return spread_along(cpu::byte_offsets({&d, 1}, t.itemsize(), error), sizes, dim);
}

// Whether the dimensions after the first lie as in a contiguous tensor.
bool has_dense_rows(const Tensor& t) {
  int64_t step = 1;
  for (int64_t d = t.dim() - 1; d > 0; step *= t.sizes()[d], --d)
    if (t.sizes()[d] != 1 && t.strides()[d] != step) return false;
  return true;
}

void index_select(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Tensor from = at_least_1d(self), to = at_least_1d(out);
  const int64_t d = wrap_dim(dim, self.dim());
  if (d == 0 && has_dense_rows(from) && to.is_contiguous())
    return check_index(cpu::take_dense_rows(from, index, to), "index out of range in self");
  const Tensor at = slice_offsets(from, d, index, to.sizes(), false, &select_out_of_range);
  cpu::gather_elements(to, still(from, to.sizes(), d), at);
}

IntVec without(IntSpan sizes, int64_t dim) {
  IntVec rest(sizes);
  if (!rest.empty()) rest.erase(dim);
  return rest;
}

// index_add and index_reduce: the source has self's sizes but for `dim`, where it has the index's.
void check_slices(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& source) {
  check_index(index.dim() <= 1, op, "(): Index dimension is supposed to be 0 or 1, but got ",
              index.dim());
  check(is_index_dtype(index.dtype()), op, "(): index must have dtype int32 or int64; got ",
        name(index.dtype()));
  check(self.dtype() == source.dtype(), op, "(): source must have self's dtype, ",
        name(self.dtype()), "; got ", name(source.dtype()));
  check(dim == 0 || dim < source.dim(), op, "(): dim ", dim,
        " must be one of source's dimensions; got a source with ", source.dim());
  check(same_sizes(without(self.sizes(), dim), without(source.sizes(), dim)),
        "source must have self's shape outside dim ", dim, "; got self ", str(self.sizes()),
        " and source ", str(source.sizes()));
  const int64_t n = source.dim() == 0 ? 1 : source.sizes()[dim];
  check(index.numel() == n, op, "(): index must have one element for each of the ", n,
        " of source in dimension ", dim, "; got ", index.numel());
}

void meta_index_add(Meta& m, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor& source, const Scalar& alpha) {
  check_slices("index_add_", self, wrap_dim(dim, self.dim()), index, source);
  check(!is_integral(self.dtype(), true) || alpha.is_integral(),
        "alpha must be an integer for integer tensors; got a floating-point number");
  check(self.dtype() == DType::Bool || !alpha.is_bool(),
        "alpha may be a bool only where the result is bool");
  indexed::check_out(m, self.dtype(), {2, 3});
  m.result(0, self.sizes(), self.dtype());
}

void combine_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::optional<Combination> c, bool include_self, bool wrap,
                    cpu::IndexError error, const char* op, const Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor values = at_least_1d(apart_from(source, out)), places = apart_from(index, out);
  start_from(self, out);
  if (values.numel() == 0) return;
  auto place = [&](const Tensor& t) { return still(at_least_1d(t), values.sizes(), d); };
  auto offsets = [&](const Tensor& t) {
    return slice_offsets(at_least_1d(t), d, places, values.sizes(), wrap, error);
  };
  if (c) return combine(out, values, *c, include_self, op, place, offsets);
  cpu::scatter_elements(place(out), offsets(out), values);
}

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha, const Tensor& out) {
  const Tensor values = alpha.equals(1) ? source : ops::mul(source, alpha);
  combine_slices(self, dim, index, values, Combination{Reduction::Sum}, true, false,
                 &cpu::index_out_of_bounds_runtime, "index_add_cpu_", out);
}

void meta_index_reduce(Meta& m, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& source, std::string_view reduce, bool include_self) {
  index_reduction(reduce);
  check_kind(ErrorKind::NotImplemented,
             include_self || (!is_complex(self.dtype()) && self.dtype() != DType::Bool),
             "\"index_reduce_func_exclude_input_init\" not implemented for '",
             info(self.dtype()).legacy_name, "'");
  check_slices("index_reduce", self, wrap_dim(dim, self.dim()), index, source);
  indexed::check_out(m, self.dtype(), {2, 3});
  m.result(0, self.sizes(), self.dtype());
}
void index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  std::string_view reduce, bool include_self, const Tensor& out) {
  combine_slices(self, dim, index, source, index_reduction(reduce), include_self, false,
                 &cpu::index_out_of_bounds, "index_reduce", out);
}

void meta_index_copy(Meta& m, const Tensor& self, int64_t dim, const Tensor& index,
                     const Tensor& source) {
  const int64_t d = wrap_dim(dim, self.dim());
  check_index(index.dim() < 2, "index_copy_(): index must have at most 1 dimension; got ",
              index.dim());
  check_index(source.dim() > 0 || index.numel() == 1,
              "index_copy_(): a 0-dim source takes one index; got ", index.numel());
  check_index(source.dim() == 0 || self.dim() == 0 || source.dim() == self.dim(),
              "index_copy_(): source must be 0-dimensional or have as many dimensions as self, ",
              self.dim(), "; got ", source.dim());
  check(index.dtype() == DType::Int64, "index_copy_(): index must have dtype int64; got ",
        name(index.dtype()));
  check(self.dtype() == source.dtype(), "index_copy_(): source must have self's dtype, ",
        name(self.dtype()), "; got ", name(source.dtype()));
  const IntVec to = without(self.sizes(), d),
               from = source.dim() == 0 ? IntVec() : without(source.sizes(), d);
  check(same_sizes(to, from),
        "index_copy_(): a slice of source must have the shape of self's along dim ", d, ", ",
        str(to), "; got ", str(from));
  const int64_t n = source.dim() == 0 ? 1 : source.sizes()[d];
  check_index(index.numel() == n,
              "index_copy_(): index must have one element for each of source's ", n,
              " slices; got ", index.numel());
  indexed::check_out(m, self.dtype(), {2, 3});
  m.result(0, self.sizes(), self.dtype());
}
Error copy_out_of_bounds(int64_t index, const cpu::IndexedDim& d) {
  return Error(ErrorKind::Index, "index_copy_(): index ", index, " is out of bounds for dimension ",
               d.shown_dim, " with size ", d.size);
}
void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Tensor& out) {
  combine_slices(self, dim, index, source, std::nullopt, true, false, &copy_out_of_bounds,
                 "index_copy_", out);
}

void meta_index_fill(Meta& m, const Tensor& self, int64_t dim, const Tensor& index,
                     const Value& value) {
  wrap_dim(dim, self.dim());
  check_index(index.dtype() == DType::Int64, "index_fill_(): index must have dtype int64; got ",
              name(index.dtype()));
  check(index.dim() <= 1, "index_fill_(): index must have at most 1 dimension; got ", index.dim());
  check(!value.is_number() || !value.as_scalar().is_complex() || is_complex(self.dtype()),
        "index_fill_(): a real tensor takes real numbers; got a complex value");
  if (value.is_tensor())
    check(value.as_tensor().dim() == 0, "index_fill_(): value must be 0-dimensional; got ",
          value.as_tensor().dim(), " dimensions");
  m.result_like(0, self, self.dtype());
}
void index_fill_scalar(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                       const Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim());
  IntVec sizes(at_least_1d(self).sizes());
  sizes[d] = index.numel();
  combine_slices(self, dim, index, repeated(element(value, out.dtype()), sizes), std::nullopt, true,
                 true, &cpu::index_out_of_bounds, "index_fill_", out);
}
void index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value,
                       const Tensor& out) {
  index_fill_scalar(self, dim, index, ops::item(value), out);
}

// --- positions in the flattened tensor

Error take_out_of_range(int64_t index, const cpu::IndexedDim& d) {
  return Error(ErrorKind::Index, "index ", index, " is out of range for a tensor of ", d.size,
               " elements");
}
Tensor flat_offsets(const Tensor& t, const Tensor& index) {
  const cpu::IndexedDim d{&index, t.numel(), 1, 0, true};
  return cpu::byte_offsets({&d, 1}, t.itemsize(), &take_out_of_range);
}

void meta_take(Meta& m, const Tensor& self, const Tensor& index) {
  check(index.dtype() == DType::Int64, "take(): index must have dtype int64; got ",
        name(index.dtype()));
  check_index(self.numel() > 0 || index.numel() == 0, "take(): self has no elements; got ",
              index.numel(), " indices");
  indexed::check_out(m, self.dtype(), {0, 1});
  m.result(0, index.sizes(), self.dtype());
}
void take(const Tensor& self, const Tensor& index, const Tensor& out) {
  const Tensor from = cpu::contiguous(self);
  const Tensor at = flat_offsets(from, index);
  cpu::gather_elements(out, repeated(from, at.sizes()), at);
}

void meta_put(Meta& m, const Tensor& self, const Tensor& index, const Tensor& source, bool) {
  check(index.dtype() == DType::Int64, "put_(): index must have dtype int64; got ",
        name(index.dtype()));
  check(self.dtype() == source.dtype(), "put_(): source must have self's dtype, ",
        name(self.dtype()), "; got ", name(source.dtype()));
  check_index(source.numel() == index.numel(),
              "put_(): source and index must have as many elements; got ", source.numel(), " and ",
              index.numel());
  check_index(self.numel() > 0 || source.numel() == 0, "put_(): self has no elements; got ",
              source.numel(), " to put");
  m.result_like(0, self, self.dtype());
}
// `out` may be of any layout: elements are put into a contiguous copy of it then.
void put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate,
         const Tensor& out) {
  const Tensor values = cpu::contiguous(apart_from(source, out)), places = apart_from(index, out);
  start_from(self, out);
  if (index.numel() == 0) return;
  const Tensor flat = cpu::contiguous(out), to = accumulate ? widened(flat) : flat;
  const Tensor at = flat_offsets(to, places), seen = repeated(to, at.sizes());
  const Tensor from = alias_tensor(values, at.sizes(), at.strides(), values.storage_offset());
  if (accumulate)
    cpu::scatter_reduce_elements(seen, at, widened(from), Reduction::Sum, "put_");
  else
    cpu::scatter_elements(seen, at, from);
  if (!to.is_same(out)) cpu::copy(out, to);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  check(is_index_dtype(indices.dtype()), "take_along_dim(): indices must have dtype int64; got ",
        name(indices.dtype()));
  if (!dim) return ops::gather(ops::view(self, {-1}), 0, ops::view(indices, {-1}));
  check(self.dim() == indices.dim(),
        "take_along_dim(): input and indices must have as many dimensions; got ", self.dim(),
        " and ", indices.dim());
  const int64_t d = wrap_dim(*dim, self.dim());
  // Broadcast all dimensions but the one that is indexed.
  IntVec a(self.sizes()), b(indices.sizes());
  if (!a.empty()) a[d] = b[d];
  const IntVec common_b = broadcast_sizes(a, b);
  IntVec common_a(common_b);
  if (!a.empty()) common_a[d] = self.sizes()[d];
  const Tensor at = ops::expand(indices, common_b);
  const Tensor wrapped =
      ops::where(ops::lt(at, 0), ops::add(at, common_a.empty() ? 1 : common_a[d]), at);
  return ops::gather(ops::expand(self, common_a), d, wrapped);
}

// --- derivatives

Tensor gather_gradient(Backward& b) {
  return ops::scatter_add(ops::new_zeros(b.grad(), b.sizes("self")), b.integer("dim"), b["index"],
                          b.grad());
}
Tensor gathered(Backward& b) { return ops::gather(b.grad(), b.integer("dim"), b["index"]); }
Tensor gathered_source(Backward& b) {
  return scatter_gradients::for_source(gathered(b), b.sizes("src"));
}
Tensor scattered_zero(Backward& b) {
  return ops::scatter(b.grad(), b.integer("dim"), b["index"], 0);
}
Tensor selected(Backward& b) { return ops::index_select(b.grad(), b.integer("dim"), b["index"]); }
Tensor filled_zero(Backward& b) {
  return ops::index_fill(b.grad(), b.integer("dim"), b["index"], 0);
}

// A gradient of slices, in the sizes of a source that may be 0-dim.
Tensor source_gradient(Backward& b) { return ops::reshape(selected(b), b.sizes("source")); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(gather){
    .schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .doc =
        "For every position of index (int64 or int32) the element of self at that position, with "
        "the index in place of its "
        "coordinate along dim. The result has index's sizes.",
    .forms = function | method | out,
    .flags = runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_gather>,
    .cpu = typed_kernel<gather>,
    .derivatives = {vjp("self", gather_gradient, saves("index"))},
    .batch = batch::dims,
};
OP(scatter_src){
    .schema = "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .doc =
        "Self with src's elements at the places that index names along dim; where several meet the "
        "last one stays.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_scatter>,
    .cpu = typed_kernel<scatter_src>,
    .derivatives = {vjp("self", scattered_zero, saves("index")),
                    vjp("src", gathered_source, saves("index"))},
    .batch = batch::dims,
};
OP(scatter_value){
    .schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .doc = "Self with a number at the places that index names along dim.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_scatter>,
    .cpu = typed_kernel<scatter_value>,
    .derivatives = {vjp("self", scattered_zero, saves("index"))},
    .batch = batch::dims,
};
OP(scatter_reduce){
    .schema =
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    .doc =
        "Self with src's elements added or multiplied in at the places that index names along dim.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_scatter_old>,
    .cpu = typed_kernel<scatter_reduce>,
    .batch = batch::dims,
    .hole = "PyTorch has no derivative for it; scatter_reduce has",
};
OP(scatter_value_reduce){
    .schema =
        "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
        "Tensor",
    .doc = "Self with a number added or multiplied in at the places that index names along dim.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_scatter_old>,
    .cpu = typed_kernel<scatter_value_reduce>,
    .batch = batch::dims,
    .hole = "PyTorch has no derivative for it; scatter_reduce has",
};
OP(scatter_add){
    .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .doc =
        "Self with src's elements added at the places that index names along dim, in an order "
        "fixed by the shapes.",
    .forms = all_forms,
    .flags = runs_when_called,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_scatter>,
    .cpu = typed_kernel<scatter_add>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); }),
                    vjp("src", gathered_source, saves("index"))},
    .batch = batch::dims,
};
OP(scatter_reduce_two){
    .schema =
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
        "include_self=True) -> Tensor",
    .doc =
        "Self with src's elements combined in by sum, prod, mean, amax or amin at the places that "
        "index names along dim.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_scatter_two>,
    .cpu = typed_kernel<scatter_reduce_two>,
    .derivatives = {vjp(names("self", "src"), &scatter_gradients::scatter_reduce,
                        saves("self", "index", "src", "result"))},
    .batch = batch::dims,
};

OP(index_select){
    .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    .doc = "The slices of self along dim that a vector of indices (int64 or int32) names.",
    .forms = function | method | out,
    .flags = runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_index_select>,
    .cpu = typed_kernel<index_select>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::index_add(ops::new_zeros(b.grad(), b.sizes("self")), b.integer("dim"),
                                b["index"], b.grad());
        },
        saves("index"))},
    .batch = batch::index_select,
};
OP(index_add){
    .schema =
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    .doc =
        "Self with alpha times the slices of source added to the slices that a vector of indices "
        "names.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_index_add>,
    .cpu = typed_kernel<index_add>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return b.grad(); }),
            vjp(
                "source",
                [](Backward& b) { return ops::mul(source_gradient(b), b.scalar("alpha")); },
                saves("index")),
        },
    .batch = batch::index_add,
};
OP(index_reduce){
    .schema =
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
        "include_self=True) -> Tensor",
    .doc =
        "Self with the slices of source combined by prod, mean, amax or amin into those that a "
        "vector of indices names.",
    .forms = all_forms,
    .flags = runs_when_called,
    .meta = typed_meta<meta_index_reduce>,
    .cpu = typed_kernel<index_reduce>,
    .derivatives = {vjp(names("self", "source"), &scatter_gradients::index_reduce,
                        saves("self", "index", "source", "result"))},
    .batch = batch::index_reduce,
};
OP(index_copy){
    .schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    .doc = "Self with the slices of source in place of those that a vector of indices names.",
    .forms = all_forms,
    .flags = runs_when_called,
    .autocast_cpu = Autocast::Promote,
    .meta = typed_meta<meta_index_copy>,
    .cpu = typed_kernel<index_copy>,
    .derivatives = {vjp("self", filled_zero, saves("index")),
                    vjp("source", source_gradient, saves("index"))},
    .batch = batch::index_copy,
};
OP(index_fill_int_Scalar){
    .schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .doc = "Self with a number in the slices that a vector of indices names.",
    .forms = function | method | inplace,
    .flags = runs_when_called,
    .meta = typed_meta<meta_index_fill>,
    .cpu = typed_kernel<index_fill_scalar>,
    .derivatives = {vjp("self", filled_zero, saves("index"))},
    .node = "IndexFillBackward0",
    .batch = batch::dims_of_self,
};
OP(index_fill_int_Tensor){
    .schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    .doc =
        "Self with the one element of a 0-dim tensor in the slices that a vector of indices names.",
    .forms = function | method | inplace,
    .flags = cross_device | runs_when_called,
    .meta = typed_meta<meta_index_fill>,
    .cpu = typed_kernel<index_fill_tensor>,
    .derivatives =
        {
            vjp("self", filled_zero, saves("index")),
            vjp(
                "value",
                [](Backward& b) {
                  // A slice that is named twice is filled once.
                  const Tensor none =
                      ops::zeros(b.sizes("self"), DType::Bool, {}, b.grad().device());
                  const Tensor filled = ops::index_fill(none, b.integer("dim"), b["index"], 1);
                  return ops::sum(ops::masked_select(b.grad(), filled));
                },
                saves("index")),
        },
    .node = "IndexFillBackward1",
    .batch = batch::index_fill_tensor,
};

OP(take){
    .schema = "take(Tensor self, Tensor index) -> Tensor",
    .doc =
        "The elements of self, read as one row, that an int64 tensor names; the result has index's "
        "sizes.",
    .forms = function | method | out,
    .flags = runs_when_called,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_take>,
    .cpu = typed_kernel<take>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::put(ops::new_zeros(b.grad(), b.sizes("self")), b["index"], b.grad(), true);
        },
        saves("index"))},
    .batch = batch::take,
};
OP(put){
    .schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    .doc =
        "Self, read as one row, with source's elements at the places that an int64 tensor names; "
        "added with accumulate.",
    .forms = function | method | inplace,
    .flags = runs_when_called,
    .meta = typed_meta<meta_put>,
    .cpu = typed_kernel<put>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  if (b.flag("accumulate")) return b.grad();
                  const Tensor at = b["index"];
                  return ops::put(b.grad(), at, ops::new_zeros(b.grad(), at.sizes()));
                },
                saves("index")),
            vjp(
                "source",
                [](Backward& b) {
                  return ops::reshape(ops::take(b.grad(), b["index"]), b.sizes("source"));
                },
                saves("index")),
        },
    .batch = batch::put,
};
OP(take_along_dim){
    .schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    .doc =
        "As gather with all dimensions but dim broadcast; without dim, of the flattened tensors.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<take_along_dim>,
};
