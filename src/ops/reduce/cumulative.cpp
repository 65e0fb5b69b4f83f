// Running sums, products, extrema; differences and trapezoids along one dimension.
#include "ops/reduce/cumulative.h"

#include "dispatch/forward.h"
#include "dispatch/out_dtype.h"
#include "kernels/cpu/reduce/cumulative.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/arithmetic_numbers.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/logical.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/repeat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// --- shapes

// A changed self keeps its dtype; otherwise integers widen.
void meta_sum(Meta& m, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  wrap_dim(dim, self.dim());
  if (dtype) reduction::check_out_dtype(m, 0, *dtype);
  // Without dtype= the sums are taken in what out= has.
  if (m.call.op->variant == Variant::Out && !dtype)
    dtype = m.call.tensor(m.call.info->base_args).dtype();
  const bool in_place = m.call.op->variant == Variant::Inplace;
  const DType widened = is_integral(self.dtype(), true) && !in_place ? DType::Int64 : self.dtype();
  m.result(0, self.sizes(), dtype.value_or(widened));
}

void meta_extreme(Meta& m, const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim());
  m.result(0, self.sizes(), self.dtype());
  m.result(1, self.sizes(), DType::Int64);
}

void meta_like(Meta& m, const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim());
  reduction::check_out_dtype(m, 0, self.dtype());
  m.result(0, self.sizes(), self.dtype());
}

// --- gradients

// Sums from the end.
Tensor reversed_sum(const Tensor& t, int64_t dim) {
  if (t.dim() == 0 || t.numel() <= 1) return t;
  return ops::flip(ops::cumsum(ops::flip(t, {dim}), dim), {dim});
}

bool has_zero(const Tensor& t) {
  return !t.is_meta() && ops::item(ops::any(ops::eq(t, 0), std::nullopt)).to<bool>();
}

// With zeros in the input: for each place k the products of all others up to every later place.
// Quadratic in the length, but it divides by nothing and can be differentiated again.
Tensor cumprod_gradient_with_zeros(const Tensor& grad, const Tensor& input, int64_t dim) {
  const int64_t n = input.sizes()[dim];
  const Tensor before = ops::cumprod(input, dim);
  std::vector<Tensor> parts;
  for (int64_t k = 0; k < n; ++k) {
    const Tensor lead =
        k ? ops::narrow(before, dim, k - 1, 1) : ops::ones_like(ops::narrow(input, dim, 0, 1));
    Tensor others = lead;
    if (k + 1 < n) {
      const Tensor rest =
          ops::mul(lead, ops::cumprod(ops::narrow(input, dim, k + 1, n - k - 1), dim));
      const Tensor both[] = {lead, rest};
      others = ops::cat(both, dim);
    }
    const Tensor seen = ops::mul(ops::narrow(grad, dim, k, n - k), ops::conj(others));
    parts.push_back(ops::sum(seen, std::optional(IntList{dim}), true));
  }
  return ops::cat(parts, dim);
}

Tensor cumprod_backward(const Tensor& grad, const Tensor& input, int64_t dim,
                        const Tensor& output) {
  if (input.numel() <= 1) return grad;
  const int64_t d = wrap_dim(dim, input.dim());
  if (input.sizes()[d] == 1) return grad;
  if (has_zero(ops::detach(input))) return cumprod_gradient_with_zeros(grad, input, d);
  return ops::div(reversed_sum(ops::mul(ops::conj(output), grad), d), ops::conj(input));
}

Tensor cummaxmin_backward(const Tensor& grad, const Tensor& input, const Tensor& indices,
                          int64_t dim) {
  if (input.numel() == 0) return input;
  return ops::scatter_add(ops::zeros_like(input), dim, indices, grad);
}

Tensor extreme_gradient(Backward& b) {
  if (!b.grad().defined()) return {};
  return ops::scatter_add(ops::new_zeros(b.grad(), b.sizes("self")), b.integer("dim"), b["indices"],
                          b.grad());
}

