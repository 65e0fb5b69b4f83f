// Tensors joined along new or old dimensions.
#include "ops/shape/stack.h"

#include <algorithm>

#include "core/checked.h"
#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/shape/interleave.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/index/index.h"
#include "ops/index/indexed.h"
#include "ops/meta_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/pad.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

void meta_stack(Meta& m, std::span<const Tensor> tensors, int64_t dim) {
  check(!tensors.empty(), "stack expects a non-empty TensorList");
  const Tensor& first = tensors[0];
  const int64_t d = wrap_dim(dim, first.dim() + 1);
  for (size_t i = 1; i < tensors.size(); ++i)
    check(same_sizes(tensors[i].sizes(), first.sizes()),
          "stack expects each tensor to be equal size; got ", str(first.sizes()), " at 0 and ",
          str(tensors[i].sizes()), " at ", i);
  IntVec sizes(first.sizes());
  sizes.insert(d, static_cast<int64_t>(tensors.size()));
  const DType dtype = result_type({m.call.args, 1});
  indexed::check_join(m, tensors, dtype);
  m.result(0, sizes, dtype);
}

// A few dense tensors whose elements are joined one by one.
bool joins_elements(std::span<const Tensor> tensors, int64_t dim, const Tensor& out) {
  const auto fits = [&](const Tensor& t) {
    return t.dtype() == out.dtype() && t.is_contiguous() && !t->conj && !t->neg;
  };
  return dim == out.dim() - 1 && out.numel() > 0 && out.is_contiguous() && tensors.size() >= 2 &&
         tensors.size() <= cpu::most_interleaved && std::ranges::all_of(tensors, fits);
}

void join_elements(std::span<const Tensor> tensors, const Tensor& out) {
  constexpr int64_t task_elements = 16384;
  const void* from[cpu::most_interleaved] = {};
  for (size_t i = 0; i < tensors.size(); ++i) from[i] = tensors[i].data();
  const auto join = FACULA_OF_ISA(interleave);
  parallel_for(tensors[0].numel(), task_elements, [&](int64_t begin, int64_t end) {
    join(from, tensors.size(), out.itemsize(), begin, end, out.data());
  });
}

void stack(std::span<const Tensor> tensors, int64_t dim, const Tensor& out) {
  const int64_t d = wrap_dim(dim, out.dim()), step = out.strides()[d];
  if (joins_elements(tensors, d, out)) return join_elements(tensors, out);
  IntVec sizes(out.sizes()), strides(out.strides());
  sizes.erase(d);
  strides.erase(d);
  int64_t at = out.storage_offset();
  for (const Tensor& t : tensors) {
    cpu::copy(alias_tensor(out, sizes, strides, at), t);
    at += step;
  }
}

void stack_gradient(Backward& b) {
  if (!b.grad().defined()) return;
  const int64_t d = wrap_dim(b.integer("dim"), b.grad().dim());
  std::vector<Tensor> grads;
  for (int64_t i = 0; i < b.grad().sizes()[d]; ++i)
    grads.push_back(b.needs("tensors", static_cast<size_t>(i)) ? ops::select(b.grad(), d, i)
                                                               : Tensor());
  b.set("tensors", std::move(grads));
}

std::vector<Tensor> transformed(std::span<const Tensor> tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(f(t));
  return all;
}

Tensor hstack(std::span<const Tensor> tensors) {
  check(!tensors.empty(), "hstack expects a non-empty TensorList");
  const std::vector<Tensor> all = ops::atleast_1d(tensors);
  return ops::cat(all, all[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(std::span<const Tensor> tensors) {
  check(!tensors.empty(), "vstack expects a non-empty TensorList");
  return ops::cat(ops::atleast_2d(tensors), 0);
}
Tensor dstack(std::span<const Tensor> tensors) {
  check(!tensors.empty(), "dstack expects a non-empty TensorList");
  return ops::cat(ops::atleast_3d(tensors), 2);
}
Tensor column_stack(std::span<const Tensor> tensors) {
  check(!tensors.empty(), "column_stack expects a non-empty TensorList");
  return ops::hstack(transformed(
      tensors, [](const Tensor& t) { return t.dim() > 1 ? t : ops::reshape(t, {t.numel(), 1}); }));
}

Tensor block_diag(std::span<const Tensor> tensors) {
  if (tensors.empty()) return ops::empty({1, 0});
  int64_t columns = 0;
  std::vector<Tensor> blocks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].dim() <= 2, "block_diag(): inputs must have at most 2 dimensions; got ",
          tensors[i].dim(), " at ", i);
    blocks.push_back(ops::atleast_2d(tensors[i]));
    columns += blocks.back().sizes()[1];
  }
  int64_t before = 0;
  for (Tensor& t : blocks) {
    const int64_t own = t.sizes()[1];
    t = ops::constant_pad_nd(t, {before, columns - before - own}, 0);
    before += own;
  }
  return ops::cat(blocks, 0);
}

// The gradient of a block is that block of the result's gradient.
void block_diag_gradient(Backward& b) {
  if (!b.grad().defined()) return;
  std::vector<Tensor> grads;
  int64_t row = 0, column = 0;
  for (const IntVec& sizes : b.list_sizes("tensors")) {
    const int64_t rows = sizes.size() == 2 ? sizes[0] : 1,
                  columns = sizes.empty() ? 1 : sizes.back();
    const Tensor part =
        ops::slice(ops::slice(b.grad(), 0, row, row + rows, 1), 1, column, column + columns, 1);
    grads.push_back(b.needs("tensors", grads.size()) ? ops::reshape(part, sizes) : Tensor());
    row += rows;
    column += columns;
  }
  b.set("tensors", std::move(grads));
}

