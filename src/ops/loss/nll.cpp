// Losses of class numbers: negative log likelihood and cross entropy.
#include "ops/loss/nll.h"

#include "kernels/cpu/loss/nll.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/arithmetic_numbers.h"
#include "ops/elementwise/comparison.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/loss/batch.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/softmax.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

void check_weight(const Tensor& weight, int64_t classes) {
  check(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
        "nll_loss(): weight must have shape [", classes, "], one for each class; got ",
        str(weight.defined() ? weight.sizes() : IntSpan()));
}
void check_target(const Tensor& target) {
  check(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8,
        "nll_loss(): target must have dtype int64 or uint8; got ", name(target.dtype()));
}

void check_nll(const Tensor& self, const Tensor& target, const Tensor& weight) {
  check(self.dim() == 1 || self.dim() == 2, "nll_loss(): input must have 1 or 2 dimensions; got ",
        self.dim());
  check(target.dim() <= 1, "nll_loss(): target must have 0 or 1 dimensions; got ", target.dim());
  check_target(target);
  check(self.dim() == 1 || self.size(0) == (target.dim() == 0 ? 1 : target.size(0)),
        "size mismatch (got input: ", str(self.sizes()), ", target: ", str(target.sizes()), ")");
  check(self.dim() == 2 || target.numel() == 1, "size mismatch (got input: ", str(self.sizes()),
        ", target: ", str(target.sizes()), ")");
  check_weight(weight, self.size(-1));
}

void check_nll2d(const Tensor& self, const Tensor& target, const Tensor& weight) {
  check(target.dim() == 3,
        "nll_loss2d(): target must have 3 dimensions, (batch, height, width); got ", target.dim());
  check(self.dim() == 4,
        "nll_loss2d(): input must have 4 dimensions, (batch, class, height, width); got ",
        self.dim());
  check_weight(weight, self.size(1));
  check(self.size(0) == target.size(0) && self.size(2) == target.size(1) &&
            self.size(3) == target.size(2),
        "size mismatch (got input: ", str(self.sizes()), " , target: ", str(target.sizes()));
  check_target(target);
}

void meta_nll(Meta& m, const Tensor& self, const Tensor& target, const Tensor& weight,
              int64_t reduction) {
  check_nll(self, target, weight);
  const bool each = reduction == 0 && self.dim() == 2;
  m.result(0, each ? IntSpan(self.sizes().first(1)) : IntSpan(), self.dtype());
  m.result(1, {}, self.dtype());
}
void meta_nll2d(Meta& m, const Tensor& self, const Tensor& target, const Tensor& weight,
                int64_t reduction) {
  check_nll2d(self, target, weight);
  m.result(0, reduction == 0 ? target.sizes() : IntSpan(), self.dtype());
  m.result(1, {}, self.dtype());
}

void check_grad(const Tensor& grad, const Tensor& target, int64_t reduction) {
  const int64_t expected = reduction == 0 ? target.numel() : 1;
  check(grad.numel() == expected, "nll_loss_backward(): expected a grad_output of ", expected,
        " elements; got shape ", str(grad.sizes()));
}
void meta_nll_backward(Meta& m, const Tensor& grad, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction) {
  check_nll(self, target, weight);
  check_grad(grad, target, reduction);
  m.result(0, self.sizes(), self.dtype());
}
void meta_nll2d_backward(Meta& m, const Tensor& grad, const Tensor& self, const Tensor& target,
                         const Tensor& weight, int64_t reduction) {
  check_nll2d(self, target, weight);
  check_grad(grad, target, reduction);
  m.result(0, self.sizes(), self.dtype());
}

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignored) {
  return std::get<0>(ops::nll_loss_forward(self, target, weight, reduction, ignored));
}
Tensor nll_loss2d(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                  int64_t ignored) {
  return std::get<0>(ops::nll_loss2d_forward(self, target, weight, reduction, ignored));
}