double lowest(DType d) {
  if (d == DType::Float64) return -0x1.fffffffffffffp1023;
  if (d == DType::Float16) return -65504;
  return d == DType::BFloat16 ? -0x1.fep127 : -0x1.fffffep127;
}

// Logarithms of a tensor's elements; of zeros a number whose exponential is 0.
Tensor logarithms(const Tensor& t) {
  const Tensor none = ops::eq(t, 0);
  return ops::masked_fill(ops::log(ops::masked_fill(t, none, Scalar(1))), none,
                          Scalar(lowest(real_of(t.dtype()))));
}

// Positive and negative gradients go through logarithms apart, so that nothing overflows; those of
// complex numbers have a logarithm anyway.
Tensor logcumsumexp_gradient(Backward& b) {
  const int64_t dim = b.integer("dim");
  const Tensor self = b["self"], result = b["result"], grad = b.grad();
  if (grad.dim() == 0 || grad.numel() == 0) return grad;
  auto from_end = [&](const Tensor& logs) {
    const Tensor terms = ops::flip(ops::sub(logs, ops::conj(result)), {dim});
    return ops::exp(ops::add(ops::flip(ops::logcumsumexp(terms, dim), {dim}), ops::conj(self)));
  };
  if (is_complex(grad.dtype())) return from_end(logarithms(grad));
  const double low = lowest(grad.dtype());  // finite: differences of infinities have no gradient
  const Tensor logs = ops::log(ops::abs(grad));
  const Tensor up = from_end(ops::masked_fill(logs, ops::le(grad, 0), Scalar(low)));
  const Tensor down = from_end(ops::masked_fill(logs, ops::ge(grad, 0), Scalar(low)));
  return ops::sub(up, down);
}

// --- composites

// The running mean of the tangent, weighted by exponentials. Positive and negative parts have
// logarithms of their own, so that nothing overflows.
void logcumsumexp_tangent(Forward& f) {
  const Tensor &x = f.primal("self"), &t = f.tangent("self"), &y = f.result();
  const int64_t dim = f.value("dim").i;
  if (x.numel() == 0) return f.set(0, t);
  auto mean_of = [&](const Tensor& logs) {
    return ops::exp(ops::sub(ops::logcumsumexp(ops::add(x, logs), dim), y));
  };
  if (is_complex(x.dtype())) return f.set(0, mean_of(logarithms(t)));
  auto part = [&](const Tensor& size) { return mean_of(ops::log(ops::clamp_min(size, 0))); };
  f.set(0, ops::sub(part(t), part(ops::neg(t))));
}

Tensor _logcumsumexp(const Tensor& self, int64_t dim) { return ops::logcumsumexp(self, dim); }

void check_joined(const Tensor& self, const Tensor& other, int64_t dim) {
  check(other.dim() == self.dim(),
        "diff(): prepend and append must have as many dimensions as input, ", self.dim(), "; got ",
        other.dim());
  for (int64_t d = 0; d < self.dim(); ++d)
    check(d == dim || other.sizes()[d] == self.sizes()[d],
          "diff(): prepend and append must have input's shape outside dim ", dim, "; got size ",
          other.sizes()[d], " for ", self.sizes()[d], " in dimension ", d);
}

