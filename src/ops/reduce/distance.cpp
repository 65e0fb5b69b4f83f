// Distances between tensors and between the rows of matrices.
#include "ops/reduce/distance.h"

#include <cmath>

#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "kernels/cpu/reduce/distance.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/powers.h"
#include "ops/elementwise/where.h"
#include "ops/matmul/matmul.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/reduce/variance.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return ops::norm(ops::sub(self, other), p);
}
void dist_gradient(Backward& b) {
  const Tensor difference = ops::sub(b["self"], b["other"]);
  IntVec all;
  for (int64_t d = 0; d < difference.dim(); ++d) all.push_back(d);
  const Tensor g =
      reduction::vector_norm_gradient(difference, b["result"], b.grad(), b.number("p"), all);
  if (!g.defined()) return;
  b.set("self", g);
  if (b.needs("other")) b.set("other", ops::neg(g));
}

// --- between the rows of two matrices

IntSpan batch_of(const Tensor& t) { return t.sizes().first(static_cast<size_t>(t.dim() - 2)); }

void check_rows(const Tensor& x1, const Tensor& x2, double p) {
  check(x1.dim() >= 2, "cdist(): x1 must have at least 2 dimensions; got ", x1.dim());
  check(x2.dim() >= 2, "cdist(): x2 must have at least 2 dimensions; got ", x2.dim());
  check(is_floating(x1.dtype()), "cdist(): x1 must be floating point; got ", name(x1.dtype()));
  check(is_floating(x2.dtype()), "cdist(): x2 must be floating point; got ", name(x2.dtype()));
  check(x1.size(-1) == x2.size(-1), "cdist(): x1 and x2 must have rows of one length; got ",
        x1.size(-1), " and ", x2.size(-1));
  check(x1.dtype() == x2.dtype(), "cdist(): x1 and x2 must have one dtype; got ", name(x1.dtype()),
        " and ", name(x2.dtype()));
  check(p >= 0, "cdist(): p must not be negative; got ", p);
}

IntVec distance_sizes(const Tensor& x1, const Tensor& x2) {
  IntVec sizes = broadcast_sizes(batch_of(x1), batch_of(x2));
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return sizes;
}

void meta_cdist(Meta& m, const Tensor& x1, const Tensor& x2, double p,
                std::optional<int64_t> mode) {
  check_rows(x1, x2, p);
  check(!mode || (*mode >= 0 && *mode <= 2), "cdist(): compute_mode must be 0, 1 or 2; got ",
        mode.value_or(0));
  m.result(0, distance_sizes(x1, x2), x1.dtype());
}

void meta_cdist_backward(Meta& m, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                         const Tensor& distances) {
  check_kind(ErrorKind::NotImplemented, is_floating(x1.dtype()),
             "\"cdist_backward\" not implemented for '", info(x1.dtype()).legacy_name, "'");
  check_rows(x1, x2, p);
  const IntVec sizes = distance_sizes(x1, x2);
  for (const Tensor* t : {&grad, &distances})
    check(same_sizes(t->sizes(), sizes) && t->dtype() == x1.dtype(),
          "_cdist_backward(): expected a gradient and distances of shape ", str(sizes),
          " and dtype ", name(x1.dtype()), "; got ", str(t->sizes()), " and ", name(t->dtype()));
  IntVec result = broadcast_sizes(batch_of(x1), batch_of(x2));
  result.push_back(x1.size(-2));
  result.push_back(x1.size(-1));
  m.result(0, result, x1.dtype());
}

// Many rows are compared by a product of matrices, which rounds worse than differences do.
Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  check_rows(x1, x2, p);
  const int64_t chosen = mode.value_or(0);
  check(chosen >= 0 && chosen <= 2, "cdist(): compute_mode must be 0, 1 or 2; got ", chosen);
  const bool many = x1.size(-2) > 25 || x2.size(-2) > 25;
  const bool by_product =
      p == 2 && (chosen == 1 || (chosen == 0 && many)) && x1.numel() > 0 && x2.numel() > 0;
  if (!by_product) return ops::_cdist_forward(x1, x2, p, mode);
  return ops::view(ops::_euclidean_dist(x1, x2), distance_sizes(x1, x2));
}

