// Views and composites that move, merge, split off or add dimensions.
#include "ops/shape/view_dims.h"

#include "core/checked.h"

#include <algorithm>

#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

using geometry::copy_of_memory;
using geometry::infer_size;

// --- order of dimensions

Tensor movedim_list(const Tensor& self, IntSpan source, IntSpan destination) {
  check(source.size() == destination.size(),
        "movedim(): source and destination must have the same length; got ", str(source), " and ",
        str(destination));
  const int64_t n = self.dim();
  auto wrapped = [&](IntSpan dims, const char* which) {
    IntVec w;
    for (int64_t d : dims) w.push_back(wrap_dim(d, n));
    for (size_t i = 0; i < w.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        check(w[i] != w[j], "movedim: repeated dim in `", which, "` (", str(dims), ")");
    return w;
  };
  const IntVec from = wrapped(source, "source"), to = wrapped(destination, "destination");
  if (n == 0) return ops::alias(self);
  IntVec order(static_cast<size_t>(n), -1), rest;
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  for (int64_t d = 0; d < n; ++d)
    if (std::ranges::find(from, d) == from.end()) rest.push_back(d);
  for (size_t d = 0, k = 0; d < order.size(); ++d)
    if (order[d] < 0) order[d] = rest[k++];
  return ops::permute(self, order);
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return movedim_list(self, {&source, 1}, {&destination, 1});
}

void check_t(const Tensor& self, const char* op) {
  check(self.dim() <= 2, op, "(): self must have at most 2 dimensions; got ", self.dim());
}
Tensor t(const Tensor& self) {
  check_t(self, "t");
  if (self.dim() == 2 && geometry::seen_by_backend_alone(self)) return geometry::swapped(self);
  return ops::transpose(self, 0, self.dim() < 2 ? 0 : 1);
}
void t_(const Tensor& self) {
  check_t(self, "t_");
  ops::transpose_(self, 0, self.dim() < 2 ? 0 : 1);
}

Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return ops::transpose(self, axis0, axis1);
}
void swapaxes_(const Tensor& self, int64_t axis0, int64_t axis1) {
  ops::transpose_(self, axis0, axis1);
}
Tensor numpy_T(const Tensor& self) {
  IntVec dims;
  for (int64_t d = self.dim() - 1; d >= 0; --d) dims.push_back(d);
  return ops::permute(self, dims);
}
Tensor matrix_transposed(const Tensor& self, const char* name) {
  if (self.dim() == 0) return self;
  check(self.dim() >= 2, "Tensor.", name, ": expected a matrix or a batch of them; got ",
        self.dim(), "-D");
  return ops::transpose(self, -2, -1);
}
Tensor mT(const Tensor& self) { return matrix_transposed(self, "mT"); }
Tensor mH(const Tensor& self) { return ops::conj(matrix_transposed(self, "mH")); }
Tensor adjoint(const Tensor& self) { return ops::conj(matrix_transposed(self, "adjoint()")); }
Tensor matrix_H(const Tensor& self) {
  check(self.dim() == 0 || self.dim() == 2, "Tensor.H: expected a matrix or a scalar; got ",
        self.dim(), "-D", self.dim() > 2 ? " (Tensor.mH takes batches)" : "");
  return self.dim() == 0 ? ops::conj(self) : mH(self);
}

// --- merging and splitting off

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.dim()), last = wrap_dim(end_dim, self.dim());
  check(first <= last, "flatten(): start_dim must not come after end_dim; got ", first, " and ",
        last);
  if (self.dim() == 0) return ops::reshape(self, {1});
  if (first == last) return self;
  IntVec sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < first || d > last) sizes.push_back(self.sizes()[d]);
    if (d >= first && d <= last) merged *= self.sizes()[d];
    if (d == last) sizes.push_back(merged);
  }
  return ops::reshape(self, sizes);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntSpan sizes) {
  const int64_t d = wrap_dim(dim, self.dim());
  check(!sizes.empty(), "unflatten(): sizes must not be empty");
  const int64_t whole = self.dim() ? self.sizes()[d] : 1;
  int64_t known = 1;
  bool open = false;
  for (int64_t s : sizes) {
    open |= s == -1;
    if (s != -1)
      check(!__builtin_mul_overflow(known, s, &known), "unflatten: sizes ", str(sizes),
            " are too large");
  }
  const bool fits = open ? known != 0 && whole % known == 0 : known == whole;
  check(fits, "unflatten(): sizes must multiply to ", whole, ", the size of dimension ", d,
        "; got ", str(sizes));
  const IntVec inner = infer_size(sizes, whole);
  IntVec all(self.sizes());
  if (!all.empty()) all.erase(d);
  for (size_t k = 0; k < inner.size(); ++k) all.insert(d + k, inner[k]);
  return ops::view(self, all);
}