Tensor joined(const Tensor& self, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (!prepend.defined() && !append.defined()) return self;
  std::vector<Tensor> parts;
  for (const Tensor& t : {prepend, self, append})
    if (t.defined()) parts.push_back(t);
  return ops::cat(parts, dim);
}

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  check(self.dim() >= 1, "diff(): input must have a dimension; got a 0-dim tensor");
  check(n >= 0, "diff(): n must not be negative; got ", n);
  const int64_t d = wrap_dim(dim, self.dim());
  if (prepend.defined()) check_joined(self, prepend, d);
  if (append.defined()) check_joined(self, append, d);
  if (n == 0) return ops::copy_(ops::empty_like(self), self);
  Tensor t = joined(self, d, prepend, append);
  const int64_t times = std::min(n, t.sizes()[d]);
  for (int64_t k = 0; k < times; ++k) {
    const int64_t last = std::max<int64_t>(t.sizes()[d] - 1, 0);
    const Tensor after = ops::narrow(t, d, t.sizes()[d] - last, last),
                 before = ops::narrow(t, d, 0, last);
    t = t.dtype() == DType::Bool ? ops::logical_xor(after, before) : ops::sub(after, before);
  }
  return t;
}

// Sum of neighbours along dim.
Tensor pair_sums(const Tensor& y, int64_t dim) {
  return ops::add(ops::slice(y, dim, 1, std::nullopt, 1), ops::slice(y, dim, 0, -1, 1));
}

void check_trapezoid(const char* op, const Tensor& y, const Tensor& x, int64_t dim) {
  check_kind(ErrorKind::NotImplemented, y.dtype() != DType::Bool, op, "(): y must not be bool");
  if (!x.defined()) return;
  check_kind(ErrorKind::NotImplemented, x.dtype() != DType::Bool, op, "(): x must not be bool");
  check(x.dim() != 1 || x.sizes()[0] == y.sizes()[dim], op,
        "(): x must have one value for each of the ", y.sizes()[dim], " samples of y; got ",
        x.sizes()[0]);
}

int64_t sampled_dim(const Tensor& y, int64_t dim) {
  check_index(y.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, y.dim());
}

// Widths between samples, of as many dimensions as y.
Tensor widths(const Tensor& y, const Tensor& x, int64_t dim) {
  if (x.dim() == 0) {
    const Tensor spread = ops::expand(x, IntList{1});
    return ops::sub(ops::narrow(spread, 0, 0, 0), ops::narrow(spread, 0, 0, 0));
  }
  if (x.dim() == 1) {
    IntVec sizes(static_cast<size_t>(y.dim()), 1);
    sizes[dim] = x.sizes()[0];
    return ops::diff(ops::view(x, sizes), 1, dim);
  }
  Tensor seen = x;
  while (seen.dim() < y.dim()) seen = ops::unsqueeze(seen, 0);
  const int64_t d = dim + (seen.dim() - y.dim());
  return ops::diff(seen, 1, d);
}

