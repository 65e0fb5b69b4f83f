// Methods of Tensor that are no operators, or that parse their arguments specially.
#include "bindings/autograd/autograd_objects.h"
#include "bindings/call/callable.h"
#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/modes/overrides.h"
#include "bindings/modes/subclass.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int keywords = METH_VARARGS | METH_KEYWORDS;

// A method's name as a template argument, for finding its overrides.
template <size_t N>
struct Word {
  char text[N];
  constexpr Word(const char (&s)[N]) { std::copy_n(s, N, text); }
};

bool may_be_overridden(PyObject* self) { return !is_plain_tensor(self) || function_mode_active(); }

template <Word Name, Object (*F)(PyObject*)>
PyObject* plain(PyObject* self, PyObject*) {
  return guard([&] {
    if (may_be_overridden(self)) [[unlikely]]
      if (Object r = self_override(self, Name.text)) return r.leak();
    return F(self).leak();
  });
}
template <Word Name, Object (*F)(PyObject*, PyObject*, PyObject*)>
PyObject* full(PyObject* self, PyObject* args, PyObject* given_keywords) {
  return guard([&] {
    const OwnKeywords own(given_keywords);
    PyObject* kwargs = own.get();
    if (may_be_overridden(self)) [[unlikely]]
      if (Object r = self_override(self, Name.text, args, kwargs)) return r.leak();
    return F(self, args, kwargs).leak();
  });
}

// --- geometry

Object dim(PyObject* o) { return integer(tensor_of(o).dim()); }
Object numel(PyObject* o) { return integer(numel_of(tensor_of(o))); }
Object element_size(PyObject* o) { return integer(info(tensor_of(o).dtype()).size); }
Object storage_offset(PyObject* o) { return integer(tensor_of(o).storage_offset()); }
Object data_ptr(PyObject* o) {
  const Tensor& t = tensor_of(o);
  check(!has_layout_kind(t) || t->extension->kind->has_storage,
        "Cannot access data pointer of Tensor that doesn't have storage");
  if (!t->storage->has_memory()) return integer(0);
  finish_pending_work();  // whoever has the address may write there
  // Of quantized dtypes too, which have no itemsize().
  const int64_t bytes = t.storage_offset() * info(t.dtype()).size;
  return Object::take(PyLong_FromVoidPtr(static_cast<char*>(t->storage->data()) + bytes));
}
Object untyped_storage(PyObject* o) { return storage_object(storage_of(tensor_of(o))); }
Object storage_type_of(PyObject* o) {
  const Object find = imported("facula.storage", "storage_type_of");
  return Object::take(PyObject_CallOneArg(find.get(), o));
}
Object typed_storage(PyObject* o) {
  const Object make = imported("facula.storage", "typed_storage_of");
  return Object::take(PyObject_CallOneArg(make.get(), o));
}
template <bool (*F)(DType)>
Object of_kind(PyObject* o) {
  return boolean(F(tensor_of(o).dtype()));
}
Object is_conj(PyObject* o) { return boolean(tensor_of(o)->conj); }
Object is_neg(PyObject* o) { return boolean(tensor_of(o)->neg); }
Object is_inference(PyObject* o) { return boolean(tensor_of(o)->inference); }
Object is_shared(PyObject* o) {
  return called(storage_object(tensor_of(o)->storage).get(), "is_shared");
}
Object has_names(PyObject*) { return boolean(false); }
Object get_device(PyObject* o) {
  const Device d = tensor_of(o).device();
  return integer(d.is_cpu() || d.is_meta() ? -1 : d.index);
}

int64_t dim_argument(PyObject* o, const char* name) {
  int64_t d = 0;
  check_type(read_int(o, d), name, "(): argument 'dim' (position 1) must be int, not ",
             type_name(o));
  return d;
}

int64_t at_dim(const IntVec& list, PyObject* d, const char* name) {
  const auto n = static_cast<int64_t>(list.size());
  return list[static_cast<size_t>(wrap_dim(dim_argument(d, name), n))];
}

