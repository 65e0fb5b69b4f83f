// Tensors without the dispatcher: geometry, storages, devices, views of memory.
#include "core/tensor.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace facula {
namespace {

IntVec ints(std::initializer_list<int64_t> v) { return IntVec(IntSpan(v.begin(), v.size())); }

TEST(Tensor, EmptyIsContiguousAndCounted) {
  const Tensor t = empty_tensor(ints({2, 3, 4}), DType::Float64);
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t->storage->nbytes(), 24 * 8u);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(same_sizes(t.strides(), ints({12, 4, 1})));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 16, 0u);
}

TEST(Tensor, MoreThanInlineDimensions) {
  const Tensor t = empty_tensor(ints({1, 2, 1, 3, 1, 2, 1}), DType::Int8);
  EXPECT_EQ(t.dim(), 7);
  EXPECT_EQ(t.numel(), 12);
  EXPECT_EQ(t.size(-2), 2);
  EXPECT_THROW(t.size(7), Error);
  EXPECT_THROW(t.size(-8), Error);
}

TEST(Tensor, SizeAndStrideWithoutDimensionsRaise) {
  const Tensor t = empty_tensor({}, DType::Float32);
  for (const int64_t d : {0, -1, 1}) {
    const std::string text = concat("Dimension specified as ", d, " but tensor has no dimensions");
    for (const auto read : {&Tensor::size, &Tensor::stride}) {
      try {
        (t.*read)(d);
        ADD_FAILURE() << "expected an IndexError; got a number";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Index);
        EXPECT_EQ(e.what(), text);
      }
    }
  }
}

TEST(Tensor, SizesThatOverflowOrAreNegativeRaise) {
  EXPECT_THROW(empty_tensor(ints({int64_t{1} << 40, int64_t{1} << 40}), DType::Int8), Error);
  EXPECT_THROW(empty_tensor(ints({int64_t{1} << 61}), DType::Float64), Error);
  EXPECT_THROW(empty_tensor(ints({-1}), DType::Int8), Error);
  EXPECT_THROW(empty_strided_tensor(ints({2}), ints({1, 1}), DType::Int8), Error);
}

TEST(Tensor, MetaHasSizeWithoutMemory) {
  const Tensor t = empty_tensor(ints({1 << 20, 1 << 20}), DType::Float64, {DeviceType::Meta});
  EXPECT_EQ(t->storage->nbytes(), size_t{8} << 40);
  EXPECT_FALSE(t->storage->has_memory());
  EXPECT_THROW(t.data(), Error);
}

TEST(Tensor, AliasSharesStorage) {
  const Tensor t = empty_tensor(ints({6}), DType::Int32);
  const Tensor view = alias_tensor(t, ints({2}), ints({1}), 1);
  EXPECT_EQ(view.data<int32_t>(), t.data<int32_t>() + 1);
  EXPECT_EQ(memory_overlap(t, view), Overlap::Partial);
  EXPECT_EQ(memory_overlap(t, t), Overlap::Full);
  EXPECT_EQ(memory_overlap(t, empty_tensor(ints({6}), DType::Int32)), Overlap::None);
}

TEST(Tensor, ViewsOutsideTheStorageRaise) {
  const Ref<Storage> s = Storage::make({}, 16);
  EXPECT_NO_THROW(tensor_over(s, DType::Float32, 0, ints({4}), ints({1})));
  EXPECT_THROW(tensor_over(s, DType::Float32, 1, ints({4}), ints({1})), Error);
  EXPECT_THROW(tensor_over(s, DType::Float32, -1, ints({1}), ints({1})), Error);
  EXPECT_THROW(tensor_over(s, DType::Float32, 0, ints({2}), ints({int64_t{1} << 62})), Error);
}

