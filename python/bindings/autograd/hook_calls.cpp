#include "bindings/autograd/hook_calls.h"

namespace facula::python {
namespace {

std::string hook_name(PyObject* hook) {
  const Object name = Object::maybe(PyObject_GetAttr(hook, interned("__name__").get()));
  if (name && PyUnicode_Check(name.get())) return std::string(text_of(name.get()));
  PyErr_Clear();
  const Object text = Object::take(PyObject_Repr(hook));
  return std::string(text_of(text.get()));
}

std::string type_text(const Tensor& t) {
  const char* place = t.device().is_cpu() ? "" : "cuda.";
  return concat("torch.", place, info(t.dtype()).legacy_name, "Tensor");
}

void check_replacement(PyObject* hook, const Tensor& before, const Tensor& after) {
  if (!before.defined() || !after.defined()) return;
  check(before.dtype() == after.dtype() && before.device().type == after.device().type, "hook '",
        hook_name(hook), "' has changed the type of value (was ", type_text(before), " got ",
        type_text(after), ")");
  check(same_sizes(before.sizes(), after.sizes()), "hook '", hook_name(hook),
        "' has changed the size of value");
}

}  // namespace

Object gradient_tuple(const Gradients& grads) {
  Object t = Object::take(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), checked(wrap(grads[i])));
  return t;
}

Object hook_values(PyObject* hooks) { return Object::take(PyMapping_Values(hooks)); }

Tensor run_hooks(PyObject* hooks, const Tensor& grad) {
  const Object values = hook_values(hooks);
  Tensor current = grad;
  bool changed = false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
    PyObject* hook = PyList_GET_ITEM(values.get(), i);
    const Object g = wrapped(current);
    const Object r = Object::take(PyObject_CallOneArg(hook, g.get()));
    if (r.get() == Py_None) continue;
    check_type(is_tensor(r.get()), "expected Variable, but hook returned '", type_name(r.get()),
               "'");
    check_replacement(hook, current, tensor_of(r.get()));
    current = tensor_of(r.get());
    changed = true;
  }
  return changed ? current : Tensor();
}

void replace_gradients(PyObject* hook, PyObject* returned, Gradients& grads) {
  if (returned == Py_None) return;
  check_type(PyTuple_Check(returned), "a hook of a node must return a tuple or None; got ",
             type_name(returned));
  const auto n = static_cast<size_t>(PyTuple_GET_SIZE(returned));
  check(n == grads.size(), "hook '", hook_name(hook),
        "' has returned an incorrect number of values (got ", n, ", but expected ", grads.size(),
        ")");
  for (size_t i = 0; i < n; ++i) {
    PyObject* g = PyTuple_GET_ITEM(returned, static_cast<Py_ssize_t>(i));
    check_type(g == Py_None || is_tensor(g), "expected Variable, but hook returned '", type_name(g),
               "'");
    const Tensor fresh = g == Py_None ? Tensor() : tensor_of(g);
    check_replacement(hook, grads[i], fresh);
    grads[i] = fresh;
  }
}

Object ordered_dict() {
  static PyObject* make = nullptr;
  if (!make) make = imported("collections", "OrderedDict").leak();
  return Object::take(PyObject_CallNoArgs(make));
}

Object add_to(PyObject* hooks, PyObject* hook) {
  static PyObject* make = nullptr;
  if (!make) make = imported("facula.utils.hooks", "RemovableHandle").leak();
  Object handle = Object::take(PyObject_CallOneArg(make, hooks));
  const Object id = attribute(handle.get(), "id");
  checked(PyObject_SetItem(hooks, id.get(), hook));
  return handle;
}

}  // namespace facula::python
