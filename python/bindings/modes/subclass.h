// Tensors of Python classes: how they are made, and geometry that the class itself answers.
#pragma once
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// Which questions about its geometry a tensor passes to the __torch_dispatch__ of its class.
enum Asks : uint8_t {
  asks_nothing = 0,
  asks_strides = 1,
  asks_sizes = 2,
  asks_device = 4,
  asks_layout = 8
};

// Whose tensors are of a Python class that answers some questions itself.
inline constinit const ExtensionKind python_kind{.name = "Python"};

struct WrapperExtension final : Extension {
  explicit WrapperExtension(uint8_t a) : Extension(python_kind), asks(a) {}
  Extension* clone() const override { return new WrapperExtension(asks); }
  uint8_t asks;
};

// The class's answer to an attribute or method of Tensor; empty when it is not to be asked.
Object ask_class(PyObject* self, const char* name, PyObject* args, PyObject* kwargs);

Object make_subclass(PyObject*, PyObject* args, PyObject* kwargs);
Object init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs);
Object as_subclass(PyObject* self, PyObject* cls);
Object make_wrapper(PyObject*, PyObject* args, PyObject* kwargs);

}  // namespace facula::python
