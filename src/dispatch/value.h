// Value: one argument or result of an operator call, 16 bytes, tagged.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/scalar.h"
#include "core/tensor.h"

namespace facula {

class Generator;

enum class Tag : uint8_t {
  None,
  Tensor,
  Int,
  Float,
  Bool,
  Complex,  // points to a complex128 that the caller keeps
  Str,      // length and characters
  DType,
  Layout,
  MemoryFormat,
  Device,
  Generator,
  Storage,
  IntList,
  FloatList,
  BoolList,    // bytes
  TensorList,  // Tensor handles; an undefined one stands for None
  ValueList,   // lists of anything else
  Object,      // opaque to the core, such as a Python object
  Tuple,       // `length` values
  Dict,        // alternating keys and values, `length` in all
};
const char* name(Tag t);

struct Value {
  // Arguments borrow tensors and lists from the caller. For results, `owned` says that the slot
  // owns a reference to its tensor, or its list on the heap.
  Tag tag = Tag::None;
  bool owned = false;
  uint16_t spare = 0;
  uint32_t length = 0;
  union {
    int64_t i;
    double d;
    bool b;
    TensorImpl* tensor;
    const complex128* complex;
    const char* chars;
    DType dtype;
    Layout layout;
    MemoryFormat memory_format;
    Device device;
    Generator* generator;
    Storage* storage;
    const int64_t* ints;
    const double* doubles;
    const bool* bools;
    const Tensor* tensors;
    const Value* values;
    void* object;
  };

  constexpr Value() : i(0) {}

  bool is_none() const { return tag == Tag::None; }
  bool is_tensor() const { return tag == Tag::Tensor; }
  bool is_number() const { return tag >= Tag::Int && tag <= Tag::Complex; }
  // The tensor as a handle, without counting a reference.
  const Tensor& as_tensor() const {
    static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
    return reinterpret_cast<const Tensor&>(tensor);
  }
  std::span<const Tensor> as_tensors() const { return {tensors, length}; }
  IntSpan as_ints() const { return {ints, length}; }
  std::string_view as_str() const { return {chars, length}; }
  Scalar as_scalar() const;

  static Value of_int(int64_t v) {
    Value x;
    x.tag = Tag::Int;
    x.i = v;
    return x;
  }
  static Value of_float(double v) {
    Value x;
    x.tag = Tag::Float;
    x.d = v;
    return x;
  }
  static Value of_bool(bool v) {
    Value x;
    x.tag = Tag::Bool;
    x.b = v;
    return x;
  }
  static Value of_tensor(TensorImpl* t) {  // null gives None
    Value x;
    x.tag = t ? Tag::Tensor : Tag::None;
    x.tensor = t;
    return x;
  }
};
static_assert(sizeof(Value) == 16);

// --- results

void release_owned(Value& v);  // the slow part of clear
// Frees what the slot owns and makes it None.
inline void clear(Value& v) {
  if (v.owned) release_owned(v);
  v = Value();
}
// Puts an owned reference into a result slot; an undefined tensor gives None.
inline void set_result(Value& slot, Tensor t) {
  if (slot.owned) release_owned(slot);
  slot = Value::of_tensor(t.leak());
  slot.owned = slot.tensor != nullptr;
}
void set_result(Value& slot, std::vector<Tensor> list);
inline void set_result(Value& slot, int64_t v) { slot = Value::of_int(v); }
inline void set_result(Value& slot, double v) { slot = Value::of_float(v); }
inline void set_result(Value& slot, bool v) { slot = Value::of_bool(v); }
// A complex number is copied to the heap and owned by the slot.
void set_result(Value& slot, const Scalar& v);
void set_result(Value& slot, std::string_view text);
void set_result(Value& slot, IntSpan list);
void set_result(Value& slot, std::span<const double> list);
void set_result(Value& slot, std::span<const bool> list);
// Copies any value, with its lists and their elements.
void set_result_copy(Value& slot, const Value& v);
// Takes the tensor out of a result slot, leaving None.
inline Tensor take_tensor(Value& slot) {
  Tensor t;
  if (slot.tag == Tag::Tensor)
    t = slot.owned ? Tensor(Ref<TensorImpl>::take(slot.tensor)) : Tensor::share(slot.tensor);
  slot = Value();
  return t;
}
std::vector<Tensor> take_tensors(Value& slot);

// A fixed number of result slots, cleared by the destructor.
template <size_t N>
struct Results {
  Value slots[N > 0 ? N : 1];
  Results() = default;
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  ~Results() {
    for (Value& v : slots)
      if (v.owned) release_owned(v);
  }
};

// --- packing C++ arguments into Values, which borrow from them

// A Tensor argument for which a number may be given instead.
class Operand {
 public:
  Operand(const Tensor& t) : value_(Value::of_tensor(t.get())) {}
  Operand(double v) : value_(Value::of_float(v)) {}
  Operand(int v) : value_(Value::of_int(v)) {}
  Operand(int64_t v) : value_(Value::of_int(v)) {}
  Operand(const Scalar& s);
  Operand(const Operand&) = delete;  // value_ may point at complex_
  const Value& value() const { return value_; }

