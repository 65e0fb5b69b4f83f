// Tensor's methods for Python's operators, and the slots of classes that have them.
#pragma once
#include "bindings/module/python.h"

namespace facula::python {

// Puts the methods into Tensor's dict in place of CPython's, which take no keywords.
void add_operator_methods();
// Puts one method there (tensor_type.cpp).
void add_tensor_method(PyMethodDef& method);

// Lets a subclass of Tensor use Tensor's slots for the operators whose methods it leaves alone.
void take_operator_slots(PyTypeObject* type);
// The same for all classes below it too.
void take_operator_slots_below(PyTypeObject* type);

}  // namespace facula::python
