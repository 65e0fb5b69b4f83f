// State of the thread and the process for Python: grad mode, defaults, threads, autocast. Also type
// promotion.
#include "autograd/variable.h"
#include "bindings/call/convert.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "core/threads.h"
#include "dispatch/backend.h"
#include "transforms/autocast.h"

namespace facula::python {
namespace {

PyObject* flag(bool b) { return PyBool_FromLong(b); }

bool truth(PyObject* o) {
  const int t = PyObject_IsTrue(o);
  checked(t);
  return t == 1;
}

// --- grad mode and inference mode

PyObject* grad_enabled(PyObject*, PyObject*) { return flag(thread_state.grad_enabled); }
Object set_grad(PyObject*, PyObject* on) {
  thread_state.grad_enabled = strict_bool(on, "set_grad_enabled");
  return none();
}
PyObject* inference_enabled(PyObject*, PyObject*) { return flag(thread_state.inference); }
// Sets inference mode, which turns grad mode off too; returns the old state.
Object enter_inference(PyObject*, PyObject* on) {
  const Object before =
      Object::take(Py_BuildValue("(OO)", thread_state.inference ? Py_True : Py_False,
                                 thread_state.grad_enabled ? Py_True : Py_False));
  thread_state.inference = truth(on);
  thread_state.grad_enabled = !thread_state.inference;
  return before;
}
Object leave_inference(PyObject*, PyObject* before) {
  check_type(PyTuple_Check(before) && PyTuple_GET_SIZE(before) == 2,
             "expected the state that entering gave");
  thread_state.inference = truth(PyTuple_GET_ITEM(before, 0));
  thread_state.grad_enabled = truth(PyTuple_GET_ITEM(before, 1));
  return none();
}
PyObject* forward_grad_enabled(PyObject*, PyObject*) {
  return flag(thread_state.forward_grad_enabled);
}
Object set_forward_grad(PyObject*, PyObject* on) {
  thread_state.forward_grad_enabled = truth(on);
  return none();
}

// --- defaults

PyObject* get_dtype(PyObject*, PyObject*) { return Py_NewRef(dtype_object(default_dtype())); }
Object set_dtype(PyObject*, PyObject* d) {
  check_type(is_dtype(d), "set_default_dtype(): expected a floating-point dtype; got ",
             type_name(d));
  check_type(is_floating(dtype_value(d)) && itemsize(dtype_value(d)) > 1,
             "set_default_dtype(): expected a floating-point dtype with arithmetic; got ",
             name(dtype_value(d)));
  set_default_dtype(dtype_value(d));
  return none();
}
Object get_device(PyObject*, PyObject*) { return device_object(thread_state.default_device); }
Object set_device(PyObject*, PyObject* d) {
  Device device;
  if (d != Py_None)
    check_type(device_like(d, device), "set_default_device(): expected a device; got ",
               type_name(d));
  thread_state.default_device = device;
  return none();
}

PyObject* cpu_capability(PyObject*, PyObject*) { return PyUnicode_FromString(isa_name()); }
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
Object set_threads(PyObject*, PyObject* n) {
  int64_t v = 0;
  check_type(read_int(n, v), "set_num_threads expects an int, but got ", type_name(n));
  check(v > 0 && v <= 4096, "set_num_threads expects a positive integer");
  set_num_threads(static_cast<int>(v));
  return none();
}

// --- autocast

DeviceType autocast_argument(PyObject* o) {
  check_type(PyUnicode_Check(o), "expected the name of a device type (str); got ", type_name(o));
  const Device d = parse_device(text_of(o));
  check(!d.is_meta(), "autocast: there is none for the device type meta");
  return d.type;
}
Object autocast_enabled(PyObject*, PyObject* type) {
  const int slot = autocast_slot(autocast_argument(type));
  return boolean(thread_state.autocast.enabled >> slot & 1);
}
PyObject* autocast_cache(PyObject*, PyObject*) { return flag(thread_state.autocast.cache_enabled); }
Object autocast_dtype(PyObject*, PyObject* type) {
  return Object::share(
      dtype_object(thread_state.autocast.dtype[autocast_slot(autocast_argument(type))]));
}
// _set_autocast(device type, enabled, dtype, cache_enabled) -> the old values
Object set_autocast(PyObject*, PyObject* args, PyObject*) {
  int enabled, cache;
  PyObject *type, *dtype;
  if (!PyArg_ParseTuple(args, "OpO!p:_set_autocast", &type, &enabled, &dtype_type, &dtype, &cache))
    throw_python();
  const int slot = autocast_slot(autocast_argument(type));
  AutocastState s = thread_state.autocast;
  const bool was_enabled = s.enabled >> slot & 1;
  const DType old = std::exchange(s.dtype[slot], dtype_value(dtype));
  s.enabled = enabled ? s.enabled | 1u << slot : s.enabled & ~(1u << slot);
  const bool kept = std::exchange(s.cache_enabled, cache != 0);
  facula::set_autocast(s);
  return Object::take(Py_BuildValue("(OOOO)", type, was_enabled ? Py_True : Py_False,
                                    dtype_object(old), kept ? Py_True : Py_False));
}

// --- type promotion

DType dtype_argument(PyObject* o, const char* function, int position) {
  check_type(is_dtype(o), function, "(): argument 'type", position, "' (position ", position,
             ") must be torch.dtype, not ", type_name(o));
  return dtype_value(o);
}
Object promoted(PyObject*, PyObject* args, PyObject* kwargs) {
  if (Object r = argument_override("promote_types", args, kwargs)) return r;
  static const char* keys[] = {"type1", "type2", nullptr};
  PyObject *a, *b;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:promote_types", const_cast<char**>(keys), &a,
                                   &b))
    throw_python();
  const DType x = dtype_argument(a, "promote_types", 1), y = dtype_argument(b, "promote_types", 2);
  return Object::share(dtype_object(promote(x, y)));
}
Object castable(PyObject*, PyObject* args, PyObject* kwargs) {
  if (Object r = argument_override("can_cast", args, kwargs)) return r;
  static const char* keys[] = {"from_", "to", nullptr};
  PyObject *a, *b;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:can_cast", const_cast<char**>(keys), &a, &b))
    throw_python();
  const DType from = dtype_argument(a, "can_cast", 1), to = dtype_argument(b, "can_cast", 2);
  return boolean(can_cast(from, to));
}

