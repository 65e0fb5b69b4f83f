// Batch and instance normalisation.
#include "ops/norm/batch_norm.h"
#include "dispatch/out_dtype.h"
#include "ops/norm/tangents.h"

#include "kernels/cpu/norm/norm.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/powers.h"
#include "ops/meta_rules.h"
#include "ops/norm/batch.h"
#include "ops/norm/batch_norm_form.h"
#include "ops/norm/second_derivatives.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/repeat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

void check_channels(const Tensor& t, const char* name, int64_t channels) {
  check(!t.defined() || t.numel() == channels, name, " should contain ", channels, " elements not ",
        t.defined() ? t.numel() : 0);
}

DType parameter_dtype(DType input, std::initializer_list<const Tensor*> parameters) {
  DType found = input;
  for (const Tensor* p : parameters) {
    if (!p->defined() || p->dtype() == input) continue;
    check(is_reduced_float(input) && p->dtype() == DType::Float32,
          "batch_norm(): parameters must have input's dtype, or float32 for a half input; got ",
          name(p->dtype()), " for input ", name(input));
    found = DType::Float32;
  }
  return found;
}

void check_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const Tensor& mean, const Tensor& var, bool training) {
  const int64_t channels = input.size(1);
  check(training || mean.defined(), "running_mean must be defined in evaluation mode");
  check(training || var.defined(), "running_var must be defined in evaluation mode");
  check_channels(mean, "running_mean", channels);
  check_channels(var, "running_var", channels);
  check_channels(weight, "weight", channels);
  check_channels(bias, "bias", channels);
}

void meta_batch_norm(Meta& m, const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& mean, const Tensor& var, bool training) {
  check_batch_norm(input, weight, bias, mean, var, training);
  check(!training || input.numel() > 0,
        "batch_norm(): the statistics of an input without elements are not defined; got shape ",
        str(input.sizes()));
  const DType d = parameter_dtype(input.dtype(), {&weight, &bias, &mean, &var});
  const IntVec sizes{training ? input.size(1) : 0};
  m.result_format(0, input.sizes(), input.dtype(), suggested_format(input));
  m.result(1, sizes, d);
  m.result(2, sizes, d);
}

void meta_batch_norm_backward(Meta& m, const Tensor& grad, const Tensor& input,
                              const Tensor& weight, const Tensor& running_mean,
                              const Tensor& running_var, const Tensor& save_mean,
                              const Tensor& save_invstd, bool train, double,
                              std::span<const bool> mask) {
  const int64_t channels = input.size(1);
  check(same_sizes(grad.sizes(), input.sizes()), m.op_name(), "(): expected grad_out of shape ",
        str(input.sizes()), "; got ", str(grad.sizes()));
  const Tensor &mean = train ? save_mean : running_mean,
               &spread = train ? save_invstd : running_var;
  check(
      mean.defined() && spread.defined() && mean.numel() == channels && spread.numel() == channels,
      m.op_name(), "(): expected statistics of ", channels, " elements");
  check_channels(weight, "weight", channels);
  const DType d = weight.defined() ? weight.dtype() : input.dtype();
  if (mask[0]) m.result_format(0, input.sizes(), input.dtype(), suggested_format(input));
  if (mask[1]) m.result(1, IntVec{channels}, d);
  if (mask[2]) m.result(2, IntVec{channels}, d);
}

void batch_norm_gradient(Backward& b) {
  const bool mask[] = {b.needs("input"), b.needs("weight"), b.needs("bias")};
  auto [input, weight, bias] = ops::native_batch_norm_backward(
      b.grad(), b["input"], b["weight"], b["running_mean"], b["running_var"], b.result(1),
      b.result(2), b.flag("training"), b.number("eps"), mask);
  b.set("input", input);
  b.set("weight", weight);
  b.set("bias", bias);
}

// Running statistics are constants, those of the batch functions of the input.
void batch_norm_second(Backward& b) {
  const bool train = b.flag("train");
  const Tensor x = b["input"];
  IntVec shape(static_cast<size_t>(x.dim()), 1), others{0};
  shape[1] = x.size(1);
  for (int64_t d = 2; d < x.dim(); ++d) others.push_back(d);
  auto spread = [&](const Tensor& t) { return t.defined() ? ops::reshape(t, shape) : t; };
  const Tensor mean = spread(train ? b["save_mean"] : b["running_mean"]);
  const Tensor rstd = train ? spread(b["save_invstd"])
                            : ops::rsqrt(ops::add(spread(b["running_var"]), b.number("eps")));
  const Normalized n{ops::mul(ops::sub(x, mean), rstd), rstd, others, true, !train};
  const SecondOrder s = second_order(n, b["grad_out"], spread(b["weight"]), b.grad(0),
                                     spread(b.grad(1)), spread(b.grad(2)));
  if (b.needs("grad_out")) b.set("grad_out", s.grad_out);
  if (b.needs("input")) b.set("input", s.input);
  if (b.needs("weight") && s.weight.defined()) b.set("weight", ops::sum(s.weight, others));
}

