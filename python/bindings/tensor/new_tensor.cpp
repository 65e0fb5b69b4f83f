// Tensors from Python data (facula.tensor, as_tensor and the like), and tolist.
#include <cstring>
#include <limits>

#include "autograd/variable.h"
#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/pending.h"
#include "ops/create/copy.h"

namespace facula::python {
namespace {

constexpr size_t most_dims = 128;

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }

bool is_sequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (PySequence_Check(o) && !is_text(o) && !PyDict_Check(o));
}

// --- shape, which the first element of each level determines

IntVec shape_of(PyObject* data) {
  IntVec sizes;
  Object at = Object::share(data);
  while (true) {
    if (is_tensor(at.get())) return sizes;  // a tensor with one element is treated as a number
    // The first element of a string is a string, which would never end.
    check_value(sizes.empty() || !PyUnicode_Check(at.get()) || !PyUnicode_GET_LENGTH(at.get()),
                "too many dimensions 'str'");
    if (is_number(at.get()) || !is_sequence(at.get())) return sizes;
    const Py_ssize_t n = PySequence_Size(at.get());
    if (n < 0) throw_python();
    sizes.push_back(n);
    check_value(sizes.size() <= most_dims, "too many dimensions '", type_name(at.get()), "'");
    if (n == 0) return sizes;
    Object first = Object::take(PySequence_GetItem(at.get(), 0));
    check_value(first.get() != at.get(), "new(): a list must not contain itself");
    at = first;
  }
}

// --- dtype, which must hold all elements

DType dtype_of_number(PyObject* o) {
  if (PyFloat_CheckExact(o)) return default_dtype();
  if (PyBool_Check(o)) return DType::Bool;
  if (PyLong_Check(o)) return DType::Int64;
  if (PyComplex_CheckExact(o)) return complex_of(default_dtype());
  return DType::Undefined;
}

// A NumPy scalar as a 0-dim array, to get its dtype.
Tensor scalar_array(PyObject* o) {
  const Object as_array = imported("numpy", "asarray");
  const Object array = Object::take(PyObject_CallOneArg(as_array.get(), o));
  return tensor_over_array(array.get(), false);
}

DType inferred(PyObject* o, int depth) {
  if (const DType d = dtype_of_number(o); d != DType::Undefined) return d;
  if (is_tensor(o)) return tensor_of(o).dtype();
  if (is_array(o)) return tensor_over_array(o, false).dtype();
  if (is_numpy_scalar(o)) return scalar_array(o).dtype();
  if (PyFloat_Check(o)) return default_dtype();
  if (PyComplex_Check(o)) return complex_of(default_dtype());
  check_type(!is_text(o), "new(): invalid data type '", type_name(o), "'");
  if (!is_sequence(o)) {
    throw Error(ErrorKind::Runtime, "Could not infer dtype of ", type_name(o));
  }
  check_value(depth < static_cast<int>(most_dims), "too many dimensions '", type_name(o), "'");
  const Object items = Object::take(PySequence_Fast(o, "expected a sequence"));
  DType d = DType::Undefined;
  SignalPoll poll;
  read_items(items.get(), [&](size_t, PyObject* item) {
    check_type(item != o, "new(): a list must not contain itself");
    const DType next = inferred(item, depth + 1);
    d = d == DType::Undefined ? next : promote(d, next);
    poll.step();
    return d != DType::Complex128;
  });
  return d == DType::Undefined ? default_dtype() : d;
}

// --- elements

template <class T>
void store(void* to, const Scalar& s) {
  *static_cast<T*>(to) = s.to<T>();
}
// A tensor among the elements must have one element and is treated as a number.
template <class T>
void check_one_element(const Tensor& t) {
  check_type(t.numel() == 1 || !std::is_integral_v<T>,
             "only integer tensors of a single element can be converted to an index");
  check_value(t.numel() == 1, "only one element tensors can be converted to Python scalars");
}