// An operand of type promotion: its dtype and its rank.
struct Operand {
  DType dtype;
  int rank;  // 2: tensor with dimensions, 1: 0-dim tensor, 0: Python number
};
Operand operand_of(PyObject* o) {
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    return {t.dtype(), t->wrapped_number ? 0 : t.dim() > 0 ? 2 : 1};
  }
  if (PyBool_Check(o)) return {DType::Bool, 0};
  if (PyLong_Check(o)) return {DType::Int64, 0};
  if (PyFloat_Check(o)) return {default_dtype(), 0};
  if (PyComplex_Check(o)) return {complex_of(default_dtype()), 0};
  throw_type(
      concat("result_type(): argument 'tensor' (position 1) must be Tensor, not ", type_name(o)));
}
int kind_rank(DType d) { return is_complex(d) ? 3 : is_floating(d) ? 2 : d == DType::Bool ? 0 : 1; }

Object result_type(PyObject*, PyObject* args, PyObject* kwargs) {
  if (Object r = argument_override("result_type", args, kwargs)) return r;
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO:result_type", &a, &b)) throw_python();
  Operand x = operand_of(a), y = operand_of(b);
  if (x.rank < y.rank) std::swap(x, y);
  if (x.rank == y.rank) return Object::share(dtype_object(promote(x.dtype, y.dtype)));
  // An operand of lower rank counts only if its kind is higher, such as float and int.
  if (kind_rank(x.dtype) >= kind_rank(y.dtype)) return Object::share(dtype_object(x.dtype));
  if (is_complex(y.dtype) && is_floating(x.dtype))
    return Object::share(dtype_object(complex_of(x.dtype)));
  return Object::share(dtype_object(promote(x.dtype, y.dtype)));
}

