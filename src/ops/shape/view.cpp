// Views: other geometry over the same memory.
#include <algorithm>

#include "core/checked.h"
#include "core/interrupts.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/batch.h"
#include "ops/shape/slice_scatter.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

using geometry::infer_size;
using geometry::view_strides;
using geometry::wrap_dims;

Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> offset) {
  check(size.size() == stride.size(),
        "as_strided(): size and stride must have the same length; got ", size.size(), " and ",
        stride.size());
  checked_numel(size);
  for (int64_t s : stride)
    check(s >= 0, "as_strided(): strides must not be negative; got ", str(stride));
  const int64_t at = offset.value_or(self.storage_offset());
  check(at >= 0, "Tensor: invalid storage offset ", at);
  const int64_t reach = extent(size, stride), wide = static_cast<int64_t>(self.itemsize());
  // Where the storage was resized to nothing, the tensor itself says what a view may reach.
  int64_t there = static_cast<int64_t>(self->storage->nbytes()), last;
  if (there == 0 && self.numel() > 0)
    there = (self.storage_offset() + extent(self.sizes(), self.strides())) * wide;
  const bool fits = !__builtin_add_overflow(reach, at, &last) &&
                    !__builtin_mul_overflow(last, wide, &last) && (reach == 0 || last <= there);
  check(fits, "setStorage: sizes ", str(size), ", strides ", str(stride), ", storage offset ", at,
        ", and itemsize ", wide, " requiring a storage size of ", last,
        " are out of bounds for storage of size ", self->storage->nbytes());
  return alias_tensor(self, size, stride, at);
}

void as_strided_(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> offset) {
  const Tensor t = as_strided(self, size, stride, offset);
  self->offset = t.storage_offset();
  self->set_geometry(size, stride);
}

Tensor view(const Tensor& self, IntSpan size) {
  const IntVec sizes = infer_size(size, self.numel());
  const auto strides = view_strides(self.sizes(), self.strides(), sizes);
  check(strides.has_value(),
        "view size is not compatible with the tensor's strides: use reshape(); got size ",
        str(size), " for sizes ", str(self.sizes()), " and strides ", str(self.strides()));
  return alias_tensor(self, sizes, *strides, self.storage_offset());
}

Tensor reshape(const Tensor& self, IntSpan shape) {
  const IntVec sizes = infer_size(shape, self.numel());
  if (self.is_contiguous()) return ops::view(self, sizes);
  if (const auto strides = view_strides(self.sizes(), self.strides(), sizes))
    return geometry::seen_by_autograd_alone(self) ? ops::_reshape_alias(self, sizes, *strides)
                                                  : ops::view(self, sizes);
  return ops::_unsafe_view(ops::clone(self, MemoryFormat::Contiguous), sizes);
}

Tensor expand(const Tensor& self, IntSpan size, bool) {
  const int64_t extra = static_cast<int64_t>(size.size()) - self.dim();
  check(extra >= 0, "expand(): size must have a number for each of self's ", self.dim(),
        " dimensions; got ", str(size), " for shape ", str(self.sizes()));
  IntVec sizes(size), strides(size.size());
  for (int64_t d = static_cast<int64_t>(size.size()) - 1; d >= 0; --d) {
    const int64_t from = d - extra;
    if (from < 0) {
      check(size[d] >= 0, "The expanded size of the tensor (", size[d],
            ") isn't allowed in a leading, non-existing dimension ", d);
      strides[d] = 0;
      continue;
    }
    const int64_t have = self.sizes()[from];
    if (size[d] == -1) sizes[d] = have;
    check(sizes[d] == have || have == 1, "The expanded size of the tensor (", sizes[d],
          ") must match the existing size (", have, ") at non-singleton dimension ", d,
          ".  Target sizes: ", str(size), ".  Tensor sizes: ", str(self.sizes()));
    check(sizes[d] >= 0, "The expanded size of the tensor (", sizes[d], ") isn't allowed");
    strides[d] = have == 1 && sizes[d] != 1 ? 0 : self.strides()[from];
  }
  // A new dimension of size one gets the stride that a dense tensor would have.
  for (int64_t d = extra - 1; d >= 0; --d)
    if (sizes[d] == 1 && d + 1 < static_cast<int64_t>(sizes.size()))
      strides[d] = sizes[d + 1] * strides[d + 1];
    else if (sizes[d] == 1)
      strides[d] = 1;
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor permute(const Tensor& self, IntSpan dims) {
  check(static_cast<int64_t>(dims.size()) == self.dim(),
        "permute(): dims must name each of self's ", self.dim(), " dimensions; got ", dims.size());
  IntVec wrapped, sizes, strides;
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, self.dim());
    check(std::ranges::find(wrapped, w) == wrapped.end(), "permute(): dims must be different; got ",
          w, " again");
    wrapped.push_back(w);
    sizes.push_back(self.sizes()[w]);
    strides.push_back(self.strides()[w]);
  }
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  IntVec sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return alias_tensor(self, sizes, strides, self.storage_offset());
}

