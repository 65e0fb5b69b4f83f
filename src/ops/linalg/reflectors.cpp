#include "ops/linalg/reflectors.h"

#include <vector>

#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/checks.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/cat.h"
#include "ops/shape/repeat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula::linalg {
namespace {

// H = I - t v v^H for each matrix of a batch: v (..., m, 1), t (..., 1, 1).
struct Reflector {
  Tensor v, t;

  Tensor apply(const Tensor& X) const {
    const Tensor along = ops::matmul(ops::mH(v), X);
    return ops::sub(X, ops::matmul(v, ops::mul(t, along)));
  }
  Tensor apply_adjoint(const Tensor& X) const { return Reflector{v, ops::conj(t)}.apply(X); }
};

// Takes apart what dL = Re tr(gH^H dH) says, with gH = G X^H, Y = H X and G the gradient of Y.
struct ReflectorGradient {
  Tensor v, t;

  ReflectorGradient(const Reflector& h, const Tensor& G, const Tensor& X) {
    const Tensor G_along = ops::matmul(G, ops::mH(ops::matmul(ops::mH(h.v), X)));  // gH v
    const Tensor X_along = ops::matmul(X, ops::mH(ops::matmul(ops::mH(h.v), G)));  // gH^H v
    t = ops::neg(ops::matmul(ops::mH(h.v), G_along));
    v = ops::neg(ops::add(ops::mul(ops::conj(h.t), G_along), ops::mul(h.t, X_along)));
  }
};

}  // namespace

ReflectorGradients reflector_gradients(const Tensor& vectors, const Tensor& tau, const Tensor& C,
                                       const Tensor& grad, bool adjoint) {
  const int64_t m = vectors.size(-2), n = vectors.size(-1), k = tau.size(-1);
  const Tensor one = ops::eye(m, n, vectors.dtype(), std::nullopt, vectors.device());
  const Tensor columns = ops::add(ops::tril(vectors, -1), one);
  auto reflector = [&](int64_t i) {
    const Tensor t = ops::unsqueeze(ops::narrow(tau, -1, i, 1), -1);
    return Reflector{ops::narrow(columns, -1, i, 1), adjoint ? ops::conj(t) : t};
  };
  // The last factor of the product comes first.
  auto number = [&](int64_t step) { return adjoint ? step : k - 1 - step; };
  std::vector<Tensor> before = {C};
  for (int64_t step = 0; step + 1 < k; ++step)
    before.push_back(reflector(number(step)).apply(before.back()));
  std::vector<Tensor> v_grads(static_cast<size_t>(k)), t_grads(static_cast<size_t>(k));
  Tensor G = grad;
  for (int64_t step = k - 1; step >= 0; --step) {
    const auto i = static_cast<size_t>(number(step));
    const Reflector h = reflector(number(step));
    const ReflectorGradient g(h, G, before[static_cast<size_t>(step)]);
    v_grads[i] = g.v;
    t_grads[i] = adjoint ? ops::conj(g.t) : g.t;
    G = h.apply_adjoint(G);
  }
  if (k == 0) return {ops::zeros_like(vectors), ops::zeros_like(tau)};
  if (k < n) v_grads.push_back(ops::zeros_like(ops::narrow(vectors, -1, k, n - k)));
  return {ops::tril(ops::cat(v_grads, -1), -1), ops::squeeze(ops::cat(t_grads, -2), -1)};
}

}  // namespace facula::linalg
