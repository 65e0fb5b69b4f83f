// Embeddings: rows of a table by number.
#include "ops/embedding/embedding.h"

#include "kernels/cpu/embedding/embedding.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/embedding/batch.h"
#include "ops/index/index.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"
#include "ops/sparse/embedding.h"

namespace facula {
namespace {

void check_indices(const Tensor& indices, const char* op) {
  check(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, op,
        "(): indices must have dtype int64 or int32; got ", name(indices.dtype()));
}

void meta_embedding(Meta& m, const Tensor& weight, const Tensor& indices) {
  check(weight.dim() == 2, "'weight' must be 2-D");
  check_indices(indices, "embedding");
  IntVec sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  m.result(0, sizes, weight.dtype());
}
void embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool,
               const Tensor& out) {
  cpu::embedding(weight, indices, out);
}

void meta_dense_backward(Meta& m, const Tensor& grad, const Tensor& indices, int64_t rows) {
  check_indices(indices, "embedding_backward");
  check(grad.dim() == indices.dim() + 1 &&
            same_sizes(grad.sizes().first(static_cast<size_t>(indices.dim())), indices.sizes()),
        "embedding_dense_backward(): expected a grad_output of shape (", str(indices.sizes()),
        ", width); got ", str(grad.sizes()));
  m.result(0, IntVec{rows, grad.size(-1)}, grad.dtype());
}

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding,
                          bool scale, bool sparse) {
  if (sparse) return ops::embedding_sparse_backward(grad, indices, rows, padding, scale);
  return ops::embedding_dense_backward(grad, indices, rows, padding, scale);
}

// The gradient of rows that were summed: the same rows, without the padding.
Tensor gathered(Backward& b) {
  check(!b.flag("scale_grad_by_freq"),
        "embedding_dense_backward: double backward does not support scale_grad_by_freq");
  const Tensor indices = b["indices"];
  const Tensor rows = ops::embedding(b.grad(), indices);
  if (b.integer("padding_idx") < 0) return rows;
  return ops::masked_fill(rows, ops::unsqueeze(ops::eq(indices, b.integer("padding_idx")), -1), 0);
}

void renorm(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  check(self.dim() == 2, "embedding_renorm_(): expected a self of 2 dimensions; got shape ",
        str(self.sizes()));
  check_indices(indices, "embedding_renorm_");
  if (!self.is_meta()) cpu::embedding_renorm(self, indices, max_norm, norm_type);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(embedding){
    .schema =
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
        "scale_grad_by_freq=False, "
        "bool sparse=False) -> Tensor",
    .doc =
        "Rows of weight (rows, width) by number: indices of any shape give that shape and width.",
    .forms = function | out,
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_embedding>,
    .cpu = typed_kernel<embedding>,
    .derivatives = {vjp(
        "weight",
        [](Backward& b) {
          return ops::embedding_backward(b.grad(), b["indices"], b.sizes("weight")[0],
                                         b.integer("padding_idx"), b.flag("scale_grad_by_freq"),
                                         b.flag("sparse"));
        },
        saves("indices"))},
    .batch = batch::embedding,
};
OP(embedding_backward){
    .schema =
        "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, "
        "bool scale_grad_by_freq, "
        "bool sparse) -> Tensor",
    .doc = "Gradient of embedding with respect to its table.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<embedding_backward>,
};
OP(embedding_dense_backward){
    .schema =
        "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
        "padding_idx, "
        "bool scale_grad_by_freq) -> Tensor",
    .doc = "Gradient of embedding with respect to its table, as a dense tensor.",
    .forms = hidden | out,
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_dense_backward>,
    .cpu = typed_kernel<cpu::embedding_dense_backward>,
    .derivatives = {vjp("grad_output", gathered, saves("indices"))},
    .batch = batch::embedding_backward,
};
OP(embedding_renorm_){
    .schema =
        "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> "
        "Tensor(a!)",
    .doc =
        "Scales those rows of self that indices name down to max_norm where their norm is larger.",
    .forms = function | functional,
    .any = typed_kernel<renorm>,
    .hole = "derivatives: PyTorch has none either; vmap: samples are done one by one",
};