Triple legit(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
             const Tensor& var, bool training, double momentum, double eps) {
  return ops::native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> legit_functional(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
    const Tensor& var, bool training, double momentum, double eps) {
  const Tensor new_mean = ops::clone(mean), new_var = ops::clone(var);
  auto [out, save_mean, save_invstd] = ops::_native_batch_norm_legit(
      input, weight, bias, new_mean, new_var, training, momentum, eps);
  return {out, save_mean, save_invstd, new_mean, new_var};
}
Triple legit_no_stats(const Tensor& input, const Tensor& weight, const Tensor& bias, bool training,
                      double momentum, double eps) {
  return ops::native_batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}
Triple legit_no_training(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const Tensor& mean, const Tensor& var, double momentum, double eps) {
  return ops::native_batch_norm(input, weight, bias, mean, var, false, momentum, eps);
}
void legit_gradient(Backward& b, const Tensor& mean, const Tensor& var, bool training) {
  const bool mask[] = {b.needs("input"), b.needs("weight"), b.needs("bias")};
  auto [input, weight, bias] =
      ops::native_batch_norm_backward(b.grad(), b["input"], b["weight"], mean, var, b.result(1),
                                      b.result(2), training, b.number("eps"), mask);
  b.set("input", input);
  b.set("weight", weight);
  b.set("bias", bias);
}

thread_local bool shows_writes = false;

// By the operator whose schema says whether statistics are read or written.
Triple shown_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& var, bool training, double momentum,
                        double eps) {
  if (!mean.defined() || !var.defined())
    return ops::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  if (training)
    return ops::_native_batch_norm_legit(input, weight, bias, mean, var, true, momentum, eps);
  return ops::_native_batch_norm_legit_no_training(input, weight, bias, mean, var, momentum, eps);
}

// No elements have no statistics: running ones stay, and weight and bias get gradients of zero.
Tensor scaled_nothing(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  IntVec shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  Tensor y = ops::clone(input);
  if (weight.defined()) y = ops::mul(y, ops::reshape(weight, shape));
  return bias.defined() ? ops::add(y, ops::reshape(bias, shape)) : y;
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                  const Tensor& var, bool training, double momentum, double eps, bool) {
  check_batch_norm(input, weight, bias, mean, var, training);
  if (input.numel() == 0) return scaled_nothing(input, weight, bias);
  if (shows_writes)
    return std::get<0>(shown_batch_norm(input, weight, bias, mean, var, training, momentum, eps));
  return std::get<0>(
      ops::native_batch_norm(input, weight, bias, mean, var, training, momentum, eps));
}

// One value per channel, repeated for every sample; a copy even of one sample's, because statistics
// are changed in place.
Tensor repeated(const Tensor& t, int64_t times) {
  return t.defined() ? ops::repeat(t, IntList{times}) : t;
}
void store_mean(const Tensor& into, const Tensor& repeated, int64_t samples) {
  if (!into.defined()) return;
  const GradMode off(false);
  const Tensor to = ops::alias(into);
  ops::copy_(to, ops::mean(ops::view(repeated, IntList{samples, into.numel()}), IntList{0}));
}

// Batch norm of a tensor that has every (sample, channel) as a channel of its own.
Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& mean, const Tensor& var, bool use_input_stats, double momentum,
                     double eps, bool cudnn) {
  check(use_input_stats || (mean.defined() && var.defined()),
        "batch_norm(): running_mean and running_var are needed unless the batch's own statistics "
        "are used");
  const int64_t n = input.size(0), c = input.size(1);
  IntVec sizes(input.sizes());
  sizes[0] = 1;
  sizes[1] = n * c;
  const Tensor w = repeated(weight, n), b = repeated(bias, n);
  const Tensor m = repeated(mean, n), v = repeated(var, n);
  const Tensor x = ops::view(ops::contiguous(input), sizes);
  const Tensor y = ops::batch_norm(x, w, b, m, v, use_input_stats, momentum, eps, cudnn);
  store_mean(mean, m, n);
  store_mean(var, v, n);
  return ops::view(y, input.sizes());
}

}  // namespace