Tensor at_index(const Tensor& self, int64_t d, int64_t at) {
  IntVec sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + at * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return alias_tensor(self, sizes, strides, offset);
}
Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  check_index(self.dim() > 0, "select(): self must have a dimension; got a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  return at_index(self, d, geometry::place_of_index(self, d, index));
}

Tensor part(const Tensor& self, int64_t d, const geometry::Bounds& b, int64_t step = 1) {
  IntVec sizes(self.sizes()), strides(self.strides());
  // What has no elements may have any strides, and what has one makes no steps.
  const int64_t offset = self.storage_offset() + wrapping_mul(b.start, strides[d]);
  sizes[d] = b.length;
  strides[d] = saturating_mul(strides[d], step);
  return alias_tensor(self, sizes, strides, offset);
}
Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  check(self.dim() > 0, "slice(): self must have a dimension; got a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  return part(self, d, geometry::slice_bounds(self, d, start, end, step), step);
}

struct Geometry {
  IntVec sizes, strides;
};
template <class Drop>
Geometry without_ones(const Tensor& t, Drop&& drop) {
  Geometry g;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.sizes()[d] == 1 && drop(d)) continue;
    g.sizes.push_back(t.sizes()[d]);
    g.strides.push_back(t.strides()[d]);
  }
  return g;
}
Geometry squeezed(const Tensor& t) {
  return without_ones(t, [](int64_t) { return true; });
}
Geometry squeezed(const Tensor& t, int64_t dim) {
  const int64_t w = wrap_dim(dim, t.dim());
  return without_ones(t, [w](int64_t d) { return d == w; });
}
Geometry squeezed(const Tensor& t, IntSpan dims) {
  const IntVec w = wrap_dims(dims, t.dim());
  return without_ones(t, [&](int64_t d) { return std::ranges::find(w, d) != w.end(); });
}
Tensor viewed(const Tensor& t, const Geometry& g) {
  return alias_tensor(t, g.sizes, g.strides, t.storage_offset());
}

Tensor squeeze(const Tensor& self) { return viewed(self, squeezed(self)); }
Tensor squeeze_dim(const Tensor& self, int64_t dim) { return viewed(self, squeezed(self, dim)); }
Tensor squeeze_dims(const Tensor& self, IntSpan dim) { return viewed(self, squeezed(self, dim)); }

Geometry unsqueezed(const Tensor& t, int64_t dim) {
  const int64_t d = wrap_dim(dim, t.dim() + 1);
  Geometry g{IntVec(t.sizes()), IntVec(t.strides())};
  g.strides.insert(d, d < t.dim() ? t.sizes()[d] * t.strides()[d] : 1);
  g.sizes.insert(d, 1);
  return g;
}
Tensor unsqueeze(const Tensor& self, int64_t dim) { return viewed(self, unsqueezed(self, dim)); }

