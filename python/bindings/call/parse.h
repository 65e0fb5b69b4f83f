// The argument parser: converts Python arguments to the Values of an operator, by its schema.
#pragma once
#include "bindings/call/arena.h"
#include "bindings/call/signature.h"

namespace facula::python {

// The arguments of a vectorcall.
struct Given {
  PyObject* const* args;
  size_t positional;
  PyObject* keywords;  // tuple of names, or null; their values follow the positional ones

  size_t keyword_count() const {
    return keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  }
  PyObject* keyword(size_t i) const {
    return PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i));
  }
  PyObject* keyword_value(size_t i) const { return args[positional + i]; }
};

// The result of parsing.
struct Parsed {
  const Operator* op = nullptr;
  bool requires_grad = false;  // the keyword of a factory function
  Arena arena;
  // Objects with __torch_function__, in the order in which they are to be asked.
  std::vector<Object> overloaded;
  Value* args() { return reinterpret_cast<Value*>(room_); }

 private:
  alignas(Value) std::byte room_[32 * sizeof(Value)];
};

// Finds the signature of the packet that the arguments fit and converts them. TypeError with
// PyTorch's text if none fits. For methods the arguments include `self`.
void parse(Packet& packet, const Given& given, Parsed& into);

// Converts one object to a parameter's type; false if it does not fit.
bool read_value(const SchemaType& type, bool accepts_number, PyObject* o, Value& out, Parsed& into);

}  // namespace facula::python