bool batch_norm_shows_writes(bool on) { return std::exchange(shows_writes, on); }

}  // namespace facula

using namespace facula;

OP(native_batch_norm){
    .schema =
        "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, "
        "bool training, float momentum, float eps) -> (Tensor out, Tensor save_mean, Tensor "
        "save_invstd)",
    .doc =
        "Input (N, C, ...) normalised over all but C, scaled and shifted; training updates the "
        "running statistics.",
    .forms = function | out,
    .flags = exact_out | runs_when_called,
    .meta = typed_meta<meta_batch_norm>,
    .cpu = cpu::batch_norm_kernel,
    .derivatives = {vjp(names("input", "weight", "bias"), batch_norm_gradient,
                        saves("input", "weight", "running_mean", "running_var", "save_mean",
                              "save_invstd"))},
    .not_differentiable = names("save_mean", "save_invstd"),
    .jvp = batch_norm_tangent,
    .batch = batch::batch_norm,
};
OP(native_batch_norm_backward){
    .schema =
        "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
        "running_mean, "
        "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, "
        "bool[3] output_mask) -> "
        "(Tensor, Tensor, Tensor)",
    .doc = "Gradients of native_batch_norm with respect to input, weight and bias.",
    .forms = hidden | out,
    .meta = typed_meta<meta_batch_norm_backward>,
    .cpu = cpu::batch_norm_backward_kernel,
    .derivatives = {vjp(names("grad_out", "input", "weight"), batch_norm_second,
                        saves("grad_out", "input", "weight", "running_mean", "running_var",
                              "save_mean", "save_invstd"))},
    .batch = batch::batch_norm_backward,
};
OP(_native_batch_norm_legit){
    .schema =
        "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
        "running_mean, "
        "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
        "Tensor)",
    .doc = "The native_batch_norm whose schema says that it updates the running statistics.",
    .composite = Composite::Explicit,
    .any = typed_kernel<legit>,
    .derivatives = {vjp(
        names("input", "weight", "bias"),
        [](Backward& b) {
          legit_gradient(b, b["running_mean"], b["running_var"], b.flag("training"));
        },
        saves("input", "weight", "running_mean", "running_var", "result1", "result2"))},
    .not_differentiable = names("result1", "result2"),
    .copy_form = "_native_batch_norm_legit_functional",
};
OP(_native_batch_norm_legit_functional){
    .schema =
        "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, "
        "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
    .doc = "The native_batch_norm that returns the updated running statistics.",
    .composite = Composite::Explicit,
    .any = typed_kernel<legit_functional>,
    .derivatives = {vjp(
        names("input", "weight", "bias"),
        [](Backward& b) {
          legit_gradient(b, b["running_mean"], b["running_var"], b.flag("training"));
        },
        saves("input", "weight", "running_mean", "running_var", "result1", "result2"))},
    .not_differentiable = names("result1", "result2", "running_mean_out", "running_var_out"),
};
OP(_native_batch_norm_legit_no_stats){
    .schema =
        "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
        "training, float momentum, "
        "float eps) -> (Tensor, Tensor, Tensor)",
    .doc = "The native_batch_norm without running statistics.",
    .composite = Composite::Explicit,
    .any = typed_kernel<legit_no_stats>,
    .derivatives = {vjp(
        names("input", "weight", "bias"),
        [](Backward& b) { legit_gradient(b, {}, {}, b.flag("training")); },
        saves("input", "weight", "result1", "result2"))},
    .not_differentiable = names("result1", "result2"),
};
OP(_native_batch_norm_legit_no_training){
    .schema =
        "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, "
        "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .doc = "The native_batch_norm by the running statistics alone.",
    .composite = Composite::Explicit,
    .any = typed_kernel<legit_no_training>,
    .derivatives = {vjp(
        names("input", "weight", "bias"),
        [](Backward& b) { legit_gradient(b, b["running_mean"], b["running_var"], false); },
        saves("input", "weight", "running_mean", "running_var", "result1", "result2"))},
    .not_differentiable = names("result1", "result2"),
};
OP(batch_norm){
    .schema =
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    .doc =
        "Input (N, C, ...) normalised over all but C, scaled and shifted; training updates the "
        "running statistics.",
    .composite = Composite::Selecting,
    .any = typed_kernel<batch_norm>,
};
OP(instance_norm){
    .schema =
        "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, "
        "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    .doc = "Input (N, C, ...) normalised over each sample's channels, scaled and shifted.",
    .composite = Composite::Implicit,
    .any = typed_kernel<instance_norm>,
};
