// Gradients of embedding tables as sparse tensors: rows that were looked up, and no others.
#include "ops/sparse/embedding.h"

#include "dispatch/typed.h"
#include "ops/create/copy.h"
#include "ops/elementwise/comparison.h"
#include "ops/index/index.h"
#include "ops/shape/view.h"
#include "ops/sparse/coo_tensor.h"

namespace facula {
namespace {

Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t rows,
                                 int64_t padding, bool scale_by_freq) {
  check(!scale_by_freq,
        "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  const int64_t width = grad.size(-1);
  Tensor at = ops::to(ops::reshape(indices, IntVec(1, -1)), DType::Int64);
  Tensor values = ops::reshape(grad, IntVec{at.numel(), width});
  if (padding >= 0) {
    const Tensor kept[] = {ops::ne(at, padding)};
    values = ops::index(values, kept);
    at = ops::index(at, kept);
  }
  return ops::_sparse_coo_tensor_unsafe(ops::unsqueeze(at, 0), values, IntVec{rows, width});
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(embedding_sparse_backward){
    .schema =
        "embedding_sparse_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt "
        "padding_idx, bool scale_grad_by_freq) -> Tensor",
    .doc = "Gradient of embedding with respect to its table, as a sparse_coo tensor of its rows.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<embedding_sparse_backward>,
};
