// What users ask of sparse tensors: their parts, and how many there are.
#include "ops/sparse/accessors.h"

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/create/copy.h"
#include "ops/shape/view.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/coo.h"
#include "ops/sparse/coo_tensor.h"
#include "ops/sparse/layouts.h"
#include "ops/sparse/validate.h"

namespace facula {
namespace {

using namespace sparse;

void check_is_coo(const Tensor& t, const char* op) {
  check(is_coo(t), op, " expected sparse coordinate tensor layout but got ",
        backend_name(t->layout));
}
void check_is_sparse(const Tensor& t, const Operator& op) {
  if (!is_coo(t) && !is_compressed(t)) not_implemented(op, t);
}

int64_t batch_dims(const Compressed& c) { return c.compressed.dim() - 1; }

int64_t sparse_dim(const Tensor& self) {
  if (is_coo(self)) return sparse_dims(coo(self));
  return is_compressed(self) ? 2 : 0;
}
int64_t dense_dim(const Tensor& self) {
  if (is_coo(self)) return coo(self).values.dim() - 1;
  if (!is_compressed(self)) return self.dim();
  const Compressed& c = compressed(self);
  return self.dim() - batch_dims(c) - 2;
}
int64_t dim_i(const Tensor& self) {
  check_is_coo(self, "_dimI");
  return sparse_dim(self);
}
int64_t dim_v(const Tensor& self) {
  check_is_coo(self, "_dimV");
  return dense_dim(self);
}

int64_t count(const Tensor& self) {
  check_is_sparse(self, op::_nnz);
  return is_coo(self) ? nnz(coo(self)) : compressed(self).plain.size(-1);
}

bool is_coalesced(const Tensor& self) {
  check_is_coo(self, "is_coalesced");
  return coo(self).coalesced;
}
Tensor coalesce(const Tensor& self) {
  check_is_coo(self, "coalesce");
  return ops::is_coalesced(self) ? self : ops::_coalesce(self);
}
Tensor coalesce_kernel(const Tensor& self) {
  check_is_coo(self, "_coalesce");
  const Tensor t = coalesced(self);
  return t.is_same(self) ? coo_tensor(t.sizes(), coo(t).indices, coo(t).values, true) : t;
}
Tensor set_coalesced(const Tensor& self, bool is) {
  check_is_coo(self, "_coalesced_");
  coo(self).coalesced = is;
  return self;
}

Tensor raw_indices(const Tensor& self) {
  if (!is_coo(self)) not_implemented(op::_indices, self);
  return alias_tensor(coo(self).indices);
}
Tensor raw_values(const Tensor& self) {
  if (!is_coo(self)) not_implemented(op::_values, self);
  return alias_tensor(coo(self).values);
}
void check_coalesced(const Tensor& self, const char* what) {
  check(coo(self).coalesced, "Cannot get ", what,
        " on an uncoalesced tensor, please call .coalesce() first");
}
Tensor indices(const Tensor& self) {
  check_is_coo(self, "indices");
  check_coalesced(self, "indices");
  return alias_tensor(coo(self).indices);
}
Tensor values(const Tensor& self) {
  if (is_compressed(self)) return alias_tensor(compressed(self).values);
  check(is_coo(self), "values expected sparse tensor layout but got ", backend_name(self->layout));
  check_coalesced(self, "values");
  return alias_tensor(coo(self).values);
}

template <bool Rows, bool IsCompressed>
Tensor compressed_part(const Tensor& self, const char* op) {
  check(is_compressed(self) && by_rows(self->layout) == Rows, op, " expected sparse ",
        Rows ? "row" : "column", " compressed tensor layout but got ", backend_name(self->layout));
  const Compressed& c = compressed(self);
  return alias_tensor(IsCompressed ? c.compressed : c.plain);
}
Tensor crow_indices(const Tensor& self) {
  return compressed_part<true, true>(self, "crow_indices");
}
Tensor col_indices(const Tensor& self) { return compressed_part<true, false>(self, "col_indices"); }
Tensor ccol_indices(const Tensor& self) {
  return compressed_part<false, true>(self, "ccol_indices");
}
Tensor row_indices(const Tensor& self) {
  return compressed_part<false, false>(self, "row_indices");
}

Tensor values_gradient(Backward& b) { return ops::_sparse_with_values(b["self"], b.grad()); }

Tensor with_values_of(const Tensor& self, const Tensor& values) {
  const Tensor& now = is_coo(self) ? coo(self).values : compressed(self).values;
  check(same_sizes(now.sizes(), values.sizes()) && is_strided(values),
        "_sparse_with_values(): expected strided values of sizes ", str(now.sizes()), "; got ",
        str(values.sizes()));
  return with_values(self, values);
}
bool invariants_checked() { return checks_invariants(); }
void check_invariants(bool on) { set_checks_invariants(on); }

}  // namespace

Tensor sparse::values_like(const Tensor& self, const Tensor& grad) {
  const Tensor g = is_strided(grad) || is_coo(self) ? ops::sparse_mask(grad, self) : grad;
  return is_coo(g) ? ops::_values(g) : ops::values(g);
}

}  // namespace facula