Tensor ravel(const Tensor& self) { return ops::reshape(ops::contiguous(self), {-1}); }
Tensor view_as(const Tensor& self, const Tensor& other) { return ops::view(self, other.sizes()); }
Tensor reshape_as(const Tensor& self, const Tensor& other) {
  return ops::reshape(self, other.sizes());
}
Tensor expand_as(const Tensor& self, const Tensor& other) {
  return ops::expand(self, other.sizes());
}
Tensor broadcast_to(const Tensor& self, IntSpan size) { return ops::expand(self, size); }

std::vector<Tensor> broadcast_tensors(std::span<const Tensor> tensors) {
  IntVec sizes;
  for (const Tensor& t : tensors) sizes = broadcast_sizes(sizes, t.sizes());
  std::vector<Tensor> all;
  for (const Tensor& t : tensors)
    all.push_back(same_sizes(t.sizes(), sizes) ? t : ops::expand(t, sizes));
  return all;
}

std::vector<Tensor> meshgrid_indexing(std::span<const Tensor> tensors, std::string_view indexing) {
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  for (const Tensor& t : tensors) {
    check(t.dim() <= 1, "meshgrid(): tensors must have at most 1 dimension; got ", t.dim());
    check(t.dtype() == tensors[0].dtype(), "meshgrid(): all tensors must have one dtype; got ",
          name(tensors[0].dtype()), " and ", name(t.dtype()));
    check(t.device() == tensors[0].device(), "meshgrid(): all tensors must be on one device; got ",
          str(tensors[0].device()), " and ", str(t.device()));
  }
  check(indexing == "xy" || indexing == "ij", "meshgrid(): indexing must be 'xy' or 'ij'; got '",
        indexing, "'");
  // "xy" exchanges the roles of the first two tensors.
  std::vector<Tensor> order(tensors.begin(), tensors.end());
  const bool exchanged = indexing == "xy" && order.size() >= 2;
  if (exchanged) std::swap(order[0], order[1]);
  IntVec sizes;
  for (const Tensor& t : order) sizes.push_back(t.numel());
  std::vector<Tensor> grids;
  for (size_t k = 0; k < order.size(); ++k) {
    IntVec own(order.size(), 1);
    own[k] = order[k].numel();
    grids.push_back(ops::expand(ops::view(order[k], own), sizes));
  }
  if (exchanged) std::swap(grids[0], grids[1]);
  return grids;
}
std::vector<Tensor> meshgrid(std::span<const Tensor> tensors) {
  return meshgrid_indexing(tensors, "ij");
}

// --- at least so many dimensions

Tensor atleast_1d(const Tensor& self) { return self.dim() >= 1 ? self : ops::reshape(self, {1}); }
Tensor atleast_2d(const Tensor& self) {
  if (self.dim() >= 2) return self;
  return self.dim() == 0 ? ops::reshape(self, {1, 1}) : ops::unsqueeze(self, 0);
}
Tensor atleast_3d(const Tensor& self) {
  if (self.dim() >= 3) return self;
  if (self.dim() == 0) return ops::reshape(self, {1, 1, 1});
  if (self.dim() == 1) return ops::unsqueeze(ops::unsqueeze(self, 0), -1);
  return ops::unsqueeze(self, -1);
}
template <Tensor (*F)(const Tensor&)>
std::vector<Tensor> each(std::span<const Tensor> tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(F(t));
  return all;
}

