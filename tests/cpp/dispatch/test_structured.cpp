// Structured kernels from outside: registered once for a record, they serve every variant of it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>

#include "dispatch/backend.h"
#include "dispatch/call.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/index/index.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// --- kernels as a plug-in would write them: they read strides and fill what they are given

struct Calls {
  int count = 0;
};

int64_t place(const Tensor& t, IntSpan index) {
  const size_t skipped = index.size() - static_cast<size_t>(t.dim());
  int64_t at = 0;
  for (size_t d = 0; d < t.sizes().size(); ++d)
    if (t.sizes()[d] != 1) at += index[d + skipped] * t.strides()[d];
  return at;
}

double get(const Value& v, IntSpan index) {
  if (v.is_number()) return v.as_scalar().to<double>();
  const Tensor& t = v.as_tensor();
  const int64_t at = place(t, index);
  if (t.dtype() == DType::Float32) return t.data<float>()[at];
  if (t.dtype() == DType::Float64) return t.data<double>()[at];
  EXPECT_EQ(t.dtype(), DType::Int64);
  return static_cast<double>(t.data<int64_t>()[at]);
}

void put(const Tensor& t, IntSpan index, double v) {
  const int64_t at = place(t, index);
  if (t.dtype() == DType::Float32)
    t.data<float>()[at] = static_cast<float>(v);
  else if (t.dtype() == DType::Float64)
    t.data<double>()[at] = v;
  else
    t.data<int64_t>()[at] = static_cast<int64_t>(v);
}