// Inputs of any number of dimensions, folded into the 2-d case.
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const Tensor& weight,
                   int64_t reduction, int64_t ignored) {
  check_value(self.dim() > 0, "nll_loss_nd(): input must have a dimension; got a 0-dim tensor");
  if (self.dim() == 1 || self.dim() == 2) {
    check_value(self.dim() == 1 || target.dim() == 0 || self.size(0) == target.size(0),
                "nll_loss_nd(): input and target must have one batch size; got ", self.size(0),
                " and ", target.dim() == 0 ? 1 : target.size(0));
    return ops::nll_loss(self, target, weight, reduction, ignored);
  }
  if (self.dim() == 4) return ops::nll_loss2d(self, target, weight, reduction, ignored);
  const int64_t n = self.size(0), c = self.size(1);
  IntVec wanted(self.sizes());
  wanted.erase(1);
  check(same_sizes(wanted, target.sizes()), "nll_loss_nd(): target must have shape ", str(wanted),
        "; got ", str(target.sizes()));
  int64_t inner = 1;
  for (size_t d = 1; d < wanted.size(); ++d) inner *= wanted[d];
  const Tensor x = ops::reshape(ops::contiguous(self), IntList{n, c, inner, 1});
  const Tensor t = ops::reshape(ops::contiguous(target), IntList{n, inner, 1});
  const Tensor loss = ops::nll_loss2d(x, t, weight, reduction, ignored);
  return reduction == 0 ? ops::view(loss, wanted) : loss;
}

// --- cross entropy

// Class weights in the shape of the log-probabilities.
Tensor weight_view(const Tensor& weight, const Tensor& input, int64_t class_dim) {
  IntVec sizes(static_cast<size_t>(input.dim()), 1);
  sizes[class_dim] = weight.size(0);
  return ops::view(ops::contiguous(weight), sizes);
}
Tensor over_classes(const Tensor& t, int64_t class_dim) {
  return ops::sum(t, IntList{class_dim}, false);
}

// Targets are probabilities of the classes.
Tensor entropy_of_probabilities(const Tensor& input, const Tensor& target, const Tensor& weight,
                                int64_t reduction, double smoothing, int64_t class_dim) {
  const int64_t classes = input.size(class_dim);
  const Tensor t = smoothing > 0 ? ops::add(ops::mul(target, 1 - smoothing),
                                            smoothing / static_cast<double>(classes))
                                 : target;
  Tensor terms = ops::mul(input, t);
  if (weight.defined()) terms = ops::mul(terms, weight_view(weight, input, class_dim));
  if (reduction == 0) return ops::neg(over_classes(terms, class_dim));
  const Tensor loss = ops::neg(ops::sum(terms));
  if (reduction == 2) return loss;
  return ops::div(loss, input.numel() == 0 ? 0.0 : static_cast<double>(input.numel() / classes));
}

// Targets are class numbers; a part of each is spread evenly over the classes.
Tensor smoothed_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                        int64_t reduction, int64_t ignored, double smoothing, int64_t class_dim) {
  const Tensor nll = ops::nll_loss_nd(input, target, weight, reduction, ignored);  // checks weight
  const Tensor terms =
      weight.defined() ? ops::mul(input, weight_view(weight, input, class_dim)) : input;
  const Tensor ignore = ops::eq(target, ignored);
  Tensor smooth = ops::masked_fill(ops::neg(over_classes(terms, class_dim)), ignore, 0);
  if (reduction != 0) smooth = ops::sum(smooth);
  if (reduction == 1 && weight.defined()) {
    const Tensor flat = ops::reshape(ops::masked_fill(target, ignore, 0), IntList{target.numel()});
    const Tensor met = ops::gather(weight, 0, ops::to(flat, DType::Int64));
    smooth = ops::div(
        smooth, ops::sum(ops::masked_fill(met, ops::reshape(ignore, IntList{target.numel()}), 0)));
  } else if (reduction == 1) {
    smooth = ops::div(smooth, ops::sum(ops::ne(target, ignored)));
  }
  const double share = smoothing / static_cast<double>(input.size(class_dim));
  return ops::add(ops::mul(nll, 1 - smoothing), ops::mul(smooth, share));
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignored, double smoothing) {
  const bool probabilities = same_sizes(self.sizes(), target.sizes());
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const int64_t classes = self.dim() > 0 ? self.size(class_dim) : 0;
  check(!probabilities || is_floating(target.dtype()),
        "cross_entropy_loss(): a target of class probabilities must be floating point; got ",
        name(target.dtype()));
  check(!probabilities || ignored < 0,
        "cross_entropy_loss(): ignore_index is for class indices, not for probabilities");
  check(smoothing >= 0 && smoothing <= 1,
        "cross_entropy_loss(): label_smoothing must be in [0, 1]; got ", smoothing);
  if (probabilities)
    check(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
          "cross_entropy_loss(): weight must have shape [", classes, "], one for each class; got ",
          str(weight.defined() ? weight.sizes() : IntSpan()));
  const Tensor input = ops::log_softmax(self, class_dim, self.dtype());
  if (probabilities)
    return entropy_of_probabilities(input, target, weight, reduction, smoothing, class_dim);
  if (smoothing > 0)
    return smoothed_entropy(input, target, weight, reduction, ignored, smoothing, class_dim);
  return nll_loss_nd(input, target, weight, reduction, ignored);
}

