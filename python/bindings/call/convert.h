// Conversion of single values from Python to C++ and back.
#pragma once
#include "bindings/call/arena.h"
#include "bindings/tensor/tensor_type.h"
#include "dispatch/call.h"

namespace facula::python {

// --- numbers; each returns false for an object of another type, and throws if conversion fails

bool is_numpy_scalar(PyObject* o);
// Whether it is a float, int, bool, complex or NumPy scalar.
bool is_number(PyObject* o);
// A number as a Value; complex numbers are put into the arena.
bool read_number(PyObject* o, Value& out, Arena& arena);
// Any number, or a 0-dim tensor that needs no gradient.
bool read_scalar(PyObject* o, Value& out, Arena& arena);
bool read_int(PyObject* o, int64_t& out);
bool read_float(PyObject* o, double& out);
bool read_bool(PyObject* o, bool& out);
// Accepts True and False only; otherwise TypeError with the name of the function.
bool strict_bool(PyObject* o, const char* function);

// The only element of a tensor.
Scalar item_of(const Tensor& t);
// One element at an address, conjugated or negated as the tensor's bits say.
Scalar element_at(const Tensor& t, const void* p);
Object number_object(const Scalar& s);

// --- results

Object result_object(Value& v);
// The results of a call: None, one value, or a (named) tuple. With `plain` lists and tuples without
// names, as facula.ops returns.
Object results_object(const OpInfo& info, Value* results, bool plain = false);
// A Value of any kind as an argument for handlers in Python; lists become lists.
Object value_object(const Value& v);
// The reverse; the kind of the Value follows from the type of the object.
Value object_value(PyObject* o, Arena& arena);

// The tuple type "facula.return_types.<name>" with these fields; made once for each name.
PyTypeObject* return_type(const OpInfo& info);
// The one that is returned by an operator of that name, or with "_out" after the name, by its out=
// variant. Null if there is none.
PyTypeObject* named_return_type(std::string_view name);

}  // namespace facula::python