// Element by element: (P, 1, M) against (1, R, M).
struct Slopes {
  Tensor difference, distance, slope;  // slope of the distance by the difference
};
Slopes slopes_of(const Tensor& x1, const Tensor& x2, double p, const Tensor& distances) {
  const Tensor d = ops::sub(ops::unsqueeze(x1, -2), ops::unsqueeze(x2, -3)),
               whole = ops::unsqueeze(distances, -1);
  const Tensor size = ops::abs(d), sign = ops::sign(d);
  if (p == 0) return {d, whole, ops::zeros_like(d)};
  if (p == 1) return {d, whole, sign};
  if (std::isinf(p)) return {d, whole, ops::mul(sign, ops::eq(size, whole))};
  const Tensor raw = ops::mul(sign, ops::pow(ops::div(size, whole), p - 1));
  return {d, whole, ops::where(ops::logical_or(ops::eq(whole, 0), ops::eq(d, 0)), 0, raw)};
}

// grad_x1[i] = sum over j of grad[i, j] * slope(x1[i] - x2[j], distance[i, j])
void cdist_double_backward(Backward& b) {
  const double p = b.number("p");
  const Slopes s = slopes_of(b["x1"], b["x2"], p, b["cdist"]);
  const Tensor into = ops::unsqueeze(b.grad(), -2), grad = ops::unsqueeze(b["grad_output"], -1);
  if (b.needs("grad_output")) b.set("grad_output", ops::sum(ops::mul(into, s.slope), IntList{-1}));
  if (p == 0 || p == 1 || std::isinf(p)) return;
  const Tensor weighted = ops::mul(into, grad);
  // (p - 1) |d|^(p - 2) / distance^(p - 1), which is (p - 1) slope / d
  const Tensor flat = ops::logical_or(ops::eq(s.difference, 0), ops::eq(s.distance, 0));
  const Tensor at_zero = p == 2 ? ops::where(ops::eq(s.distance, 0), 0, ops::reciprocal(s.distance))
                                : ops::zeros_like(s.slope);
  const Tensor bend = ops::where(flat, at_zero, ops::mul(ops::div(s.slope, s.difference), p - 1));
  const Tensor bent = ops::mul(weighted, bend);
  if (b.needs("x1")) b.set("x1", ops::sum(bent, IntList{-2}));
  if (b.needs("x2")) b.set("x2", ops::neg(ops::sum(bent, IntList{-3})));
  if (!b.needs("cdist")) return;
  const Tensor whole = ops::squeeze(s.distance, -1);
  const Tensor by_distance =
      ops::div(ops::mul(ops::sum(ops::mul(weighted, s.slope), IntList{-1}), 1 - p), whole);
  b.set("cdist", ops::where(ops::eq(whole, 0), 0, by_distance));
}

Tensor swapped(const Tensor& t) { return ops::transpose(t, -2, -1); }

// Whether differences take no longer than the product does.
bool are_narrow(const Tensor& x1, const Tensor& x2) {
  constexpr int64_t narrow = 24;
  const bool counted = x1.dtype() == DType::Float32 || x1.dtype() == DType::Float64;
  return counted && x1.dtype() == x2.dtype() && x1.device().is_cpu() && x1.size(-1) <= narrow;
}

Tensor euclidean(const Tensor& x1, const Tensor& x2) {
  if (are_narrow(x1, x2)) return ops::_cdist_forward(x1, x2, 2, std::nullopt);
  auto squares = [](const Tensor& t) { return ops::sum(ops::mul(t, t), IntList{-1}, true); };
  const Tensor products = ops::matmul(ops::mul(x1, -2), swapped(x2));
  const Tensor sum = ops::add(ops::add(products, squares(x1)), swapped(squares(x2)));
  return ops::sqrt(ops::clamp_min(sum, 0));
}
void euclidean_gradient(Backward& b) {
  const Tensor x1 = b["x1"], x2 = b["x2"], d = b["result"];
  const Tensor share = ops::where(ops::eq(d, 0), 0, ops::div(b.grad(), d));
  if (b.needs("x1"))
    b.set("x1", ops::sub(ops::mul(x1, ops::sum(share, IntList{-1}, true)), ops::matmul(share, x2)));
  if (!b.needs("x2")) return;
  const Tensor back = swapped(share);
  b.set("x2", ops::sub(ops::mul(x2, ops::sum(back, IntList{-1}, true)), ops::matmul(back, x1)));
}

