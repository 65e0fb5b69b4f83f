// Layers of a call from C++: levels, conjugate bits, modes, functionalization, graphs.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "autograd/engine.h"
#include "autograd/variable.h"
#include "graph/trace.h"
#include "ops/all.h"
#include "transforms/autocast.h"
#include "transforms/fake.h"
#include "transforms/functional.h"
#include "transforms/interpreters.h"
#include "transforms/layers.h"

namespace facula {
namespace {

Tensor of(std::initializer_list<float> values) {
  const Tensor t = empty_tensor(IntList{static_cast<int64_t>(values.size())}, DType::Float32);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
std::vector<float> values(const Tensor& t) {
  const Tensor c = ops::contiguous(t);
  return {c.data<float>(), c.data<float>() + c.numel()};
}
using Floats = std::vector<float>;

struct CountingMode final : DispatchMode {
  void handle(OpCall& c) override {
    ++calls;
    call(*c.op, c.args, c.results);
  }
  int calls = 0;
};

TEST(Modes, SeeCallsInOrderAndComeBackAfterErrors) {
  CountingMode outer, inner;
  push_mode(&outer);
  push_mode(&inner);
  ops::add(of({1}), of({2}));
  EXPECT_EQ(outer.calls, 1);
  EXPECT_EQ(inner.calls, 1);
  EXPECT_THROW(ops::add(of({1, 2}), of({1, 2, 3})), Error);
  EXPECT_EQ(thread_state.modes, &inner);
  EXPECT_EQ(pop_mode(), &inner);
  EXPECT_EQ(pop_mode(), &outer);
  ops::add(of({1}), of({2}));
  EXPECT_EQ(outer.calls, 2);
}

TEST(Modes, AboveAutogradHaveAStackOfTheirOwn) {
  CountingMode above;
  const Tensor x = of({1, 2});
  set_requires_grad(x, true);
  push_pre_autograd_mode(&above);
  EXPECT_TRUE(requires_grad(ops::mul(x, x)));
  pop_pre_autograd_mode();
  EXPECT_EQ(above.calls, 1);
  EXPECT_THROW(pop_pre_autograd_mode(), Error);
}

TEST(Conjugate, IsCarriedOutAndWrittenBack) {
  const Tensor z = empty_tensor(IntList{1}, DType::Complex64);
  z.data<complex64>()[0] = {1, 2};
  const Tensor conjugate = ops::conj(z);
  EXPECT_TRUE(conjugate->conj);
  const Tensor sum = ops::add(conjugate, conjugate);
  EXPECT_FALSE(sum->conj);
  EXPECT_EQ(sum.data<complex64>()[0].im, -4);
  ops::add_(conjugate, conjugate);
  EXPECT_EQ(z.data<complex64>()[0].im, 4);
}

TEST(Levels, GradInsideVmap) {
  const Tensor x = of({1, 2, 3});
  const int64_t batch = push_vmap(3, Randomness::Error);
  const Tensor b = add_batch_dim(x, 0, batch);
  EXPECT_EQ(b.dim(), 0);
  const int64_t level = push_grad();
  const Tensor w = wrap_for_grad(b, level);
  set_requires_grad(w, true);
  const Tensor y = ops::mul(w, w);
  const Tensor start[] = {ops::ones_like(y)}, roots[] = {y}, inputs[] = {w};
  BackwardOptions options;
  options.accumulate = false;
  const Tensor g = unwrap_for_grad(run_backward(roots, start, inputs, options)[0], level);
  pop_interpreter(level);
  const Tensor out = remove_batch_dim(g, batch, 3, 0);
  pop_interpreter(batch);
  EXPECT_EQ(values(out), (Floats{2, 4, 6}));
  EXPECT_THROW(ops::add(b, 1), Error);
  EXPECT_THROW(pop_interpreter(batch), Error);
}

TEST(Levels, AWrapperHasNoMemory) {
  const int64_t batch = push_vmap(2, Randomness::Error);
  const Tensor b = add_batch_dim(of({1, 2}), 0, batch);
  EXPECT_THROW(b.data(), Error);
  pop_interpreter(batch);
}

TEST(Functionalize, ViewsAreCutAnewFromTheirBase) {
  const Tensor x = of({1, 2, 3, 4});
  const Tensor inputs[] = {x};
  const std::vector<Tensor> wrapped = make_functional_inputs(inputs);
  FunctionalizeMode mode;
  push_mode(&mode);
  const Tensor square = ops::view(wrapped[0], {2, 2});
  const Tensor row = ops::select(square, 0, 0);
  ops::mul_(row, 10);
  ops::add_(square, 1);
  const Tensor result = ops::mul(row, 1);
  pop_mode();
  EXPECT_EQ(values(from_functional(result)), (Floats{11, 21}));
  EXPECT_EQ(values(x), (Floats{1, 2, 3, 4}));
  write_back(inputs, wrapped);
  EXPECT_EQ(values(x), (Floats{11, 21, 4, 5}));
}

TEST(Functionalize, StorageOfNoBytesCannotBeRead) {
  const Tensor x = make_functional(of({1, 2}));
  FunctionalizeMode mode;
  push_mode(&mode);
  ops::resize_storage_bytes_(x, 0);
  EXPECT_EQ(x->storage->nbytes(), 0u);
  EXPECT_THROW(ops::add(x, 1), Error);
  ops::resize_storage_bytes_(x, 8);
  ops::copy_(x, make_functional(of({3, 4})));
  const Tensor y = ops::add(x, 1);
  pop_mode();
  EXPECT_EQ(values(from_functional(y)), (Floats{4, 5}));
}

TEST(Graph, RecordsPrintsRunsAndDropsDeadCode) {
  const Tensor inputs[] = {of({1, 2}), of({3, 4})};
  TraceMode mode(inputs);
  push_mode(&mode);
  ops::mul(inputs[0], inputs[0]);
  const Tensor outputs[] = {ops::add(inputs[0], inputs[1], 2)};
  pop_mode();
  graph::Graph g = mode.finish(outputs);
  g.check_valid();
  EXPECT_EQ(g.nodes.size(), 2u);
  g.eliminate_dead_code();
  EXPECT_EQ(g.str(), "graph(%0, %1):\n  %3 = aten::add.Tensor(%0, %1, alpha=2)\n  return [%3]\n");
  const Tensor others[] = {of({0, 0}), of({1, 1})};
  EXPECT_EQ(values(g.run(others)[0]), (Floats{2, 2}));
}

TEST(Graph, KeepsNoIntermediate) {
  const Tensor inputs[] = {of({1, 2})};
  TraceMode mode(inputs);
  push_mode(&mode);
  Tensor y = ops::mul(inputs[0], 2);
  const Ref<Storage> memory = y->storage;
  // Another header over the same memory is the same value.
  const Tensor again = ops::add(detached(y), 1);
  EXPECT_EQ(memory->use_count(), 2u);
  y.reset();
  EXPECT_EQ(memory->use_count(), 1u);
  // A tensor that took the address of one that is gone is another one.
  for (int i = 0; i < 100; ++i) ops::mul(inputs[0], 3);
  const Tensor outputs[] = {again};
  pop_mode();
  graph::Graph g = mode.finish(outputs);
  g.eliminate_dead_code();
  EXPECT_EQ(g.nodes.size(), 2u);
  const Tensor others[] = {of({5, 6})};
  EXPECT_EQ(values(g.run(others)[0]), (Floats{11, 13}));
}

TEST(ForwardLevels, CostTheirThreadAlone) {
  const Tensor weight = of({1, 2});
  set_requires_grad(weight, true);
  Value args[] = {pack(weight)};
  const GradMode off(false);
  const auto passes_autograd = [&] { return layers_of(op::neg.info(), args).has(Layer::Autograd); };
  EXPECT_FALSE(passes_autograd());
  std::atomic<bool> begun = false, seen = false;
  std::thread other([&] {
    add_forward_level(1);
    begun = true;
    while (!seen) std::this_thread::yield();
    add_forward_level(-1);
  });
  while (!begun) std::this_thread::yield();
  EXPECT_FALSE(passes_autograd());
  add_forward_level(1);
  EXPECT_TRUE(passes_autograd());
  add_forward_level(-1);
  seen = true;
  other.join();
  EXPECT_FALSE(passes_autograd());
}

TEST(Fake, HasGeometryAndDeviceButNoMemory) {
  FakeMode mode(false);
  push_mode(&mode);
  const Tensor x = make_fake(of({1, 2, 3}));
  const Tensor y = ops::unsqueeze(ops::add(x, 1), 0);
  pop_mode();
  EXPECT_TRUE(is_fake(y));
  EXPECT_TRUE(y.device().is_cpu());
  EXPECT_TRUE(same_sizes(y.sizes(), IntList{1, 3}));
  EXPECT_THROW(y.data(), Error);
}

}  // namespace
}  // namespace facula