PyObject* is_tensor_object(PyObject*, PyObject* o) { return flag(is_tensor(o)); }

template <bool (*F)(DType)>
constexpr const char* kind_question = "is_signed";
template <>
constexpr const char* kind_question<is_floating> = "is_floating_point";
template <>
constexpr const char* kind_question<is_complex> = "is_complex";

template <bool (*F)(DType)>
Object of_kind(PyObject*, PyObject* o) {
  if (Object r = argument_override(kind_question<F>, o)) return r;
  check_type(is_tensor(o), "argument 'input' (position 1) must be Tensor, not ", type_name(o));
  return boolean(F(tensor_of(o).dtype()));
}
Object numel(PyObject*, PyObject* o) {
  if (Object r = argument_override("numel", o)) return r;
  check_type(is_tensor(o), "numel(): argument 'input' (position 1) must be Tensor, not ",
             type_name(o));
  return integer(tensor_of(o).numel());
}
// The same object holds when tensors share an implementation.
Object use_count(PyObject*, PyObject* o) {
  check_type(is_tensor(o), "expected a Tensor");
  return integer(tensor_of(o)->use_count());
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int keywords = METH_VARARGS | METH_KEYWORDS;

PyMethodDef functions[] = {
    {"is_grad_enabled", grad_enabled, METH_NOARGS, "Whether operations are recorded for backward."},
    {"_set_grad_enabled", guarded<set_grad>, METH_O, nullptr},
    {"is_inference_mode_enabled", inference_enabled, METH_NOARGS, "Whether inference mode is on."},
    {"_enter_inference_mode", guarded<enter_inference>, METH_O, nullptr},
    {"_leave_inference_mode", guarded<leave_inference>, METH_O, nullptr},
    {"_is_fwd_grad_enabled", forward_grad_enabled, METH_NOARGS, nullptr},
    {"_set_fwd_grad_enabled", guarded<set_forward_grad>, METH_O, nullptr},
    {"get_default_dtype", get_dtype, METH_NOARGS, "The dtype of new floating-point tensors."},
    {"_set_default_dtype", guarded<set_dtype>, METH_O, nullptr},
    {"get_default_device", guarded<get_device>, METH_NOARGS, "The device of new tensors."},
    {"_set_default_device", guarded<set_device>, METH_O, nullptr},
    {"_cpu_capability", cpu_capability, METH_NOARGS, nullptr},
    {"get_num_threads", get_threads, METH_NOARGS, "How many threads one operation may use."},
    {"set_num_threads", guarded<set_threads>, METH_O,
     "Sets how many threads one operation may use."},
    {"_is_autocast_enabled", guarded<autocast_enabled>, METH_O, nullptr},
    {"is_autocast_cache_enabled", autocast_cache, METH_NOARGS, nullptr},
    {"_get_autocast_dtype", guarded<autocast_dtype>, METH_O, nullptr},
    {"_set_autocast", with_keywords(guarded_keywords<set_autocast>), keywords, nullptr},
    {"promote_types", with_keywords(guarded_keywords<promoted>), keywords,
     "promote_types(type1, type2): the smallest dtype that both convert to."},
    {"can_cast", with_keywords(guarded_keywords<castable>), keywords,
     "can_cast(from_, to): whether a result of one dtype may be stored in another."},
    {"result_type", with_keywords(guarded_keywords<result_type>), keywords,
     "result_type(tensor1, tensor2): the dtype that arithmetic of both gives."},
    {"is_tensor", is_tensor_object, METH_O, "Whether the object is a Tensor."},
    {"is_floating_point", guarded<of_kind<is_floating>>, METH_O,
     "Whether the dtype is a floating-point one."},
    {"is_complex", guarded<of_kind<is_complex>>, METH_O, "Whether the dtype is complex."},
    {"is_signed", guarded<of_kind<is_signed>>, METH_O, "Whether the dtype has negative numbers."},
    {"numel", guarded<numel>, METH_O, "The number of elements."},
    {"_use_count", guarded<use_count>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_state(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
