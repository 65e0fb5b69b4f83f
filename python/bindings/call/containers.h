// Arguments and results that hold others: tuples, dicts, unions, objects of a class.
#pragma once
#include "bindings/call/parse.h"

namespace facula::python {

// One value for a type that read_value has no case of its own for; false when the object is unfit.
bool read_container(const SchemaType& type, PyObject* o, Value& out, Parsed& into);

// Values of tuples and dicts as Python's.
Object container_object(const Value& v);

}  // namespace facula::python
