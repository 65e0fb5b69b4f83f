// The tape from C++: leaves, graphs run once or more, in-place changes, views, hooks.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "autograd/custom.h"
#include "autograd/engine.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/exp_log.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

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
void backward_of(const Tensor& t) { backward(t); }
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

struct Scaled : Function<Scaled> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double by) {
    ctx.save_for_backward({x});
    ctx.data["by"] = by;
    return ops::mul(x, by);
  }
  static Gradients backward(FunctionContext& ctx, const Gradients& grads) {
    EXPECT_TRUE(ctx.needs_input_grad(0));
    const double by = std::any_cast<double>(ctx.data["by"]);
    EXPECT_EQ(ctx.saved().size(), 1u);
    return {ops::mul(grads[0], by)};
  }
};

TEST(Autograd, FunctionsInCpp) {
  const Tensor a = leaf(2);
  const Tensor b = Scaled::apply(a, 7.0);
  EXPECT_EQ(grad_fn(b)->name(), "ScaledBackward");
  EXPECT_EQ(at(gradient(b, a)), 7);
  EXPECT_THROW(backward(b), Error);  // what it saved is freed
}

struct Doubled : Function<Doubled> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const Tensor& x) {
    ops::mul_(x, 2);
    ctx.mark_dirty({x});
    const Tensor constant = ops::mul(x, 0);
    ctx.mark_non_differentiable({constant});
    return {x, constant};
  }
  static Gradients backward(FunctionContext&, const Gradients& grads) {
    EXPECT_TRUE(grads[1].defined());  // zeros
    return {ops::mul(grads[0], 2)};
  }
};

TEST(Autograd, FunctionsInCppWorkInPlace) {
  const Tensor a = leaf(3);
  const Tensor b = ops::mul(a, 1);
  const std::vector<Tensor> made = Doubled::apply(b);
  EXPECT_TRUE(made[0].is_same(b));
  EXPECT_FALSE(requires_grad(made[1]));
  EXPECT_EQ(at(gradient(b, a)), 2);
  EXPECT_THROW(Doubled::apply(a), Error);  // a leaf
}

TEST(Autograd, NodeHooksInCpp) {
  const Tensor a = leaf(2);
  const Tensor b = ops::mul(a, 3);
  std::vector<std::string> order;
  const Ref<Node> node = grad_fn(b);
  node->add_post_hook([&](Gradients& in, const Gradients&) {
    order.push_back("post");
    in[0] = ops::mul(in[0], 10);
  });
  node->add_pre_hook([&](Gradients&) { order.push_back("pre"); });
  add_hook(b, [&](const Tensor&) {
    order.push_back("tensor");
    return Tensor();
  });
  const uint64_t gone = node->add_pre_hook([&](Gradients&) { order.push_back("removed"); });
  node->remove_hook(gone);
  add_post_accumulate_hook(a, [&](const Tensor&) { order.push_back("accumulated"); });
  backward(b);
  EXPECT_EQ(order, (std::vector<std::string>{"tensor", "pre", "post", "accumulated"}));
  EXPECT_EQ(at(grad_of(a)), 30);
}

struct KeepHalf final : PackedTensor {
  explicit KeepHalf(Tensor t) : half(ops::mul(t, 0.5)) {}
  Tensor unpack() override { return ops::mul(half, 2); }
  Tensor half;
};
struct HalfHooks final : SavedTensorHooks {
  std::unique_ptr<PackedTensor> pack(const Tensor& t) override {
    return std::make_unique<KeepHalf>(t);
  }
};

TEST(Autograd, SavedTensorHooksInCpp) {
  const Tensor a = leaf(3);
  push_saved_tensor_hooks(std::make_shared<HalfHooks>());
  const Tensor b = ops::mul(a, a);
  pop_saved_tensor_hooks();
  const Tensor first = gradient(b, a, true);
  EXPECT_EQ(at(first), 6);
  EXPECT_EQ(at(gradient(first, a)), 2);
}

TEST(Autograd, ThreadsShareLeavesAndGraphs) {
  const Tensor a = leaf(1);
  const Tensor shared = ops::exp(ops::mul(a, 2));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        backward(ops::mul(a, 3));
        backward(shared, true);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_NEAR(at(grad_of(a)), 800 * (3 + 2 * std::exp(2.0)), 1e-6);
}

TEST(Autograd, PassesInsidePassesTakeFreshThreads) {
  struct Nested : Function<Nested> {
    static Tensor forward(FunctionContext& ctx, const Tensor& x, int depth) {
      ctx.data["depth"] = depth;
      return ops::mul(x, 1);
    }
    static Gradients backward(FunctionContext& ctx, const Gradients& grads) {
      const int depth = std::any_cast<int>(ctx.data["depth"]);
      if (depth == 0) throw Error(ErrorKind::Value, "the innermost pass");
      const GradMode on(true);
      backward_of(Nested::apply(leaf(1), depth - 1));
      return {grads[0]};
    }
  };
  try {
    backward(Nested::apply(leaf(1), 500));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "the innermost pass");
  }
}

}  // namespace
}  // namespace facula