Tensor zeros_without(const Tensor& y, int64_t dim) {
  IntVec sizes(y.sizes());
  sizes.erase(static_cast<size_t>(dim));
  return ops::new_zeros(y, sizes);
}

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = sampled_dim(y, dim);
  if (y.sizes()[d] == 0) return zeros_without(y, d);
  check_trapezoid("trapezoid", y, x, d);
  return ops::div(ops::sum(ops::mul(pair_sums(y, d), widths(y, x, d)), std::optional(IntList{d})),
                  2.0);
}
Tensor trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = sampled_dim(y, dim);
  if (y.sizes()[d] == 0) return zeros_without(y, d);
  check_trapezoid("trapezoid", y, {}, d);
  const Tensor ends = ops::add(ops::select(y, d, 0), ops::select(y, d, -1));
  const Tensor all = ops::sum(y, std::optional(IntList{d}));
  return ops::mul(ops::sub(all, ops::mul(ends, 0.5)), dx);
}
Tensor trapz_x(const Tensor& y, const Tensor& x, int64_t dim) { return ops::trapezoid(y, x, dim); }
Tensor trapz_dx(const Tensor& y, double dx, int64_t dim) {
  return ops::trapezoid(y, Scalar(dx), dim);
}

Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = sampled_dim(y, dim);
  check_trapezoid("cumulative_trapezoid", y, x, d);
  return ops::div(ops::cumsum(ops::mul(pair_sums(y, d), widths(y, x, d)), d), 2.0);
}
Tensor cumulative_trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = sampled_dim(y, dim);
  check_trapezoid("cumulative_trapezoid", y, {}, d);
  return ops::cumsum(ops::mul(pair_sums(y, d), Scalar(dx.to<double>() / 2)), d);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(cumsum){
    .schema = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Running sums along a dimension; integers add in int64.",
    .forms = all_forms,
    .flags = linear,
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_sum>,
    .cpu = cpu::cumsum_kernel,
    .derivatives = {vjp("self",
                        [](Backward& b) { return reversed_sum(b.grad(), b.integer("dim")); })},
    .batch = batch::dims,
};
OP(cumprod){
    .schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Running products along a dimension; integers multiply in int64.",
    .forms = all_forms,
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_sum>,
    .cpu = cpu::cumprod_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          const DType wide = b["result"].dtype();
          return ops::cumprod_backward(b.grad(), ops::to(b["self"], wide), b.integer("dim"),
                                       b["result"]);
        },
        saves("self", "result"))},
    .batch = batch::dims,
};
OP(cumprod_backward){
    .schema = "cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
    .doc = "The gradient of cumprod(): zeros in the input are allowed.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<cumprod_backward>,
};
OP(cummax){
    .schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Running maximum along a dimension and where it is last: int64.",
    .forms = function | method | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_extreme>,
    .cpu = cpu::cummax_kernel,
    .derivatives = {vjp("self", extreme_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(cummin){
    .schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Running minimum along a dimension and where it is last: int64.",
    .forms = function | method | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_extreme>,
    .cpu = cpu::cummin_kernel,
    .derivatives = {vjp("self", extreme_gradient, saves("indices"))},
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(cummaxmin_backward){
    .schema = "cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
    .doc = "The gradient of cummax() and cummin(): grad added up where indices say.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<cummaxmin_backward>,
};
OP(logcumsumexp){
    .schema = "logcumsumexp(Tensor self, int dim) -> Tensor",
    .doc = "Logarithm of running sums of exponentials along a dimension, without overflow.",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_like>,
    .cpu = cpu::logcumsumexp_kernel,
    .derivatives = {vjp("self", logcumsumexp_gradient, saves("self", "result"))},
    .jvp = logcumsumexp_tangent,
    .batch = batch::dims,
};
OP(_logcumsumexp){
    .schema = "_logcumsumexp(Tensor self, int dim) -> Tensor",
    .doc = "logcumsumexp() as PyTorch names its kernel.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<_logcumsumexp>,
};
OP(diff){
    .schema =
        "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> "
        "Tensor",
    .doc = "Differences of neighbours along a dimension, n times; bool differs by exclusive or.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<diff>,
};
OP(trapezoid_x){
    .schema = "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    .doc = "Integral along a dimension by the trapezoidal rule over the sample points x.",
    .composite = Composite::Implicit,
    .any = typed_kernel<trapezoid_x>,
};
OP(trapezoid_dx){
    .schema = "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
    .doc = "Integral along a dimension by the trapezoidal rule over equal steps.",
    .composite = Composite::Implicit,
    .any = typed_kernel<trapezoid_dx>,
};
OP(trapz_x){
    .schema = "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    .doc = "trapezoid() under an older name.",
    .composite = Composite::Implicit,
    .any = typed_kernel<trapz_x>,
};
OP(trapz_dx){
    .schema = "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
    .doc = "trapezoid() under an older name.",
    .composite = Composite::Implicit,
    .any = typed_kernel<trapz_dx>,
};
OP(cumulative_trapezoid_x){
    .schema = "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    .doc = "Running integral along a dimension by the trapezoidal rule over the sample points x.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<cumulative_trapezoid_x>,
};
OP(cumulative_trapezoid_dx){
    .schema = "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
    .doc = "Running integral along a dimension by the trapezoidal rule over equal steps.",
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<cumulative_trapezoid_dx>,
};