void check_vector(const Tensor& t) {
  check(t.dim() == 1, "cartesian_prod(): tensors must have 1 dimension; got ", str(t.sizes()));
}

Tensor cartesian_prod(std::span<const Tensor> tensors) {
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  for (const Tensor& t : tensors) check_vector(t);
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> grids = ops::meshgrid(tensors);
  for (Tensor& g : grids) g = ops::flatten(g);
  return ops::stack(grids, 1);
}

// How many choices of r out of n there are; RuntimeError beyond int64.
int64_t count_choices(int64_t n, int64_t r, bool repeated) {
  const int64_t from =
      repeated ? checked_add(n, r - 1, "combinations(): the number of choices") : n;
  const int64_t steps = std::min(r, from - r);
  __int128 count = 1;
  for (int64_t i = 0; i < steps; ++i) {
    count = count * (from - i) / (i + 1);
    check(count <= INT64_MAX, "combinations(): expected fewer than 2^63 choices; got ", r,
          " out of ", n);
  }
  return static_cast<int64_t>(count);
}

// Positions of all choices of r out of n in order, one row each.
void meta_combination_indices(Meta& m, int64_t n, int64_t r, bool repeated, std::optional<Device>) {
  check(n >= 0 && r >= 0, "_combination_indices(): n and r must not be negative; got ", n, " and ",
        r);
  const bool none = n == 0 || (!repeated && r > n);
  m.result(0, IntList{none ? 0 : count_choices(n, r, repeated), r}, DType::Int64);
}
void combination_indices(int64_t n, int64_t r, bool repeated, std::optional<Device>,
                         const Tensor& rows) {
  if (rows.numel() == 0) return;
  int64_t* row = rows.data<int64_t>();
  std::vector<int64_t> at(static_cast<size_t>(r));
  for (int64_t i = 0; i < r; ++i) at[static_cast<size_t>(i)] = repeated ? 0 : i;
  while (true) {
    row = std::copy(at.begin(), at.end(), row);
    int64_t i = r - 1;
    while (i >= 0 && at[static_cast<size_t>(i)] == (repeated ? n - 1 : n - r + i)) --i;
    if (i < 0) break;
    const int64_t next = ++at[static_cast<size_t>(i)];
    for (int64_t k = i + 1; k < r; ++k) at[static_cast<size_t>(k)] = repeated ? next : next + k - i;
  }
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  check_vector(self);
  check(r >= 0, "combinations(): r must not be negative; got ", r);
  if (r == 0) return ops::new_empty(self, {0});
  check(r <= INT32_MAX, "combinations(): expected r of at most ", INT32_MAX, "; got ", r);
  const Tensor at = ops::_combination_indices(self.numel(), r, with_replacement, self.device());
  return ops::index(self, {&at, 1});
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(stack){
    .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = "Tensors of one size joined along a new dimension.",
    .forms = function | out,
    .autocast = Autocast::Promote,
    .meta = typed_meta<meta_stack>,
    .cpu = typed_kernel<stack>,
    .derivatives = {vjp(names("tensors"), stack_gradient)},
    .batch = batch::list_new_dim,
};
OP(hstack){
    .schema = "hstack(Tensor[] tensors) -> Tensor",
    .doc = "Tensors joined along the columns; 1-d tensors end to end.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<hstack>,
};
OP(vstack){
    .schema = "vstack(Tensor[] tensors) -> Tensor",
    .doc = "Tensors joined along the rows; 1-d tensors count as rows.",
    .forms = function | out,
    .aliases = "row_stack",
    .composite = Composite::Implicit,
    .any = typed_kernel<vstack>,
};
OP(dstack){
    .schema = "dstack(Tensor[] tensors) -> Tensor",
    .doc = "Tensors joined along the third dimension.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<dstack>,
};
OP(column_stack){
    .schema = "column_stack(Tensor[] tensors) -> Tensor",
    .doc = "Tensors joined along the columns; 1-d tensors count as columns.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<column_stack>,
};
OP(block_diag){
    .schema = "block_diag(Tensor[] tensors) -> Tensor",
    .doc = "A matrix with the given matrices along its diagonal and zeros elsewhere.",
    .composite = Composite::Explicit,
    .any = typed_kernel<block_diag>,
    .derivatives = {vjp(names("tensors"), block_diag_gradient)},
};
OP(cartesian_prod){
    .schema = "cartesian_prod(Tensor[] tensors) -> Tensor",
    .doc =
        "All choices of one element from each 1-d tensor, one row each; a single tensor as it is.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<cartesian_prod>,
};
OP(_combination_indices){
    .schema =
        "_combination_indices(int n, int r, bool with_replacement, *, Device? device=None) -> "
        "Tensor",
    .doc = "Positions of all choices of r elements out of n in order, one row each.",
    .forms = hidden,
    .flags = factory,
    .meta = typed_meta<meta_combination_indices>,
    .cpu = typed_kernel<combination_indices>,
};
OP(combinations){
    .schema = "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    .doc = "All choices of r elements of a 1-d tensor in order, one row each.",
    .composite = Composite::Implicit,
    .any = typed_kernel<combinations>,
};