Object size(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"dim", nullptr};
  PyObject* d = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:size", const_cast<char**>(keys), &d))
    throw_python();
  const Tensor& t = tensor_of(self);
  if (has_layout_kind(t)) [[unlikely]] {
    const IntVec sizes = sizes_of(t);
    return d == Py_None ? size_object(sizes) : integer(at_dim(sizes, d, "size"));
  }
  return d == Py_None ? size_object(t.sizes()) : integer(t.size(dim_argument(d, "size")));
}
Object stride(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"dim", nullptr};
  PyObject* d = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:stride", const_cast<char**>(keys), &d))
    throw_python();
  const Tensor& t = tensor_of(self);
  if (has_layout_kind(t)) [[unlikely]] {
    const IntVec strides = strides_of(t);
    return d == Py_None ? int_tuple(strides) : integer(at_dim(strides, d, "stride"));
  }
  return d == Py_None ? int_tuple(t.strides()) : integer(t.stride(dim_argument(d, "stride")));
}
Object is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"memory_format", nullptr};
  PyObject* f = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", const_cast<char**>(keys), &f))
    throw_python();
  const Tensor& t = tensor_of(self);
  if (has_layout_kind(t) && !t->extension->kind->has_storage) return boolean(false);
  if (!f) return boolean(t.is_contiguous());
  check_type(is_memory_format(f),
             "is_contiguous(): argument 'memory_format' must be torch.memory_format, not ",
             type_name(f));
  const MemoryFormat format = memory_format_value(f);
  return boolean(format == MemoryFormat::Contiguous ? t.is_contiguous() : t.is_contiguous(format));
}

// --- values

Object item(PyObject* o) {
  const Tensor& t = tensor_of(o);
  const DType d = t.dtype();
  const bool direct = d == DType::Float32 || d == DType::UInt64;
  if (!direct || t.numel() != 1 || !t.device().is_cpu() || t->neg || needs_operator(t))
    return number_object(item_of(t));
  finish_pending_work();
  if (d == DType::Float32)  // the most common case
    return Object::take(PyFloat_FromDouble(static_cast<double>(*t.data<float>())));
  return Object::take(PyLong_FromUnsignedLongLong(*t.data<uint64_t>()));
}
Object tolist(PyObject* o) { return to_list(tensor_of(o)); }

Object numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"force", nullptr};
  int force = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", const_cast<char**>(keys), &force))
    throw_python();
  if (!force) return array_over_tensor(self);
  const Object plain = wrapped(detached(tensor_of(self)));
  Object resolved = plain;
  if (tensor_of(self)->conj) resolved = call_method("resolve_conj", {resolved.get()});
  if (tensor_of(self)->neg) resolved = call_method("resolve_neg", {resolved.get()});
  return array_over_tensor(resolved.get());
}
Object array(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(keys), &dtype,
                                   &copy))
    throw_python();
  const Object made = array_over_tensor(self);
  if (dtype == Py_None && copy != Py_True) return made;
  if (dtype == Py_None) return called(made.get(), "copy");
  return called(made.get(), "astype", dtype);
}
Object to_complex(PyObject* o) {
  const complex128 c = item_of(tensor_of(o)).to<complex128>();
  return Object::take(PyComplex_FromDoubles(c.re, c.im));
}
Object format(PyObject* self, PyObject* args, PyObject*) {
  PyObject* spec = nullptr;
  if (!PyArg_ParseTuple(args, "U:__format__", &spec)) throw_python();
  const Tensor& t = tensor_of(self);
  const bool as_number = t.dim() == 0 && !t.is_meta() && is_exact_tensor(self);
  if (!as_number)
    return called(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__format__", self, spec);
  return Object::take(PyObject_Format(item(self).get(), spec));
}

// --- conversions: to(...), cpu(), float() ...

struct ToTarget {
  DType dtype = DType::Undefined;
  Device device;
  bool has_device = false, non_blocking = false, copy = false;
  Value format;
};

// Reads the first arguments of to(): a dtype, a device, both, or a tensor.
void read_target(PyObject* o, ToTarget& t) {
  if (o == Py_None) return;
  if (is_tensor(o)) {
    t.dtype = tensor_of(o).dtype();
    t.device = tensor_of(o).device();
    t.has_device = true;
    return;
  }
  if (const DType d = dtype_like(o); d != DType::Undefined) {
    t.dtype = d;
    return;
  }
  if (!device_like(o, t.device))
    throw_type(concat(
        "to() received an invalid combination of arguments - got (", type_name(o),
        "), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool "
        "non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * "
        "(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format "
        "memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, "
        "*, "
        "torch.memory_format memory_format = None)\n"));
  t.has_device = true;
}

void read_keyword(std::string_view key, PyObject* value, ToTarget& t) {
  if (key == "dtype" || key == "device" || key == "other" || key == "tensor")
    return read_target(value, t);
  auto flag = [&](bool& to) {
    check_type(read_bool(value, to), "to(): argument '", key, "' must be bool, not ",
               type_name(value));
  };
  if (key == "non_blocking") return flag(t.non_blocking);
  if (key == "copy") return flag(t.copy);
  check_type(key == "memory_format", "to() got an unexpected keyword argument '", key, "'");
  if (value == Py_None) return;
  check_type(is_memory_format(value),
             "to(): argument 'memory_format' must be torch.memory_format, not ", type_name(value));
  t.format = pack(memory_format_value(value));
}

ToTarget parse_to(PyObject* args, PyObject* kwargs) {
  ToTarget t;
  int flags = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* o = PyTuple_GET_ITEM(args, i);
    if (!PyBool_Check(o) || i == 0) {
      check_type(flags == 0 && i < 2 && !PyBool_Check(o),
                 "to() received an invalid combination of arguments");
      read_target(o, t);
    } else {
      check_type(flags < 2, "to() received an invalid combination of arguments");
      (flags++ == 0 ? t.non_blocking : t.copy) = o == Py_True;
    }
  }
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) read_keyword(text_of(key), value, t);
  return t;
}

