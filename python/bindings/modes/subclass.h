// Tensor subclasses in Python: how they are made, and how they override sizes, strides and device.
#pragma once
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// Which properties a tensor asks from the __torch_dispatch__ of its class.
enum Asks : uint8_t {
  asks_nothing = 0,
  asks_strides = 1,
  asks_sizes = 2,
  asks_device = 4,
  asks_layout = 8
};

// The extension kind of tensors whose class overrides some of these properties.
inline constinit const ExtensionKind python_kind{.name = "Python"};

struct WrapperExtension final : Extension {
  explicit WrapperExtension(uint8_t a) : Extension(python_kind), asks(a) {}
  Extension* clone() const override { return new WrapperExtension(asks); }
  uint8_t asks;
};

// Asks the class for an attribute or method of Tensor; empty if it does not override it.
Object ask_class(PyObject* self, const char* name, PyObject* args, PyObject* kwargs);

Object make_subclass(PyObject*, PyObject* args, PyObject* kwargs);
Object init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs);
Object as_subclass(PyObject* self, PyObject* cls);
Object make_wrapper(PyObject*, PyObject* args, PyObject* kwargs);

}  // namespace facula::python