// Fast path for objects of the Python type that corresponds to T; false for others.
template <class T>
bool store_own_type(void* to, PyObject* o) {
  if constexpr (std::is_same_v<T, bool>) {
    const int truth = PyObject_IsTrue(o);
    checked(truth);
    *static_cast<bool*>(to) = truth;
    return true;
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    if (!PyFloat_CheckExact(o)) return false;
    *static_cast<T*>(to) = static_cast<T>(PyFloat_AS_DOUBLE(o));
    return true;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (!PyLong_CheckExact(o)) return false;
    int overflow = 0;
    *static_cast<int64_t*>(to) = long_value(o, overflow);
    check_value(!overflow, "Overflow when unpacking long long");
    return true;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (!PyLong_CheckExact(o)) return false;
    *static_cast<uint64_t*>(to) = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      check(false, "value cannot be converted to type uint64_t without overflow");
    }
    return true;
  }
  return false;
}

template <class T>
[[noreturn]] void not_a_number(PyObject* o) {
  if constexpr (std::is_integral_v<T>)
    throw_type(concat("'", type_name(o), "' object cannot be interpreted as an integer"));
  throw_type(concat("must be real number, not ", type_name(o)));
}

template <class T>
void store_integer(void* to, const Value& v, const Scalar& s) {
  check_type(s.is_integral() || v.tag == Tag::Float, "expected an integer");
  if (s.is_floating()) {
    const double d = s.to<double>();
    check(sizeof(T) == 8 || (d > -0x1p63 && d < 0x1p63 &&
                             static_cast<int64_t>(d) ==
                                 static_cast<int64_t>(static_cast<T>(static_cast<int64_t>(d)))),
          "value cannot be converted to type ", name(dtype_of<T>), " without overflow");
    *static_cast<T*>(to) = convert<T>(d);
    return;
  }
  const int64_t n = s.to<int64_t>();
  // Negative numbers wrap around in unsigned dtypes, if they fit their width.
  const bool wraps =
      std::is_unsigned_v<T> && n < 0 && -n <= static_cast<int64_t>(std::numeric_limits<T>::max());
  check(static_cast<int64_t>(static_cast<T>(n)) == n || wraps || sizeof(T) == 8,
        "value cannot be converted to type ", name(dtype_of<T>), " without overflow");
  *static_cast<T*>(to) = static_cast<T>(n);
}

template <class T>
void store_checked(void* to, PyObject* o) {
  if (is_tensor(o)) check_one_element<T>(tensor_of(o));
  if (store_own_type<T>(to, o)) return;
  Arena arena;
  Value v;
  if (!read_number(o, v, arena)) {
    if (!is_tensor(o)) not_a_number<T>(o);
    return store<T>(to, item_of(tensor_of(o)));
  }
  const Scalar s = v.as_scalar();
  if constexpr (!is_complex_v<T>)
    check_type(!s.is_complex(), std::is_integral_v<T>
                                    ? "'complex' object cannot be interpreted as an integer"
                                    : "must be real number, not complex");
  if constexpr (std::is_integral_v<T>)
    store_integer<T>(to, v, s);
  else
    store<T>(to, s);
}

using StoreFn = void (*)(void*, PyObject*);
StoreFn store_function(DType d) {
  StoreFn f = nullptr;
  const auto pick = [&]<class T>(Type<T>) { f = &store_checked<T>; };
  check(visit_elements(d, pick), "tensor(): dtype ", name(d), " is not supported");
  return f;
}

class Filler {
 public:
  Filler(const Tensor& t) : t_(t), store_(store_function(t.dtype())), itemsize_(t.itemsize()) {}

  void fill(PyObject* data) { fill(data, 0, static_cast<char*>(t_.data())); }

