// UntypedStorage.
#include <cstddef>
#include <cstring>

#include "bindings/module/package.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/checksum.h"
#include "dispatch/running_calls.h"
#include "ops/create/copy.h"
#include "transforms/inner_mode.h"

namespace facula::python {
namespace {

Object new_object(PyTypeObject* type, Ref<Storage> s) {
  Object o = Object::take(type->tp_alloc(type, 0));
  scheme::adopt(o.get(), *s.leak());
  return o;
}

// The bytes; the caller holds an InUse while it reads or writes them.
uint8_t* bytes_of(PyObject* o) {
  const Storage& s = *storage_value(o);
  check(s.device().is_cpu(), "the bytes of a storage on ", str(s.device()),
        " cannot be read from Python");
  return static_cast<uint8_t*>(s.data());
}

size_t byte_count(PyObject* o) {
  const int64_t n = PyLong_AsLongLong(o);
  if (n == -1 && PyErr_Occurred()) throw_python();
  check(n >= 0, "expected a size that is not negative; got ", n);
  return static_cast<size_t>(n);
}

Ref<Storage> storage_of_items(PyObject* given, Device device) {
  check(PySequence_Check(given) && !PyAnySet_Check(given),
        "UntypedStorage(): Expected a sequence type, but got ", type_name(given));
  const Object items = Object::take(PySequence_Fast(given, "UntypedStorage(): not a sequence"));
  Ref<Storage> s =
      Storage::make(device, static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get())));
  SignalPoll poll;
  read_items(items.get(), [&](size_t i, PyObject* item) {
    check(PyLong_Check(item), "UntypedStorage(): tried to construct a storage from a sequence (",
          type_name(given), "), but one of the items was of type ", type_name(item),
          " instead of int");
    const long v = PyLong_AsLong(item);
    if (v == -1 && PyErr_Occurred()) throw_python();
    static_cast<uint8_t*>(s->data())[i] = static_cast<uint8_t>(v);
    poll.step();
    return true;
  });
  return s;
}

PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* given_keywords) {
  return guard([&]() -> PyObject* {
    const OwnKeywords own(given_keywords);
    PyObject* kwargs = own.get();
    static const char* keys[] = {"size", "sequence", "device", "allocator", nullptr};
    PyObject *size = nullptr, *items = nullptr, *device = nullptr, *allocator = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:UntypedStorage",
                                     const_cast<char**>(keys), &size, &items, &device, &allocator))
      return nullptr;
    Device d;
    if (device && device != Py_None && !device_like(device, d))
      throw_type(concat("UntypedStorage(): argument 'device' must be torch.device, not ",
                        type_name(device)));
    if (!size && !items) return new_object(type, Storage::make(d, 0)).leak();
    if (size && PyLong_Check(size) && !PyBool_Check(size))
      return new_object(type, Storage::make(d, byte_count(size))).leak();
    return new_object(type, storage_of_items(items ? items : size, d)).leak();
  });
}

void storage_dealloc(PyObject* o);
void let_go(PyObject* o) {
  Storage* s = std::exchange(kept(o)->storage, nullptr);
  if (s && release_as_object(*s)) destroy(s);
}
const KeptKind kind{&storage_type,
                    storage_dealloc,
                    let_go,
                    [](PyObject*, visitproc, void*) { return 0; },
                    [](PyObject*) {},
                    [](PyObject*) {},
                    [](PyObject* o) { Py_TYPE(o)->tp_free(o); }};
void storage_dealloc(PyObject* o) { end_object(o, kind); }
int storage_traverse(PyObject* o, visitproc visit, void* arg) {
  return traverse_object(o, kind, visit, arg);
}
int storage_clear(PyObject* o) {
  clear_object(o, kind);
  return 0;
}

