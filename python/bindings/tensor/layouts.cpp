// Functions for tensors of registered extension kinds.
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

const Tensor& of_kind(PyObject* o, const char* function) {
  check_type(is_tensor(o), function, "(): expected a Tensor; got ", type_name(o));
  return tensor_of(o);
}

// The name of the tensor's extension kind; None for strided tensors.
Object kind_name(PyObject*, PyObject* o) {
  const Tensor& t = of_kind(o, "_layout_kind");
  return has_layout_kind(t) ? string(t->extension->kind->name) : none();
}

Object text(PyObject*, PyObject* o) {
  const Tensor& t = of_kind(o, "_layout_text");
  return has_layout_kind(t) ? string(t->extension->text(*t.get())) : none();
}

Object parts(PyObject*, PyObject* o) {
  const Tensor& t = of_kind(o, "_layout_parts");
  check_type(has_layout_kind(t), "_layout_parts(): expected a tensor of a registered kind");
  std::vector<Tensor> found = t->extension->parts(*t.get());
  const Object list = Object::take(PyList_New(0));
  for (Tensor& part : found)
    checked(PyList_Append(list.get(), part.defined() ? wrapped(std::move(part)).get() : Py_None));
  return list;
}

IntVec sizes_from(PyObject* o) {
  const Object list = Object::take(PySequence_Fast(o, "_layout_from_parts(): expected sizes"));
  IntVec sizes;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    const long long n = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(list.get(), i));
    if (n == -1 && PyErr_Occurred()) throw_python();
    check(n >= 0, "_layout_from_parts(): expected sizes that are not negative; got ", n);
    sizes.push_back(n);
  }
  return sizes;
}

std::vector<Tensor> tensors_from(PyObject* o) {
  const Object list = Object::take(PySequence_Fast(o, "_layout_from_parts(): expected tensors"));
  std::vector<Tensor> found;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject* part = PySequence_Fast_GET_ITEM(list.get(), i);
    found.push_back(part == Py_None ? Tensor() : of_kind(part, "_layout_from_parts"));
  }
  return found;
}

// Makes a tensor of the named kind from its parts, which may come from an untrusted file.
Object from_parts(PyObject*, PyObject* args) {
  PyObject *name, *sizes, *dtype, *device, *list;
  if (!PyArg_ParseTuple(args, "OOOOO:_layout_from_parts", &name, &sizes, &dtype, &device, &list))
    throw_python();
  Device on;
  check_type(PyUnicode_Check(name) && is_dtype(dtype) && device_like(device, on),
             "_layout_from_parts(): expected a name, sizes, a dtype, a device and tensors");
  const ExtensionKind* kind = find_extension_kind(text_of(name));
  check(kind != nullptr, "no library of this process has registered tensors of kind '",
        text_of(name), "'; load the one that does first");
  check_kind(ErrorKind::NotImplemented, kind->from_parts != nullptr, kind->name,
             " tensors cannot be made from parts");
  return wrapped(
      kind->from_parts(*kind, sizes_from(sizes), dtype_value(dtype), on, tensors_from(list)));
}

Object layout_named(PyObject*, PyObject* name) {
  check_type(PyUnicode_Check(name), "layout(): expected a str; got ", type_name(name));
  const Layout found = find_layout(text_of(name));
  check(found != Layout::Strided || text_of(name) == "strided", "no layout is named '",
        text_of(name), "'");
  return Object::share(layout_object(found));
}

PyMethodDef functions[] = {{"_layout_kind", guarded<kind_name>, METH_O, nullptr},
                           {"_layout_text", guarded<text>, METH_O, nullptr},
                           {"_layout_parts", guarded<parts>, METH_O, nullptr},
                           {"_layout_from_parts", guarded<from_parts>, METH_VARARGS, nullptr},
                           {"_layout_named", guarded<layout_named>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_layouts(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
