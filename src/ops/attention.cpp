// Scaled dot product attention.
#include "ops/attention.h"

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/dropout.h"
#include "ops/index.h"
#include "ops/logical.h"
#include "ops/matmul.h"
#include "ops/meta_rules.h"
#include "ops/pointwise_other.h"
#include "ops/reduce.h"
#include "ops/shape_repeat.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace facula {
namespace {

constexpr double lowest = -__builtin_inf();

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                     bool causal) {
  const char* op = "scaled_dot_product_attention";
  check(is_differentiable(q.dtype()), op, "(): query, key and value must be floating point; got ",
        name(q.dtype()));
  check(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
        "attention: query, key and value must have one dtype; got ", name(q.dtype()), ", ",
        name(k.dtype()), " and ", name(v.dtype()));
  check(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2, op,
        "(): query, key and value must have at least 2 dimensions; got ", q.dim(), ", ", k.dim(),
        " and ", v.dim());
  if (!mask.defined()) return;
  check(mask.dtype() == DType::Bool || mask.dtype() == q.dtype() || mask.dtype() == DType::Float32,
        "attention: attn_mask must be bool, float32 or of query's dtype, ", name(q.dtype()),
        "; got ", name(mask.dtype()));
  check(!causal, op, "(): attn_mask and is_causal exclude each other; got both");
}

// Softmax that gives zeros, not nan, where every element is -inf.
Tensor safe_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor out = ops::softmax(self, dim, dtype);
  const Tensor masked = ops::eq(ops::sum(ops::ne(self, lowest), IntList{dim}, true), 0);
  return ops::where(masked, 0.0, out);
}

// What is added to the scores: 0 where attention is allowed, -inf where not.
Tensor additive_mask(const Tensor& mask, const Tensor& like) {
  if (mask.dtype() != DType::Bool) return mask;
  const Tensor zeros = ops::new_zeros(like, mask.sizes());
  return ops::masked_fill(zeros, ops::logical_not(mask), lowest);
}
Tensor causal_mask(const Tensor& q, const Tensor& k) {
  return ops::tril(ops::ones(IntList{q.size(-2), k.size(-2)}, DType::Bool, {}, q.device()));
}

// Each head of keys and values serves a group of heads of queries.
Tensor repeated_heads(const Tensor& t, int64_t heads) {
  const int64_t have = t.size(-3);
  if (have == heads) return t;
  check(have > 0 && heads % have == 0,
        "scaled_dot_product_attention(): heads of key and value must divide those of query; got ",
        have, " and ", heads);
  return ops::repeat_interleave(t, heads / have, t.dim() - 3);
}

std::tuple<Tensor, Tensor> attention_math(const Tensor& query, const Tensor& key,
                                          const Tensor& value, const Tensor& mask, double dropout_p,
                                          bool causal, const Tensor& dropout_mask,
                                          std::optional<double> scale, bool gqa) {
  check_attention(query, key, value, mask, causal);
  const Tensor k = gqa ? repeated_heads(key, query.size(-3)) : key,
               v = gqa ? repeated_heads(value, query.size(-3)) : value;
  // Both factors take the root of the scale, so that neither product overflows in half precision.
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  const double root = std::sqrt(std::fabs(factor));
  const Tensor q = ops::mul(query, factor < 0 ? -root : root);
  Tensor scores = ops::matmul(q, ops::mul(ops::transpose(k, -2, -1), root));
  if (causal) scores = ops::add(scores, additive_mask(causal_mask(query, k), scores));
  if (mask.defined()) scores = ops::add(scores, additive_mask(mask, scores));
  const Tensor attention = ops::_safe_softmax(ops::to(scores, query.dtype()), -1);
  if (dropout_mask.defined()) {
    const Tensor kept = ops::masked_fill(attention, ops::logical_not(dropout_mask), 0.0);
    return {ops::matmul(kept, ops::mul(v, 1 / (1 - dropout_p))), attention};
  }
  if (dropout_p > 0) return {ops::matmul(ops::dropout(attention, dropout_p, true), v), attention};
  return {ops::matmul(attention, v), attention};
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 double dropout_p, bool causal, std::optional<double> scale, bool gqa) {
  return std::get<0>(ops::_scaled_dot_product_attention_math(query, key, value, mask, dropout_p,
                                                             causal, {}, scale, gqa));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_safe_softmax){
    .schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "Softmax along a dimension; zeros where all elements are -inf.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = typed_kernel<safe_softmax>,
};
OP(_scaled_dot_product_attention_math){
    .schema =
        "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? "
        "attn_mask=None, "
        "float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? "
        "scale=None, "
        "bool enable_gqa=False) -> (Tensor, Tensor)",
    .doc = "Attention by matrix products and softmax; also gives the weights.",
    .composite = Composite::Implicit,
    .any = typed_kernel<attention_math>,
};
OP(scaled_dot_product_attention){
    .schema =
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
        "attn_mask=None, "
        "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) "
        "-> Tensor",
    .doc = "softmax(query key^T scale + mask) value, over (..., length, width).",
    .python_module = "nn",
    .composite = Composite::Selecting,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<attention>,
};
