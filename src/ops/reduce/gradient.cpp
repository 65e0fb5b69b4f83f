// Numerical gradients on a grid.
#include "ops/reduce/gradient.h"

#include <vector>

#include "dispatch/rules.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/arithmetic_numbers.h"
#include "ops/meta_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

IntVec every_dim(const Tensor& self) {
  IntVec dims;
  for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}

IntVec checked_dims(const Tensor& self, const IntVec& dims, int64_t edge_order) {
  check(edge_order == 1 || edge_order == 2, "gradient(): edge_order must be 1 or 2; got ",
        edge_order);
  check_kind(ErrorKind::NotImplemented, self.dtype() != DType::UInt8,
             "gradient() is not implemented for uint8");
  IntVec wrapped;
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, self.dim());
    for (int64_t seen : wrapped) check(seen != w, "gradient(): dimension ", w, " is named twice");
    wrapped.push_back(w);
    check(self.sizes()[w] >= edge_order + 1, "gradient(): dimension ", w, " must have at least ",
          edge_order + 1, " points; got ", self.sizes()[w]);
  }
  return wrapped;
}

Tensor part(const Tensor& t, int64_t dim, int64_t begin, int64_t end) {
  return ops::slice(t, dim, begin, end, 1);
}

// Steps of one size along a dimension.
Tensor with_step(const Tensor& self, int64_t dim, const Scalar& step, int64_t edge_order) {
  const int64_t n = self.sizes()[dim];
  auto at = [&](int64_t i) {
    return part(self, dim, i < 0 ? n + i : i, i < 0 ? n + i + 1 : i + 1);
  };
  auto over = [&](const Tensor& t) { return ops::div(t, step); };
  // Second-order ends are a parabola's slope: (-3 x0 + 4 x1 - x2) / 2.
  auto parabola = [&](const Tensor& x0, const Tensor& x1, const Tensor& x2) {
    return ops::sub(ops::mul(ops::sub(x1, x0), 1.5), ops::mul(ops::sub(x2, x1), 0.5));
  };
  const Tensor first = edge_order == 1 ? ops::sub(at(1), at(0)) : parabola(at(0), at(1), at(2));
  const Tensor last =
      edge_order == 1 ? ops::sub(at(-1), at(-2)) : ops::neg(parabola(at(-1), at(-2), at(-3)));
  const Tensor middle = ops::div(ops::sub(part(self, dim, 2, n), part(self, dim, 0, n - 2)), 2);
  const Tensor parts[] = {over(first), over(middle), over(last)};
  return ops::cat(parts, dim);
}

// Points at given coordinates: the slope of the parabola through three neighbours.
Tensor with_coordinates(const Tensor& self, int64_t dim, const Tensor& coordinates,
                        int64_t edge_order) {
  const int64_t n = self.sizes()[dim];
  IntVec shape(static_cast<size_t>(self.dim()), 1);
  shape[dim] = n - 1;
  const Tensor steps =
      ops::reshape(ops::sub(part(coordinates, 0, 1, n), part(coordinates, 0, 0, n - 1)), shape);
  const Tensor slopes = ops::div(ops::sub(part(self, dim, 1, n), part(self, dim, 0, n - 1)), steps);
  auto step = [&](int64_t i, int64_t j) { return part(steps, dim, i, j); };
  auto slope = [&](int64_t i, int64_t j) { return part(slopes, dim, i, j); };
  // Neighbouring slopes weighted by the opposite steps.
  auto mixed = [&](const Tensor& s0, const Tensor& s1, const Tensor& h0, const Tensor& h1) {
    return ops::div(ops::add(ops::mul(s0, h1), ops::mul(s1, h0)), ops::add(h0, h1));
  };
  // Beyond the first of two slopes, half a step before it.
  auto beyond = [&](const Tensor& s0, const Tensor& s1, const Tensor& h0, const Tensor& h1) {
    return ops::sub(s0, ops::div(ops::mul(ops::sub(s1, s0), h0), ops::add(h0, h1)));
  };
  const Tensor middle = mixed(slope(0, n - 2), slope(1, n - 1), step(0, n - 2), step(1, n - 1));
  const Tensor first =
      edge_order == 1 ? slope(0, 1) : beyond(slope(0, 1), slope(1, 2), step(0, 1), step(1, 2));
  const Tensor last = edge_order == 1 ? slope(n - 2, n - 1)
                                      : beyond(slope(n - 2, n - 1), slope(n - 3, n - 2),
                                               step(n - 2, n - 1), step(n - 3, n - 2));
  const Tensor parts[] = {first, middle, last};
  return ops::cat(parts, dim);
}

std::vector<Tensor> by_steps(const Tensor& self, std::span<const Value> steps, const IntVec& dims,
                             int64_t edge_order) {
  const IntVec wrapped = checked_dims(self, dims, edge_order);
  std::vector<Tensor> results;
  for (size_t i = 0; i < wrapped.size(); ++i)
    results.push_back(
        with_step(self, wrapped[i], steps[steps.size() == 1 ? 0 : i].as_scalar(), edge_order));
  return results;
}