 private:
  void fill(PyObject* data, size_t dim, char* to) {
    if (dim == static_cast<size_t>(t_.dim())) return store_(to, data);
    const size_t n = static_cast<size_t>(t_.sizes()[dim]);
    const size_t step = static_cast<size_t>(t_.strides()[dim]) * itemsize_;
    check_type(is_sequence(data), "expected a sequence at dim ", dim, " (got '", type_name(data),
               "')");
    const Object items = Object::take(PySequence_Fast(data, "expected a sequence"));
    const size_t got = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get()));
    check_value(got == n, "expected sequence of length ", n, " at dim ", dim, " (got ", got, ")");
    read_items(items.get(), [&](size_t i, PyObject* item) {
      fill(item, dim + 1, to + i * step);
      poll_.step();
      return true;
    });
  }

  SignalPoll poll_;
  const Tensor& t_;
  StoreFn store_;
  size_t itemsize_;
};

Tensor converted(const Tensor& t, DType dtype, Device device, bool copy) {
  static NamedOperator to_copy("_to_copy"), clone("clone");
  if (t.dtype() == dtype && t.device() == device) return copy ? clone.tensor({pack(t)}) : t;
  return to_copy.tensor({pack(t), pack(dtype), Value(), pack(device)});
}

Device target(const NewTensorOptions& o) {
  return o.has_device ? o.device : thread_state.default_device;
}

Tensor from_sequence(PyObject* data, const NewTensorOptions& options) {
  const IntVec sizes = shape_of(data);
  const DType dtype = options.dtype == DType::Undefined ? inferred(data, 0) : options.dtype;
  check_type(!is_text(data), "new(): invalid data type '", type_name(data), "'");
  const Device device = target(options);
  Tensor t = empty_tensor(sizes, dtype);
  if (t.numel() > 0) Filler(t).fill(data);
  return device.is_cpu() ? t : converted(t, dtype, device, false);
}

// A 1-dim tensor over a storage; undefined for other objects. For an UntypedStorage the dtype is
// `wanted`.
Tensor over_storage(PyObject* data, DType wanted) {
  PyObject* untyped = data;
  Object typed;
  DType dtype = wanted == DType::Undefined ? DType::Int64 : wanted;
  if (!is_storage(data)) {
    if (PyList_CheckExact(data) || PyTuple_CheckExact(data) || is_number(data)) return {};
    if (!PyObject_HasAttrString(data, "_untyped_storage")) return {};
    typed = attribute(data, "_untyped_storage");
    untyped = typed.get();
    const Object own = attribute(data, "dtype");
    if (!is_storage(untyped) || !is_dtype(own.get())) return {};
    dtype = dtype_value(own.get());
  }
  const auto s = Ref<Storage>::share(storage_value(untyped));
  check(itemsize(dtype) > 0, "tensor(): a storage does not say what ", name(dtype), " are worth");
  const int64_t n = static_cast<int64_t>(s->nbytes() / itemsize(dtype)), one = 1;
  return tensor_over(s, dtype, 0, IntSpan(&n, 1), IntSpan(&one, 1));
}

Tensor new_copy(PyObject* data, const NewTensorOptions& options) {
  if (is_tensor(data)) {
    const Tensor source = detached(tensor_of(data));
    const DType dtype = options.dtype == DType::Undefined ? source.dtype() : options.dtype;
    return converted(source, dtype, options.has_device ? options.device : source.device(), true);
  }
  if (is_array(data)) {
    const Tensor source = tensor_over_array(data, false);
    const DType dtype = options.dtype == DType::Undefined ? source.dtype() : options.dtype;
    return converted(source, dtype, target(options), true);
  }
  if (const Tensor source = over_storage(data, options.dtype); source.defined()) {
    const DType dtype = options.dtype == DType::Undefined ? source.dtype() : options.dtype;
    return converted(source, dtype, options.has_device ? options.device : source.device(), true);
  }
  return from_sequence(data, options);
}

}  // namespace

Tensor tensor_from(PyObject* data, const NewTensorOptions& options) {
  // Transforms and modes see only the finished tensor, not the operators that fill it.
  const ExcludeLayers plain(LayerSet(Layer::Autograd) | Layer::Transforms | Layer::Modes |
                            Layer::Subclass);
  Tensor t = new_copy(data, options);
  if (options.pin) t = ops::_to_copy(t, {}, {}, {}, true);
  if (options.requires_grad) set_requires_grad(t, true);
  return t;
}

