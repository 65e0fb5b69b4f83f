// Leaky ReLU with slopes drawn at random in training.
#include "ops/elementwise/rrelu.h"

#include <mutex>

#include "core/random.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/random/stream.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

// The result is contiguous, as the noise is drawn in that order.
void meta_rrelu(Meta& m) { m.result(0, m.tensor(0).sizes(), m.tensor(0).dtype()); }

// One uniform for each element that is not positive, in order.
template <class T>
void draw_slopes(Generator& g, const T* x, T* slopes, T* out, int64_t n, double lower,
                 double upper) {
  dist::for_each_draw(g, n, [&](int64_t i) {
    const bool drawn = static_cast<double>(x[i]) <= 0;
    const double slope = drawn ? lower + dist::next_unit(g) * (upper - lower) : 1.0;
    slopes[i] = static_cast<T>(static_cast<float>(slope));
    if constexpr (std::is_same_v<T, double>) slopes[i] = slope;
    out[i] = drawn ? static_cast<T>(x[i] * slopes[i]) : x[i];
  });
}
void rrelu_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower,
                      const Scalar& upper, bool training, Generator* generator, const Tensor& out) {
  const double low = lower.to<double>(), high = upper.to<double>();
  check(low <= high, "rrelu(): lower must not be above upper; got ", low, " and ", high);
  if (!training) return void(ops::copy_(out, ops::leaky_relu(self, (low + high) / 2)));
  check(self.dtype() == noise.dtype(), "rrelu_with_noise(): expected noise of dtype ",
        name(self.dtype()), "; got ", name(noise.dtype()));
  check(same_sizes(self.sizes(), noise.sizes()), "rrelu_with_noise(): expected noise of shape ",
        str(self.sizes()), "; got ", str(noise.sizes()));
  const Tensor x = cpu::contiguous(self);
  const Tensor slopes = empty_tensor(self.sizes(), self.dtype()),
               y = empty_tensor(self.sizes(), self.dtype());
  Generator& g = generator_for(generator, Device());
  const std::lock_guard hold(g.mutex());
  dispatch<float, double, BFloat16>(
      self.dtype(), "rrelu_with_noise_out_cpu", [&]<class T>(Type<T>) {
        draw_slopes(g, x.data<T>(), slopes.data<T>(), y.data<T>(), x.numel(), low, high);
      });
  cpu::copy(noise, slopes);
  cpu::copy(out, y);
}

Tensor rrelu_backward(const Tensor& grad, const Tensor& self, const Tensor& noise,
                      const Scalar& lower, const Scalar& upper, bool training,
                      bool self_is_result) {
  const double low = lower.to<double>(), high = upper.to<double>();
  if (training && high - low > 1e-6) return ops::mul(grad, noise);
  return ops::leaky_relu_backward(grad, self, (low + high) / 2, self_is_result);
}
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             Generator* generator) {
  const Tensor noise = training ? ops::empty_like(self) : ops::new_empty(self, IntList{0});
  return ops::rrelu_with_noise(self, noise, lower, upper, training, generator);
}
Tensor rrelu_(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
              Generator* generator) {
  const Tensor noise = training ? ops::empty_like(self) : ops::new_empty(self, IntList{0});
  return ops::rrelu_with_noise_(self, noise, lower, upper, training, generator);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(rrelu_with_noise){
    .schema =
        "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
        "upper=0.3333333333333333, "
        "bool training=False, Generator? generator=None) -> Tensor",
    .doc =
        "Self where positive, else self times a slope: drawn from U(lower, upper) in training, "
        "else their mean. "
        "In training noise receives the slopes.",
    .forms = function | inplace | out,
    .python_module = "nn",
    .flags = random,
    .meta = meta_rrelu,
    .cpu = typed_kernel<rrelu_with_noise>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::rrelu_with_noise_backward(b.grad(), b["self"], b["noise"], b.scalar("lower"),
                                                b.scalar("upper"), b.flag("training"), false);
        },
        saves("self", "noise"))},
    .hole = "vmap: samples are done one by one",
};

OP(rrelu_with_noise_backward){
    .schema =
        "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, "
        "Scalar upper, "
        "bool training, bool self_is_result) -> Tensor",
    .doc = "Gradient of rrelu_with_noise.",
    .forms = out,
    .composite = Composite::Implicit,
    .any = typed_kernel<rrelu_backward>,
};

OP(rrelu){
    .schema =
        "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
        "training=False, "
        "Generator? generator=None) -> Tensor",
    .doc =
        "Self where positive, else self times a slope: drawn from U(lower, upper) in training, "
        "else their mean.",
    .composite = Composite::Implicit,
    .flags = random,
    .any = typed_kernel<rrelu>,
};

OP(rrelu_){
    .schema =
        "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
        "training=False, "
        "Generator? generator=None) -> Tensor(a!)",
    .doc = "The rrelu of self, in place.",
    .composite = Composite::Implicit,
    .flags = random,
    .any = typed_kernel<rrelu_>,
};
