// The properties of Tensor.
#include "autograd/variable.h"
#include "bindings/autograd/autograd_objects.h"
#include "bindings/call/callable.h"
#include "bindings/modes/overrides.h"
#include "bindings/module/package.h"
#include "bindings/tensor/tensor_members.h"
#include "bindings/tensor/types.h"
#include "dispatch/warn_once.h"

namespace facula::python {
namespace {

template <Object (*F)(const Tensor&)>
PyObject* get(PyObject* o, void* name) {
  try {
    if (!is_plain_tensor(o) || function_mode_active()) [[unlikely]]
      if (Object r = self_override(o, static_cast<const char*>(name))) return r.leak();
    return F(tensor_of(o)).leak();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

Object shape(const Tensor& t) {
  return has_layout_kind(t) ? size_object(sizes_of(t)) : size_object(t.sizes());
}
Object dtype(const Tensor& t) { return Object::share(dtype_object(t.dtype())); }
Object device(const Tensor& t) { return device_object(t.device()); }
Object layout(const Tensor& t) { return Object::share(layout_object(t->layout)); }
Object ndim(const Tensor& t) { return integer(t.dim()); }
Object itemsize(const Tensor& t) { return integer(info(t.dtype()).size); }
Object nbytes(const Tensor& t) { return integer(numel_of(t) * info(t.dtype()).size); }
Object version(const Tensor& t) {
  check(!t->inference, "Tensor._version: an inference tensor counts no versions");
  return integer(t->current_version());
}
Object base(const Tensor& t) { return is_view(t) ? wrapped(t->autograd->base) : none(); }
Object get_requires_grad(const Tensor& t) { return boolean(requires_grad(t)); }
Object leaf(const Tensor& t) { return boolean(is_leaf(t)); }
Object output_number(const Tensor& t) { return integer(t->autograd ? t->autograd->output_nr : 0); }
Object retains(const Tensor& t) {
  return boolean(t->autograd && t->autograd->retains_grad && !is_leaf(t));
}
Object get_grad_fn(const Tensor& t) {
  const Ref<Node> n = grad_fn(t);
  return n ? node_object(n) : none();
}
Object get_grad(const Tensor& t) {
  if (!t->autograd) return none();
  const Tensor grad = read_grad(t);
  const bool surprising =
      !grad.defined() && !t->autograd->retains_grad && t->autograd->grad_fn && !is_leaf(t);
  if (surprising && PyErr_WarnEx(PyExc_UserWarning,
                                 "Tensor.grad: this tensor is not a leaf, so backward() keeps its "
                                 "gradient only after retain_grad()",
                                 1) < 0)
    throw_python();
  return wrapped(grad);
}
Object get_grad_dtype(const Tensor& t) {
  const std::optional<DType> d = grad_dtype(t);
  return d ? Object::share(dtype_object(*d)) : none();
}
Object get_post_hooks(const Tensor& t) {
  PyObject* dict = post_accumulate_hooks(t);
  return dict ? Object::share(dict) : none();
}
Object data(const Tensor& t) {
  // Only a class with __torch_dispatch__ knows what its tensors hold.
  if (t->layers.has(Layer::Subclass)) return call_method("detach", {wrapped(t).get()});
  Tensor d = alias_tensor(t);
  d->wrapped_number = false;
  d->inference = t->inference;
  return wrapped(std::move(d));
}
Object identity(const Tensor& t) { return Object::take(PyLong_FromVoidPtr(t.get())); }

template <DeviceType Type>
Object on_device(const Tensor& t) {
  return boolean(t.device().type == Type);
}
template <Layout L>
Object of_layout(const Tensor& t) {
  return boolean(t->layout == L);
}
template <bool ExtensionKind::* Flag>
Object of_kind(const Tensor& t) {
  return boolean(has_layout_kind(t) && t->extension->kind->*Flag);
}
Object never(const Tensor&) { return boolean(false); }
Object no_name(const Tensor&) { return none(); }

// Properties that call an operator.
Object method(const Tensor& t, const char* name, int64_t a, int64_t b) {
  const Object o = wrapped(t), x = integer(a), y = integer(b);
  return call_method(name, {o.get(), x.get(), y.get()});
}
Object reversed(const Tensor& t) {
  static constinit std::atomic<bool> told{false};
  if (t.dim() != 2)
    warn_once(told,
              "Tensor.T: of a tensor that is no matrix is deprecated in favour of mT, which "
              "transposes the matrices of a batch, and permute(), which orders dimensions");
  IntVec order;
  for (int64_t d = t.dim() - 1; d >= 0; --d) order.push_back(d);
  const Object o = wrapped(t), dims = int_tuple(order);
  return call_method("permute", {o.get(), dims.get()});
}
// Transposing a tensor without dimensions works and warns.
bool is_scalar(const Tensor& t, const char* name) {
  if (t.dim() > 0) return false;
  const std::string text = concat("Tensor.", name, ": a tensor without dimensions has nothing to ",
                                  "transpose; this is deprecated, and conj() says what is meant");
  warn_user(text.c_str());
  return true;
}
Object batch_transposed(const Tensor& t) {
  if (is_scalar(t, "mT")) return wrapped(t);
  check(t.dim() >= 2, "Tensor.mT: expected a matrix or a batch of them; got ", t.dim(), "-D");
  return method(t, "transpose", -2, -1);
}
Object conjugated(const Object& o) { return call_method("conj", {o.get()}); }
Object adjoint(const Tensor& t) {
  check(t.dim() == 0 || t.dim() == 2, "Tensor.H: expected a matrix or a scalar; got ", t.dim(),
        "-D", t.dim() > 2 ? " (Tensor.mH takes batches)" : "");
  if (is_scalar(t, "H")) return conjugated(wrapped(t));
  const Object flipped = method(t, "transpose", 0, 1);
  return is_complex(t.dtype()) ? conjugated(flipped) : flipped;
}
Object batch_adjoint(const Tensor& t) {
  if (is_scalar(t, "mH")) return conjugated(wrapped(t));
  check(t.dim() >= 2, "Tensor.mH: expected a matrix or a batch of them; got ", t.dim(), "-D");
  const Object flipped = method(t, "transpose", -2, -1);
  return is_complex(t.dtype()) ? conjugated(flipped) : flipped;
}
Object imaginary(const Tensor& t) {
  check(is_complex(t.dtype()), "Tensor.imag: expected a complex tensor; got dtype ",
        name(t.dtype()));
  const Object o = wrapped(t);
  PyObject* f = function_object("", "imag");
  if (!f) throw Error(ErrorKind::NotImplemented, "facula has no operator aten::imag in this build");
  return Object::take(PyObject_CallOneArg(f, o.get()));
}
Object real_part(const Tensor& t) {
  const Object o = wrapped(t);
  if (!is_complex(t.dtype())) return o;
  PyObject* f = function_object("", "real");
  if (!f) throw Error(ErrorKind::NotImplemented, "facula has no operator aten::real in this build");
  return Object::take(PyObject_CallOneArg(f, o.get()));
}

// --- setters

using SetFn = void (*)(PyObject* self, PyObject* value);
template <SetFn F>
int set(PyObject* o, PyObject* value, void* name) {
  return guard_status([&] {
    if (!is_exact_tensor(o) || function_mode_active()) {
      std::vector<Object> overloaded;
      note_overloaded(o, overloaded);
      if (!overloaded.empty() || function_mode_active()) {
        const Object p =
            attribute(reinterpret_cast<PyObject*>(tensor_type), static_cast<const char*>(name));
        const Object f = attribute(p.get(), "__set__");
        const Object args = Object::take(PyTuple_Pack(2, o, value ? value : Py_None));
        call_overrides(f.get(), overloaded, args.get(), nullptr);
        return;
      }
    }
    F(o, value);
  });
}

void assign_requires_grad(PyObject* o, PyObject* value) {
  check(value && PyBool_Check(value), "requires_grad must be a bool");
  set_requires_grad(tensor_of(o), value == Py_True);
}

void assign_grad(PyObject* o, PyObject* value) {
  const Tensor& t = tensor_of(o);
  if (!value || value == Py_None) {
    if (t->autograd) write_grad(t, {});
    return;
  }
  check_type(is_tensor(value), "Tensor.grad: expected a Tensor or None; got ", type_name(value));
  const Tensor& g = tensor_of(value);
  check(!g.is_same(t), "Tensor.grad: a tensor cannot be its own gradient");
  const std::optional<DType> wanted = grad_dtype(t);
  check(!wanted || g.dtype() == *wanted, "Tensor.grad: expected a gradient of the tensor's ",
        "grad_dtype, ", wanted ? name(*wanted) : "", " (by default its dtype); got ",
        name(g.dtype()));
  check(g.device() == t.device(), "assigned grad has data located on a different device");
  check(same_sizes(g.sizes(), t.sizes()),
        "Tensor.grad: the gradient must have the tensor's sizes, ", str(t.sizes()), "; got ",
        str(g.sizes()));
  write_grad(t, g);
}

void assign_grad_dtype(PyObject* o, PyObject* value) {
  check(value && (value == Py_None || is_dtype(value)),
        "grad_dtype must be a facula.dtype or None, but got ",
        value ? type_name(value) : "nothing");
  std::optional<DType> dtype;
  if (value != Py_None) dtype = dtype_value(value);
  set_grad_dtype(tensor_of(o), dtype);
}

void assign_data(PyObject* o, PyObject* value) {
  check(value != nullptr, "Tensor.data: cannot be deleted");
  check_type(is_tensor(value), "Tensor.data: expected a Tensor; got ",
             value ? type_name(value) : "nothing");
  set_tensor_data(tensor_of(o), tensor_of(value));
}

// Writes to a part of the elements, which is a view.
template <Object (*Part)(const Tensor&)>
void assign_part(PyObject* o, PyObject* value) {
  check_type(value != nullptr, "Tensor.real and Tensor.imag cannot be deleted");
  const DType dtype = tensor_of(o).dtype();
  check_type(Part == &real_part || is_complex(dtype),
             "Tensor.imag: expected a complex tensor; got dtype ", name(dtype));
  const Object part = Part(tensor_of(o));
  if (is_tensor(value))
    call_method("copy_", {part.get(), value});
  else
    call_method("fill_", {part.get(), value});
}

void assign_hooks(PyObject* o, PyObject* value) {
  auto* t = reinterpret_cast<TensorObject*>(o);
  PyObject* before = t->backward_hooks;
  t->backward_hooks = value && value != Py_None ? Py_NewRef(value) : nullptr;
  Py_XDECREF(before);
}
PyObject* get_hooks(PyObject* o, void*) {
  if (!is_exact_tensor(o)) {
    Object r;
    if (guard_status([&] { r = self_override(o, "_backward_hooks"); }) < 0) return nullptr;
    if (r) return r.leak();
  }
  PyObject* hooks = reinterpret_cast<TensorObject*>(o)->backward_hooks;
  return Py_NewRef(hooks ? hooks : Py_None);
}
template <Object (*F)(const Tensor&)>
PyGetSetDef reads(const char* name, const char* doc) {
  return {name, get<F>, nullptr, doc, const_cast<char*>(name)};
}
template <Object (*F)(const Tensor&), SetFn S>
PyGetSetDef writes(const char* name, const char* doc) {
  return {name, get<F>, set<S>, doc, const_cast<char*>(name)};
}

// A faster __get__ of properties: CPython's own first searches the object's bases for the class.
PyObject* get_property(PyObject* descriptor, PyObject* o, PyObject* type) {
  if (!o || !is_plain_tensor(o)) return PyGetSetDescr_Type.tp_descr_get(descriptor, o, type);
  const PyGetSetDef* def = reinterpret_cast<PyGetSetDescrObject*>(descriptor)->d_getset;
  return def->get(o, def->closure);
}

PyTypeObject make_property_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C.getset_descriptor";
  t.tp_doc = "A property of tensors.";
  t.tp_basicsize = sizeof(PyGetSetDescrObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_base = &PyGetSetDescr_Type;
  t.tp_descr_get = get_property;
  return t;
}
PyTypeObject property_type = make_property_type();

Object new_property(PyTypeObject* of, PyGetSetDef* def) {
  Object o = Object::take(PyType_GenericAlloc(&property_type, 0));
  auto* descriptor = reinterpret_cast<PyGetSetDescrObject*>(o.get());
  descriptor->d_common.d_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(of));
  descriptor->d_common.d_name = checked(PyUnicode_InternFromString(def->name));
  descriptor->d_getset = def;
  return o;
}

}  // namespace

void speed_up_properties(PyTypeObject* type) {
  ready_type(property_type);
  for (PyGetSetDef* def = tensor_properties; def->name; ++def)
    checked(PyDict_SetItemString(type->tp_dict, def->name, new_property(type, def).get()));
  PyType_Modified(type);
}

PyGetSetDef tensor_properties[] = {
    reads<shape>("shape", "The sizes of all dimensions."),
    reads<dtype>("dtype", "The type of the elements."),
    reads<device>("device", "Where the memory is."),
    reads<layout>("layout", "How the elements are laid out."),
    reads<ndim>("ndim", "The number of dimensions."),
    reads<itemsize>("itemsize", "Bytes of an element."),
    reads<nbytes>("nbytes", "Bytes of all elements."),
    reads<version>("_version", "How often the tensor was changed in place."),
    reads<base>("_base", "The tensor that this one is a view of, or None."),
    writes<get_requires_grad, assign_requires_grad>("requires_grad",
                                                    "Whether gradients are wanted."),
    reads<leaf>("is_leaf", "Whether the tensor has no history."),
    reads<output_number>("output_nr", "Which result of its grad_fn the tensor is."),
    reads<retains>("retains_grad", "Whether .grad is kept although the tensor has a history."),
    reads<get_post_hooks>("_post_accumulate_grad_hooks", nullptr),
    reads<get_grad_fn>("grad_fn", "The node that made the tensor, or None."),
    writes<get_grad, assign_grad>("grad", "The gradient, or None."),
    writes<get_grad, assign_grad>("_grad", "The gradient, or None."),
    writes<get_grad_dtype, assign_grad_dtype>(
        "grad_dtype",
        "What gradients are cast to when they come, for a leaf to be set; None: they are not."),
    writes<data, assign_data>("data", "The tensor without its history."),
    reads<no_name>("name", "None: names of tensors are those of a module's parameters."),
    reads<identity>("_cdata", "The address of the tensor's implementation."),
    reads<on_device<DeviceType::CPU>>("is_cpu", "Whether the tensor is on the CPU."),
    reads<on_device<DeviceType::CUDA>>("is_cuda", "Whether the tensor is on a CUDA device."),
    reads<on_device<DeviceType::Meta>>("is_meta", "Whether the tensor has no memory."),
    reads<of_layout<Layout::Sparse>>("is_sparse", "Whether the layout is sparse_coo."),
    reads<of_layout<Layout::SparseCsr>>("is_sparse_csr", "Whether the layout is sparse_csr."),
    reads<of_layout<Layout::Mkldnn>>("is_mkldnn", nullptr),
    reads<of_kind<&ExtensionKind::quantized>>("is_quantized",
                                              "Whether the elements are quantized."),
    reads<of_kind<&ExtensionKind::nested>>("is_nested", "Whether the tensor is a nested one."),
    reads<never>("is_mps", nullptr),
    reads<never>("is_mtia", nullptr),
    reads<never>("is_xla", nullptr),
    reads<never>("is_xpu", nullptr),
    reads<never>("is_ipu", nullptr),
    reads<never>("is_maia", nullptr),
    reads<never>("is_vulkan", nullptr),
    reads<reversed>("T", "The tensor with its dimensions reversed."),
    reads<batch_transposed>("mT", "The last two dimensions swapped."),
    reads<adjoint>("H", "The conjugate transpose of a matrix."),
    reads<batch_adjoint>("mH", "The conjugate transposes of a batch of matrices."),
    writes<real_part, assign_part<real_part>>("real", "The real parts: a view."),
    writes<imaginary, assign_part<imaginary>>("imag", "The imaginary parts: a view."),
    {"_backward_hooks", get_hooks, set<assign_hooks>, nullptr,
     const_cast<char*>("_backward_hooks")},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace facula::python
