#include "ops/norm/second_derivatives.h"

#include "ops/elementwise/arithmetic.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {

Tensor Normalized::mean(const Tensor& t) const {
  return ops::mean(t, std::optional<IntList>(dims), true);
}

Tensor Normalized::project(const Tensor& u) const {
  if (fixed) return u;
  const Tensor rest = ops::sub(u, ops::mul(normal, mean(ops::mul(u, normal))));
  return centred ? ops::sub(rest, mean(u)) : rest;
}

static Tensor plus(const Tensor& a, const Tensor& b) { return a.defined() ? ops::add(a, b) : b; }

SecondOrder second_order(const Normalized& n, const Tensor& grad_out, const Tensor& weight,
                         const Tensor& v, const Tensor& vw, const Tensor& vb) {
  SecondOrder r;
  Tensor by_normal, by_rstd;
  if (vw.defined()) {
    r.grad_out = ops::mul(vw, n.normal);
    by_normal = ops::mul(vw, grad_out);
  }
  if (vb.defined()) r.grad_out = plus(r.grad_out, ops::expand(vb, grad_out.sizes()));
  if (v.defined()) {
    const Tensor g = weight.defined() ? ops::mul(grad_out, weight) : grad_out;
    const Tensor through = ops::mul(n.rstd, n.project(v));
    r.grad_out = plus(r.grad_out, weight.defined() ? ops::mul(through, weight) : through);
    r.weight = ops::mul(through, grad_out);
    if (!n.fixed) {
      const Tensor crossed = ops::add(ops::mul(v, n.mean(ops::mul(g, n.normal))),
                                      ops::mul(g, n.mean(ops::mul(v, n.normal))));
      by_normal = plus(by_normal, ops::neg(ops::mul(n.rstd, crossed)));
      by_rstd = n.mean(ops::mul(v, n.project(g)));
    }
  }
  if (!by_normal.defined()) return r;
  r.input = ops::mul(n.rstd, n.project(by_normal));
  if (by_rstd.defined())
    r.input = ops::sub(r.input, ops::mul(ops::mul(by_rstd, ops::mul(n.rstd, n.rstd)), n.normal));
  return r;
}

}  // namespace facula