// In-place on geometry alone.
void set_geometry(const Tensor& t, const Geometry& g) { t->set_geometry(g.sizes, g.strides); }
void squeeze_(const Tensor& self) { set_geometry(self, squeezed(self)); }
void squeeze_dim_(const Tensor& self, int64_t dim) { set_geometry(self, squeezed(self, dim)); }
void squeeze_dims_(const Tensor& self, IntSpan dim) { set_geometry(self, squeezed(self, dim)); }
void unsqueeze_(const Tensor& self, int64_t dim) { set_geometry(self, unsqueezed(self, dim)); }
void transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  const Tensor t = transpose(self, dim0, dim1);
  self->set_geometry(t.sizes(), t.strides());
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  check(self.dim() > 0, "split(): self must have a dimension; got a 0-dim tensor");
  check(split_size >= 0, "split(): split_size must not be negative; got ", split_size);
  const int64_t d = wrap_dim(dim, self.dim()), n = self.sizes()[d];
  check(split_size > 0 || n == 0,
        "split(): split_size may be 0 only where the dimension has size 0; got size ", n);
  const int64_t count = n == 0 ? 1 : n / split_size + (n % split_size != 0);
  geometry::check_parts_fit(count, "split");
  std::vector<Tensor> parts;
  parts.reserve(static_cast<size_t>(count));
  for (int64_t i = 0, at = 0; i < count; ++i, at += split_size)
    parts.push_back(part(self, d, {at, std::min(split_size, n - at)}));
  return parts;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  check(self.dim() > 0, "split_with_sizes(): self must have a dimension; got a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim()), n = self.sizes()[d];
  for (int64_t s : split_sizes)
    check(s >= 0, "split_with_sizes(): split_sizes must not be negative; got ", s);
  const int64_t total = checked_sum(split_sizes, "split_with_sizes(): the sum of split_sizes");
  check(total == n, "split_with_sizes(): split_sizes must sum to ", n, ", the size of dimension ",
        d, "; got ", str(split_sizes));
  std::vector<Tensor> parts;
  int64_t at = 0;
  InterruptPoll poll;
  for (int64_t s : split_sizes) {
    parts.push_back(part(self, d, {at, s}));
    at += s;
    poll.step();
  }
  return parts;
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim());
  check_index(self.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  geometry::check_parts_fit(self.sizes()[d], "unbind");
  std::vector<Tensor> parts;
  parts.reserve(static_cast<size_t>(self.sizes()[d]));
  InterruptPoll poll;
  for (int64_t i = 0; i < self.sizes()[d]; ++i, poll.step()) parts.push_back(at_index(self, d, i));
  return parts;
}

Tensor detach(const Tensor& self) { return alias_tensor(self); }
Tensor alias(const Tensor& self) { return alias_tensor(self); }

// --- complex numbers and their parts

Tensor conj_view(const Tensor& self) {
  Tensor t = alias_tensor(self);
  if (!is_complex(self.dtype())) return t;
  t->conj = !self->conj;
  if (t->conj)
    t->layers |= Layer::Conjugate;
  else
    t->layers -= Layer::Conjugate;
  return t;
}
Tensor neg_view(const Tensor& self) {
  Tensor t = alias_tensor(self);
  t->neg = !self->neg;
  if (t->neg)
    t->layers |= Layer::Negative;
  else
    t->layers -= Layer::Negative;
  return t;
}
Tensor conj_of(const Tensor& self) { return is_complex(self.dtype()) ? ops::_conj(self) : self; }
Tensor real(const Tensor& self) {
  if (!is_complex(self.dtype())) return self;
  return ops::select(ops::view_as_real(self->conj ? ops::_conj(self) : self), -1, 0);
}
Tensor imag(const Tensor& self) {
  check_type(is_complex(self.dtype()), "imag(): self must be complex; got ", name(self.dtype()));
  if (!self->conj) return ops::select(ops::view_as_real(self), -1, 1);
  return ops::_neg_view(ops::select(ops::view_as_real(ops::_conj(self)), -1, 1));
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  if (self.dtype() == dtype) return alias_tensor(self);
  const int64_t from = static_cast<int64_t>(self.itemsize()),
                to = static_cast<int64_t>(itemsize(dtype));
  check(from > 0 && to > 0, "view(): expected dtypes whose elements are plain bytes; got ",
        name(self.dtype()), " and ", name(dtype));
  IntVec sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from > to) {
    check(self.dim() > 0, "view(): a 0-dim tensor cannot be seen in a dtype of another size; got ",
          name(self.dtype()), " and ", name(dtype));
    check(strides.back() == 1,
          "view(): the last stride must be 1 for a dtype of another size; got ", strides.back());
    const int64_t ratio = from / to;
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] *= ratio;
    sizes.back() *= ratio;
    offset *= ratio;
  } else if (from < to) {
    const int64_t ratio = to / from;
    check(self.dim() > 0, "view(): a 0-dim tensor cannot be seen in a dtype of another size; got ",
          name(self.dtype()), " and ", name(dtype));
    check(strides.back() == 1,
          "view(): the last stride must be 1 for a dtype of another size; got ", strides.back());
    check(sizes.back() % ratio == 0, "view(): the last size must be a multiple of ", ratio,
          " for dtype ", name(dtype), "; got ", sizes.back());
    check(offset % ratio == 0, "view(): the storage offset must be a multiple of ", ratio,
          " for dtype ", name(dtype), "; got ", offset);
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      check(strides[d] % ratio == 0, "view(): stride ", d, " must be a multiple of ", ratio,
            " for dtype ", name(dtype), "; got ", strides[d]);
      strides[d] /= ratio;
    }
    sizes.back() /= ratio;
    offset /= ratio;
  }
  Tensor t = alias_tensor(self, sizes, strides, offset);
  t->dtype = dtype;
  return t;
}

