#include "dispatch/value.h"

#include <algorithm>

#include "dispatch/call.h"

namespace facula {

const char* name(Tag t) {
  static constexpr const char* names[] = {"None",
                                          "Tensor",
                                          "int",
                                          "float",
                                          "bool",
                                          "complex",
                                          "str",
                                          "dtype",
                                          "layout",
                                          "memory_format",
                                          "device",
                                          "Generator",
                                          "Storage",
                                          "list of ints",
                                          "list of floats",
                                          "list of bools",
                                          "list of Tensors",
                                          "list",
                                          "object",
                                          "tuple",
                                          "dict"};
  return names[static_cast<size_t>(t)];
}

Scalar Value::as_scalar() const {
  switch (tag) {
    case Tag::Int:
      return Scalar(i);
    case Tag::Float:
      return Scalar(d);
    case Tag::Bool:
      return Scalar(b);
    case Tag::Complex:
      return Scalar(*complex);
    default:
      throw Error(ErrorKind::Type, "expected a number; got ", name(tag));
  }
}

void release_owned(Value& v) {
  if (v.tag == Tag::Tensor) {
    if (v.tensor->release()) destroy(v.tensor);
    return;
  }
  Value copy = v;
  drop_copy(copy);
}

void set_result_copy(Value& slot, const Value& v) {
  Value copy = own_copy(v);
  clear(slot);
  slot = copy;
  slot.owned = true;
}
void set_result(Value& slot, std::string_view text) { set_result_copy(slot, pack(text)); }
void set_result(Value& slot, IntSpan list) { set_result_copy(slot, pack(list)); }
void set_result(Value& slot, std::span<const double> list) { set_result_copy(slot, pack(list)); }
void set_result(Value& slot, std::span<const bool> list) { set_result_copy(slot, pack(list)); }

void set_result(Value& slot, std::vector<Tensor> list) {
  clear(slot);
  auto* owned = new Tensor[list.size()];
  std::move(list.begin(), list.end(), owned);
  slot = pack(std::span<const Tensor>(owned, list.size()));
  slot.owned = true;
}

void set_result(Value& slot, const Scalar& v) {
  clear(slot);
  if (!v.is_complex()) {
    slot = ScalarArg(v).value;
    return;
  }
  slot.tag = Tag::Complex;
  slot.complex = new complex128(v.to<complex128>());
  slot.owned = true;
}

std::vector<Tensor> take_tensors(Value& slot) {
  std::vector<Tensor> list(slot.as_tensors().begin(), slot.as_tensors().end());
  clear(slot);
  return list;
}

static Value pack_scalar(const Scalar& s, complex128& room) {
  if (s.is_bool()) return Value::of_bool(s.to<bool>());
  if (s.is_integral()) return Value::of_int(s.to<int64_t>());
  if (s.is_floating()) return Value::of_float(s.to<double>());
  room = s.to<complex128>();
  Value v;
  v.tag = Tag::Complex;
  v.complex = &room;
  return v;
}

ScalarArg::ScalarArg(const Scalar& s) : value(pack_scalar(s, complex_)) {}
Operand::Operand(const Scalar& s) : value_(pack_scalar(s, complex_)) {}

}  // namespace facula