Tensor nll_grad(Backward& b) {
  return ops::nll_loss_backward(b.grad(), b["self"], b["target"], b["weight"],
                                b.integer("reduction"), b.integer("ignore_index"), b.result(1));
}
Tensor nll2d_grad(Backward& b) {
  return ops::nll_loss2d_backward(b.grad(), b["self"], b["target"], b["weight"],
                                  b.integer("reduction"), b.integer("ignore_index"), b.result(1));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(nll_loss_forward){
    .schema =
        "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
        "ignore_index) -> "
        "(Tensor output, Tensor total_weight)",
    .doc =
        "Negative log likelihood of (N, C) log-probabilities at (N,) class numbers, and the sum of "
        "the weights used.",
    .forms = hidden | out,
    .out_name = "output",
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_nll>,
    .cpu = typed_kernel<cpu::nll_loss>,
    .derivatives = {vjp("self", nll_grad, saves("self", "target", "weight", "total_weight"))},
    .node = "NllLossBackward0",
    .not_differentiable = names("total_weight"),
    .batch = batch::nll,
};
OP(nll_loss_backward){
    .schema =
        "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
        "reduction, "
        "SymInt ignore_index, Tensor total_weight) -> Tensor",
    .doc = "Gradient of nll_loss_forward with respect to its input.",
    .forms = hidden | out,
    .out_name = "grad_input",
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_nll_backward>,
    .cpu = typed_kernel<cpu::nll_loss_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::nll_loss(b.grad(), b["target"], b["weight"], b.integer("reduction"),
                                       b.integer("ignore_index"));
                },
                saves("target", "weight")),
            vjp("self", [](Backward& b) { return ops::zeros_like(b.grad()); }),
        },
    .batch = batch::nll_backward,
};
OP(nll_loss2d_forward){
    .schema =
        "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
        "ignore_index) -> "
        "(Tensor output, Tensor total_weight)",
    .doc =
        "Negative log likelihood of (N, C, H, W) log-probabilities at (N, H, W) class numbers, and "
        "the sum of the weights used.",
    .forms = hidden | out,
    .out_name = "output",
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_nll2d>,
    .cpu = typed_kernel<cpu::nll_loss>,
    .derivatives = {vjp("self", nll2d_grad, saves("self", "target", "weight", "total_weight"))},
    .node = "NllLoss2DBackward0",
    .not_differentiable = names("total_weight"),
    .batch = batch::nll,
};
OP(nll_loss2d_backward){
    .schema =
        "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
        "reduction, "
        "SymInt ignore_index, Tensor total_weight) -> Tensor",
    .doc = "Gradient of nll_loss2d_forward with respect to its input.",
    .forms = hidden | out,
    .out_name = "grad_input",
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_nll2d_backward>,
    .cpu = typed_kernel<cpu::nll_loss_backward>,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::nll_loss2d(b.grad(), b["target"], b["weight"], b.integer("reduction"),
                                         b.integer("ignore_index"));
                },
                saves("target", "weight")),
            vjp("self", [](Backward& b) { return ops::zeros_like(b.grad()); }),
        },
    .batch = batch::nll_backward,
};
OP(nll_loss){
    .schema =
        "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt "
        "ignore_index=-100) -> Tensor",
    .doc = "Negative log likelihood of (N, C) log-probabilities at (N,) class numbers.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<nll_loss>,
};
OP(nll_loss2d){
    .schema =
        "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt "
        "ignore_index=-100) -> Tensor",
    .doc = "Negative log likelihood of (N, C, H, W) log-probabilities at (N, H, W) class numbers.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<nll_loss2d>,
};
OP(nll_loss_nd){
    .schema =
        "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt "
        "ignore_index=-100) -> Tensor",
    .doc =
        "Negative log likelihood of log-probabilities (C,), (N, C) or (N, C, ...) at class numbers "
        "without the C.",
    .python_module = "nn",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<nll_loss_nd>,
};
OP(cross_entropy_loss){
    .schema =
        "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
        "SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    .doc =
        "Cross entropy of scores (N, C, ...) and class numbers (N, ...) or class probabilities (N, "
        "C, ...).",
    .python_module = "nn",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<cross_entropy_loss>,
};
