// Conversion between NumPy arrays and tensors over the same memory, by the array interface. NumPy
// is not needed to build, and is imported only when an array is requested.
#include <climits>
#include <cstddef>

#include "autograd/variable.h"
#include "bindings/call/operators.h"
#include "bindings/module/package.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "dispatch/running_calls.h"

namespace facula::python {
namespace {

// The structure of `__array_struct__`, from NumPy's documentation.
struct ArrayInterface {
  int two;
  int ndim;
  char kind;
  int itemsize;
  int flags;
  Py_intptr_t* shape;
  Py_intptr_t* strides;
  void* data;
  PyObject* descr;
};
constexpr int flag_aligned = 0x100, flag_native = 0x200, flag_writable = 0x400;

DType dtype_of_kind(char kind, int size) {
  auto pick = [&](std::initializer_list<std::pair<int, DType>> table) {
    for (const auto& [n, d] : table)
      if (n == size) return d;
    return DType::Undefined;
  };
  switch (kind) {
    case 'b':
      return pick({{1, DType::Bool}});
    case 'i':
      return pick({{1, DType::Int8}, {2, DType::Int16}, {4, DType::Int32}, {8, DType::Int64}});
    case 'u':
      return pick({{1, DType::UInt8}, {2, DType::UInt16}, {4, DType::UInt32}, {8, DType::UInt64}});
    case 'f':
      return pick({{2, DType::Float16}, {4, DType::Float32}, {8, DType::Float64}});
    case 'c':
      return pick({{8, DType::Complex64}, {16, DType::Complex128}});
    default:
      return DType::Undefined;
  }
}

char kind_of_dtype(DType d) {
  switch (info(d).kind) {
    case DTypeKind::Bool:
      return 'b';
    case DTypeKind::Signed:
      return 'i';
    case DTypeKind::Unsigned:
      return 'u';
    case DTypeKind::Float:
      return itemsize(d) == 1 || d == DType::BFloat16 ? 0 : 'f';
    case DTypeKind::Complex:
      return itemsize(d) == 4 ? 0 : 'c';
    default:
      return 0;
  }
}

PyTypeObject* array_class() {
  static PyTypeObject* found = nullptr;
  if (found) return found;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* numpy = modules ? PyDict_GetItemString(modules, "numpy") : nullptr;
  PyObject* c = numpy ? PyObject_GetAttrString(numpy, "ndarray") : nullptr;
  if (!c) PyErr_Clear();
  return found = reinterpret_cast<PyTypeObject*>(c);
}

std::string dtype_text(PyObject* array) {
  const Object d = attribute(array, "dtype");
  return std::string(text_of(Object::take(PyObject_Str(d.get())).get()));
}

void warn(const char* text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text, 1) < 0) throw_python();
}

struct HeldArray {
  Object capsule, array;
};
void release_array(void* p) {
  if (!may_release()) return;
  HoldGil gil;
  delete static_cast<HeldArray*>(p);
}

const ArrayInterface& interface_of(PyObject* capsule) {
  auto* a = static_cast<ArrayInterface*>(PyCapsule_GetPointer(capsule, nullptr));
  if (!a) throw_python();
  check_type(a->two == 2, "the array's __array_struct__ is malformed");
  return *a;
}

}  // namespace

bool is_array(PyObject* o) {
  // Common types of indices, to avoid looking for NumPy in sys.modules.
  if (PyLong_CheckExact(o) || PySlice_Check(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o))
    return false;
  PyTypeObject* c = array_class();
  return c && PyObject_TypeCheck(o, c);
}

Tensor tensor_over_array(PyObject* array, bool warn_read_only) {
  if (!is_array(array)) throw_type(concat("expected np.ndarray (got ", type_name(array), ")"));
  Object capsule = attribute(array, "__array_struct__");
  const ArrayInterface& a = interface_of(capsule.get());
  const DType dtype = dtype_of_kind(a.kind, a.itemsize);
  if (dtype == DType::Undefined)
    throw_type(concat("can't convert np.ndarray of type ", dtype_text(array),
                      ": expected bool, an integer type, or a floating-point or complex type that "
                      "facula has"));
  check_value(a.itemsize == 1 || a.flags & flag_native,
              "from_numpy(): the array must be in the machine's byte order; got the other one");
  if (!(a.flags & flag_writable) && warn_read_only)
    warn(
        "from_numpy(): the given NumPy array is not writable, but its tensor will be, in the same "
        "memory; copy the array if the tensor is to be written to (said once)");
  IntVec sizes, strides;
  int64_t last = 0;
  bool empty = false;
  for (int i = 0; i < a.ndim; ++i) {
    check_value(a.strides[i] >= 0 || a.shape[i] <= 1,
                "from_numpy(): strides of the array must not be negative; got ", a.strides[i],
                " bytes in dimension ", i, " (array.copy() has positive ones)");
    check_value(a.strides[i] % a.itemsize == 0,
                "from_numpy(): each stride must be a whole number of elements of ", a.itemsize,
                " bytes; got ", a.strides[i], " bytes in dimension ", i);
    sizes.push_back(a.shape[i]);
    strides.push_back(std::max<int64_t>(a.strides[i] / a.itemsize, 0));
    empty |= a.shape[i] == 0;
    last += (a.shape[i] - 1) * strides.back();
  }
  check(a.ndim <= 64, "expected an array of at most 64 dimensions; got ", a.ndim);
  const size_t bytes = empty ? 0 : static_cast<size_t>(last + 1) * static_cast<size_t>(a.itemsize);
  void* data = a.data;
  auto* held = new HeldArray{std::move(capsule), Object::share(array)};
  return tensor_over(Storage::external({}, data, bytes, held, release_array), dtype, 0, sizes,
                     strides);
}

