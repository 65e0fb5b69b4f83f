// Forward mode of normalizations: what rules of records and transposes would do in several passes.
#include "ops/norm/tangents.h"

#include "dispatch/forward.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/powers.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? ops::add(a, b) : a;
}

// Of x_hat = (x - mean(x)) * rstd(x) over `dims`, along t.
Tensor normal_tangent(const Tensor& normal, const Tensor& rstd, const Tensor& t, const IntVec& dims,
                      bool centred) {
  const Tensor along = ops::mean(ops::mul(normal, t), IntList(dims), true);
  Tensor r = ops::sub(t, ops::mul(normal, along));
  if (centred) r = ops::sub(r, ops::mean(t, IntList(dims), true));
  return ops::mul(r, rstd);
}

// weight * x_hat + bias, for tangents of all three; `shaped` brings vectors to x's dimensions.
template <class F>
Tensor affine_tangent(const Forward& f, const Tensor& normal, const Tensor& of_normal, int weight,
                      int bias, F&& shaped) {
  Tensor sum = of_normal;
  if (sum.defined() && f.value(weight).is_tensor()) sum = ops::mul(sum, shaped(f.primal(weight)));
  if (f.tangent(weight).defined()) sum = plus(sum, ops::mul(normal, shaped(f.tangent(weight))));
  if (bias >= 0 && f.tangent(bias).defined()) sum = plus(sum, shaped(f.tangent(bias)));
  return sum;
}

IntVec last_dims(const Tensor& x, size_t count) {
  IntVec dims;
  for (size_t k = 0; k < count; ++k) dims.push_back(x.dim() - 1 - static_cast<int64_t>(k));
  return dims;
}

IntVec channel_sizes(const Tensor& x) {
  IntVec sizes(x.sizes().size(), 1);
  if (sizes.size() > 1) sizes[1] = -1;
  return sizes;
}

}  // namespace

void layer_norm_tangent(Forward& f) {
  const Tensor& x = f.primal("input");
  const Tensor &t = f.tangent("input"), &rstd = f.result(2);
  const IntVec dims = last_dims(x, f.value("normalized_shape").length);
  const Tensor normal = ops::mul(ops::sub(x, f.result(1)), rstd);
  const Tensor of_normal = t.defined() ? normal_tangent(normal, rstd, t, dims, true) : Tensor();
  f.set(0, affine_tangent(f, normal, of_normal, f.arg("weight"), f.arg("bias"),
                          [](const Tensor& v) { return v; }));
}

void rms_norm_tangent(Forward& f) {
  const Tensor& x = f.primal("input");
  const Tensor &t = f.tangent("input"), &rstd = f.result(1);
  const IntVec dims = last_dims(x, f.value("normalized_shape").length);
  const Tensor normal = ops::mul(x, rstd);
  const Tensor of_normal = t.defined() ? normal_tangent(normal, rstd, t, dims, false) : Tensor();
  f.set(0, affine_tangent(f, normal, of_normal, f.arg("weight"), -1,
                          [](const Tensor& v) { return v; }));
}

void group_norm_tangent(Forward& f) {
  const Tensor& x = f.primal("input");
  const Tensor& t = f.tangent("input");
  const int64_t n = f.value("N").i, groups = f.value("group").i;
  const IntVec grouped{n, groups, n * groups ? x.numel() / (n * groups) : 0}, one{n, groups, 1};
  const Tensor rstd = ops::reshape(f.result(2), one);
  const Tensor normal =
      ops::mul(ops::sub(ops::reshape(x, grouped), ops::reshape(f.result(1), one)), rstd);
  Tensor of_normal;
  if (t.defined()) {
    const Tensor along = ops::reshape(t, grouped);
    of_normal = ops::reshape(normal_tangent(normal, rstd, along, {2}, true), x.sizes());
    f.set(1, ops::mean(along, IntList{2}));
    const Tensor spread = ops::mean(ops::mul(normal, along), IntList{2});
    f.set(2, ops::neg(ops::mul(ops::square(f.result(2)), spread)));
  }
  f.set(0, affine_tangent(f, ops::reshape(normal, x.sizes()), of_normal, f.arg("weight"),
                          f.arg("bias"),
                          [&](const Tensor& v) { return ops::reshape(v, channel_sizes(x)); }));
}

void batch_norm_tangent(Forward& f) {
  const Tensor& x = f.primal("input");
  const Tensor& t = f.tangent("input");
  const bool training = f.value("training").b;
  auto shaped = [&](const Tensor& v) { return ops::reshape(v, channel_sizes(x)); };
  const double eps = f.value("eps").as_scalar().to<double>();
  const Tensor mean = shaped(training ? f.result(1) : f.primal("running_mean"));
  const Tensor rstd =
      shaped(training ? f.result(2) : ops::rsqrt(ops::add(f.primal("running_var"), eps)));
  const Tensor normal = ops::mul(ops::sub(x, mean), rstd);
  IntVec dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) dims.push_back(d);
  Tensor of_normal;
  if (t.defined())
    of_normal = training ? normal_tangent(normal, rstd, t, dims, true) : ops::mul(t, rstd);
  f.set(0, affine_tangent(f, normal, of_normal, f.arg("weight"), f.arg("bias"), shaped));
}

}  // namespace facula