// --- diagonals

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t rows = self.sizes()[a], columns = self.sizes()[b];
  const __int128 wide = offset;  // an offset far outside must not overflow
  const __int128 length = offset >= 0 ? std::min<__int128>(rows, columns - wide)
                                      : std::min<__int128>(rows + wide, columns);
  const int64_t n = static_cast<int64_t>(std::max<__int128>(length, 0));
  int64_t at = self.storage_offset();
  if (n > 0) {
    const int64_t skipped = std::abs(offset), stride = self.strides()[offset >= 0 ? b : a];
    at = checked_add(at, checked_mul(skipped, stride, "diagonal(): offset"), "diagonal(): offset");
  }
  IntVec sizes(self.sizes()), strides(self.strides());
  const int64_t step = saturating_add(strides[a], strides[b]);
  for (int64_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(d);
    strides.erase(d);
  }
  sizes.push_back(n);
  strides.push_back(step);
  return alias_tensor(self, sizes, strides, at);
}
Tensor diagonal_backward(const Tensor& grad, IntSpan sizes, int64_t offset, int64_t dim1,
                         int64_t dim2) {
  const Tensor whole = ops::new_zeros(grad, sizes);
  ops::copy_(ops::diagonal(whole, offset, dim1, dim2), grad);
  return whole;
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  const Tensor t = copy_of_memory(self);
  const Tensor part = ops::diagonal(t, offset, dim1, dim2);
  check(same_sizes(part.sizes(), src.sizes()),
        "src must have the shape of the part of self that it replaces, ", str(part.sizes()),
        "; got ", str(src.sizes()));
  ops::copy_(part, src);
  return t;
}
Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return ops::diagonal(A, offset, dim1, dim2);
}

