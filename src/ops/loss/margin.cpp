// Losses that are sums of elementwise operators.
#include "ops/loss/margin.h"

#include <algorithm>
#include <cmath>

#include "dispatch/call.h"
#include "dispatch/modes_watch.h"
#include "kernels/cpu/reduce/cosine.h"
#include "ops/create/creation.h"
#include "ops/elementwise/activation_smooth.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/arithmetic_numbers.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/minmax.h"
#include "ops/elementwise/powers.h"
#include "ops/elementwise/where.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/variance.h"
#include "ops/shape/view.h"
#include "ops/special/binary.h"

namespace facula {
namespace {

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == 0) return loss;
  return reduction == 1 ? ops::mean(loss) : ops::sum(loss);
}

Tensor bce_with_logits(const Tensor& self, const Tensor& target, const Tensor& weight,
                       const Tensor& pos_weight, int64_t reduction) {
  const Tensor yes = ops::log_sigmoid(self);
  // (1 - t) x - (1 + (pos_weight - 1) t) log sigmoid(x)
  const Tensor rest = ops::mul(ops::rsub(target, 1), self);
  const Tensor scaled = pos_weight.defined()
                            ? ops::mul(yes, ops::add(ops::mul(ops::sub(pos_weight, 1), target), 1))
                            : yes;
  const Tensor loss = ops::sub(rest, scaled);
  return reduced(weight.defined() ? ops::mul(loss, weight) : loss, reduction);
}

Tensor shared(Backward& b, const Tensor& slope) {
  const Tensor w = b["weight"],
               scaled = ops::mul(b.grad(), w.defined() ? ops::mul(slope, w) : slope);
  if (b.integer("reduction") != 1) return scaled;
  return ops::div(scaled, checked_numel(broadcast_sizes(b.sizes("self"), b.sizes("target"))));
}
// (1 + (pos_weight - 1) t) sigmoid(x) - pos_weight t
Tensor bce_with_logits_by_self(Backward& b) {
  const Tensor x = b["self"], t = b["target"], pos_weight = b["pos_weight"];
  if (!pos_weight.defined()) return shared(b, ops::sub(ops::sigmoid(x), t));
  const Tensor positive = ops::mul(pos_weight, t);
  return shared(b,
                ops::sub(ops::mul(ops::sub(ops::add(positive, 1), t), ops::sigmoid(x)), positive));
}
// -x - (pos_weight - 1) log sigmoid(x)
Tensor bce_with_logits_by_target(Backward& b) {
  const Tensor x = b["self"], pos_weight = b["pos_weight"];
  if (!pos_weight.defined()) return shared(b, ops::neg(x));
  return shared(b,
                ops::sub(ops::log_sigmoid(ops::neg(x)), ops::mul(pos_weight, ops::log_sigmoid(x))));
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  check(is_floating(self.dtype()) && is_floating(target.dtype()),
        "kl_div(): expected floating point tensors; got ", name(self.dtype()), " and ",
        name(target.dtype()));
  const Tensor loss = log_target ? ops::mul(ops::exp(target), ops::sub(target, self))
                                 : ops::sub(ops::xlogy(target, target), ops::mul(target, self));
  return reduced(loss, reduction);
}

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  const Tensor zeros = ops::zeros_like(self);
  // The margin takes the dtype of self: of integers the loss is one too.
  const Tensor far = ops::clamp_min(ops::sub(ops::full_like(self, margin), self), 0);
  return reduced(ops::add(ops::where(ops::ne(target, 1), far, zeros),
                          ops::where(ops::ne(target, -1), self, zeros)),
                 reduction);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                           int64_t reduction) {
  const Tensor behind = ops::mul(ops::neg(target), ops::sub(a, b));
  return reduced(ops::clamp_min(ops::add(behind, margin), 0), reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  Tensor loss = log_input ? ops::sub(ops::exp(input), ops::mul(target, input))
                          : ops::sub(input, ops::mul(target, ops::log(ops::add(input, eps))));
  if (full) {
    // Stirling's approximation of log(target!)
    const Tensor stirling =
        ops::add(ops::sub(ops::mul(target, ops::log(target)), target),
                 ops::mul(ops::log(ops::mul(target, 2 * 3.14159265358979323846)), 0.5));
    loss = ops::add(loss, ops::where(ops::le(target, 1), 0.0, stirling));
  }
  return reduced(loss, reduction);
}

// --- distances

// Sum of magnitudes of a difference to the power p, rooted.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  const int64_t ndim = std::max(a.dim(), b.dim());
  const Tensor d = ops::abs(ops::add(ops::sub(a, b), eps));
  const IntVec last{ndim - 1};
  if (p == 1) return ops::sum(d, last, keepdim);
  if (std::isinf(p) || p == 0)
    throw Error(ErrorKind::NotImplemented, "pairwise_distance(): the norm ", p,
                " is not implemented");
  return ops::pow(ops::sum(ops::pow(d, p), last, keepdim), 1 / p);
}

