// The call: records, variants, slots, run-time operators, modes, from C++.
#include <gtest/gtest.h>

#include "dispatch/backend.h"
#include "dispatch/call.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

Tensor filled(std::initializer_list<int64_t> sizes, double value) {
  return ops::full(IntList(sizes), value, DType::Float32);
}
float at(const Tensor& t, int64_t i) { return t.data<float>()[i]; }

const Operator& found(const char* name, const char* overload) {
  const Operator* op = find_operator("aten", name, overload);
  EXPECT_NE(op, nullptr) << name;
  return *op;
}

TEST(Operators, FoundByNameAndOverload) {
  EXPECT_EQ(&found("add", "Tensor"), &op::add_Tensor);
  EXPECT_EQ(found("add", "Tensor").name(), "aten::add.Tensor");
  EXPECT_EQ(find_operator("aten", "add", "NoSuch"), nullptr);
  EXPECT_EQ(find_operator("other", "add", "Tensor"), nullptr);
}

TEST(Operators, VariantsHaveDerivedSchemas) {
  EXPECT_EQ(op::add_Tensor_inplace.info().schema.str(),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_EQ(op::add_Tensor_out.info().schema.str(),
            "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> "
            "Tensor(a!)");
  EXPECT_EQ(op::add_Tensor.variant_of(Variant::Inplace), &op::add_Tensor_inplace);
  EXPECT_EQ(op::add_Tensor_out.variant_of(Variant::Base), &op::add_Tensor);
}

TEST(Operators, EveryBuiltInSchemaParsesAndIsSorted) {
  const OperatorEntry* before = nullptr;
  for (const OperatorEntry& e : builtin_operators()) {
    EXPECT_NO_THROW(e.op->info()) << e.name;
    if (before) {
      EXPECT_LT(std::pair(before->name, before->overload), std::pair(e.name, e.overload));
    }
    before = &e;
  }
}

TEST(Call, NumberInPlaceOfTensor) {
  const Tensor t = filled({3}, 1);
  EXPECT_EQ(at(ops::add(t, 2), 0), 3);
  EXPECT_EQ(at(ops::sub(10, t), 2), 9);
}

TEST(Call, OutResizesAndChecksTheCast) {
  const Tensor t = filled({2, 3}, 1);
  const Tensor out = empty_tensor(IntList{0}, DType::Float64);
  Value args[] = {pack(t), pack(t), Value::of_int(1), pack(out)};
  EXPECT_TRUE(call_tensor(op::add_Tensor_out, args).is_same(out));
  EXPECT_TRUE(same_sizes(out.sizes(), t.sizes()));
  EXPECT_EQ(out.data<double>()[5], 2);
  const Tensor integers = empty_tensor(IntList{2, 3}, DType::Int64);
  args[3] = pack(integers);
  EXPECT_THROW(call_tensor(op::add_Tensor_out, args), Error);
}

TEST(Call, InPlaceThroughOverlapRaises) {
  const Tensor t = filled({4}, 1);
  const Tensor front = ops::slice(t, 0, 0, 3), back = ops::slice(t, 0, 1, 4);
  EXPECT_THROW(ops::add_(front, back), Error);
  EXPECT_NO_THROW(ops::add_(front, front));
  EXPECT_THROW(ops::add_(ops::expand(filled({1}, 0), IntList{3}), 1), Error);
}

TEST(Call, ChangesAreCounted) {
  const Tensor t = filled({2}, 1);
  const uint32_t before = t->current_version();
  ops::add_(t, 1);
  EXPECT_GT(t->current_version(), before);
  const Tensor view = ops::view(t, IntList{2, 1});
  const uint32_t shared = t->current_version();
  ops::mul_(view, 2);
  EXPECT_GT(t->current_version(), shared);
  EXPECT_EQ(at(t, 1), 4);
}

TEST(Call, MetaComputesGeometryAlone) {
  const Tensor t =
      empty_tensor(IntList{int64_t{1} << 30, 1 << 10}, DType::Float16, {DeviceType::Meta});
  const Tensor r = ops::sum(ops::add(t, 1), std::optional<IntList>(IntList{0}), true);
  EXPECT_TRUE(r.is_meta());
  EXPECT_TRUE(same_sizes(r.sizes(), IntList{1, 1 << 10}));
  EXPECT_EQ(r.dtype(), DType::Float16);
}

void double_it(void* context, OpCall& c) {
  ++*static_cast<int*>(context);
  const Value& self = c.args[0];
  set_result(c.results[0], ops::mul(self.as_tensor(), 2));
}

TEST(Slots, LaterRegistrationWinsAndGoes) {
  int calls = 0, others = 0;
  const Tensor t = filled({2}, 3);
  const Registration first = put_in(op::neg, Layer::CPU, double_it, &calls);
  const Registration second = put_in(op::neg, Layer::CPU, double_it, &others);
  EXPECT_EQ(at(ops::neg(t), 0), 6);
  EXPECT_EQ(std::pair(calls, others), std::pair(0, 1));
  take_out(second);
  EXPECT_EQ(at(ops::neg(t), 0), 6);
  EXPECT_EQ(std::pair(calls, others), std::pair(1, 1));
  take_out(first);
  EXPECT_EQ(at(ops::neg(t), 0), -3);
}

TEST(RunTimeOperators, DefineCallAndRefuseTwice) {
  int calls = 0;
  Operator& twice = define_operator("test_dispatch::twice(Tensor self) -> Tensor");
  EXPECT_EQ(find_operator("test_dispatch", "twice", ""), &twice);
  Value args[] = {pack(filled({2}, 4))};
  const Tensor kept = filled({2}, 4);
  args[0] = pack(kept);
  EXPECT_THROW(call_tensor(twice, args), Error);
  put_in(twice, Layer::CPU, double_it, &calls);
  EXPECT_EQ(at(call_tensor(twice, args), 1), 8);
  EXPECT_THROW(define_operator("test_dispatch::twice(Tensor self) -> Tensor"), Error);
  EXPECT_THROW(define_operator("test_dispatch::wrong(Tensor self -> Tensor"), Error);
}

struct Counting : DispatchMode {
  std::vector<std::string> seen;
  void handle(OpCall& c) override {
    seen.push_back(c.op->name());
    call_again(c);
  }
};

TEST(Modes, SeeEveryCallAndComeBackAfterErrors) {
  const Tensor t = filled({2}, 1);
  Counting mode;
  push_mode(&mode);
  EXPECT_EQ(at(ops::add(t, 1), 0), 2);
  EXPECT_THROW(ops::add(t, filled({3}, 1)), Error);
  EXPECT_EQ(thread_state.modes, &mode);
  EXPECT_EQ(pop_mode(), &mode);
  ASSERT_FALSE(mode.seen.empty());
  EXPECT_EQ(mode.seen.front(), "aten::add.Tensor");
  const size_t count = mode.seen.size();
  ops::add(t, 1);
  EXPECT_EQ(mode.seen.size(), count);
}

TEST(SavedCall, OutlivesItsFrame) {
  SavedCall saved;
  {
    const Tensor t = filled({2}, 1);
    const std::vector<int64_t> sizes{2, 1};
    Value args[] = {pack(t), pack(IntSpan(sizes))};
    saved = SavedCall(found("view", ""), args);
  }
  ASSERT_EQ(saved.size(), 2);
  const Tensor again = call_tensor(*saved.op(), saved.args());
  EXPECT_TRUE(same_sizes(again.sizes(), IntList{2, 1}));
}

TEST(Kernels, EveryInstructionSetGivesTheSameBits) {
  const Isa best = current_isa();
  const Tensor t = ops::add(ops::full(IntList{1003}, 0.1, DType::Float32), 0.7);
  std::vector<float> first;
  for (int isa = 0; isa <= static_cast<int>(best); ++isa) {
    set_isa(static_cast<Isa>(isa));
    const Tensor r = ops::mul(ops::add(t, 0.3), t);
    std::vector<float> bits(r.data<float>(), r.data<float>() + r.numel());
    if (first.empty()) first = bits;
    EXPECT_EQ(bits, first) << "instruction set " << isa;
  }
  set_isa(best);
}

}  // namespace
}  // namespace facula
