// Samples of gamma and Dirichlet distributions, which move with the parameters: their derivatives
// are operators of their own.
#include "ops/random/gamma.h"

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/random/distributions.h"
#include "kernels/cpu/random/sample_gradients.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/random/batch.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

void meta_like(Meta& m, const Tensor& self) { m.result(0, self.sizes(), self.dtype()); }

void check_same(const Tensor& a, const Tensor& b, const char* op) {
  check(same_sizes(a.sizes(), b.sizes()), op, "(): expected tensors of one shape; got ",
        str(a.sizes()), " and ", str(b.sizes()));
  check(a.dtype() == b.dtype(), op, "(): expected tensors of one dtype; got ", name(a.dtype()),
        " and ", name(b.dtype()));
}

void standard_gamma(const Tensor& self, Generator* generator, const Tensor& out) {
  const Tensor alpha = cpu::contiguous(self);
  Generator& g = generator_for(generator, Device());
  dispatch<float, double>(self.dtype(), "gamma", [&]<class T>(Type<T>) {
    dist::standard_gamma<T>(g, out.data<T>(), alpha.data<T>(), out.numel());
  });
}

void sample_dirichlet(const Tensor& self, Generator* generator, const Tensor& out) {
  const Tensor alpha = cpu::contiguous(self);
  const int64_t n = self.dim() ? self.size(-1) : 1, rows = n ? self.numel() / n : 0;
  Generator& g = generator_for(generator, Device());
  dispatch<float, double>(self.dtype(), "dirichlet", [&]<class T>(Type<T>) {
    dist::dirichlet<T>(g, out.data<T>(), alpha.data<T>(), rows, n);
  });
}

void meta_gamma_grad(Meta& m, const Tensor& self, const Tensor& output) {
  check_same(self, output, "_standard_gamma_grad");
  m.result(0, self.sizes(), self.dtype());
}
void standard_gamma_grad(const Tensor& self, const Tensor& output, const Tensor& out) {
  const Tensor alpha = cpu::contiguous(self), sample = cpu::contiguous(output);
  dispatch<float, double>(self.dtype(), "_standard_gamma_grad_cpu", [&]<class T>(Type<T>) {
    dist::standard_gamma_grad<T>(out.data<T>(), alpha.data<T>(), sample.data<T>(), out.numel());
  });
}

void meta_dirichlet_grad(Meta& m, const Tensor& x, const Tensor& alpha, const Tensor& total) {
  check_same(x, alpha, "_dirichlet_grad");
  check_same(x, total, "_dirichlet_grad");
  m.result(0, x.sizes(), x.dtype());
}
void dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total, const Tensor& out) {
  const Tensor sample = cpu::contiguous(x), a = cpu::contiguous(alpha), t = cpu::contiguous(total);
  dispatch<float, double>(x.dtype(), "_dirichlet_grad_cpu", [&]<class T>(Type<T>) {
    dist::dirichlet_grad<T>(out.data<T>(), sample.data<T>(), a.data<T>(), t.data<T>(), out.numel());
  });
}

// One coordinate moves by its own derivative, and the others make room in proportion to themselves.
Tensor dirichlet_gradient(Backward& b) {
  const Tensor x = b["result"], alpha = b["self"];
  const Tensor total = ops::expand(ops::sum(alpha, IntVec{-1}, true), alpha.sizes());
  const Tensor shared = ops::sum(ops::mul(x, b.grad()), IntVec{-1}, true);
  return ops::mul(ops::_dirichlet_grad(x, alpha, total), ops::sub(b.grad(), shared));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_standard_gamma){
    .schema = "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    .doc = "Gamma variates of the shapes in self and scale one; they move with the shapes.",
    .forms = function | out,
    .flags = random,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_like>,
    .cpu = typed_kernel<standard_gamma>,
    .derivatives = {local(
        "self", [](Backward& b) { return ops::_standard_gamma_grad(b["self"], b["result"]); },
        saves("self", "result"))},
    .batch = batch::pointwise,
};
OP(_standard_gamma_grad){
    .schema = "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    .doc = "How gamma variates `output` move with their shapes in self, elementwise.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_gamma_grad>,
    .cpu = typed_kernel<standard_gamma_grad>,
    .hole = "derivatives: PyTorch has none either; vmap: samples are done one by one",
};
OP(_sample_dirichlet){
    .schema = "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    .doc = "Dirichlet samples of the concentrations in self (..., n); they move with them.",
    .forms = function | out,
    .flags = random,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_like>,
    .cpu = typed_kernel<sample_dirichlet>,
    .derivatives = {vjp("self", dirichlet_gradient, saves("self", "result"))},
    .batch = batch::leading,
};
OP(_dirichlet_grad){
    .schema = "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    .doc =
        "How coordinates x of Dirichlet samples move with their concentration alpha, divided by "
        "1 - x, where the concentrations add up to total; elementwise.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_dirichlet_grad>,
    .cpu = typed_kernel<dirichlet_grad>,
    .hole = "derivatives: PyTorch has none either; vmap: samples are done one by one",
};