Tensor index_tensor(PyObject* data) {
  if (is_array(data)) return tensor_over_array(data, false);
  NewTensorOptions options;
  if (PySequence_Size(data) == 0) options.dtype = DType::Int64;
  return tensor_from(data, options);
}

// --- tolist

namespace {

// The distance in bytes from element 0 to element `i` of a dimension. Multiplies by `i` first: a
// dimension of size 1 may have a stride so large that it overflows in bytes, but there `i` is 0.
int64_t byte_step(const Tensor& t, size_t dim, int64_t i) {
  if (t.numel() == 0) return 0;
  return i * t.strides()[dim] * static_cast<int64_t>(t.itemsize());
}

// Handles uint64 separately, since Scalar holds no numbers beyond int64.
Object element_object(const Tensor& t, const char* p) {
  if (t.dtype() != DType::UInt64) return number_object(element_at(t, p));
  return Object::take(PyLong_FromUnsignedLongLong(*reinterpret_cast<const uint64_t*>(p)));
}

Object nested(const Tensor& t, size_t dim, const char* p, SignalPoll& poll) {
  if (dim == static_cast<size_t>(t.dim())) return element_object(t, p);
  const int64_t n = t.sizes()[dim];
  Object list = Object::take(PyList_New(n));
  for (int64_t i = 0; i < n; ++i, poll.step())
    PyList_SET_ITEM(list.get(), i, nested(t, dim + 1, p + byte_step(t, dim, i), poll).leak());
  return list;
}

}  // namespace

Object to_list(const Tensor& t) {
  if (t.is_meta())
    throw Error(ErrorKind::NotImplemented, "Cannot copy out of meta tensor: it has no data");
  check(!has_layout_kind(t), "Cannot access data pointer of Tensor that doesn't have storage");
  finish_pending_work();
  Tensor read = t;
  if (needs_operator(t) && t.dim() > 0) {
    static NamedOperator clone("clone");
    read = clone.tensor({pack(t)});
  }
  if (!read.device().is_cpu()) {
    static NamedOperator to_copy("_to_copy");
    read = to_copy.tensor({pack(read), {}, {}, pack(Device{}), {}, pack(false), {}});
  }
  const char* p = read.numel() ? static_cast<const char*>(read.data()) : nullptr;
  if (read.dim() == 0 && needs_operator(t)) return number_object(item_of(t));
  SignalPoll poll;
  return nested(read, 0, p, poll);
}

// --- the functions

namespace {

struct Keywords {
  PyObject *data = nullptr, *dtype = nullptr, *device = nullptr, *requires_grad = nullptr,
           *pin = nullptr, *copy = nullptr;
};

NewTensorOptions options_of(const Keywords& k, const char* function) {
  NewTensorOptions o;
  if (k.dtype && k.dtype != Py_None) {
    o.dtype = dtype_like(k.dtype);
    check_type(o.dtype != DType::Undefined, function,
               "(): argument 'dtype' must be torch.dtype, not ", type_name(k.dtype));
  }
  if (k.device && k.device != Py_None) {
    check_type(device_like(k.device, o.device), function,
               "(): argument 'device' must be torch.device, not ", type_name(k.device));
    o.has_device = true;
  }
  if (k.requires_grad && k.requires_grad != Py_None)
    check_type(read_bool(k.requires_grad, o.requires_grad), function,
               "(): argument 'requires_grad' must be bool, not ", type_name(k.requires_grad));
  if (k.pin && k.pin != Py_None)
    check_type(read_bool(k.pin, o.pin), function, "(): argument 'pin_memory' must be bool, not ",
               type_name(k.pin));
  return o;
}

Object make_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  if (Object r = mode_override("tensor", args, kwargs)) return r;
  static const char* keys[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  Keywords k;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOO:tensor", const_cast<char**>(keys),
                                   &k.data, &k.dtype, &k.device, &k.requires_grad, &k.pin))
    throw_python();
  const NewTensorOptions options = options_of(k, "tensor");
  if (is_tensor(k.data) && PyErr_WarnEx(PyExc_UserWarning,
                                        "tensor(): data is a tensor, whose history is not copied; "
                                        "detach().clone() says the same",
                                        1) < 0)
    throw_python();
  return wrapped(tensor_from(k.data, options));
}