Object convert_to(PyObject* self, const ToTarget& target) {
  const Tensor& t = tensor_of(self);
  const bool same_dtype = target.dtype == DType::Undefined || target.dtype == t.dtype();
  const bool same_kind = target.device.type == t.device().type;
  const bool same_device =
      !target.has_device ||
      (same_kind && (!t.device().is_accelerator() || with_index(target.device) == t.device()));
  const MemoryFormat f =
      target.format.is_none() ? MemoryFormat::Preserve : target.format.memory_format;
  const bool same_format = f == MemoryFormat::Preserve || suggested_format(t) == f;
  if (same_dtype && same_device && same_format && !target.copy && !needs_operator(t))
    return Object::share(self);
  static NamedOperator to_layout("to", "dtype_layout");
  Value dtype, device;
  if (target.dtype != DType::Undefined) dtype = pack(target.dtype);
  if (target.has_device) device = pack(target.device);
  return wrapped(to_layout.tensor({pack(t), dtype, Value(), device, Value(),
                                   pack(target.non_blocking), pack(target.copy), target.format}));
}
Object to(PyObject* self, PyObject* args, PyObject* kwargs) {
  return convert_to(self, parse_to(args, kwargs));
}

Value format_keyword(PyObject* args, PyObject* kwargs, const char* name) {
  static const char* keys[] = {"memory_format", nullptr};
  PyObject* f = nullptr;
  const std::string spec = concat("|O:", name);
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, spec.c_str(), const_cast<char**>(keys), &f))
    throw_python();
  if (!f || f == Py_None) return {};
  check_type(is_memory_format(f), name,
             "(): argument 'memory_format' must be torch.memory_format, not ", type_name(f));
  return pack(memory_format_value(f));
}
template <DType D>
Object cast(PyObject* self, PyObject* args, PyObject* kwargs) {
  ToTarget t;
  t.dtype = D;
  t.format = format_keyword(args, kwargs, name(D));
  return convert_to(self, t);
}
Object cpu(PyObject* self, PyObject* args, PyObject* kwargs) {
  ToTarget t;
  t.has_device = true;
  t.format = format_keyword(args, kwargs, "cpu");
  return convert_to(self, t);
}
Object cuda(PyObject*, PyObject*, PyObject*) {
  throw Error(ErrorKind::Assertion,
              "facula was built without CUDA: Tensor.cuda() needs the CUDA plug-in");
}

// --- autograd

Object set_needs_grad(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"requires_grad", nullptr};
  PyObject* on = Py_True;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_", const_cast<char**>(keys),
                                   &on))
    throw_python();
  bool value = true;
  check_type(read_bool(on, value),
             "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
             type_name(on));
  set_requires_grad(tensor_of(self), value);
  return Object::share(self);
}
Object keep_grad(PyObject* o) {
  retain_grad(tensor_of(o));
  return none();
}

