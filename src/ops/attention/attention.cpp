// Scaled dot product attention.
#include "ops/attention/attention.h"

#include <cmath>

#include "core/autograd_meta.h"
#include "kernels/cpu/attention/attention.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/matmul/matmul.h"
#include "ops/meta_rules.h"
#include "ops/random/dropout.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/softmax.h"
#include "ops/shape/repeat.h"
#include "ops/shape/view.h"

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

// --- by blocks, on the CPU

constexpr const char* flash_name = "_scaled_dot_product_flash_attention_for_cpu";

// Whether a mask of two or four dimensions can be broadcast to the scores.
bool fits_scores(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (!mask.defined()) return true;
  if (mask.dim() != 2 && mask.dim() != 4) return false;
  const int64_t wanted[] = {q.size(0), q.size(1), q.size(2), k.size(2)};
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const int64_t size = mask.size(d);
    if (size != 1 && size != wanted[4 - mask.dim() + d]) return false;
  }
  return true;
}

// Whether queries, keys and values belong together, and there are some.
bool heads_fit(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  const bool batches = q.size(0) == k.size(0) && q.size(0) == v.size(0);
  const bool heads = k.size(1) == v.size(1) && k.size(1) > 0 && q.size(1) % k.size(1) == 0;
  const bool widths = q.size(3) == k.size(3) && q.size(3) == v.size(3) && q.size(3) > 0;
  return batches && heads && widths && k.size(2) == v.size(2) && k.size(2) > 0 && q.numel() > 0;
}

// Whether attention by blocks serves them too.
bool flash_shapes(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!heads_fit(q, k, v) || q.size(3) > cpu::widest_attention_head) return false;
  return q.strides()[3] == 1 && k.strides()[3] == 1 && v.strides()[3] == 1;
}

bool wants_gradient(const Tensor& t) {
  const AutogradMeta* meta = t.defined() ? t->autograd : nullptr;
  return meta != nullptr && (meta->requires_grad || meta->grad_fn);
}

bool has_tangent(const Tensor& t) {
  const AutogradMeta* meta = t.defined() ? t->autograd : nullptr;
  return meta != nullptr && meta->tangent;
}

// Function transforms and forward mode know the rules of attention's parts only.
bool goes_by_blocks(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                    double dropout_p, bool gqa) {
  if (thread_state.interpreters != nullptr || has_tangent(q) || has_tangent(k) || has_tangent(v))
    return false;
  if (q.device().type != DeviceType::CPU || dropout_p != 0 || !is_floating(q.dtype())) return false;
  if (!flash_shapes(q, k, v) || (!gqa && q.size(1) != k.size(1))) return false;
  return fits_scores(mask, q, k) && !wants_gradient(mask);
}

void check_heads(const Tensor& q, const Tensor& k, const Tensor& v, const char* form) {
  check(heads_fit(q, k, v), flash_name, form,
        ": expected query, key and value (batch, heads, length, width) of one batch and width, key "
        "and value of one length; got shapes ",
        str(q.sizes()), ", ", str(k.sizes()), " and ", str(v.sizes()));
  check_kind(ErrorKind::NotImplemented, flash_shapes(q, k, v), flash_name, form,
             ": expected contiguous rows of at most ", cpu::widest_attention_head,
             " elements; got shapes ", str(q.sizes()), ", ", str(k.sizes()), " and ",
             str(v.sizes()));
}

void meta_flash(Meta& m, const Tensor& q, const Tensor& k, const Tensor& v, double dropout_p,
                bool causal, const Tensor& mask) {
  check_attention(q, k, v, mask, causal);
  check(dropout_p == 0, flash_name, "(): dropout_p must be 0; got ", dropout_p);
  check_heads(q, k, v, "()");
  check(fits_scores(mask, q, k) && !(mask.defined() && mask.dtype() == DType::Bool), flash_name,
        "(): attn_mask must be floating and broadcast to the scores of ", str(q.sizes()), " and ",
        str(k.sizes()), "; got ", str(mask.defined() ? mask.sizes() : IntSpan()));
  m.result_like(0, q, q.dtype());
  const int64_t heads = q.size(1), length = q.size(2);
  m.result(1, IntList{q.size(0), heads, length},
           q.dtype() == DType::Float64 ? DType::Float64 : DType::Float32,
           IntList{heads * length, 1, heads});
}

void meta_flash_backward(Meta& m, const Tensor& grad, const Tensor& q, const Tensor& k,
                         const Tensor& v, const Tensor& out, const Tensor& logsumexp, double, bool,
                         const Tensor& mask) {
  check_heads(q, k, v, "_backward()");
  check(same_sizes(grad.sizes(), q.sizes()) && same_sizes(out.sizes(), q.sizes()) &&
            grad.dtype() == q.dtype() && out.dtype() == q.dtype() && fits_scores(mask, q, k),
        flash_name, "_backward(): grad_out and out must have query's shape and dtype, ",
        str(q.sizes()), "; got ", str(grad.sizes()), " and ", str(out.sizes()));
  check(same_sizes(logsumexp.sizes(), q.sizes().first(3)) &&
            logsumexp.dtype() == (q.dtype() == DType::Float64 ? DType::Float64 : DType::Float32),
        flash_name, "_backward(): logsumexp must have shape ", str(q.sizes().first(3)), "; got ",
        str(logsumexp.sizes()));
  const Tensor* of[] = {&q, &k, &v};
  for (int i = 0; i < 3; ++i) {
    const IntSpan s = of[i]->sizes();
    m.result(i, s, q.dtype(), IntList{s[1] * s[2] * s[3], s[3], s[1] * s[3], 1});
  }
}

