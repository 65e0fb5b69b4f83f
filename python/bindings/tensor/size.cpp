// Size: a tuple of ints for which slicing, adding and repeating return a Size.
#include <algorithm>

#include "bindings/module/package.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

Object as_size(PyObject* tuple) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  Object size = Object::take(size_type.tp_alloc(&size_type, n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(size.get(), i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return size;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    Object self = Object::take(PyTuple_Type.tp_new(type, args, kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(self.get(), i);
      // A class of ints stays as it is: the ragged size of a nested tensor is one.
      if (PyLong_Check(item) && !PyBool_Check(item)) continue;
      PyObject* number = PyNumber_Index(item);
      if (!number) {
        PyErr_Clear();
        throw_type(concat("torch.Size() takes an iterable of 'int' (item ", i, " is '",
                          type_name(item), "')"));
      }
      PyTuple_SET_ITEM(self.get(), i, number);
      Py_DECREF(item);
    }
    return self.leak();
  });
}

PyObject* size_repr(PyObject* o) {
  return guard([&] {
    std::string text = in_package("Size([");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      const Object item = Object::take(PyObject_Repr(PyTuple_GET_ITEM(o, i)));
      if (i) text += ", ";
      text += text_of(item.get());
    }
    return string(text + "])").leak();
  });
}

PyObject* wrapped(PyObject* result) {
  if (!result || result == Py_NotImplemented || !PyTuple_Check(result) ||
      Py_TYPE(result) == &size_type)
    return result;
  const Object plain = Object::maybe(result);
  return guard([&] { return as_size(plain.get()).leak(); });
}

PyObject* size_concat(PyObject* a, PyObject* b) {
  // tuple + Size follows the rules of tuple.
  return wrapped(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return wrapped(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
PyObject* size_subscript(PyObject* a, PyObject* key) {
  return wrapped(PyTuple_Type.tp_as_mapping->mp_subscript(a, key));
}
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}

PyObject* size_numel(PyObject* o, PyObject*) {
  return guard([&] {
    Object product = integer(1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      product = Object::take(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(o, i)));
    return product.leak();
  });
}
PyObject* size_reduce(PyObject* o, PyObject*) {
  return guard([&] {
    const Object plain = Object::take(PySequence_Tuple(o));
    const Object tuple = Object::take(PyTuple_New(PyTuple_GET_SIZE(o)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(PyTuple_GET_ITEM(o, i)));
    return Py_BuildValue("(O(O))", &size_type, tuple.get());
  });
}

// Freed Size objects for reuse, by length, since each use of a shape makes one. Used under the GIL.
struct Spare {
  static constexpr size_t most_dims = 6, most = 16;
  PyObject* objects[most_dims + 1][most];
  size_t count[most_dims + 1];
} spare = {};

void free_size(void* p) {
  auto* o = static_cast<PyObject*>(p);
  const auto n = static_cast<size_t>(Py_SIZE(o));
  if (Py_TYPE(o) != &size_type || n > Spare::most_dims || spare.count[n] == Spare::most)
    return PyObject_GC_Del(p);
  spare.objects[n][spare.count[n]++] = o;
}

PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PySequenceMethods sequence = {};
PyMappingMethods mapping = {};
PyNumberMethods number = {};

PyTypeObject make_type() {
  sequence.sq_concat = size_concat;
  sequence.sq_repeat = size_repeat;
  mapping.mp_subscript = size_subscript;
  number.nb_add = size_add;
  PyTypeObject t = blank_type();
  t.tp_name = "facula.Size";
  t.tp_basicsize = sizeof(PyTupleObject) - sizeof(PyObject*);
  t.tp_itemsize = sizeof(PyObject*);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TUPLE_SUBCLASS;
  t.tp_base = &PyTuple_Type;
  t.tp_new = size_new;
  t.tp_free = free_size;
  t.tp_repr = size_repr;
  t.tp_as_sequence = &sequence;
  t.tp_as_mapping = &mapping;
  t.tp_as_number = &number;
  t.tp_methods = methods;
  t.tp_doc = "The sizes of a tensor: a tuple of ints.";
  return t;
}

Object blank_size(size_t n) {
  if (n > Spare::most_dims || spare.count[n] == 0)
    return Object::take(size_type.tp_alloc(&size_type, static_cast<Py_ssize_t>(n)));
  PyObject* o = spare.objects[n][--spare.count[n]];
  std::fill_n(PySequence_Fast_ITEMS(o), n, nullptr);  // the items were released
  _Py_NewReference(o);
  PyObject_GC_Track(o);
  return Object::take(o);
}

void fill(PyObject* tuple, IntSpan v) {
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), integer(v[i]).leak());
}

Object new_size(IntSpan v) {
  Object o = blank_size(v.size());
  fill(o.get(), v);
  return o;
}

// A cache of recent Sizes. They are immutable, so the same object can be returned again. Used under
// the GIL.
struct Known {
  static constexpr size_t most_dims = 5;
  PyObject* object;
  size_t count;
  int64_t sizes[most_dims];

  static Known& place_of(IntSpan v) {
    static Known table[128] = {};
    uint64_t hash = v.size();
    for (const int64_t n : v) hash = (hash + static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15;
    return table[hash >> 57];
  }
  bool is(IntSpan v) const { return object && same_sizes({sizes, count}, v); }
};

}  // namespace

PyTypeObject size_type = make_type();

Object size_object(IntSpan v) {
  if (v.size() > Known::most_dims) return new_size(v);
  Known& known = Known::place_of(v);
  if (known.is(v)) return Object::share(known.object);
  Object o = new_size(v);
  known.count = v.size();
  std::ranges::copy(v, known.sizes);
  PyObject* before = std::exchange(known.object, Object(o).leak());
  Py_XDECREF(before);
  return o;
}

Object int_tuple(IntSpan v) {
  Object o = Object::take(PyTuple_New(static_cast<Py_ssize_t>(v.size())));
  fill(o.get(), v);
  return o;
}

void add_size(PyObject* module) { add_type(module, size_type, "Size"); }

}  // namespace facula::python