// --- derivatives

Tensor back_to_sizes(Backward& b) { return ops::reshape(b.grad(), b.sizes("self")); }

Tensor select_backward(const Tensor& grad, IntSpan sizes, int64_t dim, int64_t index) {
  const Tensor whole = ops::new_zeros(grad, sizes);
  ops::copy_(ops::select(whole, dim, index), grad);
  return whole;
}
Tensor slice_backward(const Tensor& grad, IntSpan sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  const Tensor whole = ops::new_zeros(grad, sizes);
  ops::copy_(ops::slice(whole, dim, start, end, step), grad);
  return whole;
}

IntVec inverse(IntSpan dims, int64_t n) {
  IntVec back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) back[wrap_dim(dims[i], n)] = static_cast<int64_t>(i);
  return back;
}

// Gradients of parts, with zeros where none came, put together.
Tensor joined(Backward& b, int64_t dim, const std::vector<int64_t>& lengths) {
  const Tensor whole = [&] {
    for (size_t i = 0; i < lengths.size(); ++i)
      if (b.grad(static_cast<int>(i)).defined())
        return ops::new_zeros(b.grad(static_cast<int>(i)), b.sizes("self"));
    return Tensor();
  }();
  if (!whole.defined()) return whole;
  Tensor result = whole;
  int64_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Tensor& g = b.grad(static_cast<int>(i));
    if (g.defined()) result = ops::slice_scatter(result, g, dim, at, at + lengths[i], 1);
    at += lengths[i];
  }
  return result;
}
Tensor split_gradient(Backward& b) {
  const int64_t d = wrap_dim(b.integer("dim"), static_cast<int64_t>(b.sizes("self").size())),
                n = b.sizes("self")[d];
  const int64_t size = b.integer("split_size");
  std::vector<int64_t> lengths;
  for (int64_t at = 0; at < n; at += size) lengths.push_back(std::min(size, n - at));
  if (lengths.empty()) lengths.push_back(0);
  return joined(b, d, lengths);
}
Tensor split_sizes_gradient(Backward& b) {
  const IntSpan s = b.ints("split_sizes");
  return joined(b, wrap_dim(b.integer("dim"), static_cast<int64_t>(b.sizes("self").size())),
                {s.begin(), s.end()});
}
Tensor unbind_gradient(Backward& b) {
  const int64_t n = static_cast<int64_t>(b.sizes("self").size()), d = wrap_dim(b.integer("dim"), n);
  Tensor result;
  for (int64_t i = 0; i < b.sizes("self")[d]; ++i) {
    const Tensor& g = b.grad(static_cast<int>(i));
    if (!g.defined()) continue;
    if (!result.defined()) result = ops::new_zeros(g, b.sizes("self"));
    result = ops::select_scatter(result, g, d, i);
  }
  return result;
}