using namespace facula;

OP(sparse_dim){
    .schema = "sparse_dim(Tensor self) -> int",
    .doc = "The number of sparse dimensions; 0 for a strided tensor.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<sparse_dim>,
    .hole = "batch: transforms do not take sparse tensors",
};
OP(dense_dim){
    .schema = "dense_dim(Tensor self) -> int",
    .doc = "The number of dense dimensions; all of a strided tensor's.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<dense_dim>,
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_dimI){
    .schema = "_dimI(Tensor self) -> int",
    .doc = "As sparse_dim, of sparse_coo tensors.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<dim_i>,
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_dimV){
    .schema = "_dimV(Tensor self) -> int",
    .doc = "As dense_dim, of sparse_coo tensors.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<dim_v>,
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_nnz){
    .schema = "_nnz(Tensor self) -> int",
    .doc = "How many elements (or blocks) a sparse tensor keeps.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<count>,
    .hole = "batch: transforms do not take sparse tensors",
};
OP(is_coalesced){
    .schema = "is_coalesced(Tensor self) -> bool",
    .doc = "Whether a sparse_coo tensor is known to have each position once, in order.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<is_coalesced>,
    .hole = "batch: transforms do not take sparse tensors",
};
OP(coalesce){
    .schema = "coalesce(Tensor(a) self) -> Tensor(a)",
    .doc =
        "A sparse_coo tensor with each position once, in order: values at equal positions are "
        "added. Self if that is known of it.",
    .forms = method,
    .composite = Composite::Selecting,
    .flags = same_object,
    .any = typed_kernel<coalesce>,
};
OP(_coalesce){
    .schema = "_coalesce(Tensor self) -> Tensor",
    .doc = "As coalesce, as a tensor of its own.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<coalesce_kernel>,
    .derivatives = {vjp("self", [](Backward& b) { return b.grad(); })},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_coalesced_){
    .schema = "_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)",
    .doc = "Says whether a sparse_coo tensor has each position once, in order.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<set_coalesced>,
    .hole =
        "derivatives: it changes sizes or marks, not values; batch: transforms do not take sparse "
        "tensors",
};
OP(_indices){
    .schema = "_indices(Tensor self) -> Tensor",
    .doc = "Indices (sparse dims, nnz) of a sparse_coo tensor, coalesced or not.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<raw_indices>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_values){
    .schema = "_values(Tensor self) -> Tensor",
    .doc = "Values (nnz, dense...) of a sparse_coo tensor, coalesced or not, without history.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<raw_values>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(indices){
    .schema = "indices(Tensor self) -> Tensor",
    .doc = "Indices (sparse dims, nnz) of a coalesced sparse_coo tensor.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<indices>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(values){
    .schema = "values(Tensor self) -> Tensor",
    .doc = "Values (nnz, ...) of a coalesced sparse_coo tensor or a compressed one.",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<values>,
    .derivatives = {vjp("self", values_gradient, saves("self"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_with_values){
    .schema = "_sparse_with_values(Tensor self, Tensor values) -> Tensor",
    .doc = "A sparse tensor with these values at the positions of self.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<with_values_of>,
    .derivatives = {vjp(
        "values", [](Backward& b) { return values_like(b["self"], b.grad()); }, saves("self"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(crow_indices){
    .schema = "crow_indices(Tensor self) -> Tensor",
    .doc = "Where each row of a CSR or BSR tensor begins: (batch..., rows + 1).",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<crow_indices>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(col_indices){
    .schema = "col_indices(Tensor self) -> Tensor",
    .doc = "The column of each element or block of a CSR or BSR tensor: (batch..., nnz).",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<col_indices>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(ccol_indices){
    .schema = "ccol_indices(Tensor self) -> Tensor",
    .doc = "Where each column of a CSC or BSC tensor begins: (batch..., columns + 1).",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<ccol_indices>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(row_indices){
    .schema = "row_indices(Tensor self) -> Tensor",
    .doc = "The row of each element or block of a CSC or BSC tensor: (batch..., nnz).",
    .forms = method,
    .flags = any_layout,
    .any = typed_kernel<row_indices>,
    .not_differentiable = names("result"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_checks_sparse_invariants){
    .schema = "_checks_sparse_invariants() -> bool",
    .doc = "Whether makers of sparse tensors check all invariants.",
    .forms = hidden,
    .any = typed_kernel<invariants_checked>,
};
OP(_set_checks_sparse_invariants){
    .schema = "_set_checks_sparse_invariants(bool on) -> ()",
    .doc = "Sets whether makers of sparse tensors check all invariants.",
    .forms = hidden,
    .any = typed_kernel<check_invariants>,
};