Object nbytes(PyObject* o, PyObject*) {
  return Object::take(PyLong_FromSize_t(storage_value(o)->nbytes()));
}
Object data_ptr(PyObject* o, PyObject*) {
  finish_pending_work();
  return Object::take(PyLong_FromVoidPtr(storage_value(o)->data()));
}
Object resizable(PyObject* o, PyObject*) { return boolean(storage_value(o)->resizable()); }
Object element_size(PyObject*, PyObject*) { return integer(1); }
// Calls the operator on a tensor over the storage, so that functionalization sees it.
Object resize(PyObject* o, PyObject* n) {
  check(PyLong_Check(n), "resize_ expects an int, but got ", type_name(n));
  const auto bytes = static_cast<int64_t>(byte_count(n));
  const auto size = static_cast<int64_t>(storage_value(o)->nbytes()), step = int64_t{1};
  const Tensor over = tensor_over(Ref<Storage>::share(storage_value(o)), DType::UInt8, 0,
                                  IntSpan(&size, 1), IntSpan(&step, 1));
  const OnlyInnerModes direct;
  ops::resize_storage_bytes_(over, bytes);
  return Object::share(o);
}
Object clone(PyObject* o, PyObject*) {
  Storage& s = *storage_value(o);
  const InUse reading(s);
  Ref<Storage> copy = Storage::make(s.device(), s.nbytes());
  if (s.nbytes() && s.has_memory()) std::memcpy(copy->data(), bytes_of(o), s.nbytes());
  return new_object(&storage_type, std::move(copy));
}
Object copy_from(PyObject* o, PyObject* args) {
  PyObject* given = nullptr;
  int non_blocking = 0;
  if (!PyArg_ParseTuple(args, "O|p", &given, &non_blocking)) throw_python();
  Object inner;
  if (is_storage(given))
    inner = Object::share(given);
  else if (PyObject_HasAttrString(given, "_untyped_storage"))
    inner = Object::take(PyObject_GetAttrString(given, "_untyped_storage"));
  PyObject* from = inner.get();
  check_type(from && is_storage(from), "copy_(): expected a storage; got ", type_name(given));
  check(storage_value(o)->nbytes() == storage_value(from)->nbytes(),
        "size does not match, self was ", storage_value(o)->nbytes(), " bytes but src was ",
        storage_value(from)->nbytes(), " bytes");
  const InUse writing(*storage_value(o)), reading(*storage_value(from));
  if (storage_value(o)->nbytes())
    std::memmove(bytes_of(o), bytes_of(from), storage_value(o)->nbytes());
  return Object::share(o);
}
Object fill(PyObject* o, PyObject* v) {
  check(PyLong_Check(v), "fill_ expects int, but got ", type_name(v));
  const long byte = PyLong_AsLong(v);
  if (byte == -1 && PyErr_Occurred()) throw_python();
  const InUse writing(*storage_value(o));
  if (storage_value(o)->nbytes())
    std::memset(bytes_of(o), static_cast<int>(byte & 255), storage_value(o)->nbytes());
  return Object::share(o);
}
Object bytes_object(PyObject* o) {
  const InUse reading(*storage_value(o));
  return Object::take(PyBytes_FromStringAndSize(
      storage_value(o)->nbytes() ? reinterpret_cast<char*>(bytes_of(o)) : nullptr,
      static_cast<Py_ssize_t>(storage_value(o)->nbytes())));
}
Object to_list_of_bytes(PyObject* o, PyObject*) {
  return Object::take(PySequence_List(bytes_object(o).get()));
}
Object say_no(PyObject*, PyObject*) { return boolean(false); }
Object reduce(PyObject* o, PyObject*) {
  const Object make = imported("facula._methods", "rebuild_storage");
  return Object::take(Py_BuildValue("(O(O))", make.get(), bytes_object(o).get()));
}

// --- methods written in Python, imported when first called

template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }
};

template <Name Function>
PyObject* in_python(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    static PyObject* function = nullptr;
    if (!function) function = imported("facula.storage", Function.text).leak();
    const Object first = Object::take(PyTuple_Pack(1, self));
    const Object all = Object::take(PySequence_Concat(first.get(), args));
    return checked(PyObject_Call(function, all.get(), kwargs));
  });
}
// A method that imports facula.storage and calls its function `_name`.
template <Name Function>
PyMethodDef written_in_python(int flags = 0) {
  static constexpr auto own = Function;
  const auto call =
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_python<Function>));
  return {own.text + 1, call, METH_VARARGS | METH_KEYWORDS | flags, nullptr};
}
PyObject* repr(PyObject* o) {
  return guard([&] {
    const Object text = imported("facula.storage", "_text");
    return checked(PyObject_CallOneArg(text.get(), o));
  });
}