// --- tensor to array, by an object with `__array_struct__` that becomes the array's base

namespace {

struct ArrayOwner {
  PyObject_HEAD Storage* storage;  // owned, since the tensor may be given another one
  Py_intptr_t* geometry;
  ArrayInterface face;
};

void owner_dealloc(PyObject* o) {
  auto* owner = reinterpret_cast<ArrayOwner*>(o);
  delete[] owner->geometry;
  Ref<Storage>::take(owner->storage).reset();
  Py_TYPE(o)->tp_free(o);
}
PyObject* owner_struct(PyObject* o, void*) {
  auto* owner = reinterpret_cast<ArrayOwner*>(o);
  PyObject* capsule = PyCapsule_New(&owner->face, nullptr, [](PyObject* c) {
    Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(c)));
  });
  if (capsule) PyCapsule_SetContext(capsule, Py_NewRef(o));
  return capsule;
}
PyGetSetDef owner_properties[] = {{"__array_struct__", owner_struct, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyTypeObject make_owner_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._ArrayOwner";
  t.tp_basicsize = sizeof(ArrayOwner);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_dealloc = owner_dealloc;
  t.tp_getset = owner_properties;
  return t;
}
PyTypeObject owner_type = make_owner_type();

void check_numpy(const Tensor& t) {
  check_type(t->layout == Layout::Strided && !has_layout_kind(t), "can't convert ",
             layout_name(t->layout), " layout tensor to numpy. Use Tensor.to_dense() first.");
  check_type(t.device().is_cpu(), "can't convert ", str(t.device()),
             " tensor to numpy: the data must be on the CPU; use cpu() first");
  check(!requires_grad(t) || !thread_state.grad_enabled,
        "Can't call numpy() on Tensor that requires grad; use detach() first");
  check(!t->conj,
        "Can't call numpy() on Tensor whose conjugate bit is set; use resolve_conj() first");
  check(!t->neg, "Can't call numpy() on Tensor whose negative bit is set; use resolve_neg() first");
  check_type(kind_of_dtype(t.dtype()) != 0, "Got unsupported ScalarType ",
             info(t.dtype()).legacy_name);
}

}  // namespace

Object array_over_tensor(PyObject* o) {
  const Tensor& t = tensor_of(o);
  check_numpy(t);
  const InUse reading(t);
  static char nothing[16];
  void* const data = t.numel() ? t.data() : nothing;
  ArrayOwner* owner = PyObject_New(ArrayOwner, &owner_type);
  if (!owner) throw_python();
  const Object holder = Object::take(reinterpret_cast<PyObject*>(owner));
  const size_t n = static_cast<size_t>(t.dim());
  // Never ended, since other arrays may be made over the same address.
  t->storage->begin_export();
  owner->storage = Ref<Storage>(t->storage).leak();
  owner->geometry = new Py_intptr_t[2 * n + 1];
  for (size_t i = 0; i < n; ++i) {
    owner->geometry[i] = t.sizes()[i];
    owner->geometry[n + i] = t.strides()[i] * static_cast<int64_t>(t.itemsize());
  }
  owner->face = {2,
                 static_cast<int>(n),
                 kind_of_dtype(t.dtype()),
                 static_cast<int>(t.itemsize()),
                 flag_aligned | flag_native | flag_writable,
                 owner->geometry,
                 owner->geometry + n,
                 data,
                 nullptr};
  static PyObject* as_array = nullptr;
  if (!as_array) as_array = imported("numpy", "asarray").leak();
  return Object::take(PyObject_CallOneArg(as_array, holder.get()));
}

namespace {

Object from_numpy(PyObject*, PyObject* array) { return wrapped(tensor_over_array(array, true)); }

PyMethodDef functions[] = {
    {"from_numpy", guarded<from_numpy>, METH_O,
     "from_numpy(ndarray) -> Tensor\n\nA tensor over the memory of a NumPy array."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_numpy(PyObject* module) {
  ready_type(owner_type);
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