// Scatters into memory laid out as the input's was.
Tensor as_strided_gradient(Backward& b) {
  const int64_t own = b.storage_offset("self");
  const int64_t at = b.is_none("storage_offset") ? own : b.integer("storage_offset");
  return ops::as_strided_backward(b.grad(), b.sizes("self"), b.strides("self"), own, b.ints("size"),
                                  b.ints("stride"), at);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(as_strided_){
    .schema =
        "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
        "-> Tensor(a!)",
    .doc = "Gives self other sizes, strides and offset over its memory, in place.",
    .forms = function_method,
    .flags = geometry_only | reads_strides,
    .any = typed_kernel<as_strided_>,
    .derivatives = {vjp("self", as_strided_gradient)},
    .view_form = "as_strided",
};
OP(as_strided){
    .schema =
        "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
        "-> Tensor(a)",
    .doc = "A view of self's memory with the given sizes, strides and offset, in elements.",
    .forms = function_method,
    .flags = reads_strides,
    .any = typed_kernel<as_strided>,
    .derivatives = {vjp("self", as_strided_gradient)},
    .batch = batch::view_geometry,
    .copy_form = "as_strided_copy",
};

OP(as_strided_backward){
    .schema =
        "as_strided_backward(Tensor grad, SymInt[] size, SymInt[] stride, SymInt storage_offset, "
        "SymInt[] out_size, "
        "SymInt[] out_stride, SymInt out_offset) -> Tensor",
    .doc = "Gradient of as_strided for an input of the given geometry: elements seen twice add up.",
    .composite = Composite::Explicit,
    .flags = reads_strides,
    .any = typed_kernel<geometry::as_strided_backward>,
    .derivatives = {vjp("grad", geometry::as_strided_backward_gradient)},
};

OP(view){
    .schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    .doc = "A view with other sizes; one of them may be -1.",
    .forms = method,
    .flags = handles_conj,
    .any = typed_kernel<view>,
    .derivatives = {vjp("self", back_to_sizes)},
    .batch = batch::sizes,
    .copy_form = "view_copy",
};

OP(view_dtype){
    .schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    .doc = "The same bytes seen as another dtype.",
    .forms = method,
    .any = typed_kernel<view_dtype>,
    .batch = batch::view_geometry,
    .hole = "bytes seen as another dtype have no derivative",
    .copy_form = "view_copy.dtype",
};

OP(_unsafe_view){
    .schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    .doc = "As view, of a tensor that nobody else holds: the result counts as fresh memory.",
    .any = typed_kernel<view>,
    .derivatives = {vjp("self", back_to_sizes)},
    .batch = batch::sizes,
};

OP(reshape){
    .schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    .doc = "The elements of self in another shape: a view where the memory allows, else a copy.",
    .forms = function_method,
    .composite = Composite::Selecting,
    .flags = handles_conj,
    .any = typed_kernel<reshape>,
};

OP(expand){
    .schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    .doc = "A view in which dimensions of size one are repeated without copying; -1 keeps a size.",
    .forms = method,
    .flags = handles_conj,
    .any = typed_kernel<expand>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::sum_to_size(b.grad(), b.sizes("self")); })},
    .batch = batch::expand,
    .copy_form = "expand_copy",
};

OP(permute){
    .schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    .doc = "A view with the dimensions in the given order.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<permute>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::permute(
                              b.grad(), inverse(b.ints("dims"),
                                                static_cast<int64_t>(b.sizes("self").size())));
                        })},
    .batch = batch::permutation,
    .copy_form = "permute_copy",
    .dims = names("dims"),
};

OP(transpose_int){
    .schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    .doc = "A view with two dimensions exchanged.",
    .forms = function_method,
    .aliases = "swapdims",
    .flags = handles_conj,
    .any = typed_kernel<transpose>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::transpose(b.grad(), b.integer("dim0"), b.integer("dim1"));
                        })},
    .batch = batch::dims,
    .copy_form = "transpose_copy.int",
    .dims = names("dim0", "dim1"),
};