void for_each_index(IntSpan sizes, const std::function<void(IntSpan)>& f) {
  IntVec index(sizes);
  for (int64_t& i : index) i = 0;
  for (int64_t left = checked_numel(sizes); left > 0; --left) {
    f(index);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

void add_kernel(void* context, OpCall& c) {
  ++static_cast<Calls*>(context)->count;
  const double alpha = c.arg(2).as_scalar().to<double>();
  const Tensor& out = c.results[0].as_tensor();
  for_each_index(out.sizes(),
                 [&](IntSpan at) { put(out, at, get(c.arg(0), at) + alpha * get(c.arg(1), at)); });
}

// Over dimension 0.
void sum_kernel(void* context, OpCall& c) {
  ++static_cast<Calls*>(context)->count;
  const Tensor &self = c.tensor(0), &out = c.results[0].as_tensor();
  const bool keeps = c.arg(2).b;
  for_each_index(out.sizes(), [&](IntSpan at) {
    IntVec from(at);
    if (!keeps) from.insert(0, 0);
    double total = 0;
    for (from[0] = 0; from[0] < self.size(0); ++from[0]) total += get(c.arg(0), from);
    put(out, at, total);
  });
}

void mm_kernel(void* context, OpCall& c) {
  ++static_cast<Calls*>(context)->count;
  const Tensor& out = c.results[0].as_tensor();
  for_each_index(out.sizes(), [&](IntSpan at) {
    double total = 0;
    for (int64_t k = 0; k < c.tensor(0).size(1); ++k)
      total += get(c.arg(0), IntVec{at[0], k}) * get(c.arg(1), IntVec{k, at[1]});
    put(out, at, total);
  });
}

// Puts a kernel in for a scope; the CPU stands for any backend.
class Structured {
 public:
  Structured(Operator& op, KernelFn kernel)
      : registration_(put_in_structured(op, Layer::CPU, kernel, &calls_)) {}
  ~Structured() { take_out(registration_); }
  Structured(const Structured&) = delete;
  int calls() const { return calls_.count; }

 private:
  Calls calls_;
  Registration registration_;
};

Tensor counted(std::initializer_list<int64_t> sizes, DType dtype = DType::Float32) {
  const IntVec s(sizes);
  return ops::_to_copy(ops::view(ops::arange(checked_numel(s)), s), dtype);
}
void expect_equal(const Tensor& t, IntSpan sizes, std::initializer_list<double> values) {
  EXPECT_TRUE(same_sizes(t.sizes(), sizes));
  auto value = values.begin();
  for_each_index(t.sizes(), [&](IntSpan at) { EXPECT_EQ(get(pack(t), at), *value++); });
}
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(StructuredKernels, OneKernelServesEveryVariant) {
  const Structured kernel(op::add_Tensor, add_kernel);
  const Tensor a = counted({2, 3}), row = counted({3});
  expect_equal(ops::add(a, row, 10), IntList{2, 3}, {0, 11, 22, 3, 14, 25});
  expect_equal(ops::add(a, 1), IntList{2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor changed = counted({2, 3});
  const uint32_t version = changed->current_version();
  EXPECT_TRUE(ops::add_(changed, row).is_same(changed));
  expect_equal(changed, IntList{2, 3}, {0, 2, 4, 3, 5, 7});
  EXPECT_EQ(changed->current_version(), version + 1);
  const Tensor out = empty_tensor(IntList{0}, DType::Float32);
  Value args[] = {pack(a), pack(row), Value::of_int(1), pack(out)};
  EXPECT_TRUE(call_tensor(op::add_Tensor_out, args).is_same(out));
  expect_equal(out, IntList{2, 3}, {0, 2, 4, 3, 5, 7});
  EXPECT_EQ(kernel.calls(), 4);
}

TEST(StructuredKernels, OutOfAnotherDtypeIsCast) {
  const Structured kernel(op::add_Tensor, add_kernel);
  const Tensor a = counted({2}), wide = empty_tensor(IntList{2}, DType::Float64);
  Value args[] = {pack(a), pack(a), Value::of_int(1), pack(wide)};
  expect_equal(call_tensor(op::add_Tensor_out, args), IntList{2}, {0, 2});
  EXPECT_EQ(wide.dtype(), DType::Float64);
  const Tensor integers = empty_tensor(IntList{2}, DType::Int64);
  args[3] = pack(integers);
  EXPECT_NE(error_of([&] { call_tensor(op::add_Tensor_out, args); }).find("can't be cast"),
            std::string::npos);
  const Tensor whole = counted({2}, DType::Int64);
  EXPECT_EQ(ops::add(whole, a).dtype(), DType::Float32);
  EXPECT_EQ(kernel.calls(), 2);
}

TEST(StructuredKernels, OverlapsAreSeenBeforeAnythingIsWritten) {
  const Structured kernel(op::add_Tensor, add_kernel);
  const Tensor t = counted({4});
  const Tensor front = ops::slice(t, 0, 0, 3), back = ops::slice(t, 0, 1, 4);
  EXPECT_NE(error_of([&] { ops::add_(front, back); }).find("shares a part of its memory"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              ops::add_(ops::expand(counted({1}), IntList{3}), 1);
            }).find("must hold each element"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              ops::add_(counted({3}), counted({2, 3}));
            }).find("doesn't match the broadcast shape"),
            std::string::npos);
  EXPECT_EQ(kernel.calls(), 0);
  expect_equal(t, IntList{4}, {0, 1, 2, 3});
}

TEST(StructuredKernels, ReductionsAndProducts) {
  const Structured sum(op::sum_dim_IntList, sum_kernel), mm(op::mm, mm_kernel);
  const Tensor a = counted({2, 3});
  const int64_t dims[] = {0};  // an IntList does not own what it lists
  const std::optional<IntList> rows = IntList(IntSpan(dims));
  expect_equal(ops::sum(a, rows, true), IntList{1, 3}, {3, 5, 7});
  EXPECT_EQ(ops::sum(counted({2, 3}, DType::Int64), rows).dtype(), DType::Int64);
  const Tensor out = empty_tensor(IntList{0}, DType::Float32);
  Value args[] = {pack(a), pack(IntSpan(dims)), Value::of_bool(false), {}, pack(out)};
  expect_equal(call_tensor(*op::sum_dim_IntList.variant_of(Variant::Out), args), IntList{3},
               {3, 5, 7});
  // A product may not write over what it reads: it goes through a temporary.
  const Tensor square = counted({2, 2});
  Value product[] = {pack(square), pack(square), pack(square)};
  expect_equal(call_tensor(*op::mm.variant_of(Variant::Out), product), IntList{2, 2},
               {2, 3, 6, 11});
  EXPECT_GE(mm.calls(), 1);
}

TEST(StructuredKernels, MetaNeedsNoKernel) {
  const Structured mm(op::mm, mm_kernel);
  const Tensor meta = empty_tensor(IntList{2, 3}, DType::Float32, {DeviceType::Meta});
  const Tensor other = empty_tensor(IntList{3, 5}, DType::Float32, {DeviceType::Meta});
  EXPECT_TRUE(same_sizes(ops::mm(meta, other).sizes(), IntList{2, 5}));
  EXPECT_EQ(mm.calls(), 0);
}

TEST(StructuredKernels, TakenOutForAllVariants) {
  const Tensor a = counted({2});
  {
    const Structured kernel(op::add_Tensor, add_kernel);
  }
  EXPECT_EQ(op::add_Tensor.slots[0].load(), nullptr);
  EXPECT_EQ(op::add_Tensor_inplace.slots[0].load(), nullptr);
  EXPECT_EQ(op::add_Tensor_out.slots[0].load(), nullptr);
  expect_equal(ops::add(a, a), IntList{2}, {0, 2});
}

TEST(StructuredKernels, NeedAShapeRule) {
  EXPECT_NE(error_of([] {
              put_in_structured(op::view, Layer::CPU, add_kernel, nullptr);
            }).find("no shape rule"),
            std::string::npos);
  // Its shape rule asks for a size that data decide, so a kernel must set the result.
  EXPECT_NE(error_of([] {
              put_in_structured(op::nonzero, Layer::CPU, add_kernel, nullptr);
            }).find("no shape rule"),
            std::string::npos);
}

// --- operators of a plug-in's own record

void shape_of_self(Meta& m) { m.result_like(0, m.tensor(0), m.tensor(0).dtype()); }
void twice_kernel(void*, OpCall& c) {
  const Tensor& out = c.results[0].as_tensor();
  for_each_index(out.sizes(), [&](IntSpan at) { put(out, at, 2 * get(c.arg(0), at)); });
}

TEST(StructuredKernels, OfARecordMadeAtRunTime) {
  OpRecord record;
  record.forms = all_forms;
  record.meta = shape_of_self;
  Operator& twice = define_operator("test_structured::twice(Tensor self) -> Tensor", &record);
  put_in_structured(twice, Layer::CPU, twice_kernel, nullptr);
  const Tensor t = counted({3}), out = empty_tensor(IntList{0}, DType::Float64);
  Value args[] = {pack(t), pack(out)};
  expect_equal(call_tensor(twice, args), IntList{3}, {0, 2, 4});
  Operator* writes = find_operator("test_structured", "twice", "out");
  ASSERT_NE(writes, nullptr);
  expect_equal(call_tensor(*writes, args), IntList{3}, {0, 2, 4});
  Operator* changes = find_operator("test_structured", "twice_", "");
  ASSERT_NE(changes, nullptr);
  EXPECT_TRUE(call_tensor(*changes, args).is_same(t));
  expect_equal(t, IntList{3}, {0, 2, 4});
  undefine_operator(twice);
  EXPECT_EQ(find_operator("test_structured", "twice_", ""), nullptr);
}

TEST(Records, NoMoreIsReadThanTheSizeSays) {
  // A record of an older build: it ends before `number_nodes`, and what follows is not its own.
  struct Old {
    alignas(OpRecord) unsigned char bytes[sizeof(OpRecord)];
  } old;
  std::memset(&old, 0x5a, sizeof(old));
  OpRecord known;
  known.doc = "of an older build";
  known.size = offsetof(OpRecord, number_nodes);
  std::memcpy(&old, &known, offsetof(OpRecord, number_nodes));
  const auto* like = reinterpret_cast<const OpRecord*>(&old);
  Operator& op = define_operator("test_structured::old(Tensor self) -> Tensor", like);
  EXPECT_STREQ(op.record->doc, "of an older build");
  EXPECT_EQ(op.record->size, sizeof(OpRecord));
  EXPECT_STREQ(op.record->copy_form, "");
  EXPECT_TRUE(op.record->number_nodes.empty());
  known.version = 77;
  EXPECT_NE(error_of([&] {
              define_operator("test_structured::new(Tensor x) -> Tensor", &known);
            }).find("version"),
            std::string::npos);
}

TEST(Records, LimitsAreToldWhenAnOperatorIsDefined) {
  std::string many = "test_structured::many(";
  for (int i = 0; i < 33; ++i) many += (i ? ", Tensor a" : "Tensor a") + std::to_string(i);
  EXPECT_NE(error_of([&] {
              define_operator(many + ") -> Tensor");
            }).find("at most 32 arguments and 8 results; got 33 and 1"),
            std::string::npos);
}

TEST(Operators, AbsenceIsRemembered) {
  EXPECT_EQ(op::mm.variant_of(Variant::Inplace), nullptr);
  EXPECT_NE(op::mm.variants_[static_cast<int>(Variant::Inplace)].load(), nullptr);
  EXPECT_EQ(op::mm.variant_of(Variant::Inplace), nullptr);
  EXPECT_EQ(op::mm.partner(Partner::Copy), nullptr);
  EXPECT_EQ(op::view.partner(Partner::Copy), find_operator("aten", "view_copy", ""));
}

TEST(Values, ResultsOwnListsAndWords) {
  Value slot;
  set_result(slot, std::string_view("text"));
  EXPECT_EQ(slot.as_str(), "text");
  const int64_t ints[] = {1, 2, 3};
  set_result(slot, IntSpan(ints));
  EXPECT_EQ(slot.as_ints()[2], 3);
  const Value parts[] = {Value::of_int(1), pack(std::string_view("b"))};
  set_result_copy(slot, pack(Tag::Dict, parts));
  EXPECT_EQ(slot.tag, Tag::Dict);
  EXPECT_EQ(slot.values[1].as_str(), "b");
  clear(slot);
  EXPECT_TRUE(slot.is_none());
}

}  // namespace
}  // namespace facula