// --- between the rows of one matrix

void check_pdist(const Tensor& self, double p) {
  check(self.dim() == 2, "pdist(): self must be a matrix; got ", self.dim(), " dimensions");
  check(is_floating(self.dtype()), "pdist(): self must be floating point; got ",
        name(self.dtype()));
  check(p >= 0, "pdist(): p must not be negative; got ", p);
}
int64_t pair_count(const Tensor& self) {
  const int64_t n = self.sizes()[0];
  return n < 2 ? 0 : n * (n - 1) / 2;
}
void meta_pdist(Meta& m, const Tensor& self, double p) {
  check_kind(ErrorKind::NotImplemented, is_floating(self.dtype()),
             "\"pdist\" not implemented for '", info(self.dtype()).legacy_name, "'");
  check_pdist(self, p);
  m.result(0, IntList{pair_count(self)}, self.dtype());
}
void meta_pdist_backward(Meta& m, const Tensor& grad, const Tensor& self, double p,
                         const Tensor& distances) {
  check_pdist(self, p);
  for (const Tensor* t : {&grad, &distances})
    check(t->numel() == pair_count(self) && t->dtype() == self.dtype(),
          "_pdist_backward(): expected a gradient and distances of ", pair_count(self),
          " elements; got ", str(t->sizes()));
  m.result(0, self.sizes(), self.dtype());
}
Tensor pdist(const Tensor& self, double p) {
  check_pdist(self, p);
  return ops::_pdist_forward(ops::contiguous(self), p);
}

// --- norms of slices

// The norms of all slices along one dimension, that dimension kept.
IntVec all_but(int64_t dims, int64_t dim) {
  IntVec others;
  for (int64_t d = 0; d < dims; ++d)
    if (d != dim) others.push_back(d);
  return others;
}

// What every slice is multiplied with so that its norm is at most maxnorm.
struct Scaling {
  Tensor norm, above, divisor, factor;
};
Scaling scaling_of(const Tensor& self, const Scalar& p, const IntVec& over, double maxnorm) {
  constexpr double apart = 1e-7;
  const Tensor norm = ops::linalg_vector_norm(self, p, std::optional<IntList>(over), true,
                                              compute_of(self.dtype()));
  const Tensor above = ops::gt(norm, maxnorm);
  const Tensor divisor = ops::add(norm, apart);
  return {norm, above, divisor, ops::where(above, ops::div(maxnorm, divisor), 1.0)};
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  check(!p.is_complex(), "renorm(): p must be real");
  check(p.to<double>() > 0, "renorm(): p must be positive; got ", p.to<double>());
  check(!maxnorm.is_complex(), "renorm(): maxnorm must be real");
  check(maxnorm.to<double>() >= 0, "renorm(): maxnorm must not be negative; got ",
        maxnorm.to<double>());
  check(self.dim() > 1, "renorm(): self must have at least 2 dimensions; got ", self.dim());
  const IntVec over = all_but(self.dim(), wrap_dim(dim, self.dim()));
  const Tensor factor = scaling_of(self, p, over, maxnorm.to<double>()).factor;
  return ops::contiguous(ops::mul(self, ops::to(factor, real_of(self.dtype()))));
}

// A slice that was scaled depends on all of itself through its norm.
Tensor renorm_gradient(Backward& b) {
  const Tensor self = b["self"], grad = b.grad();
  const double maxnorm = b.number("maxnorm");
  const IntVec over = all_but(self.dim(), wrap_dim(b.integer("dim"), self.dim()));
  const Scaling s = scaling_of(self, b.scalar("p"), over, maxnorm);
  const Tensor products = ops::mul(grad, is_complex(self.dtype()) ? ops::conj(self) : self);
  const Tensor share = ops::sum(is_complex(self.dtype()) ? ops::real(products) : products,
                                std::optional<IntList>(over), true);
  const Tensor slope = ops::div(-maxnorm, ops::mul(s.divisor, s.divisor));
  const Tensor by_norm = ops::where(s.above, ops::mul(share, slope), 0.0);
  const Tensor through =
      reduction::vector_norm_gradient(self, s.norm, by_norm, b.number("p"), over);
  return ops::add(ops::mul(grad, s.factor), through);
}

