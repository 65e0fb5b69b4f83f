// Dropout and its relatives.
#include "ops/random/dropout.h"

#include <cmath>

#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/random/random.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

void check_chance(double p) { check(p >= 0 && p <= 1, "dropout(): p must be in [0, 1]; got ", p); }

// Whole channels are kept or dropped: sizes of one number per channel.
IntVec feature_sizes(const Tensor& input) {
  check(input.dim() >= 2, "feature_dropout(): input must have at least 2 dimensions; got ",
        input.dim());
  IntVec sizes(input.sizes());
  for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = 1;
  return sizes;
}

// Complex numbers are kept or dropped whole.
Tensor noise_like(const Tensor& input) {
  if (!is_complex(input.dtype())) return ops::empty_like(input);
  return ops::empty_like(input, real_of(input.dtype()));
}

bool passes(const Tensor& input, double p, bool train) {
  return p == 0 || !train || input.numel() == 0;
}

// Kept values are scaled, so that the mean stays.
Tensor scaled(const Tensor& input, const Tensor& noise, double p) {
  return ops::mul(input, ops::div_(ops::bernoulli_(noise, 1 - p), 1 - p));
}

Tensor dropout(const Tensor& input, double p, bool train) {
  check_chance(p);
  if (passes(input, p, train)) return input;
  if (p == 1) return ops::mul(input, ops::zeros({}, input.dtype(), {}, input.device()));
  return scaled(input, noise_like(input), p);
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  check_chance(p);
  if (passes(input, p, train)) return input;
  if (p == 1) return ops::mul(input, ops::zeros({}, input.dtype(), {}, input.device()));
  return scaled(input, ops::new_empty(input, feature_sizes(input), real_of(input.dtype())), p);
}

// Dropped values become what a saturated SELU gives; mean and variance stay.
Tensor alpha_scaled(const Tensor& input, const Tensor& noise, double p) {
  constexpr double alpha = 1.7580993408473766;
  ops::bernoulli_(noise, 1 - p);
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor shift = ops::add_(ops::mul_(ops::add(noise, -1), alpha * a), alpha * a * p);
  return ops::add(ops::mul(input, ops::mul_(noise, a)), shift);
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  check_chance(p);
  if (passes(input, p, train)) return input;
  if (p == 1) return ops::mul(input, ops::zeros({}, input.dtype(), {}, input.device()));
  return alpha_scaled(input, noise_like(input), p);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  check_chance(p);
  if (passes(input, p, train)) return input;
  if (p == 1) return ops::mul(input, ops::zeros({}, input.dtype(), {}, input.device()));
  return alpha_scaled(input, ops::new_empty(input, feature_sizes(input), real_of(input.dtype())),
                      p);
}

double kept_scale(double p) { return p == 1 ? 0 : 1 / (1 - p); }

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  if (input.numel() == 0) return {input, ops::empty_like(input)};
  if (train && !*train) return {ops::clone(input), ops::ones_like(input, DType::Bool)};
  check(is_differentiable(input.dtype()),
        "result type Float can't be cast to the desired output type ",
        info(input.dtype()).legacy_name);
  const Tensor mask = ops::bernoulli_(ops::empty_like(input, DType::Bool), 1 - p);
  return {ops::mul_(ops::mul(input, mask), kept_scale(p)), mask};
}
Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
  return ops::mul(ops::mul(grad, mask), scale);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(native_dropout){
    .schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    .doc =
        "Input with elements zeroed with probability p and the others scaled by 1 / (1 - p); and "
        "the mask of those kept.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = random,
    .any = typed_kernel<native_dropout>,
    .derivatives = {vjp(
        "input",
        [](Backward& b) {
          // As PyTorch has it: without a value of `train` the gradient is not scaled.
          const bool train = !b.is_none("train") && b.flag("train");
          return ops::native_dropout_backward(b.grad(), b.result(1),
                                              train ? kept_scale(b.number("p")) : 1.0);
        },
        saves("result1"))},
    .not_differentiable = names("result1"),
};
OP(native_dropout_backward){
    .schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    .doc = "Gradient of native_dropout: grad_output where mask is set, scaled.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<native_dropout_backward>,
    .derivatives = {vjp(
        "grad_output",
        [](Backward& b) {
          return ops::native_dropout_backward(b.grad(), b["mask"], b.number("scale"));
        },
        saves("mask"))},
    .batch = batch::pointwise,
};
OP(dropout){
    .schema = "dropout(Tensor input, float p, bool train) -> Tensor",
    .doc =
        "Input with elements zeroed with probability p and the others scaled by 1 / (1 - p); input "
        "itself unless training.",
    .forms = function | inplace,
    .composite = Composite::Selecting,
    .flags = random | same_object,
    .any = typed_kernel<dropout>,
};
OP(feature_dropout){
    .schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Dropout of whole channels of input (N, C, ...).",
    .forms = function | inplace,
    .composite = Composite::Selecting,
    .flags = random | same_object,
    .any = typed_kernel<feature_dropout>,
};
OP(alpha_dropout){
    .schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Dropout that keeps the mean and variance of inputs that went through SELU.",
    .forms = function | inplace,
    .composite = Composite::Selecting,
    .flags = random | same_object,
    .any = typed_kernel<alpha_dropout>,
};
OP(feature_alpha_dropout){
    .schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Alpha dropout of whole channels of input (N, C, ...).",
    .forms = function | inplace,
    .composite = Composite::Selecting,
    .flags = random | same_object,
    .any = typed_kernel<feature_alpha_dropout>,
};