bool same_place(const Tensor& t, const NewTensorOptions& o) {
  return (o.dtype == DType::Undefined || o.dtype == t.dtype()) &&
         (!o.has_device || o.device == t.device());
}

Object as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  if (Object r = mode_override("as_tensor", args, kwargs)) return r;
  static const char* keys[] = {"data", "dtype", "device", nullptr};
  Keywords k;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:as_tensor", const_cast<char**>(keys),
                                   &k.data, &k.dtype, &k.device))
    throw_python();
  const NewTensorOptions options = options_of(k, "as_tensor");
  if (is_tensor(k.data)) {
    const Tensor& t = tensor_of(k.data);
    if (same_place(t, options)) return Object::share(k.data);
    return wrapped(converted(t, options.dtype == DType::Undefined ? t.dtype() : options.dtype,
                             options.has_device ? options.device : t.device(), false));
  }
  if (is_array(k.data)) {
    const Tensor t = tensor_over_array(k.data, true);
    return wrapped(converted(t, options.dtype == DType::Undefined ? t.dtype() : options.dtype,
                             target(options), false));
  }
  if (const Tensor t = over_storage(k.data, options.dtype); t.defined())
    return wrapped(converted(t, options.dtype == DType::Undefined ? t.dtype() : options.dtype,
                             options.has_device ? options.device : t.device(), false));
  return wrapped(tensor_from(k.data, options));
}

Object frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *buffer, *dtype = nullptr;
  long long count = -1, offset = 0;
  int grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(keys),
                                   &buffer, &dtype, &count, &offset, &grad))
    throw_python();
  check_type(dtype && is_dtype(dtype), "frombuffer() missing 1 required argument: 'dtype'");
  check_value(PyObject_CheckBuffer(buffer),
              "frombuffer(): buffer must support Python's buffer protocol; got ",
              type_name(buffer));
  const DType d = dtype_value(dtype);
  Object view = Object::take(PyMemoryView_FromObject(buffer));
  const bool writable = !PyMemoryView_GET_BUFFER(view.get())->readonly;
  Ref<Storage> s = storage_over_buffer(buffer, writable);
  const int64_t length = static_cast<int64_t>(s->nbytes()),
                size = static_cast<int64_t>(itemsize(d));
  check_value(size > 0, "frombuffer(): a buffer does not say what ", name(d), " are worth");
  check_value(length > 0 && count != 0, "both buffer length (", length, ") and count (", count,
              ") must not be 0");
  check_value(offset >= 0 && offset < length, "frombuffer(): offset must be in [0, ", length,
              "), the buffer's bytes; got ", offset);
  check_value(count > 0 || (length - offset) % size == 0, "frombuffer(): the bytes after offset ",
              offset, " must be a multiple of ", size, ", an element's; got ", length - offset);
  if (count < 0) count = (length - offset) / size;
  check_value(count <= (length - offset) / size, "frombuffer(): count (", count, ") times ", size,
              " bytes must fit after offset ", offset, "; got a buffer of ", length, " bytes");
  // Uses a storage of its own, so that the offset need not be a multiple of the element size.
  struct Held {
    Ref<Storage> whole;
  };
  void* data = static_cast<char*>(s->data()) + offset;
  auto* held = new Held{std::move(s)};
  Ref<Storage> part = Storage::external({}, data, static_cast<size_t>(count * size), held,
                                        [](void* p) { delete static_cast<Held*>(p); });
  const int64_t n = count, one = 1;
  Tensor t = tensor_over(std::move(part), d, 0, IntSpan(&n, 1), IntSpan(&one, 1));
  if (grad) set_requires_grad(t, true);
  return wrapped(std::move(t));
}

