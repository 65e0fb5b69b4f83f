// Margin losses over class numbers.
#include "ops/loss/multi_margin.h"

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loss/margin.h"

namespace facula {
namespace {

// --- one target for each sample

// One loss for each target, or one number.
IntSpan loss_sizes(const Tensor& target, int64_t reduction) {
  return reduction == 0 ? target.sizes() : IntSpan();
}

void check_multi(const Tensor& self, const Tensor& target, const Scalar& p, const Tensor& weight) {
  const int64_t dims = self.dim(), samples = dims == 2 ? self.sizes()[0] : 1;
  const int64_t classes = dims == 2 ? self.sizes()[1] : self.numel();
  check(p.equals(1) || p.equals(2), "multi_margin_loss(): p must be 1 or 2; got ", p.to<double>());
  check(dims <= 2 && classes > 0,
        "multi_margin_loss(): self must be (N, C) or (C) with classes; got ", str(self.sizes()));
  check(target.dim() <= 1 && target.numel() == samples,
        "multi_margin_loss(): target must hold one class for each of ", samples, " samples; got ",
        str(target.sizes()));
  check(!weight.defined() || (weight.dim() <= 1 && weight.numel() == classes),
        "multi_margin_loss(): weight must have ", classes, " elements; got ",
        str(weight.defined() ? weight.sizes() : IntSpan()));
}

void meta_multi(Meta& m, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar&,
                const Tensor& weight, int64_t reduction) {
  check_multi(self, target, p, weight);
  m.result(0, loss_sizes(target, reduction), self.dtype());
}
void multi(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
           const Tensor& weight, int64_t reduction, const Tensor& out) {
  cpu::multi_margin_loss(self, target, p.to<int64_t>(), margin.to<double>(), weight, reduction,
                         out);
}

void check_grad(const Tensor& grad, IntSpan sizes, const std::string& op) {
  check(same_sizes(grad.sizes(), sizes), op, "(): expected grad_output of shape ", str(sizes),
        "; got ", str(grad.sizes()));
}

void meta_multi_backward(Meta& m, const Tensor& grad, const Tensor& self, const Tensor& target,
                         const Scalar& p, const Scalar&, const Tensor& weight, int64_t reduction) {
  check_multi(self, target, p, weight);
  check_grad(grad, loss_sizes(target, reduction), m.op_name());
  m.result(0, self.sizes(), self.dtype());
}
void multi_backward(const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p,
                    const Scalar& margin, const Tensor& weight, int64_t reduction,
                    const Tensor& out) {
  cpu::multi_margin_loss_backward(grad, self, target, p.to<int64_t>(), margin.to<double>(), weight,
                                  reduction, out);
}

// --- many targets for each sample

IntSpan multilabel_sizes(const Tensor& self, int64_t reduction) {
  return reduction == 0 && self.dim() == 2 ? self.sizes().first(1) : IntSpan();
}

void check_multilabel(const Tensor& self, const Tensor& target) {
  const bool some = self.dim() == 2 ? self.sizes()[1] > 0 : self.numel() > 0;
  check(self.dim() <= 2 && some,
        "multilabel_margin_loss(): self must be (N, C) or (C) with classes; got ",
        str(self.sizes()));
  const bool same = same_sizes(self.sizes(), target.sizes()) ||
                    (self.dim() < 2 && target.dim() < 2 && self.numel() == target.numel());
  check(same, "multilabel_margin_loss(): target must have the shape of self, ", str(self.sizes()),
        "; got ", str(target.sizes()));
}

void meta_multilabel(Meta& m, const Tensor& self, const Tensor& target, int64_t reduction) {
  check_multilabel(self, target);
  m.result(0, multilabel_sizes(self, reduction), self.dtype());
  m.result(1, target.sizes(), self.dtype());
}
void meta_multilabel_backward(Meta& m, const Tensor& grad, const Tensor& self, const Tensor& target,
                              int64_t reduction, const Tensor& is_target) {
  check_multilabel(self, target);
  check_grad(grad, multilabel_sizes(self, reduction), m.op_name());
  check(same_sizes(is_target.sizes(), target.sizes()), m.op_name(),
        "(): expected is_target of shape ", str(target.sizes()), "; got ", str(is_target.sizes()));
  m.result(0, self.sizes(), self.dtype());
}

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return std::get<0>(ops::multilabel_margin_loss_forward(self, target, reduction));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(multi_margin_loss){
    .schema =
        "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
        "weight=None, "
        "int reduction=Mean) -> Tensor",
    .doc =
        "Sum over the wrong classes of max(0, margin - self[target] + self[class])^p / classes; "
        "self (N, C) or (C).",
    .forms = function | out,
    .python_module = "nn",
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_multi>,
    .cpu = typed_kernel<multi>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::multi_margin_loss_backward(b.grad(), b["self"], b["target"], b.scalar("p"),
                                                 b.scalar("margin"), b["weight"],
                                                 b.integer("reduction"));
        },
        saves("self", "target", "weight"))},
    .not_differentiable = names("weight"),
    .hole = "vmap: samples are done one by one",
};
OP(multi_margin_loss_backward){
    .schema =
        "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, "
        "Scalar margin, "
        "Tensor? weight=None, int reduction=Mean) -> Tensor",
    .doc = "Gradient of multi_margin_loss with respect to self.",
    .forms = out,
    .python_module = "nn",
    .out_name = "grad_input",
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_multi_backward>,
    .cpu = typed_kernel<multi_backward>,
    .hole = "PyTorch has no second derivative either",
};
OP(multilabel_margin_loss){
    .schema = "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc =
        "Sum over targets and other classes of max(0, 1 - self[target] + self[class]) / classes; "
        "-1 ends a sample's targets.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<multilabel_margin_loss>,
};
OP(multilabel_margin_loss_forward){
    .schema =
        "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor "
        "output, Tensor is_target)",
    .doc = "As multilabel_margin_loss, and for each class of each sample whether it is a target.",
    .forms = out,
    .out_name = "output",
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_multilabel>,
    .cpu = typed_kernel<cpu::multilabel_margin_loss>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::multilabel_margin_loss_backward(b.grad(), b["self"], b["target"],
                                                      b.integer("reduction"), b.result(1));
        },
        saves("self", "target", "is_target"))},
    .node = "MultilabelMarginLossBackward0",
    .not_differentiable = names("is_target"),
    .hole = "vmap: samples are done one by one",
};
OP(multilabel_margin_loss_backward){
    .schema =
        "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
        "reduction, "
        "Tensor is_target) -> Tensor",
    .doc = "Gradient of multilabel_margin_loss with respect to self.",
    .forms = out,
    .python_module = "nn",
    .out_name = "grad_input",
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_multilabel_backward>,
    .cpu = typed_kernel<cpu::multilabel_margin_loss_backward>,
    .hole = "PyTorch has no second derivative either",
};