Object view_question(PyObject* o) { return boolean(is_view(tensor_of(o))); }
Object detach_here(PyObject* o) {
  detach_in_place(tensor_of(o));
  return Object::share(o);
}

Object default_override(PyObject* cls, PyObject* args, PyObject* kwargs) {
  static PyObject* handler = nullptr;
  if (!handler) handler = imported("facula._tensor", "default_torch_function").leak();
  const Object first = Object::take(PyTuple_Pack(1, cls));
  const Object all = Object::take(PySequence_Concat(first.get(), args));
  return Object::take(PyObject_Call(handler, all.get(), kwargs));
}

// --- methods written in Python, imported when first called

template <Word Name>
Object in_python(PyObject* self, PyObject* args, PyObject* kwargs) {
  static PyObject* function = nullptr;
  if (!function) function = imported("facula._tensor", Name.text).leak();
  const Object first = Object::take(PyTuple_Pack(1, self));
  const Object all = Object::take(PySequence_Concat(first.get(), args));
  return Object::take(PyObject_Call(function, all.get(), kwargs));
}

// Makes rows of the table of methods.
template <Word Name>
constexpr auto kept_name = Name;
template <Word Name, Object (*F)(PyObject*)>
PyMethodDef nullary(const char* doc) {
  return {kept_name<Name>.text, plain<Name, F>, METH_NOARGS, doc};
}
template <Word Name, Object (*F)(PyObject*, PyObject*, PyObject*)>
PyMethodDef general(const char* doc) {
  return {kept_name<Name>.text, with_keywords(full<Name, F>), keywords, doc};
}
template <Word Name>
PyMethodDef written_in_python() {
  return general<Name, in_python<Name>>(nullptr);
}

}  // namespace