void check_lengths(const Tensor& self, size_t steps, const std::optional<IntVec>& dims) {
  if (!dims) {
    check(static_cast<int64_t>(steps) == self.dim(),
          "gradient(): a list of spacings must have one for each of ", self.dim(),
          " dimensions; got ", steps);
    return;
  }
  check(steps == dims->size(), "gradient(): spacing and dim must have one length; got ", steps,
        " and ", dims->size());
}

std::vector<Tensor> by_coordinates(const Tensor& self, std::span<const Tensor> spacing,
                                   const std::optional<IntVec>& dims, int64_t edge_order) {
  check_lengths(self, spacing.size(), dims);
  const IntVec wrapped = checked_dims(self, dims ? *dims : every_dim(self), edge_order);
  std::vector<Tensor> results;
  for (size_t i = 0; i < wrapped.size(); ++i) {
    const Tensor& points = spacing[i];
    check(points.dim() == 1, "gradient(): coordinates must be vectors; got ", points.dim(),
          " dimensions");
    check(points.numel() == self.sizes()[wrapped[i]], "gradient(): dimension ", wrapped[i],
          " must have ", self.sizes()[wrapped[i]], " coordinates; got ", points.numel());
    results.push_back(with_coordinates(self, wrapped[i], points, edge_order));
  }
  return results;
}

std::optional<IntVec> one_dim(std::optional<int64_t> dim) {
  return dim ? std::optional<IntVec>(IntVec{*dim}) : std::nullopt;
}

std::vector<Tensor> gradient_scalarint(const Tensor& self, const Value& spacing,
                                       std::optional<int64_t> dim, int64_t edge_order) {
  const Value step = spacing.is_none() ? Value::of_int(1) : spacing;
  return by_steps(self, {&step, 1}, dim ? IntVec{*dim} : every_dim(self), edge_order);
}
std::vector<Tensor> gradient_scalararray(const Tensor& self, const Value& spacing, IntSpan dim,
                                         int64_t edge_order) {
  return by_steps(self, {&spacing, 1}, IntVec(dim), edge_order);
}
std::vector<Tensor> gradient_array(const Tensor& self, IntSpan dim, int64_t edge_order) {
  const Value one = Value::of_int(1);
  return by_steps(self, {&one, 1}, IntVec(dim), edge_order);
}
std::vector<Tensor> gradient_scalarrayint(const Tensor& self, std::span<const Value> spacing,
                                          std::optional<int64_t> dim, int64_t edge_order) {
  check_lengths(self, spacing.size(), one_dim(dim));
  return by_steps(self, spacing, dim ? IntVec{*dim} : every_dim(self), edge_order);
}
std::vector<Tensor> gradient_scalarrayarray(const Tensor& self, std::span<const Value> spacing,
                                            IntSpan dim, int64_t edge_order) {
  check_lengths(self, spacing.size(), IntVec(dim));
  return by_steps(self, spacing, IntVec(dim), edge_order);
}
std::vector<Tensor> gradient_tensorarrayint(const Tensor& self, std::span<const Tensor> spacing,
                                            std::optional<int64_t> dim, int64_t edge_order) {
  return by_coordinates(self, spacing, one_dim(dim), edge_order);
}
std::vector<Tensor> gradient_tensorarray(const Tensor& self, std::span<const Tensor> spacing,
                                         IntSpan dim, int64_t edge_order) {
  return by_coordinates(self, spacing, IntVec(dim), edge_order);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(gradient_scalarint){
    .schema =
        "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) "
        "-> Tensor[]",
    .doc =
        "Slopes along each dimension (or along dim), from central differences; the ends from one "
        "side.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_scalarint>,
};
OP(gradient_scalararray){
    .schema =
        "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> "
        "Tensor[]",
    .doc = "Slopes along several dimensions, one step for all.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_scalararray>,
};
OP(gradient_array){
    .schema = "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
    .doc = "Slopes along several dimensions, steps of one.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_array>,
};
OP(gradient_scalarrayint){
    .schema =
        "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) "
        "-> Tensor[]",
    .doc = "Slopes along each dimension, with a step for each.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_scalarrayint>,
};
OP(gradient_scalarrayarray){
    .schema =
        "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> "
        "Tensor[]",
    .doc = "Slopes along several dimensions, with a step for each.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_scalarrayarray>,
};
OP(gradient_tensorarrayint){
    .schema =
        "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int "
        "edge_order=1) -> Tensor[]",
    .doc = "Slopes along each dimension, whose points stand at given coordinates.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_tensorarrayint>,
};
OP(gradient_tensorarray){
    .schema =
        "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> "
        "Tensor[]",
    .doc = "Slopes along several dimensions, whose points stand at given coordinates.",
    .composite = Composite::Implicit,
    .any = typed_kernel<gradient_tensorarray>,
};
