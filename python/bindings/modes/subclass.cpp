#include "bindings/modes/subclass.h"

#include "autograd/variable.h"
#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

PyTypeObject* tensor_class(PyObject* cls) {
  check_type(PyType_Check(cls), "cls must be a type (got ", type_name(cls), ")");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  check_type(PyType_IsSubtype(type, &tensor_base_type),
             "expected a class that is derived from Tensor; got ", type->tp_name);
  return type;
}

bool truth(PyObject* o) {
  const int t = PyObject_IsTrue(o);
  checked(t);
  return t == 1;
}

uint8_t asks_of(PyObject* policy, PyObject* device, PyObject* layout) {
  uint8_t asks = asks_nothing;
  if (device && truth(device)) asks |= asks_device;
  if (layout && truth(layout)) asks |= asks_layout;
  if (!policy || policy == Py_None) return asks;
  const std::string_view word = text_of(policy);
  check_value(word == "sizes" || word == "strides", "Unknown sizes_strides_policy: ", word,
              "; expected 'strides' or 'sizes'");
  return asks | asks_strides | (word == "sizes" ? asks_sizes : asks_nothing);
}

IntVec ints_of(PyObject* o, const char* argument) {
  check_type(PyTuple_Check(o) || PyList_Check(o), "_make_wrapper_subclass(): argument '", argument,
             "' must be tuple of ints, not ", type_name(o));
  IntVec v;
  read_items(o, [&](size_t i, PyObject* item) {
    int64_t n = 0;
    check_type(read_int(item, n), "_make_wrapper_subclass(): argument '", argument,
               "' must be tuple of ints, but found element of type ", type_name(item), " at pos ",
               i);
    v.push_back(n);
    return true;
  });
  return v;
}

// The arguments of _make_wrapper_subclass; null if they were not given.
struct WrapperArguments {
  PyObject *cls = nullptr, *size = nullptr, *strides = nullptr, *offset = nullptr,
           *format = nullptr, *dtype = nullptr, *layout = nullptr, *device = nullptr,
           *pin = nullptr, *grad = nullptr, *policy = nullptr, *dispatch_device = nullptr,
           *dispatch_layout = nullptr, *keys = nullptr, *storage_size = nullptr;
};
bool given(PyObject* o) { return o && o != Py_None; }

WrapperArguments wrapper_arguments(PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"cls",
                               "size",
                               "strides",
                               "storage_offset",
                               "memory_format",
                               "dtype",
                               "layout",
                               "device",
                               "pin_memory",
                               "requires_grad",
                               "dispatch_sizes_strides_policy",
                               "dispatch_device",
                               "dispatch_layout",
                               "_extra_dispatch_keys",
                               "storage_size",
                               nullptr};
  WrapperArguments a;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "OO|OOOOOOOOOOOOO:_make_wrapper_subclass", const_cast<char**>(keys), &a.cls,
          &a.size, &a.strides, &a.offset, &a.format, &a.dtype, &a.layout, &a.device, &a.pin,
          &a.grad, &a.policy, &a.dispatch_device, &a.dispatch_layout, &a.keys, &a.storage_size))
    throw_python();
  return a;
}

int64_t optional_int(PyObject* o, const char* argument) {
  int64_t n = 0;
  if (!given(o)) return n;
  check_type(read_int(o, n), "_make_wrapper_subclass(): argument '", argument,
             "' must be int, not ", type_name(o));
  check(n >= 0, "_make_wrapper_subclass(): argument '", argument, "' must not be negative; got ",
        n);
  return n;
}

IntVec wrapper_strides(const WrapperArguments& a, const IntVec& sizes) {
  if (given(a.strides)) {
    IntVec v = ints_of(a.strides, "strides");
    check(v.size() == sizes.size(), "dimensionality of sizes (", sizes.size(),
          ") must match dimensionality of strides (", v.size(), ")");
    return v;
  }
  if (!given(a.format)) return contiguous_strides(sizes);
  check_type(is_memory_format(a.format),
             "_make_wrapper_subclass(): argument 'memory_format' must be torch.memory_format, not ",
             type_name(a.format));
  // PyTorch accepts a memory format here but makes the strides contiguous.
  return contiguous_strides(sizes);
}

// A tensor over a storage that has a size but no memory.
Tensor wrapper_tensor(const WrapperArguments& a) {
  const DType dtype = given(a.dtype) ? dtype_like(a.dtype) : default_dtype();
  check_type(dtype != DType::Undefined,
             "_make_wrapper_subclass(): argument 'dtype' must be torch.dtype, not ",
             a.dtype ? type_name(a.dtype) : "None");
  Device device;
  if (given(a.device))
    check_type(device_like(a.device, device),
               "_make_wrapper_subclass(): argument 'device' must be torch.device, not ",
               type_name(a.device));
  if (given(a.layout))
    check_type(is_layout(a.layout),
               "_make_wrapper_subclass(): argument 'layout' must be torch.layout, not ",
               type_name(a.layout));
  const IntVec sizes = ints_of(a.size, "size");
  Tensor t =
      empty_strided_tensor(sizes, wrapper_strides(a, sizes), dtype, Device{DeviceType::Meta, -1});
  if (given(a.storage_size))
    t->storage = Storage::make(Device{DeviceType::Meta, -1},
                               static_cast<size_t>(optional_int(a.storage_size, "storage_size")));
  t->device = device;
  t->offset = optional_int(a.offset, "storage_offset");
  t->layers = backend_layer(device.type);
  if (given(a.layout)) t->layout = layout_value(a.layout);
  return t;
}