// The gradients as differentiable formulas, for gradients of gradients.
struct AttentionGradients {
  Tensor query, key, value;
};
Tensor summed_groups(const Tensor& t, int64_t heads) {
  if (t.size(1) == heads) return t;
  const int64_t group = t.size(1) / heads;
  const Tensor split = ops::reshape(t, IntList{t.size(0), heads, group, t.size(2), t.size(3)});
  return ops::sum(split, IntList{2});
}
AttentionGradients gradients_by_parts(const Tensor& grad, const Tensor& q, const Tensor& key,
                                      const Tensor& value, const Tensor& mask, bool causal,
                                      double scale) {
  const int64_t heads = key.size(1);
  const Tensor k = repeated_heads(key, q.size(1)), v = repeated_heads(value, q.size(1));
  Tensor scores = ops::mul(ops::matmul(q, ops::transpose(k, -2, -1)), scale);
  if (causal) scores = ops::add(scores, additive_mask(causal_mask(q, k), scores));
  if (mask.defined()) scores = ops::add(scores, mask);
  const Tensor weights = ops::_safe_softmax(ops::to(scores, q.dtype()), -1);
  const Tensor slope = ops::matmul(grad, ops::transpose(v, -2, -1));
  const Tensor mean = ops::sum(ops::mul(weights, slope), IntList{-1}, true);
  const Tensor inner = ops::mul(ops::mul(weights, ops::sub(slope, mean)), scale);
  return {ops::matmul(inner, k),
          summed_groups(ops::matmul(ops::transpose(inner, -2, -1), q), heads),
          summed_groups(ops::matmul(ops::transpose(weights, -2, -1), grad), heads)};
}

void flash_gradient(Backward& b) {
  const Tensor q = b["query"], k = b["key"], v = b["value"], mask = b["attn_mask"];
  std::optional<double> scale;
  if (!b.is_none("scale")) scale = b.number("scale");
  const bool causal = b.flag("is_causal");
  AttentionGradients g;
  if (thread_state.grad_enabled) {
    const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
    g = gradients_by_parts(b.grad(), q, k, v, mask, causal, factor);
  } else {
    std::tie(g.query, g.key, g.value) = ops::_scaled_dot_product_flash_attention_for_cpu_backward(
        b.grad(), q, k, v, b.result(0), b.result(1), 0, causal, mask, scale);
  }
  b.set("query", g.query);
  b.set("key", g.key);
  b.set("value", g.value);
}

Tensor flash(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
             std::optional<double> scale) {
  const Tensor added = mask.defined() ? additive_mask(mask, q) : mask;
  return std::get<0>(
      ops::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, added, scale));
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 double dropout_p, bool causal, std::optional<double> scale, bool gqa) {
  check_attention(query, key, value, mask, causal);
  if (query.dim() == 3 && key.dim() == 3 && value.dim() == 3) {  // one batch
    const Tensor out = attention(ops::unsqueeze(query, 0), ops::unsqueeze(key, 0),
                                 ops::unsqueeze(value, 0), mask, dropout_p, causal, scale, gqa);
    return ops::squeeze(out, 0);
  }
  if (goes_by_blocks(query, key, value, mask, dropout_p, gqa))
    return flash(query, key, value, mask, causal, scale);
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
OP(_scaled_dot_product_flash_attention_for_cpu){
    .schema =
        "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
        "dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
        "(Tensor output, Tensor logsumexp)",
    .doc =
        "Attention by blocks, which never forms the matrix of scores; also gives the logarithms of "
        "the sums of their exponentials.",
    .forms = hidden,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_flash>,
    .cpu = cpu::flash_attention_kernel,
    .derivatives = {vjp(names("query", "key", "value"), flash_gradient,
                        saves("query", "key", "value", "attn_mask", "output", "logsumexp"))},
    .node = "ScaledDotProductFlashAttentionForCpuBackward0",
    .not_differentiable = names("logsumexp"),
    .hole = "jvp, vmap: scaled_dot_product_attention takes its parts there",
};
OP(_scaled_dot_product_flash_attention_for_cpu_backward){
    .schema =
        "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, "
        "Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, "
        "*, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, "
        "Tensor grad_value)",
    .doc = "Gradients of _scaled_dot_product_flash_attention_for_cpu.",
    .forms = hidden,
    .meta = typed_meta<meta_flash_backward>,
    .cpu = cpu::flash_attention_backward_kernel,
    .hole =
        "derivatives: gradients of gradients take attention's parts; vmap: "
        "scaled_dot_product_attention takes them there, too",
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