OP(transpose_){
    .schema = "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    .doc = "Exchanges two dimensions of self in place; memory stays.",
    .forms = method,
    .aliases = "swapdims_",
    .flags = geometry_only | handles_conj,
    .any = typed_kernel<transpose_>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::transpose(b.grad(), b.integer("dim0"), b.integer("dim1"));
                        })},
    .view_form = "transpose.int",
};

OP(select_int){
    .schema = "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    .doc = "A view of one index of a dimension, which goes away.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<select>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::select_backward(b.grad(), b.sizes("self"), b.integer("dim"),
                                                      b.integer("index"));
                        })},
    .batch = batch::dims,
    .copy_form = "select_copy.int",
};

OP(select_backward){
    .schema =
        "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> "
        "Tensor",
    .doc = "Gradient of select.",
    .composite = Composite::Explicit,
    .any = typed_kernel<select_backward>,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::select(b.grad(), b.integer("dim"), b.integer("index"));
                        })},
};

OP(slice_Tensor){
    .schema =
        "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
        "step=1) -> Tensor(a)",
    .doc = "A view of the indices start, start + step, ... below end of one dimension.",
    .forms = hidden,
    .flags = handles_conj,
    .any = typed_kernel<slice>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          const int64_t start = b.is_none("start") ? 0 : b.integer("start");
                          const int64_t end = b.is_none("end") ? INT64_MAX : b.integer("end");
                          return ops::slice_backward(b.grad(), b.sizes("self"), b.integer("dim"),
                                                     start, end, b.integer("step"));
                        })},
    .batch = batch::dims,
    .copy_form = "slice_copy.Tensor",
};

OP(slice_backward){
    .schema =
        "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt "
        "end, SymInt step) -> Tensor",
    .doc = "Gradient of slice.",
    .composite = Composite::Explicit,
    .any = typed_kernel<slice_backward>,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::slice(b.grad(), b.integer("dim"), b.integer("start"),
                                            b.integer("end"), b.integer("step"));
                        })},
};

OP(squeeze){
    .schema = "squeeze(Tensor(a) self) -> Tensor(a)",
    .doc = "A view without dimensions of size one.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<squeeze>,
    .derivatives = {vjp("self", back_to_sizes)},
    .batch = batch::squeeze,
    .copy_form = "squeeze_copy",
};
OP(squeeze_dim){
    .schema = "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    .doc = "A view without one dimension, if it is of size one.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<squeeze_dim>,
    .derivatives = {vjp("self", back_to_sizes)},
    .batch = batch::dims,
    .copy_form = "squeeze_copy.dim",
};
OP(squeeze_dims){
    .schema = "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    .doc = "A view without those of the given dimensions that are of size one.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<squeeze_dims>,
    .derivatives = {vjp("self", back_to_sizes)},
    .batch = batch::dims,
    .copy_form = "squeeze_copy.dims",
};
OP(squeeze_){
    .schema = "squeeze_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "Removes dimensions of size one from self in place; memory stays.",
    .forms = method,
    .flags = geometry_only | handles_conj,
    .any = typed_kernel<squeeze_>,
    .derivatives = {vjp("self", back_to_sizes)},
    .node = "SqueezeBackward3",
    .view_form = "squeeze",
};
OP(squeeze__dim){
    .schema = "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)",
    .doc = "Removes one dimension of size one from self in place; memory stays.",
    .forms = method,
    .flags = geometry_only | handles_conj,
    .any = typed_kernel<squeeze_dim_>,
    .derivatives = {vjp("self", back_to_sizes)},
    .node = "SqueezeBackward4",
    .view_form = "squeeze.dim",
};
OP(squeeze__dims){
    .schema = "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
    .doc = "Removes dimensions of size one from self in place; memory stays.",
    .forms = method,
    .flags = geometry_only | handles_conj,
    .any = typed_kernel<squeeze_dims_>,
    .derivatives = {vjp("self", back_to_sizes)},
    .node = "SqueezeBackward5",
    .view_form = "squeeze.dims",
};