// Whether nobody looks at the parts: no history, transform or mode, memory on the CPU.
bool is_seen_whole(const Tensor& t) {
  return t->layers == LayerSet(Layer::CPU) && !thread_state.interpreters && !modes_watch();
}
bool has_cosine_rows(const Tensor& a, const Tensor& b, int64_t dim) {
  const bool floats = a.dtype() == DType::Float32 || a.dtype() == DType::Float64;
  return floats && a.dtype() == b.dtype() && a.dim() > 0 && wrap_dim(dim, a.dim()) == a.dim() - 1 &&
         same_sizes(a.sizes(), b.sizes()) && a.is_contiguous() && b.is_contiguous() &&
         is_seen_whole(a) && is_seen_whole(b);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  check(eps >= 0, "cosine_similarity(): eps must be non-negative; got ", eps);
  if (has_cosine_rows(a, b, dim)) {
    const Tensor out = empty_tensor(a.sizes().first(static_cast<size_t>(a.dim() - 1)), a.dtype());
    if (out.numel() > 0) FACULA_OF_ISA(cosine_of_rows)(a, b, eps, out);
    return out;
  }
  const DType common = promote(a.dtype(), b.dtype());
  check(is_floating(common), "loss: the inputs' common dtype must be floating point; got ",
        name(common));
  const IntVec sizes = broadcast_sizes(a.sizes(), b.sizes());
  auto spread = [&](const Tensor& t) {
    return same_sizes(t.sizes(), sizes) ? t : ops::expand(t, sizes);
  };
  const Tensor x = spread(a), y = spread(b);
  const IntVec over{dim};
  auto length = [&](const Tensor& t) {
    return ops::clamp_min(ops::linalg_vector_norm(t, 2, IntList(over), true), eps);
  };
  return ops::sum(ops::mul(ops::div(x, length(x)), ops::div(y, length(y))), over, false);
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                             int64_t reduction) {
  check(target.dim() == 0 || target.dim() == 1,
        "multi_margin_loss(): target must have 0 or 1 dimensions; got ", target.dim());
  check(a.dim() == target.dim() + 1 && b.dim() == target.dim() + 1, target.dim() == 0 ? "0D" : "1D",
        " target tensor expects ", target.dim() == 0 ? "1D" : "2D",
        " input tensors, but found inputs with sizes ", str(a.sizes()), " and ", str(b.sizes()),
        ".");
  const IntVec over{target.dim()};
  constexpr double eps = 1e-12;
  auto square = [&](const Tensor& t) {
    return ops::add(ops::sum(ops::mul(t, t), over, false), eps);
  };
  const Tensor cosine =
      ops::div(ops::sum(ops::mul(a, b), over, false), ops::sqrt(ops::mul(square(a), square(b))));
  const Tensor zeros = ops::zeros_like(cosine);
  const Tensor same = ops::where(ops::eq(target, 1), ops::rsub(cosine, 1), zeros);
  const Tensor other =
      ops::where(ops::eq(target, -1), ops::clamp_min(ops::sub(cosine, margin), 0), zeros);
  return reduced(ops::add(same, other), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  const int64_t n = anchor.dim();
  check(n == positive.dim() && n == negative.dim(),
        "triplet_margin_loss(): anchor, positive and negative must have as many dimensions; got ",
        n, ", ", positive.dim(), " and ", negative.dim());
  check(margin > 0, "triplet_margin_loss(): expected a margin above 0; got ", margin);
  const Tensor near = ops::pairwise_distance(anchor, positive, p, eps);
  Tensor far = ops::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = ops::minimum(far, ops::pairwise_distance(positive, negative, p, eps));
  return reduced(ops::clamp_min(ops::add(ops::sub(near, far), margin), 0), reduction);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(binary_cross_entropy_with_logits){
    .schema =
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
        "pos_weight=None, "
        "int reduction=Mean) -> Tensor",
    .doc =
        "Cross entropy of sigmoid(self) and target; pos_weight scales the part of positive "
        "targets.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<bce_with_logits>,
    .derivatives =
        {
            vjp("self", bce_with_logits_by_self, saves("self", "target", "weight", "pos_weight")),
            vjp("target", bce_with_logits_by_target, saves("self", "weight", "pos_weight")),
        },
    .not_differentiable = names("weight", "pos_weight"),
};
OP(kl_div){
    .schema =
        "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> "
        "Tensor",
    .doc =
        "Kullback-Leibler divergence of log-probabilities self from (log-)probabilities target, "
        "term by term.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<kl_div>,
};
OP(hinge_embedding_loss){
    .schema =
        "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> "
        "Tensor",
    .doc = "Self where target is 1, max(0, margin - self) where it is -1.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<hinge_embedding_loss>,
};
OP(margin_ranking_loss){
    .schema =
        "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
        "reduction=Mean) -> Tensor",
    .doc = "max(0, margin - target * (input1 - input2)).",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<margin_ranking_loss>,
};
OP(poisson_nll_loss){
    .schema =
        "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
        "reduction) -> Tensor",
    .doc = "Negative log likelihood of counts under Poisson rates (or their logarithms).",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<poisson_nll_loss>,
};
OP(pairwise_distance){
    .schema =
        "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) "
        "-> Tensor",
    .doc = "Norm of x1 - x2 + eps over the last dimension.",
    .composite = Composite::Implicit,
    .any = typed_kernel<pairwise_distance>,
};
OP(cosine_similarity){
    .schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    .doc = "Cosine of the angle between x1 and x2 along a dimension.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<cosine_similarity>,
};
OP(cosine_embedding_loss){
    .schema =
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
        "reduction=Mean) -> Tensor",
    .doc = "1 - cosine where target is 1, max(0, cosine - margin) where it is -1.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<cosine_embedding_loss>,
};
OP(triplet_margin_loss){
    .schema =
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
        "float p=2, float eps=1e-06, "
        "bool swap=False, int reduction=Mean) -> Tensor",
    .doc = "max(0, distance to positive - distance to negative + margin).",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<triplet_margin_loss>,
};
