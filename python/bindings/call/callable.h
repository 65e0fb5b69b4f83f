// The callable types: functions, method descriptors, and the objects in facula.ops. Each calls the
// operators of one Packet by vectorcall.
#pragma once
#include "bindings/call/parse.h"

namespace facula::python {

struct CallableObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Packet* packet;  // never freed
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject function_type, method_type, overload_type, overload_packet_type;
inline Packet& packet_of(PyObject* o) { return *reinterpret_cast<CallableObject*>(o)->packet; }

// The function object of a name in a module, always the same one, or null if there is no such
// operator. `python_module` is "", "nn", "special", "linalg" or "fft".
PyObject* function_object(std::string_view python_module, std::string_view name);
// The method descriptor of a name, which is in the dict of facula.Tensor. Borrowed.
PyObject* method_object(const char* name);
// The object of one overload, facula.ops.aten.add.Tensor. Borrowed.
PyObject* overload_object(Operator& op);
// facula.ops.<ns>.<name>, or null. Borrowed.
PyObject* overload_packet_object(std::string_view ns, std::string_view name);

// Calls the operators of a packet; __torch_function__ is given `callable`.
Object call_packet(PyObject* callable, Packet& packet, const Given& given);
// The same for use by the binding, with positional arguments only.
Object call_method(const char* name, std::initializer_list<PyObject*> args);

void add_callables(PyObject* module);

}  // namespace facula::python