const char* question_of(uint8_t asks, std::string_view name) {
  struct Question {
    const char* name;
    uint8_t asks;
  };
  static constexpr Question questions[] = {{"shape", asks_sizes},
                                           {"size", asks_sizes},
                                           {"dim", asks_sizes},
                                           {"ndim", asks_sizes},
                                           {"numel", asks_sizes},
                                           {"__len__", asks_sizes},
                                           {"nbytes", asks_sizes},
                                           {"stride", asks_strides},
                                           {"storage_offset", asks_sizes},
                                           {"is_contiguous", asks_strides},
                                           {"device", asks_device},
                                           {"layout", asks_layout}};
  for (const Question& q : questions)
    if (name == q.name && (asks & q.asks)) return q.name;
  return nullptr;
}

}  // namespace

// __init_subclass__: a class with a __torch_dispatch__ but no __torch_function__ of its own gets
// the disabled __torch_function__.
Object init_subclass(PyObject* cls, PyObject*, PyObject*) {
  if (!tensor_type) return none();  // Tensor itself is being made
  const Object name = interned("__torch_function__");
  PyObject* dispatch =
      _PyType_Lookup(reinterpret_cast<PyTypeObject*>(cls), interned("__torch_dispatch__").get());
  PyObject* function = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(cls), name.get());
  PyObject* own = _PyType_Lookup(tensor_type, name.get());
  if (dispatch && function == own)
    checked(PyObject_SetAttr(cls, name.get(), disabled_torch_function()));
  return none();
}

// _make_subclass(cls, data, require_grad=False): a detached tensor over the same memory, of class
// cls.
Object make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"cls",
                               "data",
                               "require_grad",
                               "dispatch_sizes_strides_policy",
                               "dispatch_device",
                               "dispatch_layout",
                               nullptr};
  PyObject *cls, *data, *grad = Py_False, *policy = nullptr, *device = nullptr, *layout = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OOO:_make_subclass",
                                   const_cast<char**>(keys), &cls, &data, &grad, &policy, &device,
                                   &layout))
    throw_python();
  PyTypeObject* type = tensor_class(cls);
  check_type(is_tensor(data), "_make_subclass(): argument 'data' (position 2) must be Tensor, not ",
             type_name(data));
  Tensor t = detached(tensor_of(data));
  t->shared_version = nullptr;
  if (const uint8_t asks = asks_of(policy, device, layout)) {
    check(t->extension == nullptr,
          "_make_subclass(): data that is a wrapper itself cannot pass on questions");
    t->extension = new WrapperExtension(asks);
  }
  if (truth(grad)) set_requires_grad(t, true);
  return wrap_as(type, std::move(t));
}

Object as_subclass(PyObject* self, PyObject* cls) {
  PyTypeObject* type = tensor_class(cls);
  static NamedOperator alias("alias");
  return wrap_as(type, alias.tensor({pack(tensor_of(self))}));
}

// Makes a tensor with a geometry but no memory; __torch_dispatch__ of its class handles all calls.
Object make_wrapper(PyObject*, PyObject* args, PyObject* kwargs) {
  const WrapperArguments a = wrapper_arguments(args, kwargs);
  PyTypeObject* type = tensor_class(a.cls);
  check_kind(ErrorKind::NotImplemented, !given(a.keys),
             "_make_wrapper_subclass(): _extra_dispatch_keys is not supported");
  const uint8_t asks = asks_of(a.policy, a.dispatch_device, a.dispatch_layout);
  Tensor t = wrapper_tensor(a);
  mark_subclass(type, t);
  check_type(t->layers.has(Layer::Subclass), type->tp_name, " must define __torch_dispatch__");
  t->extension = new WrapperExtension(asks);
  if (a.grad && truth(a.grad)) set_requires_grad(t, true);
  return wrap_as(type, std::move(t));
}

Object ask_class(PyObject* self, const char* name, PyObject* args, PyObject* kwargs) {
  const Extension* e = tensor_of(self)->extension;
  if (!e || e->kind != &python_kind) return {};
  const char* question = question_of(static_cast<const WrapperExtension*>(e)->asks, name);
  if (!question) return {};
  const Object ask = imported("facula._geometry", "ask");
  const Object none_given = args ? Object() : Object::take(PyTuple_New(0));
  Object r = Object::take(PyObject_CallFunction(ask.get(), "OsOO", self, question,
                                                args ? args : none_given.get(),
                                                kwargs ? kwargs : Py_None));
  return r.get() == Py_NotImplemented ? Object() : r;
}

}  // namespace facula::python