// _tensor_from_storage(storage, dtype, offset, size, stride, requires_grad)
Object from_storage(PyObject*, PyObject* args, PyObject*) {
  PyObject *storage, *dtype, *sizes, *strides;
  long long offset;
  int grad;
  if (!PyArg_ParseTuple(args, "O!O!LOOp:_tensor_from_storage", &storage_type, &storage, &dtype_type,
                        &dtype, &offset, &sizes, &strides, &grad))
    throw_python();
  auto ints = [](PyObject* o) {
    const Object items = Object::take(PySequence_Fast(o, "expected a sequence of ints"));
    IntVec v;
    read_items(items.get(), [&](size_t, PyObject* item) {
      const long long x = PyLong_AsLongLong(item);
      if (x == -1 && PyErr_Occurred()) throw_python();
      v.push_back(x);
      return true;
    });
    return v;
  };
  Tensor t = tensor_over(Ref<Storage>::share(storage_value(storage)), dtype_value(dtype), offset,
                         ints(sizes), ints(strides));
  if (grad) set_requires_grad(t, true);
  return wrapped(std::move(t));
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int keywords = METH_VARARGS | METH_KEYWORDS;

PyMethodDef functions[] = {
    {"tensor", with_keywords(guarded_keywords<make_tensor>), keywords,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor\n\n"
     "A new tensor with a copy of data: a number, nested sequences, an array or a tensor."},
    {"as_tensor", with_keywords(guarded_keywords<as_tensor>), keywords,
     "as_tensor(data, dtype=None, device=None) -> Tensor\n\n"
     "A tensor with this data, over the same memory where possible."},
    {"frombuffer", with_keywords(guarded_keywords<frombuffer>), keywords,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n"
     "A 1-D tensor over the memory of an object with the buffer protocol."},
    {"_tensor_from_storage", with_keywords(guarded_keywords<from_storage>), keywords, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Object legacy_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *device = kwargs ? PyDict_GetItemString(kwargs, "device") : nullptr, *data = nullptr;
  Device d;
  if (device && device != Py_None)
    check_type(device_like(device, d), "new(): argument 'device' must be torch.device");
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n == 1) data = PyTuple_GET_ITEM(args, 0);
  auto finish = [&](Tensor t) {
    return type == tensor_type ? wrapped(std::move(t)) : wrap_as(type, std::move(t));
  };
  if (data && is_tensor(data)) return finish(alias_tensor(tensor_of(data)));
  if (Tensor t = data ? over_storage(data, default_dtype()) : Tensor(); t.defined()) {
    check(t.dtype() == default_dtype(), "Expected a Storage of type ",
          info(default_dtype()).legacy_name, " or an UntypedStorage, but got type ",
          info(t.dtype()).legacy_name, " for argument 1 'storage'");
    return finish(std::move(t));
  }
  NewTensorOptions options;
  options.dtype = default_dtype();
  options.device = d;
  options.has_device = true;
  const bool one_size = data && Py_TYPE(data) == &size_type;
  const bool all_ints = n > 0 && !one_size && [&] {
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!PyIndex_Check(PyTuple_GET_ITEM(args, i)) || is_tensor(PyTuple_GET_ITEM(args, i)))
        return false;
    return true;
  }();
  if (n == 0 || all_ints || one_size) {
    IntVec sizes;
    PyObject* from = one_size ? data : args;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); ++i) {
      int64_t v = 0;
      check_type(read_int(PyTuple_GET_ITEM(from, i), v), "new(): expected sizes");
      sizes.push_back(v);
    }
    if (n == 0) sizes.push_back(0);
    return finish(empty_tensor(sizes, options.dtype, d));
  }
  check_type(n == 1 && is_sequence(data), "new(): data must be a sequence (got ",
             n == 1 ? type_name(data) : "several arguments", ")");
  return finish(tensor_from(data, options));
}

void add_new_tensor(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