OP(unsqueeze){
    .schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    .doc = "A view with a dimension of size one put in.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<unsqueeze>,
    .derivatives = {vjp("self", back_to_sizes)},
    .batch = batch::new_dim,
    .copy_form = "unsqueeze_copy",
};
OP(unsqueeze_){
    .schema = "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)",
    .doc = "Puts a dimension of size one into self in place; memory stays.",
    .forms = method,
    .flags = geometry_only | handles_conj,
    .any = typed_kernel<unsqueeze_>,
    .derivatives = {vjp("self", back_to_sizes)},
    .view_form = "unsqueeze",
};

OP(split_Tensor){
    .schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    .doc = "Views of consecutive parts of a dimension, each of split_size but perhaps the last.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<split>,
    .derivatives = {vjp("self", split_gradient)},
    .batch = batch::dims,
    .copy_form = "split_copy.Tensor",
};
OP(split_with_sizes){
    .schema =
        "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    .doc = "Views of consecutive parts of a dimension, of the given sizes.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<split_with_sizes>,
    .derivatives = {vjp("self", split_sizes_gradient)},
    .batch = batch::dims,
    .copy_form = "split_with_sizes_copy",
};
OP(unbind_int){
    .schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    .doc = "Views of each index of a dimension.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<unbind>,
    .derivatives = {vjp("self", unbind_gradient)},
    .batch = batch::dims,
    .copy_form = "unbind_copy.int",
};

OP(detach){
    .schema = "detach(Tensor(a) self) -> Tensor(a)",
    .doc = "The same memory without history.",
    .forms = function_method,
    .flags = handles_conj | any_layout,
    .any = typed_kernel<detach>,
    .not_differentiable = names("result", "self"),
    .batch = batch::pointwise,
    .copy_form = "detach_copy",
};
OP(alias){
    .schema = "alias(Tensor(a) self) -> Tensor(a)",
    .doc = "Another tensor over the same memory.",
    .forms = hidden,
    .flags = handles_conj | any_layout,
    .any = typed_kernel<alias>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); })},
    .batch = batch::pointwise,
    .copy_form = "alias_copy",
};

OP(view_as_real){
    .schema = "view_as_real(Tensor(a) self) -> Tensor(a)",
    .doc =
        "A real view of a complex tensor with a last dimension of two: real and imaginary parts.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<geometry::view_as_real>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::view_as_complex(
                              ops::clone(b.grad(), MemoryFormat::Contiguous));
                        })},
    .batch = batch::pointwise,
    .copy_form = "view_as_real_copy",
};
OP(view_as_complex){
    .schema = "view_as_complex(Tensor(a) self) -> Tensor(a)",
    .doc = "A complex view of a real tensor whose last dimension is of size two.",
    .forms = function_method,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<geometry::view_as_complex>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::view_as_real(ops::resolve_conj(b.grad())); })},
    .batch = batch::pointwise,
    .copy_form = "view_as_complex_copy",
};
OP(_conj){
    .schema = "_conj(Tensor(a) self) -> Tensor(a)",
    .doc = "A view of the complex conjugate, marked by a bit.",
    .flags = handles_conj,
    .any = typed_kernel<conj_view>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::conj(b.grad()); })},
    .batch = batch::pointwise,
    .copy_form = "_conj_copy",
};
OP(_neg_view){
    .schema = "_neg_view(Tensor(a) self) -> Tensor(a)",
    .doc = "A view of the negative, marked by a bit.",
    .flags = handles_conj,
    .any = typed_kernel<neg_view>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::neg(b.grad()); })},
    .batch = batch::pointwise,
    .copy_form = "_neg_view_copy",
};
OP(conj){
    .schema = "conj(Tensor(a) self) -> Tensor(a)",
    .doc = "The complex conjugate, as a view; real tensors are returned as they are.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .flags = handles_conj | same_object,
    .any = typed_kernel<conj_of>,
};
OP(real){
    .schema = "real(Tensor(a) self) -> Tensor(a)",
    .doc = "The real part as a view.",
    .composite = Composite::Implicit,
    .flags = handles_conj | same_object,
    .any = typed_kernel<real>,
};
OP(imag){
    .schema = "imag(Tensor(a) self) -> Tensor(a)",
    .doc = "The imaginary part of a complex tensor, as a view.",
    .composite = Composite::Implicit,
    .flags = handles_conj,
    .any = typed_kernel<imag>,
};
