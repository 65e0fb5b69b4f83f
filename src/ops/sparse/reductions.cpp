// Sums and softmax of sparse tensors.
#include "ops/sparse/reductions.h"

#include <algorithm>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/sparse/indices.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/softmax.h"
#include "ops/reduce/variance.h"
#include "ops/shape/view.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/coo.h"
#include "ops/sparse/layouts.h"
#include "ops/sparse/pointwise_calls.h"

namespace facula {
namespace {

using namespace sparse;
using OptionalDType = std::optional<DType>;

// --- sums

// The dimensions that a sum goes over, told apart.
struct Dims {
  IntVec summed_dense;  // as dimensions of the values
  IntVec kept_sparse;   // of the tensor
  IntVec sizes;         // of the result, without the summed ones
  int64_t kept_dense = 0;
};
Dims dims_of(const Tensor& t, IntSpan dim) {
  const int64_t sparse = sparse_dims(coo(t));
  IntVec gone(static_cast<size_t>(t.dim()), 0);
  for (int64_t d : dim) {
    int64_t& seen = gone[static_cast<size_t>(wrap_dim(d, t.dim()))];
    check(!seen, "dim ", d, " appears multiple times in the list of dims");
    seen = 1;
  }
  Dims dims;
  for (int64_t d = 0; d < t.dim(); ++d) {
    const bool kept = !gone[static_cast<size_t>(d)];
    if (kept) dims.sizes.push_back(t.sizes()[static_cast<size_t>(d)]);
    if (kept && d < sparse) dims.kept_sparse.push_back(d);
    if (kept && d >= sparse) ++dims.kept_dense;
    if (!kept && d >= sparse) dims.summed_dense.push_back(d - sparse + 1);
  }
  return dims;
}

Tensor kept_rows(const Tensor& t, IntSpan kept) {
  const Tensor indices = plain_indices(t);
  const int64_t shape[] = {static_cast<int64_t>(kept.size()), nnz(coo(t))};
  const Tensor rows = empty_tensor(shape, DType::Int64);
  for (size_t k = 0; k < kept.size(); ++k)
    ops::copy_(ops::select(rows, 0, static_cast<int64_t>(k)), ops::select(indices, 0, kept[k]));
  return rows;
}

Tensor sum_of_dims(const Tensor& self, IntSpan dim) {
  const Dims dims = dims_of(self, dim);
  flat_positions(self);
  const Tensor& given = coo(self).values;
  const Tensor values =
      dims.summed_dense.empty() ? given : ops::sum(given, IntList(dims.summed_dense));
  if (dims.kept_sparse.empty()) return ops::sum(values, IntList{0});
  const Tensor made = coo_tensor(dims.sizes, kept_rows(self, dims.kept_sparse), values, false);
  return coalesced(made);
}

Tensor sum_kernel(const Tensor& self, IntSpan dim) {
  if (!is_coo(self)) not_implemented(op::_sparse_sum_dim, self);
  check(!dim.empty(), "sparse.sum(): expected dimensions to sum over; got none");
  return sum_of_dims(self, dim);
}

// Each element's gradient is that of the result that it went to.
Tensor sum_backward(const Tensor& grad, const Tensor& self, IntSpan dim) {
  const Dims dims = dims_of(self, dim);
  const Tensor at = kept_rows(self, dims.kept_sparse);
  Tensor values = values_at(is_strided(grad) || is_coo(grad) ? grad : ops::to_dense(grad), at);
  for (int64_t d : dims.summed_dense) values = ops::unsqueeze(values, d);
  return with_values(self, ops::contiguous(ops::expand(values, coo(self).values.sizes())));
}

Tensor sparse_sum(const Tensor& self) { return ops::sum(ops::values(ops::coalesce(self))); }
Tensor sparse_sum_dtype(const Tensor& self, DType dtype) {
  return ops::sum(ops::values(ops::coalesce(self)), dtype);
}
Tensor sparse_sum_dim_dtype(const Tensor& self, IntSpan dim, DType dtype) {
  return ops::_sparse_sum(ops::to(self, dtype), dim);
}

Tensor sum_all(const Tensor& self, OptionalDType dtype) { return ops::sum(values_of(self), dtype); }
DType summed_dtype(const Tensor& t, OptionalDType dtype) {
  if (dtype) return *dtype;
  return is_integral(t.dtype(), true) ? DType::Int64 : t.dtype();
}
Tensor sum_dims(const Tensor& self, const std::optional<IntSpan>& dim, bool keepdim,
                OptionalDType dtype) {
  const DType d = summed_dtype(self, dtype);
  const Tensor t = self.dtype() == d ? self : ops::to(self, d);
  if (!dim || dim->empty()) {
    const Tensor all = ops::sum(values_of(t));
    return keepdim ? ops::reshape(all, IntVec(self.sizes().size(), 1)) : all;
  }
  Tensor sum = sum_of_dims(t, *dim);
  if (!keepdim) return sum;
  IntVec order;
  for (int64_t k : *dim) order.push_back(wrap_dim(k, self.dim()));
  std::sort(order.begin(), order.end());
  for (int64_t k : order) sum = ops::unsqueeze(sum, k);
  return sum;
}

// Along rows or columns of a CSR matrix, as a CSR matrix.
Tensor sum_dims_of_compressed(const Tensor& self, const std::optional<IntSpan>& dim, bool keepdim,
                              OptionalDType dtype) {
  if (!dim || dim->empty()) return ops::sum(compressed(self).values, dtype);
  check(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported");
  if (self->layout != Layout::SparseCsr) not_implemented(op::sum_dim_IntList, self);
  const Tensor found = sum_dims(coo_of_compressed(self), dim, true, dtype);
  return compressed_of(is_strided(found) ? ops::to_sparse(found) : found, Layout::SparseCsr, {}, 0);
}

Tensor any_of(const Tensor& self) {
  return ops::any(ops::reshape(values_of(self), IntVec(1, -1)), 0);
}

// --- norms: those of the values, where each position is there once

const Tensor& values_once(const Tensor& t, Tensor& keeps) {
  keeps = is_coo(t) ? coalesced(t) : t;
  return values_of(keeps);
}
Tensor vector_norm(const Tensor& self, const Scalar& p, const std::optional<IntSpan>& dim,
                   bool keepdim, OptionalDType dtype) {
  check(!dim || dim->empty() || static_cast<int64_t>(dim->size()) == self.dim(),
        "norm(): of a sparse tensor, only the norm over all dimensions is implemented");
  Tensor keeps;
  const Tensor n = ops::linalg_vector_norm(values_once(self, keeps), p, std::nullopt, false, dtype);
  return keepdim ? ops::reshape(n, IntVec(self.sizes().size(), 1)) : n;
}

// --- softmax over the elements that there are

struct Pools {
  Tensor pool_of;  // (nnz): elements that lie on one line along dim
  int64_t count;
};
Pools pools_of(const Tensor& t, int64_t dim) {
  IntVec kept, sizes;
  for (int64_t d = 0; d < sparse_dims(coo(t)); ++d)
    if (d != dim) {
      kept.push_back(d);
      sizes.push_back(t.sizes()[static_cast<size_t>(d)]);
    }
  flat_positions(t);
  const auto groups = cpu::sparse::grouped(cpu::sparse::flat_positions(kept_rows(t, kept), sizes));
  return {groups.group_of, groups.numbers.numel()};
}

Tensor softmax_values(const Tensor& t, int64_t dim, bool log) {
  const Tensor& values = coo(t).values;
  const int64_t sparse = sparse_dims(coo(t));
  if (dim >= sparse) {
    const int64_t d = dim - sparse + 1;
    return log ? ops::log_softmax(values, d) : ops::softmax(values, d);
  }
  const Pools pools = pools_of(t, dim);
  const IntVec sizes = joined(pools.count, values.sizes().subspan(1));
  const Tensor lowest = ops::full(sizes, -std::numeric_limits<double>::infinity(), values.dtype());
  const Tensor most = ops::index_reduce(lowest, 0, pools.pool_of, values, "amax");
  const Tensor shifted = ops::sub(values, ops::index_select(most, 0, pools.pool_of));
  const Tensor powers = ops::exp(shifted);
  const Tensor sums =
      ops::index_select(summed_by_group(powers, pools.pool_of, pools.count), 0, pools.pool_of);
  return log ? ops::sub(shifted, ops::log(sums)) : ops::div(powers, sums);
}

template <bool Log>
Tensor softmax_kernel(const Tensor& self, int64_t dim, bool half_to_float) {
  if (!is_coo(self)) not_implemented(Log ? op::_sparse_log_softmax : op::_sparse_softmax, self);
  check(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  check_kind(ErrorKind::NotImplemented, is_floating(self.dtype()),
             "sparse.softmax(): expected a floating point tensor; got ", name(self.dtype()));
  const Tensor t = coalesced(self);
  const int64_t d = wrap_dim(dim, t.dim());
  return coo_tensor(t.sizes(), coo(t).indices,
                    nnz(coo(t)) == 0 ? coo(t).values : softmax_values(t, d, Log), true);
}

// Of softmax: y (g - <g, y>); of its logarithm: g - exp(y) <g, 1>, sums along dim.
template <bool Log>
Tensor softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor&) {
  const Tensor y = coalesced(output);
  const Tensor& values = coo(y).values;
  const Tensor g = values_at(grad, coo(y).indices);
  const int64_t d = wrap_dim(dim, y.dim()), sparse = sparse_dims(coo(y));
  const Tensor weighted = Log ? g : ops::mul(g, values);
  Tensor sums;
  if (d >= sparse) {
    sums = ops::sum(weighted, IntList{d - sparse + 1}, true);
  } else {
    const Pools pools = pools_of(y, d);
    sums =
        ops::index_select(summed_by_group(weighted, pools.pool_of, pools.count), 0, pools.pool_of);
  }
  const Tensor result =
      Log ? ops::sub(g, ops::mul(ops::exp(values), sums)) : ops::mul(values, ops::sub(g, sums));
  return with_values(y, result);
}

template <bool Log>
Tensor softmax(const Tensor& self, int64_t dim, OptionalDType dtype) {
  const Tensor t = dtype && *dtype != self.dtype() ? ops::to(self, *dtype) : self;
  return Log ? ops::_sparse_log_softmax(t, dim, false) : ops::_sparse_softmax(t, dim, false);
}

const CooKernels coo_kernels{
    kernel<sum_all>(op::sum),
    kernel<sum_dims>(op::sum_dim_IntList),
    kernel<any_of>(op::any),
    kernel<vector_norm>(op::linalg_vector_norm),
};
const CompressedKernels compressed_kernels{
    kernel<sum_all>(op::sum),
    kernel<sum_dims_of_compressed>(op::sum_dim_IntList),
    kernel<any_of>(op::any),
    kernel<vector_norm>(op::linalg_vector_norm),
};

}  // namespace
}  // namespace facula

using namespace facula;

OP(_sparse_sum){
    .schema = "_sparse_sum(Tensor self) -> Tensor",
    .doc = "Sum of all elements of a sparse_coo tensor; its gradient is sparse.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<sparse_sum>,
};
OP(_sparse_sum_dtype){
    .schema = "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor",
    .doc = "Sum of all elements of a sparse_coo tensor, in another dtype.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<sparse_sum_dtype>,
};
OP(_sparse_sum_dim){
    .schema = "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor",
    .doc =
        "Sum of a sparse_coo tensor along dimensions: strided where no sparse dimension is left.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<sum_kernel>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::_sparse_sum_backward(b.grad(), ops::coalesce(b["self"]), b.ints("dim"));
        },
        saves("self"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_sum_dim_dtype){
    .schema = "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
    .doc = "Sum of a sparse_coo tensor along dimensions, in another dtype.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<sparse_sum_dim_dtype>,
};
OP(_sparse_sum_backward){
    .schema = "_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor",
    .doc = "Gradient of _sparse_sum.dim, with the positions of self.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<sum_backward>,
    .hole = "derivatives: PyTorch has none either; batch: transforms do not take sparse tensors",
};
OP(_sparse_softmax_int){
    .schema = "_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "Softmax along dim of a sparse_coo tensor; what is not there counts as -inf.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<softmax<false>>,
};
OP(_sparse_softmax){
    .schema = "_sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .doc = "Softmax along dim of a sparse_coo tensor; what is not there counts as -inf.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<softmax_kernel<false>>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::_sparse_softmax_backward_data(b.grad(), b["result"], b.integer("dim"),
                                                    b["self"]);
        },
        saves("self", "result"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_softmax_backward_data){
    .schema =
        "_sparse_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> "
        "Tensor",
    .doc = "Gradient of _sparse_softmax.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<softmax_backward<false>>,
    .hole = "derivatives: PyTorch has none either; batch: transforms do not take sparse tensors",
};
OP(_sparse_log_softmax_int){
    .schema = "_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "Logarithm of the softmax along dim of a sparse_coo tensor.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<softmax<true>>,
};
OP(_sparse_log_softmax){
    .schema = "_sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .doc = "Logarithm of the softmax along dim of a sparse_coo tensor.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<softmax_kernel<true>>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::_sparse_log_softmax_backward_data(b.grad(), b["result"], b.integer("dim"),
                                                        b["self"]);
        },
        saves("self", "result"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_log_softmax_backward_data){
    .schema =
        "_sparse_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor "
        "self) -> Tensor",
    .doc = "Gradient of _sparse_log_softmax.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<softmax_backward<true>>,
    .hole = "derivatives: PyTorch has none either; batch: transforms do not take sparse tensors",
};
