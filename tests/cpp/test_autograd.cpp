// The tape from C++: leaves, graphs run once or more, in-place changes, views, hooks.
#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/exp_log.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace facula {
namespace {

Tensor leaf(double value, int64_t n = 3) {
  const Tensor t = ops::full(IntList{n}, value, DType::Float64);
  set_requires_grad(t, true);
  return t;
}
double at(const Tensor& t, int64_t i = 0) { return t.data<double>()[i]; }

Tensor gradient(const Tensor& of, const Tensor& by, bool create_graph = false) {
  const Tensor roots[] = {of}, inputs[] = {by};
  const Tensor cotangents[] = {ops::ones_like(of)};
  BackwardOptions o;
  o.accumulate = false;
  o.create_graph = create_graph;
  o.retain_graph = create_graph;
  return run_backward(roots, cotangents, inputs, o)[0];
}
void backward(const Tensor& of, bool retain = false) {
  const Tensor roots[] = {of};
  const Tensor cotangents[] = {ops::ones_like(of)};
  BackwardOptions o;
  o.retain_graph = retain;
  run_backward(roots, cotangents, {}, o);
}
const Tensor& grad_of(const Tensor& t) { return t->autograd->grad; }

TEST(Autograd, ProductRule) {
  const Tensor a = leaf(3), b = leaf(5);
  EXPECT_EQ(at(gradient(ops::mul(a, b), a)), 5);
  EXPECT_EQ(at(gradient(ops::mul(a, b), b)), 3);
}

TEST(Autograd, LeavesAccumulate) {
  const Tensor a = leaf(2);
  backward(ops::mul(a, 3));
  backward(ops::mul(a, 4));
  EXPECT_EQ(at(grad_of(a)), 7);
}

TEST(Autograd, SharedSubexpressionsSum) {
  const Tensor a = leaf(2);
  const Tensor b = ops::mul(a, a);
  backward(ops::add(b, b));
  EXPECT_EQ(at(grad_of(a)), 8);
}

TEST(Autograd, SecondOrder) {
  const Tensor a = leaf(2);
  const Tensor cube = ops::mul(ops::mul(a, a), a);
  const Tensor first = gradient(cube, a, true);
  EXPECT_EQ(at(first), 12);
  const Tensor second = gradient(first, a, true);
  EXPECT_EQ(at(second), 12);
  EXPECT_EQ(at(gradient(second, a)), 6);
}

TEST(Autograd, GraphIsFreedUnlessRetained) {
  const Tensor a = leaf(2);
  const Tensor b = ops::mul(a, a);
  backward(b, true);
  backward(b);
  EXPECT_THROW(backward(b), Error);
}

TEST(Autograd, BroadcastSumsBack) {
  const Tensor a = leaf(2, 1);
  const Tensor b = ops::full(IntList{4, 3}, 5.0, DType::Float64);
  const Tensor g = gradient(ops::mul(a, b), a);
  EXPECT_TRUE(same_sizes(g.sizes(), a.sizes()));
  EXPECT_EQ(at(g), 60);
}

TEST(Autograd, DtypesComeBack) {
  const Tensor a = ops::full(IntList{2}, 1.0, DType::Float32);
  set_requires_grad(a, true);
  const Tensor g = gradient(ops::mul(a, ops::full(IntList{2}, 3.0, DType::Float64)), a);
  EXPECT_EQ(g.dtype(), DType::Float32);
}

TEST(Autograd, NoGradRecordsNothing) {
  const Tensor a = leaf(2);
  const GradMode off(false);
  EXPECT_FALSE(requires_grad(ops::mul(a, a)));
}

TEST(Autograd, IntegersHaveNoGradient) {
  EXPECT_THROW(set_requires_grad(ops::full(IntList{2}, 1, DType::Int64), true), Error);
}

TEST(Autograd, SavedTensorChangedInPlaceRaises) {
  const Tensor a = leaf(2);
  const Tensor b = ops::mul(a, 1);
  const Tensor c = ops::mul(b, b);
  ops::add_(b, 1);
  EXPECT_THROW(backward(c), Error);
}

TEST(Autograd, LeafInPlaceRaises) {
  EXPECT_THROW(ops::add_(leaf(1), 1), Error);
  const GradMode off(false);
  EXPECT_NO_THROW(ops::add_(leaf(1), 1));
}

TEST(Autograd, InPlaceOnAViewReachesTheBase) {
  const Tensor a = leaf(2);
  const Tensor base = ops::mul(a, 1);
  ops::mul_(ops::slice(base, 0, 0, 1), 10);
  const Tensor g = gradient(base, a);
  EXPECT_EQ(at(g, 0), 10);
  EXPECT_EQ(at(g, 1), 1);
}

TEST(Autograd, CopyIntoAViewOfAPlainTensorGivesItAHistory) {
  const Tensor base = ops::zeros(IntList{3}, DType::Float64);
  const Tensor a = leaf(4, 1);
  ops::copy_(ops::slice(base, 0, 1, 2), a);
  EXPECT_TRUE(requires_grad(base));
  EXPECT_EQ(at(gradient(ops::mul(base, base), a)), 8);
}

TEST(Autograd, HookChangesTheGradient) {
  const Tensor a = leaf(2);
  const uint64_t id = add_hook(a, [](const Tensor& g) { return ops::mul(g, 100); });
  backward(ops::mul(a, 3));
  EXPECT_EQ(at(grad_of(a)), 300);
  remove_hook(a, id);
  backward(ops::mul(a, 3));
  EXPECT_EQ(at(grad_of(a)), 303);
}

TEST(Autograd, DeepGraphsDoNotRecurse) {
  const Tensor a = leaf(1, 1);
  Tensor t = a;
  for (int i = 0; i < 200000; ++i) t = ops::add(t, 1);
  EXPECT_EQ(at(gradient(t, a)), 1);
  // The graph is let go of here: its nodes must not be destroyed recursively either.
}

TEST(Autograd, DetachedHasNoHistory) {
  const Tensor a = leaf(1);
  const Tensor d = detached(ops::mul(a, 2));
  EXPECT_FALSE(requires_grad(d));
  EXPECT_TRUE(is_leaf(d));
}

}  // namespace
}  // namespace facula
