// Single values between Python and C++: numbers as PyTorch takes them, results as Python sees them.
#pragma once
#include "bindings/call/arena.h"
#include "bindings/tensor/tensor_type.h"
#include "dispatch/call.h"

namespace facula::python {

// --- numbers; each returns false for an object of another type, and throws where conversion fails

bool is_numpy_scalar(PyObject* o);
// float, int, bool, complex, a NumPy scalar.
bool is_number(PyObject* o);
// A number as a Value; complex numbers are put into the arena.
bool read_number(PyObject* o, Value& out, Arena& arena);
// Any number, or a 0-dim tensor that needs no gradient.
bool read_scalar(PyObject* o, Value& out, Arena& arena);
bool read_int(PyObject* o, int64_t& out);
bool read_float(PyObject* o, double& out);
bool read_bool(PyObject* o, bool& out);
// True or False, given to a switch; TypeError that names its function for anything else.
bool strict_bool(PyObject* o, const char* function);

// The only element of a tensor.
Scalar item_of(const Tensor& t);
// One element at an address, conjugated or negated as the tensor's bits say.
Scalar element_at(const Tensor& t, const void* p);
Object number_object(const Scalar& s);

// --- results

Object result_object(Value& v);
// What a call returns to Python: nothing, one value, or a (named) tuple.
// `plain` gives lists and bare tuples, as facula.ops does.
Object results_object(const OpInfo& info, Value* results, bool plain = false);
// A value of any kind; lists become lists. For handlers in Python.
Object value_object(const Value& v);
// The reverse, where only the object tells the kind.
Value object_value(PyObject* o, Arena& arena);

// The tuple type "facula.return_types.<name>" with these fields; made once for each name.
PyTypeObject* return_type(const OpInfo& info);
// The one that an operator of that name returns, "_out" behind it for out=; null where there is
// none.
PyTypeObject* named_return_type(std::string_view name);

}  // namespace facula::python
