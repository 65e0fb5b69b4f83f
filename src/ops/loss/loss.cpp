// Losses of pairs of elements. Reductions: 0 none, 1 mean, 2 sum.
#include "ops/loss/loss.h"

#include "dispatch/forward.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loss/loss.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/loss/batch.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"

namespace facula {
namespace {

// The pair's common dtype and shape; one number where the loss is reduced.
void meta_pair(Meta& m, int64_t reduction) {
  if (reduction == 0) return meta::binary(m);
  broadcast_sizes(m.tensor(0).sizes(), m.tensor(1).sizes());  // raises where they do not fit
  m.result(0, {}, result_type({m.call.args, 2}));
}
void meta_loss(Meta& m, const Tensor&, const Tensor&, int64_t reduction) {
  meta_pair(m, reduction);
}
void meta_smooth_l1(Meta& m, const Tensor&, const Tensor&, int64_t reduction, double beta) {
  check(beta >= 0, "smooth_l1_loss(): beta must not be negative; got ", beta);
  meta_pair(m, reduction);
}
void meta_huber(Meta& m, const Tensor&, const Tensor&, int64_t reduction, double delta) {
  check(delta > 0, "huber_loss(): delta must be positive; got ", delta);
  meta_pair(m, reduction);
}

// Shape of the pair; dtype of all three tensors.
void meta_backward(Meta& m, const Tensor& grad, const Tensor& self, const Tensor& target) {
  const IntVec sizes = broadcast_sizes(self.sizes(), target.sizes());
  check(grad.numel() == 1 || same_sizes(broadcast_sizes(grad.sizes(), sizes), sizes), m.op_name(),
        "(): expected a grad_output of one element or shape ", str(sizes), "; got ",
        str(grad.sizes()));
  m.result(0, sizes, result_type({m.call.args, 3}));
}
// In the memory order of the first of target, self and grad that has one of its own.
void meta_soft_margin_backward(Meta& m, const Tensor& grad, const Tensor& self,
                               const Tensor& target) {
  meta_backward(m, grad, self, target);
  const Tensor* inputs[] = {&target, &self, &grad};
  const IntVec sizes = broadcast_sizes(self.sizes(), target.sizes());
  m.result(0, sizes, result_type({m.call.args, 3}), elementwise_strides(sizes, inputs));
}
// In the memory order of self.
void meta_bce_backward(Meta& m, const Tensor& grad, const Tensor& self, const Tensor& target) {
  meta_backward(m, grad, self, target);
  if (same_sizes(self.sizes(), broadcast_sizes(self.sizes(), target.sizes())))
    m.result_like(0, self, result_type({m.call.args, 3}));
}

void check_probabilities(const Tensor& t, const char* name) {
  if (t.is_meta() || t.numel() == 0 || !is_floating(t.dtype())) return;
  check(FACULA_OF_ISA(are_probabilities)(t), "all elements of ", name,
        " should be between 0 and 1");
}

void meta_bce(Meta& m, const Tensor& self, const Tensor& target, const Tensor& weight,
              int64_t reduction) {
  check(self.dtype() == target.dtype(), "binary_cross_entropy(): target must have input's dtype, ",
        facula::name(self.dtype()), "; got ", facula::name(target.dtype()));
  check_probabilities(self, "input");
  check_probabilities(target, "target");
  meta_pair(m, reduction);
  const IntVec sizes = broadcast_sizes(self.sizes(), target.sizes());
  check(!weight.defined() || same_sizes(broadcast_sizes(weight.sizes(), sizes), sizes),
        "binary_cross_entropy(): expected a weight that broadcasts to ", str(sizes), "; got shape ",
        str(weight.defined() ? weight.sizes() : IntSpan()));
}

// By the target: logit of the probabilities, as limited as the logarithms of the loss are.
Tensor bce_by_target(Backward& b) {
  const Tensor p = b["self"], w = b["weight"];
  const Tensor no = ops::clamp_min(ops::log1p(ops::neg(p)), -100),
               yes = ops::clamp_min(ops::log(p), -100);
  Tensor slope = ops::mul(b.grad(), ops::sub(no, yes));
  if (w.defined()) slope = ops::mul(slope, w);
  return b.integer("reduction") == 1 ? ops::div(slope, p.numel()) : slope;
}

// --- second derivatives

double mean_scale(Backward& b) {
  if (b.integer("reduction") != 1) return 1;
  const IntVec sizes = broadcast_sizes(b.sizes("self"), b.sizes("target"));
  return 1.0 / static_cast<double>(checked_numel(sizes));
}
Tensor mse_second(Backward& b) {
  return ops::mul(ops::mul(b.grad(), b["grad_output"]), 2 * mean_scale(b));
}

// Where the loss is quadratic, with second derivative `bend`; elsewhere it is straight.
Tensor bent(Backward& b, double edge, double bend) {
  const Tensor near = ops::lt(ops::abs(ops::sub(b["self"], b["target"])), edge);
  return ops::mul(ops::mul(ops::mul(b.grad(), b["grad_output"]), near), bend * mean_scale(b));
}
Tensor smooth_l1_second(Backward& b) { return bent(b, b.number("beta"), 1 / b.number("beta")); }
Tensor huber_second(Backward& b) { return bent(b, b.number("delta"), 1); }

// 1 / (p (1 - p)), as limited as the kernel's quotient is; with the weight and the mean's share.
Tensor bce_steepness(Backward& b, const Tensor& slope) {
  const Tensor w = b["weight"], scaled = w.defined() ? ops::mul(slope, w) : slope;
  return ops::mul(scaled, mean_scale(b));
}
Tensor bce_spread(const Tensor& p) { return ops::clamp_min(ops::mul(p, ops::rsub(p, 1)), 1e-12); }
// (p^2 - 2 p t + t) / (p (1 - p))^2
Tensor bce_second(Backward& b) {
  const Tensor p = b["self"], t = b["target"], spread = bce_spread(p);
  const Tensor over = ops::add(ops::mul(p, ops::sub(p, ops::mul(t, 2))), t);
  return ops::mul(ops::mul(b.grad(), b["grad_output"]),
                  bce_steepness(b, ops::div(over, ops::mul(spread, spread))));
}
Tensor bce_second_by_target(Backward& b) {
  return ops::mul(ops::mul(b.grad(), b["grad_output"]),
                  bce_steepness(b, ops::neg(ops::reciprocal(bce_spread(b["self"])))));
}
Tensor bce_second_by_grad(Backward& b) {
  const Tensor one = ops::ones_like(b["grad_output"]);
  return ops::mul(b.grad(), ops::binary_cross_entropy_backward(
                                one, b["self"], b["target"], b["weight"], b.integer("reduction")));
}

// t^2 s (1 - s), s being the sigmoid of t x
Tensor soft_margin_second(Backward& b) {
  const Tensor t = b["target"], s = ops::sigmoid(ops::mul(t, b["self"]));
  const Tensor bend =
      ops::mul(ops::mul(ops::mul(t, t), ops::mul(s, ops::rsub(s, 1))), mean_scale(b));
  return ops::mul(ops::mul(b.grad(), b["grad_output"]), bend);
}

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor loss = ops::abs(ops::sub(self, target));
  return reduction == 0 ? loss : reduction == 1 ? ops::mean(loss) : ops::sum(loss);
}

// The loss is linear in the target.
void binary_cross_entropy_tangent(Forward& f) {
  const Tensor &x = f.primal("self"), &y = f.primal("target");
  Tensor sum;
  if (f.tangent("self").defined()) {
    const Tensor scale = ops::clamp_min(ops::mul(x, ops::sub(1, x)), 1e-12);
    sum = ops::mul(f.tangent("self"), ops::div(ops::sub(x, y), scale));
  }
  if (f.tangent("target").defined()) {
    const Tensor odds =
        ops::sub(ops::clamp_min(ops::log1p(ops::neg(x)), -100), ops::clamp_min(ops::log(x), -100));
    const Tensor part = ops::mul(f.tangent("target"), odds);
    sum = sum.defined() ? ops::add(sum, part) : part;
  }
  if (!sum.defined()) return;
  if (f.value("weight").is_tensor()) sum = ops::mul(sum, f.primal("weight"));
  const int64_t reduction = f.value("reduction").i;
  f.set(0, reduction == 0 ? sum : reduction == 1 ? ops::mean(sum) : ops::sum(sum));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(mse_loss){
    .schema = "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "Squared difference of self and target.",
    .forms = function | out,
    .python_module = "nn",
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_loss>,
    .cpu = cpu::mse_loss_kernel,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::mse_loss_backward(b.grad(), b["self"], b["target"],
                                                b.integer("reduction"));
                },
                saves("self", "target")),
            vjp(
                "target",
                [](Backward& b) {
                  return ops::mse_loss_backward(b.grad(), b["target"], b["self"],
                                                b.integer("reduction"));
                },
                saves("self", "target")),
        },
    .batch = batch::loss,
};
OP(mse_loss_backward){
    .schema =
        "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> "
        "Tensor",
    .doc = "Gradient of mse_loss with respect to self.",
    .forms = hidden | out,
    .out_name = "grad_input",
    .meta = typed_meta<meta_backward>,
    .cpu = cpu::mse_loss_backward_kernel,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  const Tensor one = ops::ones_like(b["grad_output"]);
                  return ops::mul(b.grad(), ops::mse_loss_backward(one, b["self"], b["target"],
                                                                   b.integer("reduction")));
                },
                saves("grad_output", "self", "target")),
            vjp(
                "self", [](Backward& b) { return mse_second(b); }, saves("grad_output")),
            vjp(
                "target", [](Backward& b) { return ops::neg(mse_second(b)); },
                saves("grad_output")),
        },
    .batch = batch::loss_backward,
};
OP(l1_loss){
    .schema = "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "Magnitude of the difference of self and target.",
    .python_module = "nn",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<l1_loss>,
};
OP(smooth_l1_loss){
    .schema =
        "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
    .doc = "Magnitude of the difference of self and target, quadratic where it is below beta.",
    .forms = function | out,
    .python_module = "nn",
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_smooth_l1>,
    .cpu = cpu::smooth_l1_loss_kernel,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::smooth_l1_loss_backward(b.grad(), b["self"], b["target"],
                                                      b.integer("reduction"), b.number("beta"));
                },
                saves("self", "target")),
            vjp(
                "target",
                [](Backward& b) {
                  return ops::smooth_l1_loss_backward(b.grad(), b["target"], b["self"],
                                                      b.integer("reduction"), b.number("beta"));
                },
                saves("self", "target")),
        },
    .batch = batch::loss,
};
OP(smooth_l1_loss_backward){
    .schema =
        "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
        "float beta) -> Tensor",
    .doc = "Gradient of smooth_l1_loss with respect to self.",
    .forms = hidden | out,
    .out_name = "grad_input",
    .meta = typed_meta<meta_backward>,
    .cpu = cpu::smooth_l1_loss_backward_kernel,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  const Tensor one = ops::ones_like(b["grad_output"]);
                  return ops::mul(b.grad(), ops::smooth_l1_loss_backward(
                                                one, b["self"], b["target"], b.integer("reduction"),
                                                b.number("beta")));
                },
                saves("grad_output", "self", "target")),
            vjp(
                "self", [](Backward& b) { return smooth_l1_second(b); },
                saves("grad_output", "self", "target")),
            vjp(
                "target", [](Backward& b) { return ops::neg(smooth_l1_second(b)); },
                saves("grad_output", "self", "target")),
        },
    .batch = batch::loss_backward,
};
OP(huber_loss){
    .schema =
        "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
    .doc = "Half the squared difference of self and target, growing with slope delta beyond delta.",
    .forms = function | out,
    .python_module = "nn",
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_huber>,
    .cpu = cpu::huber_loss_kernel,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::huber_loss_backward(b.grad(), b["self"], b["target"],
                                                  b.integer("reduction"), b.number("delta"));
                },
                saves("self", "target")),
            vjp(
                "target",
                [](Backward& b) {
                  return ops::huber_loss_backward(b.grad(), b["target"], b["self"],
                                                  b.integer("reduction"), b.number("delta"));
                },
                saves("self", "target")),
        },
    .batch = batch::loss,
};
OP(huber_loss_backward){
    .schema =
        "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float "
        "delta) -> Tensor",
    .doc = "Gradient of huber_loss with respect to self.",
    .forms = hidden | out,
    .meta = typed_meta<meta_backward>,
    .cpu = cpu::huber_loss_backward_kernel,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  const Tensor one = ops::ones_like(b["grad_output"]);
                  return ops::mul(b.grad(), ops::huber_loss_backward(one, b["self"], b["target"],
                                                                     b.integer("reduction"),
                                                                     b.number("delta")));
                },
                saves("grad_output", "self", "target")),
            vjp(
                "self", [](Backward& b) { return huber_second(b); },
                saves("grad_output", "self", "target")),
            vjp(
                "target", [](Backward& b) { return ops::neg(huber_second(b)); },
                saves("grad_output", "self", "target")),
        },
    .batch = batch::loss_backward,
};
OP(soft_margin_loss){
    .schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "log(1 + exp(-target * self)), target being 1 or -1.",
    .forms = function | out,
    .python_module = "nn",
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_loss>,
    .cpu = cpu::soft_margin_loss_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::soft_margin_loss_backward(b.grad(), b["self"], b["target"],
                                                b.integer("reduction"));
        },
        saves("self", "target"))},
    .batch = batch::loss,
};
OP(soft_margin_loss_backward){
    .schema =
        "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) "
        "-> Tensor",
    .doc = "Gradient of soft_margin_loss with respect to self.",
    .forms = hidden | out,
    .out_name = "grad_input",
    .meta = typed_meta<meta_soft_margin_backward>,
    .cpu = cpu::soft_margin_loss_backward_kernel,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  const Tensor one = ops::ones_like(b["grad_output"]);
                  return ops::mul(b.grad(),
                                  ops::soft_margin_loss_backward(one, b["self"], b["target"],
                                                                 b.integer("reduction")));
                },
                saves("grad_output", "self", "target")),
            vjp("self", soft_margin_second, saves("grad_output", "self", "target")),
        },
    .batch = batch::loss_backward,
};
OP(binary_cross_entropy){
    .schema =
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) "
        "-> Tensor",
    .doc = "Cross entropy of probabilities self and target, weighted.",
    .forms = function | out,
    .python_module = "nn",
    .flags = runs_when_called,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_bce>,
    .cpu = cpu::binary_cross_entropy_kernel,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::binary_cross_entropy_backward(b.grad(), b["self"], b["target"],
                                                            b["weight"], b.integer("reduction"));
                },
                saves("self", "target", "weight")),
            vjp("target", bce_by_target, saves("self", "weight")),
        },
    .not_differentiable = names("weight"),
    .jvp = binary_cross_entropy_tangent,
    .batch = batch::loss,
};
OP(binary_cross_entropy_backward){
    .schema =
        "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? "
        "weight=None, "
        "int reduction=Mean) -> Tensor",
    .doc = "Gradient of binary_cross_entropy with respect to self.",
    .forms = hidden | out,
    .out_name = "grad_input",
    .meta = typed_meta<meta_bce_backward>,
    .cpu = cpu::binary_cross_entropy_backward_kernel,
    .derivatives =
        {
            vjp("grad_output", bce_second_by_grad,
                saves("grad_output", "self", "target", "weight")),
            vjp("self", bce_second, saves("grad_output", "self", "target", "weight")),
            vjp("target", bce_second_by_target, saves("grad_output", "self", "weight")),
        },
    .batch = batch::loss_backward,
};
