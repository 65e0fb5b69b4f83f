// Arguments and results of compound types: tuples, dicts, unions, objects of a class.
#pragma once
#include "bindings/call/parse.h"

namespace facula::python {

// Converts an object to one of these types; false if it does not fit. Called by read_value.
bool read_container(const SchemaType& type, PyObject* o, Value& out, Parsed& into);

// A Python tuple or dict from a Value.
Object container_object(const Value& v);

}  // namespace facula::python
