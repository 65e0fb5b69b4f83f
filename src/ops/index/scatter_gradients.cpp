#include "ops/index/scatter_gradients.h"

#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/shape/pad.h"
#include "ops/shape/view.h"

namespace facula::scatter_gradients {
namespace {

// The two operators differ in how they reach places: an index for each element, or for a slice.
struct Places {
  Tensor (*pick)(Backward&, const Tensor& from);
  Tensor (*add)(Backward&, const Tensor& to, const Tensor& values);
  Tensor (*multiply)(Backward&, const Tensor& to, const Tensor& values, bool include_self);
  Tensor (*clear)(Backward&, const Tensor& t);
};

constexpr Places by_element = {
    [](Backward& b, const Tensor& from) { return ops::gather(from, b.integer("dim"), b["index"]); },
    [](Backward& b, const Tensor& to, const Tensor& values) {
      return ops::scatter_add(to, b.integer("dim"), b["index"], values);
    },
    [](Backward& b, const Tensor& to, const Tensor& values, bool include_self) {
      return ops::scatter_reduce(to, b.integer("dim"), b["index"], values, "prod", include_self);
    },
    [](Backward& b, const Tensor& t) { return ops::scatter(t, b.integer("dim"), b["index"], 0); },
};
constexpr Places by_slice = {
    [](Backward& b, const Tensor& from) {
      return ops::index_select(from, b.integer("dim"), b["index"]);
    },
    [](Backward& b, const Tensor& to, const Tensor& values) {
      return ops::index_add(to, b.integer("dim"), b["index"], values);
    },
    [](Backward& b, const Tensor& to, const Tensor& values, bool include_self) {
      return ops::index_reduce(to, b.integer("dim"), b["index"], values, "prod", include_self);
    },
    [](Backward& b, const Tensor& t) {
      return ops::index_fill(t, b.integer("dim"), b["index"], 0);
    },
};

struct Gradients {
  Tensor self, source;
};

Gradients of_mean(Backward& b, const Places& p, const Tensor& source, bool include_self) {
  const Tensor start = include_self ? ops::ones_like(b.grad()) : ops::zeros_like(b.grad());
  const Tensor counts = p.add(b, start, ops::ones_like(source));
  const Tensor share = ops::div(b.grad(), ops::masked_fill(counts, ops::eq(counts, 0), 1));
  return {share, p.pick(b, share)};
}

// The derivative of a product is the product of the other factors: the result divided by the
// factor, or where the only zero is the factor itself, the product without it.
Gradients of_product(Backward& b, const Places& p, const Tensor& source, bool include_self) {
  const Tensor self = b["self"], grad = b.grad();
  const Tensor others_of_self = p.multiply(b, ops::ones_like(self), source, true);
  const Tensor zero = ops::eq(source, 0), no_zeros = ops::masked_fill(source, zero, 1);
  Tensor zeros = p.add(b, ops::zeros_like(grad), ops::to(zero, grad.dtype()));
  if (include_self) zeros = ops::add(zeros, ops::to(ops::eq(self, 0), grad.dtype()));
  const Tensor alone = ops::logical_and(zero, ops::eq(p.pick(b, zeros), 1));
  const Tensor others = p.multiply(b, self, no_zeros, include_self);
  const Tensor without = p.pick(b, ops::mul(grad, ops::conj(others)));
  const Tensor divided =
      ops::div(p.pick(b, ops::mul(grad, ops::conj(b["result"]))), ops::conj(no_zeros));
  return {ops::mul(grad, ops::conj(others_of_self)), ops::where(alone, without, divided)};
}

// Elements that equal the extreme share its gradient evenly.
Gradients of_extreme(Backward& b, const Places& p, const Tensor& source) {
  const Tensor result = b["result"], grad = b.grad();
  const Tensor self_hits = ops::to(ops::eq(b["self"], result), grad.dtype());
  const Tensor source_hits = ops::to(ops::eq(source, p.pick(b, result)), grad.dtype());
  const Tensor share = ops::div(grad, p.add(b, self_hits, source_hits));
  return {ops::mul(self_hits, share), ops::mul(source_hits, p.pick(b, share))};
}

Gradients gradients(Backward& b, const Places& p, const Tensor& source) {
  const std::string_view reduce = b.text("reduce");
  const bool include_self = b.flag("include_self");
  if (reduce == "sum") return {b.grad(), p.pick(b, b.grad())};
  if (reduce == "mean") return of_mean(b, p, source, include_self);
  if (reduce == "prod") return of_product(b, p, source, include_self);
  return of_extreme(b, p, source);
}

void set_gradients(Backward& b, const Places& p, const Tensor& source, Name source_name) {
  Gradients g = gradients(b, p, source);
  if (b.needs("self")) b.set("self", b.flag("include_self") ? g.self : p.clear(b, g.self));
  if (b.needs(source_name)) b.set(source_name, for_source(g.source, b.sizes(source_name)));
}

}  // namespace

Tensor for_source(const Tensor& grad, IntSpan sizes) {
  if (same_sizes(grad.sizes(), sizes)) return grad;
  if (grad.dim() != static_cast<int64_t>(sizes.size())) return ops::reshape(grad, sizes);
  IntVec pad;
  for (size_t d = sizes.size(); d-- > 0;) {
    pad.push_back(0);
    pad.push_back(sizes[d] - grad.sizes()[d]);
  }
  return ops::constant_pad_nd(grad, pad, 0);
}

void scatter_reduce(Backward& b) {
  if (!b.grad().defined()) return;
  const Tensor index = b["index"];
  Tensor source = b["src"];
  for (int64_t d = 0; d < index.dim() && source.dim() == index.dim(); ++d)
    source = ops::slice(source, d, 0, index.sizes()[d], 1);
  set_gradients(b, by_element, source, "src");
}

void index_reduce(Backward& b) {
  if (!b.grad().defined()) return;
  set_gradients(b, by_slice, b["source"], "source");
}

}  // namespace facula::scatter_gradients