TEST(Geometry, DenseAndOverlapping) {
  EXPECT_TRUE(is_dense_non_overlapping(ints({2, 3}), ints({1, 2})));
  EXPECT_FALSE(is_dense_non_overlapping(ints({2, 3}), ints({6, 2})));
  EXPECT_TRUE(may_self_overlap(ints({2, 3}), ints({0, 1})));
  EXPECT_TRUE(may_self_overlap(ints({3, 3}), ints({1, 1})));
  EXPECT_FALSE(may_self_overlap(ints({2, 3}), ints({3, 1})));
  EXPECT_EQ(extent(ints({2, 3}), ints({10, 2})), 15);
  EXPECT_EQ(extent(ints({0, 3}), ints({10, 2})), 0);
}

TEST(Geometry, Broadcast) {
  EXPECT_TRUE(same_sizes(broadcast_sizes(ints({2, 1}), ints({3})), ints({2, 3})));
  EXPECT_TRUE(same_sizes(broadcast_sizes(ints({0}), ints({1})), ints({0})));
  EXPECT_THROW(broadcast_sizes(ints({2}), ints({3})), Error);
}

TEST(Geometry, WrapDim) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_THROW(wrap_dim(3, 3), Error);
  EXPECT_THROW(wrap_dim(-4, 3), Error);
}

TEST(Geometry, ElementwiseKeepsTheInputsOrder) {
  const Tensor t = empty_strided_tensor(ints({2, 3, 4}), ints({1, 2, 6}), DType::Float32);
  const Tensor* inputs[] = {&t};
  EXPECT_TRUE(same_sizes(elementwise_strides(t.sizes(), inputs), ints({1, 2, 6})));
}

TEST(Storage, ResizeKeepsLeadingBytes) {
  const Ref<Storage> s = Storage::make({}, 4);
  std::memcpy(s->data(), "abcd", 4);
  s->resize(100000);
  EXPECT_EQ(std::memcmp(s->data(), "abcd", 4), 0);
  s->resize(2);
  EXPECT_EQ(std::memcmp(s->data(), "ab", 2), 0);
  s->resize(0);
  EXPECT_EQ(s->nbytes(), 0u);
  s->resize(8);
  EXPECT_NE(s->data(), nullptr);
}

TEST(Storage, ExternalMemoryGoesBackOnceAndDoesNotResize) {
  int released = 0;
  char memory[8] = {};
  {
    const Ref<Storage> s =
        Storage::external({}, memory, 8, &released, [](void* n) { ++*static_cast<int*>(n); });
    EXPECT_EQ(s->data(), memory);
    EXPECT_THROW(s->resize(16), Error);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Versions, ViewsShareOneCounter) {
  const Tensor t = empty_tensor(ints({4}), DType::Float32);
  t->bump_version();
  EXPECT_EQ(t->current_version(), 1u);
  const Tensor view = alias_tensor(t);
  view->shared_version = t->share_version();
  view->bump_version();
  EXPECT_EQ(t->current_version(), 2u);
}

TEST(Device, Parse) {
  EXPECT_TRUE(parse_device("cpu").is_cpu());
  EXPECT_EQ(parse_device("cuda:3").index, 3);
  EXPECT_EQ(std::string(str(parse_device("meta"))), "meta");
  for (const char* bad : {"", "cp", "cpu:", "cpu:-1", "cpu:01", "cpu:x", "cpu:128", "cuda:0:0"})
    EXPECT_THROW(parse_device(bad), Error) << bad;
}

TEST(Device, IndexIsFilledInForPluginsAlone) {
  EXPECT_EQ(with_index(parse_device("cpu")).index, -1);
  EXPECT_EQ(with_index(parse_device("meta")).index, -1);
  EXPECT_EQ(with_index(parse_device("cuda:1")).index, 1);
}

TEST(Layers, HighestBitRunsFirst) {
  LayerSet s = Layer::CPU;
  s |= Layer::Autograd;
  EXPECT_EQ(s.highest(), Layer::Autograd);
  s -= Layer::Autograd;
  EXPECT_EQ(s.highest(), Layer::CPU);
  EXPECT_EQ(device_type_of(backend_layer(DeviceType::FirstPlugin)), DeviceType::FirstPlugin);
}

}  // namespace
}  // namespace facula
