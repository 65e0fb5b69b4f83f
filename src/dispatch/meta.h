// Meta: the context of a shape and type rule. The rule reads the arguments and describes each
// result; the call path then allocates, resizes or checks the results.
#pragma once
#include <bit>
#include <new>

#include "dispatch/call.h"

namespace facula {

struct ResultSpec {
  bool defined = false;
  bool has_strides = false;
  DType dtype = DType::Undefined;
  IntVec sizes, strides;
};

// ResultSpecs that are constructed on first use, since most calls have one result or none.
class ResultSpecs {
 public:
  static constexpr int most = 8;
  ResultSpecs() = default;
  ResultSpecs(const ResultSpecs&) = delete;
  ~ResultSpecs() {
    for (uint32_t bits = made_; bits; bits &= bits - 1) at(std::countr_zero(bits))->~ResultSpec();
  }
  ResultSpec& operator[](int i) {
    if (!(made_ >> i & 1)) new (at(i)) ResultSpec;
    made_ |= 1u << i;
    return *at(i);
  }

 private:
  ResultSpec* at(int i) { return reinterpret_cast<ResultSpec*>(room_) + i; }
  uint32_t made_ = 0;
  alignas(ResultSpec) unsigned char room_[most * sizeof(ResultSpec)];
};

struct Meta {
  static constexpr int most_results = ResultSpecs::most;
  explicit Meta(OpCall& c) : call(c) {}

  OpCall& call;
  ResultSpecs results;
  // Set instead of results[0].sizes when the result has the sizes of this contiguous argument,
  // which saves copying them.
  const TensorImpl* like = nullptr;
  Device device;
  bool has_device = false;

  const Value& arg(int i) const { return call.args[i]; }
  const Tensor& tensor(int i) const { return call.args[i].as_tensor(); }
  // The operator's name for error texts, "add".
  const std::string& op_name() const { return call.info->schema.name; }

  // Describes result i, contiguous unless strides are given.
  void result(int i, IntSpan sizes, DType dtype) {
    ResultSpec& r = results[i];
    r.defined = true;
    r.dtype = dtype;
    r.sizes.assign(sizes.data(), sizes.size());
  }
  void result(int i, IntSpan sizes, DType dtype, IntSpan strides) {
    result(i, sizes, dtype);
    results[i].strides = IntVec(strides);
    results[i].has_strides = true;
  }
  // Describes result 0 with the sizes of a contiguous tensor.
  void result_same(const Tensor& t, DType dtype) {
    like = t.get();
    results[0].defined = true;
    results[0].dtype = dtype;
  }
  // Copies the sizes of `like` into results[0].
  void settle() {
    if (like) result(0, like->sizes(), results[0].dtype);
    like = nullptr;
  }
  void result_like(int i, const Tensor& t, DType dtype);  // keeps the strides of t if it is dense
  void result_format(int i, IntSpan sizes, DType dtype, MemoryFormat f) {
    result(i, sizes, dtype, strides_for(sizes, f));
  }
};

}  // namespace facula
