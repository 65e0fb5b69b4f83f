// The argument parser: Python arguments to the Values of one operator, driven by its schema.
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

// What parsing leaves for the call.
struct Parsed {
  const Operator* op = nullptr;
  bool requires_grad = false;  // asked of a factory
  Arena arena;
  // Objects with __torch_function__, in the order of their classes' precedence; counted.
  std::vector<Object> overloaded;
  Value* args() { return reinterpret_cast<Value*>(room_); }

 private:
  alignas(Value) std::byte room_[32 * sizeof(Value)];
};

// Fits the arguments to one of the packet's signatures. TypeError with PyTorch's text when none
// fits. `self` stands among the arguments for methods.
void parse(Packet& packet, const Given& given, Parsed& into);

// One value for one parameter's type, as the parser takes it; false when the object is unfit.
bool read_value(const SchemaType& type, bool accepts_number, PyObject* o, Value& out, Parsed& into);

}  // namespace facula::python