PyMethodDef methods[] = {
    written_in_python<"_untyped">(),
    written_in_python<"_new">(),
    written_in_python<"_type">(),
    written_in_python<"_get_device">(),
    written_in_python<"_byteswap">(),
    written_in_python<"_float">(),
    written_in_python<"_double">(),
    written_in_python<"_half">(),
    written_in_python<"_bfloat16">(),
    written_in_python<"_long">(),
    written_in_python<"_int">(),
    written_in_python<"_short">(),
    written_in_python<"_char">(),
    written_in_python<"_byte">(),
    written_in_python<"_bool">(),
    written_in_python<"_complex_double">(),
    written_in_python<"_complex_float">(),
    written_in_python<"_float8_e4m3fn">(),
    written_in_python<"_float8_e5m2">(),
    written_in_python<"_cpu">(),
    written_in_python<"_to">(),
    written_in_python<"_cuda">(),
    written_in_python<"_hpu">(),
    written_in_python<"_mps">(),
    written_in_python<"_pin_memory">(),
    written_in_python<"__write_file">(),
    written_in_python<"__set_from_file">(),
    written_in_python<"__get_filename">(),
    written_in_python<"__byteswap">(),
    written_in_python<"_float8_e4m3fnuz">(),
    written_in_python<"_float8_e5m2fnuz">(),
    written_in_python<"_is_shared">(),
    written_in_python<"_share_memory_">(),
    written_in_python<"__new_shared">(METH_CLASS),
    written_in_python<"___copy__">(),
    written_in_python<"___deepcopy__">(),
    written_in_python<"_from_buffer">(METH_CLASS),
    written_in_python<"_from_file">(METH_CLASS),
    {"nbytes", guarded<nbytes>, METH_NOARGS, "The size in bytes."},
    {"size", guarded<nbytes>, METH_NOARGS, "The size in bytes."},
    {"data_ptr", guarded<data_ptr>, METH_NOARGS, "The address of the first byte."},
    {"element_size", guarded<element_size>, METH_NOARGS,
     "1: elements of an untyped storage are bytes."},
    {"resizable", guarded<resizable>, METH_NOARGS, "Whether resize_ may change the size."},
    {"resize_", guarded<resize>, METH_O, "Changes the size in bytes, keeping the leading ones."},
    {"clone", guarded<clone>, METH_NOARGS, "A storage of its own with the same bytes."},
    {"copy_", guarded<copy_from>, METH_VARARGS, "Copies the bytes of a storage of the same size."},
    {"fill_", guarded<fill>, METH_O, "Sets every byte."},
    {"tolist", guarded<to_list_of_bytes>, METH_NOARGS, "The bytes as a list of ints."},
    {"is_pinned", guarded<say_no>, METH_VARARGS, "Whether the memory is page-locked."},
    {"__reduce__", guarded<reduce>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyObject* get_device(PyObject* o, void*) {
  return guard([&] { return device_object(storage_value(o)->device()).leak(); });
}
PyObject* get_identity(PyObject* o, void*) { return PyLong_FromVoidPtr(storage_value(o)); }
PyObject* get_is_cuda(PyObject* o, void*) {
  return PyBool_FromLong(storage_value(o)->device().type == DeviceType::CUDA);
}
PyObject* get_self(PyObject* o, void*) { return Py_NewRef(o); }
PyObject* get_false(PyObject*, void*) { return Py_NewRef(Py_False); }
PyObject* get_filename(PyObject* o, void*) {
  PyObject* dict = kept(o)->dict;
  PyObject* name = dict ? PyDict_GetItemString(dict, "_filename") : nullptr;
  return Py_NewRef(name ? name : Py_None);
}

PyGetSetDef properties[] = {
    {"device", get_device, nullptr, nullptr, nullptr},
    {"is_cuda", get_is_cuda, nullptr, nullptr, nullptr},
    {"is_sparse", get_false, nullptr, nullptr, nullptr},
    {"is_sparse_csr", get_false, nullptr, nullptr, nullptr},
    {"is_hpu", get_false, nullptr, nullptr, nullptr},
    {"filename", get_filename, nullptr, "The file that is mapped and shared, or None.", nullptr},
    {"_cdata", get_identity, nullptr, nullptr, nullptr},
    {"_untyped_storage", get_self, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

Py_ssize_t length(PyObject* o) { return static_cast<Py_ssize_t>(storage_value(o)->nbytes()); }

Py_ssize_t in_range(PyObject* o, Py_ssize_t i) {
  const Py_ssize_t n = length(o);
  check_index(i >= -n && i < n, "index ", i, " out of range for storage of size ", n);
  return i < 0 ? i + n : i;
}
Py_ssize_t position(PyObject* o, PyObject* key) {
  check_type(PyIndex_Check(key) && !PyBool_Check(key), "can't index a ", Py_TYPE(o)->tp_name,
             " with ", type_name(key));
  const Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) throw_python();
  return in_range(o, i);
}

struct Part {
  Py_ssize_t begin, size;
};
Part part_of(PyObject* o, PyObject* slice) {
  Py_ssize_t begin, end, step;
  checked(PySlice_Unpack(slice, &begin, &end, &step));
  const Py_ssize_t n = PySlice_AdjustIndices(length(o), &begin, &end, step);
  check(step == 1, "Trying to slice with a step of ", step, ", but only a step of 1 is supported");
  return {begin, n};
}

// A storage over part of another, which must not move while that exists.
Ref<Storage> storage_within(Storage& whole, const Part& part) {
  const InUse reading(whole);
  auto* data = static_cast<char*>(whole.data());
  whole.begin_export();
  return Storage::external(whole.device(), data ? data + part.begin : nullptr,
                           static_cast<size_t>(part.size), Ref<Storage>::share(&whole).leak(),
                           [](void* p) {
                             const auto owner = Ref<Storage>::take(static_cast<Storage*>(p));
                             owner->end_export();
                           });
}

PyObject* get_byte(PyObject* o, Py_ssize_t i) {
  return guard([&] {
    const InUse reading(*storage_value(o));
    return integer(bytes_of(o)[in_range(o, i)]).leak();
  });
}
PyObject* get_item(PyObject* o, PyObject* key) {
  return guard([&] {
    if (PySlice_Check(key))
      return new_object(&storage_type, storage_within(*storage_value(o), part_of(o, key))).leak();
    return checked(get_byte(o, position(o, key)));
  });
}
// As part_of, with PyTorch's errors for assignment.
Part part_to_set(PyObject* o, PyObject* key) {
  if (PySlice_Check(key)) return part_of(o, key);
  check(PyIndex_Check(key) && !PyBool_Check(key), "can't index a ", Py_TYPE(o)->tp_name, " with ",
        type_name(key));
  const Py_ssize_t i = PyNumber_AsSsize_t(key, nullptr), n = length(o);
  if (i == -1 && PyErr_Occurred()) throw_python();
  check(i >= -n && i < n, "out of bounds: index ", i, " of a storage of size ", n);
  return {i < 0 ? i + n : i, 1};
}
int set_item(PyObject* o, PyObject* key, PyObject* value) {
  return guard_status([&] {
    check_type(value != nullptr, "items of a storage cannot be deleted");
    check(PyLong_Check(value), "can only set storage content with a int types, but got ",
          type_name(value), " instead");
    const long v = PyLong_AsLong(value);
    if (v == -1 && PyErr_Occurred()) throw_python();
    const Part part = part_to_set(o, key);
    const InUse writing(*storage_value(o));
    if (part.size)
      std::memset(bytes_of(o) + part.begin, static_cast<int>(v & 255),
                  static_cast<size_t>(part.size));
  });
}
PyMappingMethods mapping = {length, get_item, set_item};
PySequenceMethods make_sequence() {
  PySequenceMethods s{};
  s.sq_length = length;
  s.sq_item = get_byte;
  return s;
}
PySequenceMethods sequence = make_sequence();

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  return guard_status([&] {
    static char nothing;
    const InUse reading(*storage_value(o));
    void* p = storage_value(o)->nbytes() ? bytes_of(o) : static_cast<void*>(&nothing);
    checked(PyBuffer_FillInfo(view, o, p, length(o), 0, flags));
    storage_value(o)->begin_export();
  });
}
void release_buffer(PyObject* o, Py_buffer*) { storage_value(o)->end_export(); }
PyBufferProcs buffer = {get_buffer, release_buffer};

// Needed only for the keep_flag.h scheme, which sets tp_dealloc of subclasses.
PyObject* meta_new(PyTypeObject* meta, PyObject* args, PyObject* kwargs) {
  PyObject* made = PyType_Type.tp_new(meta, args, kwargs);
  if (made) install(reinterpret_cast<PyTypeObject*>(made), kind);
  return made;
}
PyTypeObject make_meta() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._StorageMeta";
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_base = &PyType_Type;
  t.tp_new = meta_new;
  t.tp_doc = "The class of storage classes.";
  return t;
}
PyTypeObject meta_type = make_meta();

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula.storage.UntypedStorage";
  t.tp_basicsize = sizeof(KeptObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_new = storage_new;
  t.tp_dealloc = storage_dealloc;
  t.tp_traverse = storage_traverse;
  t.tp_clear = storage_clear;
  t.tp_weaklistoffset = offsetof(KeptObject, weakrefs);
  t.tp_dictoffset = offsetof(KeptObject, dict);
  t.tp_methods = methods;
  t.tp_getset = properties;
  t.tp_as_mapping = &mapping;
  t.tp_as_sequence = &sequence;
  t.tp_iter = PySeqIter_New;
  t.tp_repr = repr;
  t.tp_as_buffer = &buffer;
  t.tp_doc = "The bytes behind tensors: UntypedStorage(size, device='cpu').";
  return t;
}

}  // namespace

