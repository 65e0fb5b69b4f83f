// Import and export by DLPack, for CPU memory.
#include <optional>

#include "autograd/variable.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "dispatch/running_calls.h"

namespace facula::python {
namespace {

// The structures of the DLPack standard, version 0.
struct DlDevice {
  int32_t type, id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
constexpr int32_t dl_cpu = 1;
enum DlCode : uint8_t {
  dl_int = 0,
  dl_uint = 1,
  dl_float = 2,
  dl_bfloat = 4,
  dl_complex = 5,
  dl_bool = 6,
  dl_e4m3fn = 10,
  dl_e4m3fnuz = 11,
  dl_e5m2 = 12,
  dl_e5m2fnuz = 13,
  dl_e8m0fnu = 14,
  dl_e2m1fn = 17
};

DlType float_to_dl(DType d, uint8_t bits) {
  switch (d) {
    case DType::BFloat16:
      return {dl_bfloat, bits, 1};
    case DType::Float8E4M3:
      return {dl_e4m3fn, bits, 1};
    case DType::Float8E4M3FNUZ:
      return {dl_e4m3fnuz, bits, 1};
    case DType::Float8E5M2:
      return {dl_e5m2, bits, 1};
    case DType::Float8E5M2FNUZ:
      return {dl_e5m2fnuz, bits, 1};
    case DType::Float8E8M0:
      return {dl_e8m0fnu, bits, 1};
    default:
      return d == float4x2 ? DlType{dl_e2m1fn, 4, 2} : DlType{dl_float, bits, 1};
  }
}

// Narrow integers are seen as the whole bytes that hold them; none for what the standard lacks.
std::optional<DlType> type_to_dl(DType d) {
  const uint8_t bits = static_cast<uint8_t>(8 * itemsize(d));
  switch (info(d).kind) {
    case DTypeKind::Bool:
      return DlType{dl_bool, bits, 1};
    case DTypeKind::Signed:
      return DlType{dl_int, bits, 1};
    case DTypeKind::Unsigned:
      return DlType{dl_uint, bits, 1};
    case DTypeKind::Narrow:
      return DlType{is_signed(d) ? dl_int : dl_uint, bits, 1};
    case DTypeKind::Float:
      return float_to_dl(d, bits);
    case DTypeKind::Complex:
      if (d == DType::BComplex32) return std::nullopt;
      return DlType{dl_complex, bits, 1};
    default:
      return std::nullopt;
  }
}

DType type_from_dl(DlType t) {
  for (int i = 0; i < dtype_slots; ++i) {
    const DType d = static_cast<DType>(i);
    const std::optional<DlType> have = type_to_dl(d);
    if (have && have->code == t.code && have->bits == t.bits && t.lanes == have->lanes) return d;
  }
  throw Error(ErrorKind::Runtime, "from_dlpack(): unsupported type: code ", int{t.code}, ", bits ",
              int{t.bits}, ", lanes ", t.lanes);
}

[[noreturn]] void throw_no_dl_type(DType d) {
  PyErr_Format(PyExc_BufferError, "%s type is not supported by dlpack", info(d).legacy_name);
  throw_python();
}

// Owns the storage, since the tensor may be given another one.
struct Exported {
  explicit Exported(const Tensor& t) : storage(t->storage), sizes(t.sizes()), strides(t.strides()) {
    storage->begin_export();
  }
  Exported(const Exported&) = delete;
  ~Exported() { storage->end_export(); }
  DlManaged managed{};
  const Ref<Storage> storage;
  IntVec sizes, strides;
};

void end_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // a consumer owns it now
  auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (m && m->deleter) m->deleter(m);
}

}  // namespace

Object tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = nullptr, *version = nullptr, *device = nullptr, *copy = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(keys),
                                   &stream, &version, &device, &copy))
    throw_python();
  const Tensor& t = tensor_of(self);
  check_kind(ErrorKind::Runtime, !requires_grad(t),
             "Can't export tensors that require gradient, use tensor.detach()");
  check_kind(ErrorKind::Runtime, !has_layout_kind(t),
             "Can't export tensors with layout other than torch.strided");
  check_kind(ErrorKind::Runtime, !t->conj, "Can't export tensors with the conjugate bit set");
  check_kind(ErrorKind::Runtime, t.device().is_cpu(),
             "__dlpack__(): expected a tensor on the CPU; got one on ", str(t.device()));
  const InUse reading(t);
  void* const data = t.data();
  const std::optional<DlType> type = type_to_dl(t.dtype());
  if (!type) throw_no_dl_type(t.dtype());
  auto* e = new Exported(t);
  e->managed.tensor = {data,  {dl_cpu, 0},     static_cast<int32_t>(t.dim()),
                       *type, e->sizes.data(), e->strides.data(),
                       0};
  e->managed.context = e;
  e->managed.deleter = [](DlManaged* m) { delete static_cast<Exported*>(m->context); };
  PyObject* capsule = PyCapsule_New(&e->managed, "dltensor", end_capsule);
  if (!capsule) {
    delete e;
    throw_python();
  }
  return Object::take(capsule);
}

Object tensor_dlpack_device(PyObject* self) {
  check_value(tensor_of(self).device().is_cpu(),
              "__dlpack_device__(): only tensors on the CPU have a DLPack device");
  return Object::take(Py_BuildValue("(ii)", dl_cpu, 0));
}

namespace {

Object from_dlpack(PyObject*, PyObject* source) {
  Object capsule = Object::share(source);
  if (!PyCapsule_CheckExact(source)) {
    check(PyObject_HasAttr(source, interned("__dlpack__").get()),
          "from_dlpack(): expected an object with __dlpack__ or a capsule; got ",
          type_name(source));
    capsule = called(source, "__dlpack__");
  }
  check(PyCapsule_IsValid(capsule.get(), "dltensor"),
        "from_dlpack(): expected a fresh capsule named 'dltensor'; got one that is invalid or "
        "was read already");
  auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  const DlTensor& d = m->tensor;
  check(d.device.type == dl_cpu, "from_dlpack(): expected memory on the CPU; got device type ",
        d.device.type);
  check(d.ndim >= 0 && d.ndim <= 64, "from_dlpack(): expected at most 64 dimensions; got ", d.ndim);
  const DType dtype = type_from_dl(d.dtype);
  const IntVec sizes(IntSpan(d.shape, static_cast<size_t>(d.ndim)));
  const IntVec strides = d.strides ? IntVec(IntSpan(d.strides, static_cast<size_t>(d.ndim)))
                                   : contiguous_strides(sizes);
  for (int64_t s : strides) check(s >= 0, "from_dlpack(): negative strides are not supported");
  const int64_t n = checked_numel(sizes) ? extent(sizes, strides) : 0;
  void* data = static_cast<char*>(d.data) + d.byte_offset;
  PyCapsule_SetName(capsule.get(), "used_dltensor");
  Ref<Storage> s =
      Storage::external({}, data, static_cast<size_t>(n) * itemsize(dtype), m, [](void* p) {
        auto* managed = static_cast<DlManaged*>(p);
        if (!managed->deleter || !may_release()) return;
        HoldGil gil;  // the producer may be a Python library
        managed->deleter(managed);
      });
  return wrapped(tensor_over(std::move(s), dtype, 0, sizes, strides));
}

PyMethodDef functions[] = {{"_from_dlpack", guarded<from_dlpack>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_dlpack(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