// --- windows along a dimension

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.dim()), n = self.dim() ? self.sizes()[d] : 1;
  check(size >= 0, "size is ", size, " but must be >= 0");
  check(size <= n, "unfold(): size must be at most ", n, ", that of dimension ", d, "; got ", size);
  check(step > 0, "step is ", step, " but must be > 0");
  IntVec sizes(self.sizes()), strides(self.strides());
  const int64_t stride = self.dim() ? strides[d] : 1;
  if (self.dim()) {
    sizes[d] = (n - size) / step + 1;
    strides[d] = step < INT64_MAX / std::max<int64_t>(stride, 1) ? step * stride : 0;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return alias_tensor(self, sizes, strides, self.storage_offset());
}
Tensor unfold_backward(const Tensor& grad, IntSpan sizes, int64_t dim, int64_t size, int64_t step) {
  check(size >= 0, "unfold_backward(): size must not be negative; got ", size);
  check(step > 0, "unfold_backward(): step must be positive; got ", step);
  const int64_t ndim = static_cast<int64_t>(sizes.size());
  check(grad.dim() == ndim + 1, "unfold_backward(): grad_in must have ", ndim + 1,
        " dimensions, one more than input_sizes; got ", grad.dim());
  check(grad.sizes().back() == size, "unfold_backward(): the last dimension of grad_in must be of ",
        "size ", size, "; got ", grad.sizes().back());
  const Tensor whole = ops::new_zeros(grad, sizes);
  if (sizes.empty()) {
    if (size > 0) ops::copy_(whole, ops::select(grad, -1, 0));
    return whole;
  }
  const int64_t d = wrap_dim(dim, ndim);
  check(size <= sizes[d], "unfold_backward(): size must be at most ", sizes[d],
        ", that of dimension ", d, "; got ", size);
  const int64_t windows = (sizes[d] - size) / step + 1;
  check(grad.sizes()[d] == windows, "unfold_backward(): dimension ", d, " of grad_in must be of ",
        "size ", windows, "; got ", grad.sizes()[d]);
  // Parts of windows that are no longer than a step lie apart from each other.
  for (int64_t k = 0, length = 0; k < size; k += length) {
    length = std::min(step, size - k);
    const Tensor reached = ops::slice(whole, d, k, k + (windows - 1) * step + length);
    ops::add_(ops::unfold(reached, d, length, step), ops::slice(grad, -1, k, k + length));
  }
  return whole;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(movedim_intlist){
    .schema = "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    .doc = "A view with dimensions moved to new places; the others keep their order.",
    .forms = function_method,
    .aliases = "moveaxis",
    .composite = Composite::Implicit,
    .any = typed_kernel<movedim_list>,
};
OP(movedim_int){
    .schema = "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    .doc = "A view with one dimension moved to a new place.",
    .forms = function_method,
    .aliases = "moveaxis",
    .composite = Composite::Implicit,
    .any = typed_kernel<movedim>,
};
OP(swapaxes){
    .schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    .doc = "A view with two dimensions exchanged, under NumPy's name.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<swapaxes>,
};
OP(swapaxes_){
    .schema = "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
    .doc = "Exchanges two dimensions of self in place; memory stays.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<swapaxes_>,
};
OP(t){
    .schema = "t(Tensor(a) self) -> Tensor(a)",
    .doc = "The transposed view of a matrix; tensors of fewer dimensions as they are.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .flags = handles_conj,
    .any = typed_kernel<t>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::t(b.grad()); })},
    .node = "TBackward0",
    .copy_form = "t_copy",
};
OP(t_){
    .schema = "t_(Tensor(a!) self) -> Tensor(a!)",
    .doc = "Transposes a matrix in place; memory stays.",
    .forms = method,
    .flags = geometry_only | handles_conj,
    .any = typed_kernel<t_>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::t(b.grad()); })},
    .node = "TBackward1",
    .view_form = "t",
};
OP(numpy_T){
    .schema = "numpy_T(Tensor(a) self) -> Tensor(a)",
    .doc = "A view with the dimensions in reverse order.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<numpy_T>,
};
OP(matrix_H){
    .schema = "matrix_H(Tensor(a) self) -> Tensor(a)",
    .doc = "The conjugate transpose of a matrix, as a view.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<matrix_H>,
};
OP(mT){
    .schema = "mT(Tensor(a) self) -> Tensor(a)",
    .doc = "A view with the last two dimensions exchanged.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<mT>,
};
OP(mH){
    .schema = "mH(Tensor(a) self) -> Tensor(a)",
    .doc = "The conjugate of self with the last two dimensions exchanged, as a view.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<mH>,
};
OP(adjoint){
    .schema = "adjoint(Tensor(a) self) -> Tensor(a)",
    .doc = "The conjugate of self with the last two dimensions exchanged, as a view.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<adjoint>,
};

OP(flatten_using_ints){
    .schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    .doc =
        "Self with the dimensions from start_dim to end_dim merged into one: a view where memory "
        "allows.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<flatten>,
};
OP(unflatten_int){
    .schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
    .doc = "A view with one dimension split into several; one of the sizes may be -1.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<unflatten>,
};
OP(ravel){
    .schema = "ravel(Tensor(a) self) -> Tensor(a)",
    .doc = "The elements of self as one row: a view where memory allows.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<ravel>,
};
OP(view_as){
    .schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .doc = "A view with the sizes of other.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<view_as>,
};
OP(reshape_as){
    .schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .doc = "The elements of self in the shape of other.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<reshape_as>,
};
OP(expand_as){
    .schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .doc = "A view of self repeated to the sizes of other without copying.",
    .forms = method,
    .composite = Composite::Implicit,
    .any = typed_kernel<expand_as>,
};
OP(broadcast_to){
    .schema = "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    .doc = "A view of self repeated to the given sizes without copying.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<broadcast_to>,
};
OP(broadcast_tensors){
    .schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    .doc = "Views of the tensors, all expanded to their common shape.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<broadcast_tensors>,
};
OP(meshgrid){
    .schema = "meshgrid(Tensor[] tensors) -> Tensor[]",
    .doc = "Coordinate grids of 1-d tensors: result k varies along dimension k alone.",
    .composite = Composite::Implicit,
    .any = typed_kernel<meshgrid>,
};
OP(meshgrid_indexing){
    .schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
    .doc =
        "Coordinate grids of 1-d tensors; with \"xy\" the first two dimensions are exchanged, with "
        "\"ij\" not.",
    .composite = Composite::Implicit,
    .any = typed_kernel<meshgrid_indexing>,
};
OP(atleast_1d){
    .schema = "atleast_1d(Tensor self) -> Tensor",
    .doc = "Self with at least one dimension.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<atleast_1d>,
};
OP(atleast_1d_Sequence){
    .schema = "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
    .doc = "Each tensor with at least one dimension.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<each<&atleast_1d>>,
};
OP(atleast_2d){
    .schema = "atleast_2d(Tensor self) -> Tensor",
    .doc = "Self with at least two dimensions; a row becomes a matrix of one row.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<atleast_2d>,
};
OP(atleast_2d_Sequence){
    .schema = "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
    .doc = "Each tensor with at least two dimensions.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<each<&atleast_2d>>,
};
OP(atleast_3d){
    .schema = "atleast_3d(Tensor self) -> Tensor",
    .doc =
        "Self with at least three dimensions; a matrix gets a last dimension, a row stands in the "
        "middle.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<atleast_3d>,
};
OP(atleast_3d_Sequence){
    .schema = "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
    .doc = "Each tensor with at least three dimensions.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<each<&atleast_3d>>,
};