PyTypeObject storage_type = make_type();

Object storage_object(const Ref<Storage>& s) {
  if (!s) return none();
  if (PyObject* o = scheme::object_of(*s)) return Object::take(o);
  return new_object(&storage_type, s);
}

Ref<Storage> storage_over_buffer(PyObject* o, bool writable) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(o, view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0) {
    delete view;
    throw_python();
  }
  const auto release = [](void* p) {
    if (!may_release()) return;
    HoldGil gil;
    PyBuffer_Release(static_cast<Py_buffer*>(p));
    delete static_cast<Py_buffer*>(p);
  };
  return Storage::external({}, view->buf, static_cast<size_t>(view->len), view, release);
}

namespace {

Object bytes_view(PyObject*, PyObject* storage) {
  check_type(is_storage(storage), "_storage_bytes() expected a storage; got ", type_name(storage));
  return Object::take(PyMemoryView_FromObject(storage));
}
Object from_bytes(PyObject*, PyObject* buffer) {
  const Object view = Object::take(PyMemoryView_FromObject(buffer));
  const bool writable = !PyMemoryView_GET_BUFFER(view.get())->readonly;
  return storage_object(storage_over_buffer(buffer, writable));
}
// _crc32(buffer, before): continues a checksum.
Object checksum(PyObject*, PyObject* args) {
  PyObject* buffer = nullptr;
  unsigned int before = 0;
  if (!PyArg_ParseTuple(args, "O|I:_crc32", &buffer, &before)) throw_python();
  Py_buffer view;
  checked(PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE));
  const uint32_t result = crc32(view.buf, static_cast<size_t>(view.len), before);
  PyBuffer_Release(&view);
  return Object::take(PyLong_FromUnsignedLong(result));
}
PyMethodDef functions[] = {{"_crc32", guarded<checksum>, METH_VARARGS, nullptr},
                           {"_storage_bytes", guarded<bytes_view>, METH_O, nullptr},
                           {"_storage_from_bytes", guarded<from_bytes>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_storage(PyObject* module) {
  if (scheme::owns_dealloc) {
    ready_type(meta_type);
    Py_SET_TYPE(&storage_type, &meta_type);
  }
  add_type(module, storage_type, "UntypedStorage");
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
