// The functional forms of views: each gives a contiguous copy of what the view would show.
#include "ops/shape/view_copy.h"

#include "dispatch/out_dtype.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

// The records of the views, for their derivatives.
namespace facula::records {
extern const OpRecord select_int_record, slice_Tensor_record, view_record, expand_record,
    permute_record, transpose_int_record, t_record, squeeze_record, squeeze_dim_record,
    squeeze_dims_record, unsqueeze_record, diagonal_record, alias_record, unfold_record,
    view_as_real_record, view_as_complex_record, unbind_int_record, split_Tensor_record,
    split_with_sizes_record, as_strided_record, _conj_record, _neg_view_record;
}

namespace facula {
namespace {

// The gradient of the view that is copied: it reads arguments of the same names.
template <const OpRecord& view>
Tensor as_view(Backward& b) {
  return view.derivatives[0].vjp(b);
}

Tensor copied(const Tensor& view) { return ops::clone(view, MemoryFormat::Contiguous); }
std::vector<Tensor> copied(const std::vector<Tensor>& views) {
  std::vector<Tensor> all;
  for (const Tensor& t : views) all.push_back(copied(t));
  return all;
}

Tensor select_copy_int(const Tensor& self, int64_t dim, int64_t index) {
  return copied(ops::select(self, dim, index));
}
Tensor slice_copy_Tensor(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                         std::optional<int64_t> end, int64_t step) {
  return copied(ops::slice(self, dim, start, end, step));
}
Tensor view_copy(const Tensor& self, IntSpan size) { return copied(ops::reshape(self, size)); }
Tensor view_copy_dtype(const Tensor& self, DType dtype) { return copied(ops::view(self, dtype)); }
Tensor expand_copy(const Tensor& self, IntSpan size, bool implicit) {
  return copied(ops::expand(self, size, implicit));
}
Tensor permute_copy(const Tensor& self, IntSpan dims) { return copied(ops::permute(self, dims)); }
Tensor transpose_copy_int(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(ops::transpose(self, dim0, dim1));
}
Tensor t_copy(const Tensor& self) { return copied(ops::t(self)); }
Tensor squeeze_copy(const Tensor& self) { return copied(ops::squeeze(self)); }
Tensor squeeze_copy_dim(const Tensor& self, int64_t dim) { return copied(ops::squeeze(self, dim)); }
Tensor squeeze_copy_dims(const Tensor& self, IntSpan dim) {
  return copied(ops::squeeze(self, dim));
}
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) { return copied(ops::unsqueeze(self, dim)); }
Tensor as_strided_copy(const Tensor& self, IntSpan size, IntSpan stride,
                       std::optional<int64_t> storage_offset) {
  return copied(ops::as_strided(self, size, stride, storage_offset));
}
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(ops::diagonal(self, offset, dim1, dim2));
}
Tensor alias_copy(const Tensor& self) { return copied(ops::alias(self)); }
Tensor detach_copy(const Tensor& self) { return copied(ops::detach(self)); }
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(ops::unfold(self, dimension, size, step));
}
Tensor view_as_real_copy(const Tensor& self) { return copied(ops::view_as_real(self)); }
Tensor view_as_complex_copy(const Tensor& self) { return copied(ops::view_as_complex(self)); }
Tensor conj_copy(const Tensor& self) { return ops::resolve_conj(copied(ops::_conj(self))); }
Tensor neg_view_copy(const Tensor& self) { return ops::resolve_neg(copied(ops::_neg_view(self))); }
std::vector<Tensor> unbind_copy_int(const Tensor& self, int64_t dim) {
  return copied(ops::unbind(self, dim));
}
std::vector<Tensor> split_copy_Tensor(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied(ops::split(self, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return copied(ops::split_with_sizes(self, split_sizes, dim));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(select_copy_int){
    .schema = "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
    .doc = "As select, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<select_copy_int>,
    .derivatives = {vjp("self", as_view<records::select_int_record>)},
    .node = "SelectBackward0_copy",
};
OP(slice_copy_Tensor){
    .schema =
        "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
        "step=1) -> Tensor",
    .doc = "As slice, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<slice_copy_Tensor>,
    .derivatives = {vjp("self", as_view<records::slice_Tensor_record>)},
    .node = "SliceBackward0_copy",
};
OP(view_copy){
    .schema = "view_copy(Tensor self, SymInt[] size) -> Tensor",
    .doc = "As view, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<view_copy>,
    .derivatives = {vjp("self", as_view<records::view_record>)},
    .node = "ViewBackward0_copy",
};
OP(view_copy_dtype){
    .schema = "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
    .doc = "As view.dtype, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<view_copy_dtype>,
    .hole = "bytes seen as another dtype have no derivative",
};
OP(expand_copy){
    .schema = "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
    .doc = "As expand, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<expand_copy>,
    .derivatives = {vjp("self", as_view<records::expand_record>)},
    .node = "ExpandBackward0_copy",
};
OP(permute_copy){
    .schema = "permute_copy(Tensor self, int[] dims) -> Tensor",
    .doc = "As permute, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<permute_copy>,
    .derivatives = {vjp("self", as_view<records::permute_record>)},
    .node = "PermuteBackward0_copy",
};
OP(transpose_copy_int){
    .schema = "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
    .doc = "As transpose, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<transpose_copy_int>,
    .derivatives = {vjp("self", as_view<records::transpose_int_record>)},
    .node = "TransposeBackward0_copy",
};
OP(t_copy){
    .schema = "t_copy(Tensor self) -> Tensor",
    .doc = "As t, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<t_copy>,
    .derivatives = {vjp("self", as_view<records::t_record>)},
    .node = "TBackward0_copy",
};
OP(squeeze_copy){
    .schema = "squeeze_copy(Tensor self) -> Tensor",
    .doc = "As squeeze, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<squeeze_copy>,
    .derivatives = {vjp("self", as_view<records::squeeze_record>)},
    .node = "SqueezeBackward0_copy",
};
OP(squeeze_copy_dim){
    .schema = "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
    .doc = "As squeeze, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<squeeze_copy_dim>,
    .derivatives = {vjp("self", as_view<records::squeeze_dim_record>)},
    .node = "SqueezeBackward1_copy",
};
OP(squeeze_copy_dims){
    .schema = "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
    .doc = "As squeeze, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<squeeze_copy_dims>,
    .derivatives = {vjp("self", as_view<records::squeeze_dims_record>)},
    .node = "SqueezeBackward2_copy",
};
OP(unsqueeze_copy){
    .schema = "unsqueeze_copy(Tensor self, int dim) -> Tensor",
    .doc = "As unsqueeze, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<unsqueeze_copy>,
    .derivatives = {vjp("self", as_view<records::unsqueeze_record>)},
    .node = "UnsqueezeBackward0_copy",
};
OP(as_strided_copy){
    .schema =
        "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
        "-> Tensor",
    .doc = "As as_strided, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = reads_strides | exact_out,
    .any = typed_kernel<as_strided_copy>,
    .derivatives = {vjp("self", as_view<records::as_strided_record>)},
    .node = "AsStridedBackward0_copy",
};
OP(diagonal_copy){
    .schema = "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .doc = "As diagonal, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<diagonal_copy>,
    .derivatives = {vjp("self", as_view<records::diagonal_record>)},
    .node = "DiagonalBackward0_copy",
};
OP(alias_copy){
    .schema = "alias_copy(Tensor self) -> Tensor",
    .doc = "As alias, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<alias_copy>,
    .derivatives = {vjp("self", as_view<records::alias_record>)},
    .node = "AliasBackward0_copy",
};
OP(detach_copy){
    .schema = "detach_copy(Tensor self) -> Tensor",
    .doc = "As detach, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<detach_copy>,
    .not_differentiable = names("result", "self"),
};
OP(unfold_copy){
    .schema = "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
    .doc = "As unfold, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<unfold_copy>,
    .derivatives = {vjp("self", as_view<records::unfold_record>)},
    .node = "UnfoldBackward0_copy",
};
OP(view_as_real_copy){
    .schema = "view_as_real_copy(Tensor self) -> Tensor",
    .doc = "As view_as_real, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<view_as_real_copy>,
    .derivatives = {vjp("self", as_view<records::view_as_real_record>)},
    .node = "ViewAsRealBackward0_copy",
};
OP(view_as_complex_copy){
    .schema = "view_as_complex_copy(Tensor self) -> Tensor",
    .doc = "As view_as_complex, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<view_as_complex_copy>,
    .derivatives = {vjp("self", as_view<records::view_as_complex_record>)},
    .node = "ViewAsComplexBackward0_copy",
};
OP(_conj_copy){
    .schema = "_conj_copy(Tensor self) -> Tensor",
    .doc = "As _conj, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<conj_copy>,
    .derivatives = {vjp("self", as_view<records::_conj_record>)},
    .node = "ConjBackward0_copy",
};
OP(_neg_view_copy){
    .schema = "_neg_view_copy(Tensor self) -> Tensor",
    .doc = "As _neg_view, as a copy in memory of its own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<neg_view_copy>,
    .derivatives = {vjp("self", as_view<records::_neg_view_record>)},
    .node = "NegViewBackward0_copy",
};
OP(unbind_copy_int){
    .schema = "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
    .doc = "As unbind, as copies in memory of their own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<unbind_copy_int>,
    .derivatives = {vjp("self", as_view<records::unbind_int_record>)},
    .node = "UnbindBackward0_copy",
};
OP(split_copy_Tensor){
    .schema = "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    .doc = "As split, as copies in memory of their own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<split_copy_Tensor>,
    .derivatives = {vjp("self", as_view<records::split_Tensor_record>)},
    .node = "SplitBackward0_copy",
};
OP(split_with_sizes_copy){
    .schema = "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    .doc = "As split_with_sizes, as copies in memory of their own.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<split_with_sizes_copy>,
    .derivatives = {vjp("self", as_view<records::split_with_sizes_record>)},
    .node = "SplitWithSizesBackward0_copy",
};