Tensor norm_except_dim(const Tensor& v, int64_t power, int64_t dim) {
  if (dim == -1) return ops::norm(v, power);
  const int64_t d = wrap_dim(dim, v.dim());
  // An inner dimension is the first of a transposed view, whose result is laid out as PyTorch's.
  if (d != 0 && d != v.dim() - 1)
    return ops::transpose(norm_except_dim(ops::transpose(v, 0, d), power, 0), 0, d);
  return ops::linalg_vector_norm(v, power, std::optional<IntList>(all_but(v.dim(), d)), true);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(dist){
    .schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    .doc = "The p-norm of self - other, over all elements.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<dist>,
    .derivatives = {vjp(names("self", "other"), dist_gradient, saves("self", "other", "result"))},
};
OP(cdist){
    .schema = "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
    .doc =
        "Distances by the p-norm between the rows of x1 (..., P, M) and of x2 (..., R, M): (..., "
        "P, R).",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<cdist>,
};
OP(_cdist_forward){
    .schema = "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    .doc = "The distances of cdist, taken by differences.",
    .forms = out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_cdist>,
    .cpu = cpu::cdist_kernel,
    .derivatives =
        {
            vjp(
                "x1",
                [](Backward& b) {
                  return ops::_cdist_backward(b.grad(), b["x1"], b["x2"], b.number("p"),
                                              b["result"]);
                },
                saves("x1", "x2", "result")),
            vjp(
                "x2",
                [](Backward& b) {
                  return ops::_cdist_backward(swapped(b.grad()), b["x2"], b["x1"], b.number("p"),
                                              swapped(b["result"]));
                },
                saves("x1", "x2", "result")),
        },
    .node = "CdistBackward0",
    .batch = batch::pointwise,  // the dimensions before the rows broadcast
};
OP(_cdist_backward){
    .schema =
        "_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> "
        "Tensor",
    .doc = "Gradient of _cdist_forward by x1, from its result.",
    .forms = out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_cdist_backward>,
    .cpu = cpu::cdist_backward_kernel,
    .derivatives = {vjp(names("grad_output", "x1", "x2", "cdist"), cdist_double_backward,
                        saves("grad_output", "x1", "x2", "cdist"))},
    .hole = "vmap: samples are done one by one",
};
OP(_euclidean_dist){
    .schema = "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    .doc = "The distances of cdist for p = 2, of long rows by a product of matrices.",
    .forms = out,
    .composite = Composite::Explicit,
    .any = typed_kernel<euclidean>,
    .derivatives = {vjp(names("x1", "x2"), euclidean_gradient, saves("x1", "x2", "result"))},
};
OP(pdist){
    .schema = "pdist(Tensor self, float p=2.) -> Tensor",
    .doc =
        "Distances by the p-norm between all pairs of rows of self (N, M): N (N - 1) / 2 numbers.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<pdist>,
};
OP(_pdist_forward){
    .schema = "_pdist_forward(Tensor self, float p=2.) -> Tensor",
    .doc = "As pdist, of a contiguous matrix.",
    .forms = out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_pdist>,
    .cpu = cpu::pdist_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::_pdist_backward(b.grad(), b["self"], b.number("p"), b["result"]);
        },
        saves("self", "result"))},
    .node = "PdistBackward0",
    .hole = "vmap: samples are done one by one",
};
OP(_pdist_backward){
    .schema = "_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",
    .doc = "Gradient of pdist.",
    .forms = out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_pdist_backward>,
    .cpu = cpu::pdist_backward_kernel,
    .hole = "PyTorch has no second derivative either",
};
OP(renorm){
    .schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    .doc = "Self with every slice along dim whose p-norm is above maxnorm scaled down to it.",
    .forms = all_forms,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<renorm>,
    .derivatives = {vjp("self", renorm_gradient, saves("self"))},
};
OP(norm_except_dim){
    .schema = "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    .doc =
        "Norms of the slices along dim, which is kept with ones around it; of all elements for "
        "dim=-1.",
    .composite = Composite::Implicit,
    .any = typed_kernel<norm_except_dim>,
};