PyMethodDef tensor_methods[] = {
    nullary<"dim", dim>("The number of dimensions."),
    nullary<"ndimension", dim>("The number of dimensions."),
    nullary<"numel", numel>("The number of elements."),
    nullary<"nelement", numel>("The number of elements."),
    nullary<"element_size", element_size>("Bytes of an element."),
    nullary<"storage_offset", storage_offset>("The first element's place in the storage."),
    nullary<"data_ptr", data_ptr>("The address of the first element."),
    nullary<"const_data_ptr", data_ptr>("The address of the first element, for reading."),
    nullary<"untyped_storage", untyped_storage>("The storage, as bytes."),
    nullary<"storage", typed_storage>("The storage, as elements."),
    nullary<"storage_type", storage_type_of>("The class of storages of the dtype."),
    nullary<"_typed_storage", typed_storage>("The storage, as elements."),
    nullary<"is_floating_point", of_kind<is_floating>>(
        "Whether the dtype is a floating-point one."),
    nullary<"is_complex", of_kind<is_complex>>("Whether the dtype is complex."),
    nullary<"is_signed", of_kind<is_signed>>("Whether the dtype has negative numbers."),
    nullary<"is_conj", is_conj>("Whether the conjugate bit is set."),
    nullary<"is_neg", is_neg>("Whether the negative bit is set."),
    nullary<"is_inference", is_inference>("Whether the tensor was made in inference mode."),
    nullary<"is_shared", is_shared>("Whether other processes share the memory."),
    nullary<"has_names", has_names>(nullptr),
    nullary<"get_device", get_device>("The index of the device; -1 on the CPU."),
    general<"size", size>("size(dim=None): all sizes, or one."),
    general<"stride", stride>("stride(dim=None): all strides, or one."),
    general<"is_contiguous", is_contiguous>(
        "is_contiguous(memory_format=facula.contiguous_format)"),
    nullary<"item", item>("The only element, as a Python number."),
    nullary<"tolist", tolist>("The elements as nested lists of Python numbers."),
    general<"numpy", numpy>("numpy(*, force=False): an array over the same memory."),
    general<"__array__", array>(nullptr),
    nullary<"__complex__", to_complex>(nullptr),
    general<"__format__", format>(nullptr),
    general<"to", to>(
        "to(device or dtype or other, non_blocking=False, copy=False, *, memory_format=None)"),
    general<"cpu", cpu>("This tensor on the CPU."),
    general<"cuda", cuda>("This tensor on a CUDA device."),
    general<"float", cast<DType::Float32>>("to(facula.float32)"),
    general<"double", cast<DType::Float64>>("to(facula.float64)"),
    general<"half", cast<DType::Float16>>("to(facula.float16)"),
    general<"bfloat16", cast<DType::BFloat16>>("to(facula.bfloat16)"),
    general<"int", cast<DType::Int32>>("to(facula.int32)"),
    general<"long", cast<DType::Int64>>("to(facula.int64)"),
    general<"short", cast<DType::Int16>>("to(facula.int16)"),
    general<"char", cast<DType::Int8>>("to(facula.int8)"),
    general<"byte", cast<DType::UInt8>>("to(facula.uint8)"),
    general<"bool", cast<DType::Bool>>("to(facula.bool)"),
    general<"cfloat", cast<DType::Complex64>>("to(facula.complex64)"),
    general<"cdouble", cast<DType::Complex128>>("to(facula.complex128)"),
    general<"chalf", cast<DType::Complex32>>("to(facula.complex32)"),
    general<"requires_grad_", set_needs_grad>("Sets requires_grad; returns the tensor."),
    nullary<"_is_view", view_question>(nullptr),
    nullary<"detach_", detach_here>("Takes the tensor's history away; returns the tensor."),
    nullary<"retain_grad", keep_grad>("Keeps .grad of a tensor that is no leaf."),
    general<"backward", tensor_backward>(
        "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)"),
    {"register_hook", guarded<register_hook>, METH_O,
     "Registers hook(grad), which may return another gradient."},
    {"register_post_accumulate_grad_hook", guarded<register_post_accumulate_hook>, METH_O,
     "Registers hook(tensor), run after .grad was accumulated."},
    {"_make_subclass", with_keywords(guarded_keywords<make_subclass>), keywords | METH_STATIC,
     nullptr},
    {"_make_wrapper_subclass", with_keywords(guarded_keywords<make_wrapper>),
     keywords | METH_STATIC, nullptr},
    {"__init_subclass__", with_keywords(guarded_keywords<init_subclass>), keywords | METH_CLASS,
     nullptr},
    {"as_subclass", guarded<as_subclass>, METH_O, "The same tensor as an object of a subclass."},
    {"__torch_function__", with_keywords(guarded_keywords<default_override>), keywords | METH_CLASS,
     nullptr},
    general<"__dlpack__", tensor_dlpack>(nullptr),
    nullary<"__dlpack_device__", tensor_dlpack_device>(nullptr),
    written_in_python<"__deepcopy__">(),
    written_in_python<"__reduce_ex__">(),
    written_in_python<"__setstate__">(),
    written_in_python<"__array_wrap__">(),
    written_in_python<"__reversed__">(),
    written_in_python<"__dir__">(),
    written_in_python<"type">(),
    written_in_python<"new">(),
    written_in_python<"new_tensor">(),
    written_in_python<"split">(),
    written_in_python<"norm">(),
    written_in_python<"nonzero">(),
    written_in_python<"unique">(),
    written_in_python<"unique_consecutive">(),
    written_in_python<"stft">(),
    written_in_python<"istft">(),
    written_in_python<"lu">(),
    written_in_python<"cholesky">(),
    written_in_python<"qr">(),
    written_in_python<"solve">(),
    written_in_python<"lstsq">(),
    written_in_python<"eig">(),
    written_in_python<"symeig">(),
    written_in_python<"unflatten">(),
    written_in_python<"__div__">(),
    written_in_python<"__idiv__">(),
    written_in_python<"__long__">(),
    written_in_python<"__nonzero__">(),
    written_in_python<"share_memory_">(),
    written_in_python<"is_pinned">(),
    written_in_python<"pin_memory">(),
    written_in_python<"record_stream">(),
    written_in_python<"module_load">(),
    written_in_python<"dim_order">(),
    written_in_python<"is_same_size">(),
    written_in_python<"is_set_to">(),
    written_in_python<"qscheme">(),
    written_in_python<"index">(),
    written_in_python<"to_mkldnn">(),
    written_in_python<"to_padded_tensor">(),
    {nullptr, nullptr, 0, nullptr}};

PyObject* tensor_repr(PyObject* o) {
  return guard([&] {
    if (Object r = self_override(o, "__repr__")) return r.leak();
    static PyObject* function = nullptr;
    if (!function) function = imported("facula._tensor_str", "tensor_repr").leak();
    return checked(PyObject_CallOneArg(function, o));
  });
}

}  // namespace facula::python
