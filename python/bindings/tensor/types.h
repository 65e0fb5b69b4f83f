// The small Python types: dtype, layout, memory_format, device, Size, Generator, UntypedStorage.
#pragma once
#include "bindings/tensor/keep.h"
#include "core/random.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace facula::python {

// --- dtype, layout, memory_format: one object for each value, made with the module

struct WordObject {
  PyObject_HEAD int value;
  const char* name;
};
extern PyTypeObject dtype_type, layout_type, memory_format_type;

PyObject* dtype_object(DType d);  // borrowed
PyObject* layout_object(Layout l);
PyObject* memory_format_object(MemoryFormat f);
inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == &dtype_type; }
inline bool is_layout(PyObject* o) { return Py_TYPE(o) == &layout_type; }
inline bool is_memory_format(PyObject* o) { return Py_TYPE(o) == &memory_format_type; }
inline DType dtype_value(PyObject* o) {
  return static_cast<DType>(reinterpret_cast<WordObject*>(o)->value);
}
inline Layout layout_value(PyObject* o) {
  return static_cast<Layout>(reinterpret_cast<WordObject*>(o)->value);
}
inline MemoryFormat memory_format_value(PyObject* o) {
  return static_cast<MemoryFormat>(reinterpret_cast<WordObject*>(o)->value);
}
// Accepts a dtype object or one of Python's float, int, bool, complex; Undefined for anything else.
DType dtype_like(PyObject* o);
void add_dtypes(PyObject* module);

// --- device

struct DeviceObject {
  PyObject_HEAD Device device;
};
extern PyTypeObject device_type;
Object device_object(Device d);
inline bool is_device(PyObject* o) { return Py_TYPE(o) == &device_type; }
// Accepts a device, a string or the index of an accelerator; false for other types. RuntimeError
// for an invalid string.
bool device_like(PyObject* o, Device& d);
void add_device(PyObject* module);

// --- Size

extern PyTypeObject size_type;
Object size_object(IntSpan sizes);
// A plain tuple of ints.
Object int_tuple(IntSpan v);
void add_size(PyObject* module);

// --- Generator

struct GeneratorObject {
  PyObject_HEAD Generator* generator;  // owns a reference
  PyObject* weakrefs;
};
extern PyTypeObject generator_type;
inline bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, &generator_type); }
inline Generator* generator_value(PyObject* o) {
  return reinterpret_cast<GeneratorObject*>(o)->generator;
}
// The Python object of `g`, made if it has none yet; None for null.
Object generator_object(Generator* g);
void add_generator(PyObject* module);

// --- Stream and Event

Object stream_object(Stream s);
bool is_stream(PyObject* o);
Stream stream_value(PyObject* o);
// Accepts an accelerator device, a string, an index, or None for the current one; returns a device
// with an index. RuntimeError if there is no accelerator.
Device accelerator_argument(PyObject* o);
void add_streams(PyObject* module);      // stream.cpp
void add_accelerator(PyObject* module);  // accelerator_bindings.cpp

// --- UntypedStorage

extern PyTypeObject storage_type;
inline bool is_storage(PyObject* o) { return PyObject_TypeCheck(o, &storage_type); }
inline Storage* storage_value(PyObject* o) { return kept(o)->storage; }
Object storage_object(const Ref<Storage>& s);
// A storage over the memory of an object with the buffer protocol; it keeps the object alive.
Ref<Storage> storage_over_buffer(PyObject* buffer, bool writable);
void add_storage(PyObject* module);
void add_shared_storage(PyObject* module);

}  // namespace facula::python