OP(diagonal){
    .schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    .doc =
        "A view of the diagonal of two dimensions, which becomes the last dimension; offset > 0 "
        "lies above the main one.",
    .forms = function_method,
    .flags = handles_conj,
    .any = typed_kernel<diagonal>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::diagonal_backward(b.grad(), b.sizes("self"),
                                                        b.integer("offset"), b.integer("dim1"),
                                                        b.integer("dim2"));
                        })},
    .batch = batch::dims,
    .copy_form = "diagonal_copy",
    .dims = names("dim1", "dim2"),
};
OP(diagonal_backward){
    .schema =
        "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int "
        "dim2) -> Tensor",
    .doc = "Gradient of diagonal.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<diagonal_backward>,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::diagonal(b.grad(), b.integer("offset"), b.integer("dim1"),
                                               b.integer("dim2"));
                        })},
};
OP(diagonal_scatter){
    .schema =
        "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .doc = "A copy of self with src in the place of a diagonal.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .any = typed_kernel<diagonal_scatter>,
    .derivatives =
        {
            vjp("self",
                [](Backward& b) {
                  return ops::diagonal_scatter(b.grad(), ops::new_zeros(b.grad(), b.sizes("src")),
                                               b.integer("offset"), b.integer("dim1"),
                                               b.integer("dim2"));
                }),
            vjp("src",
                [](Backward& b) {
                  return ops::diagonal(b.grad(), b.integer("offset"), b.integer("dim1"),
                                       b.integer("dim2"));
                }),
        },
    .batch = batch::dims,
    .dims = names("dim1", "dim2"),
};
OP(linalg_diagonal){
    .schema =
        "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    .doc = "A view of the diagonal of the last two dimensions.",
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .any = typed_kernel<linalg_diagonal>,
};

OP(unfold){
    .schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    .doc =
        "A view of windows of `size` elements, `step` apart, along a dimension; a last dimension "
        "holds each window.",
    .forms = method,
    .flags = handles_conj,
    .any = typed_kernel<unfold>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::unfold_backward(b.grad(), b.sizes("self"),
                                                      b.integer("dimension"), b.integer("size"),
                                                      b.integer("step"));
                        })},
    .batch = batch::dims,
    .copy_form = "unfold_copy",
    .dims = names("dimension"),
};
OP(unfold_backward){
    .schema =
        "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> "
        "Tensor",
    .doc = "Gradient of unfold: windows that overlap add up.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<unfold_backward>,
    .derivatives = {vjp("grad_in",
                        [](Backward& b) {
                          return ops::unfold(b.grad(), b.integer("dim"), b.integer("size"),
                                             b.integer("step"));
                        })},
};