 private:
  complex128 complex_{0, 0};
  Value value_;
};

// A Scalar argument; holds the complex number that the Value points to.
class ScalarArg {
 public:
  ScalarArg(const Scalar& s);
  ScalarArg(const ScalarArg&) = delete;  // value may point at complex_

 private:
  complex128 complex_{0, 0};

 public:
  Value value;
};

class OptionalScalarArg {
 public:
  OptionalScalarArg(const std::optional<Scalar>& s) : arg_(s ? *s : Scalar()) {
    if (s) value = arg_.value;
  }

 private:
  ScalarArg arg_;

 public:
  Value value;
};

// A list of integers as an argument: from a braced list, a span or a vector.
struct IntList : IntSpan {
  IntList() = default;
  IntList(std::initializer_list<int64_t> v) : IntSpan(v.begin(), v.size()) {}
  IntList(IntSpan v) : IntSpan(v) {}
  IntList(const IntVec& v) : IntSpan(v.data(), v.size()) {}
  IntList(const std::vector<int64_t>& v) : IntSpan(v) {}
};

inline Value pack(const Tensor& t) { return Value::of_tensor(t.get()); }
inline Value pack(const Operand& o) { return o.value(); }
inline Value pack(const ScalarArg& s) { return s.value; }
inline Value pack(int64_t v) { return Value::of_int(v); }
inline Value pack(double v) { return Value::of_float(v); }
inline Value pack(bool v) { return Value::of_bool(v); }
inline Value pack(std::nullopt_t) { return {}; }
inline Value pack(IntSpan v) {
  Value x;
  x.tag = Tag::IntList;
  x.length = static_cast<uint32_t>(v.size());
  x.ints = v.data();
  return x;
}
inline Value pack(std::span<const Tensor> v) {
  Value x;
  x.tag = Tag::TensorList;
  x.length = static_cast<uint32_t>(v.size());
  x.tensors = v.data();
  return x;
}
inline Value pack(std::span<const double> v) {
  Value x;
  x.tag = Tag::FloatList;
  x.length = static_cast<uint32_t>(v.size());
  x.doubles = v.data();
  return x;
}
inline Value pack(std::span<const bool> v) {
  Value x;
  x.tag = Tag::BoolList;
  x.length = static_cast<uint32_t>(v.size());
  x.bools = v.data();
  return x;
}
inline Value pack(std::span<const Value> v) {
  Value x;
  x.tag = Tag::ValueList;
  x.length = static_cast<uint32_t>(v.size());
  x.values = v.data();
  return x;
}
// A tuple, or with Tag::Dict keys and values in turn.
inline Value pack(Tag tag, std::span<const Value> v) {
  Value x = pack(v);
  x.tag = tag;
  return x;
}
inline Value pack(std::string_view v) {
  Value x;
  x.tag = Tag::Str;
  x.length = static_cast<uint32_t>(v.size());
  x.chars = v.data();
  return x;
}
inline Value pack(DType v) {
  Value x;
  x.tag = Tag::DType;
  x.dtype = v;
  return x;
}
inline Value pack(Layout v) {
  Value x;
  x.tag = Tag::Layout;
  x.layout = v;
  return x;
}
inline Value pack(MemoryFormat v) {
  Value x;
  x.tag = Tag::MemoryFormat;
  x.memory_format = v;
  return x;
}
inline Value pack(Device v) {
  Value x;
  x.tag = Tag::Device;
  x.device = v;
  return x;
}
inline Value pack(Generator* v) {
  Value x;
  x.tag = v ? Tag::Generator : Tag::None;
  x.generator = v;
  return x;
}
inline Value pack(Storage* v) {
  Value x;
  x.tag = v ? Tag::Storage : Tag::None;
  x.storage = v;
  return x;
}
template <class T>
Value pack(const std::optional<T>& v) {
  return v ? pack(*v) : Value();
}

}  // namespace facula
