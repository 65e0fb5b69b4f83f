#include "bindings/autograd/saved_tensor_object.h"

#include "bindings/autograd/hook_calls.h"

namespace facula::python {
namespace {

struct PythonPacked final : PackedTensor {
  PythonPacked(Held value, Held unpack) : value(std::move(value)), unpack_hook(std::move(unpack)) {}
  Tensor unpack() override {
    HoldGil gil;
    const Object t = Object::take(PyObject_CallOneArg(unpack_hook.get(), value.get()));
    check_type(is_tensor(t.get()), "an unpack hook of saved tensors must return a Tensor; got ",
               type_name(t.get()));
    return tensor_of(t.get());
  }
  void show_held(HeldVisitor& visitor) const override { visitor.object(value.get()); }
  Held value, unpack_hook;
};

struct PythonSavedHooks final : SavedTensorHooks {
  PythonSavedHooks(PyObject* pack, PyObject* unpack) : pack_hook(pack), unpack_hook(unpack) {}
  std::unique_ptr<PackedTensor> pack(const Tensor& t) override {
    HoldGil gil;
    const Object arg = wrapped(t);
    const Object made = Object::take(PyObject_CallOneArg(pack_hook.get(), arg.get()));
    return std::make_unique<PythonPacked>(Held(made.get()), unpack_hook);
  }
  Held pack_hook, unpack_hook;
};

// --- facula._C._autograd.SavedTensor

struct SavedObject {
  PyObject_HEAD Ref<Node>* node;
  OpNode::Field* field;  // a field of the node; null for the context of a Function
  SavedTensor* saved;    // owned; set if there is no field
};
SavedObject* self_of(PyObject* o) { return reinterpret_cast<SavedObject*>(o); }

void saved_dealloc(PyObject* o) {
  SavedObject* self = self_of(o);
  delete self->saved;
  delete self->field;
  delete self->node;
  Py_TYPE(o)->tp_free(o);
}

Object saved_register_hooks(PyObject* o, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:register_hooks", &pack, &unpack)) throw_python();
  check_type(PyCallable_Check(pack) && PyCallable_Check(unpack),
             "register_hooks(): expected two callables; got ", type_name(pack), " and ",
             type_name(unpack));
  SavedObject* self = self_of(o);
  SavedTensor* saved = self->saved;
  if (self->field) saved = static_cast<OpNode&>(**self->node).raw_saved(*self->field);
  check(saved != nullptr, "register_hooks(): there is no tensor here, but None");
  saved->register_hooks(python_saved_hooks(pack, unpack), *self->node);
  return none();
}

PyMethodDef saved_methods[] = {
    {"register_hooks", guarded<saved_register_hooks>, METH_VARARGS,
     "Passes the tensor through pack_hook now, and through unpack_hook whenever it is read."},
    {nullptr, nullptr, 0, nullptr}};
PyTypeObject make_saved_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._autograd.SavedTensor";
  t.tp_basicsize = sizeof(SavedObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_dealloc = saved_dealloc;
  t.tp_methods = saved_methods;
  t.tp_doc = "A tensor that a node of the graph keeps for its derivative.";
  return t;
}
PyTypeObject saved_type = make_saved_type();

SavedObject* new_object(const Ref<Node>& node) {
  auto* o = self_of(checked(saved_type.tp_alloc(&saved_type, 0)));
  o->node = new Ref<Node>(node);
  return o;
}

// --- saved_tensors_hooks

Object push_hooks(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:_push_saved_tensors_default_hooks", &pack, &unpack))
    throw_python();
  check_type(PyCallable_Check(pack) && PyCallable_Check(unpack),
             "saved_tensors_hooks(): expected two callables; got ", type_name(pack), " and ",
             type_name(unpack));
  push_saved_tensor_hooks(python_saved_hooks(pack, unpack));
  return none();
}
Object pop_hooks(PyObject*, PyObject*) {
  pop_saved_tensor_hooks();
  return none();
}
Object top_hooks(PyObject*, PyObject*) {
  const auto top = std::dynamic_pointer_cast<PythonSavedHooks>(top_saved_tensor_hooks());
  if (!top) return none();
  return Object::take(PyTuple_Pack(2, top->pack_hook.get(), top->unpack_hook.get()));
}
// Returns the old text, or None.
Object disable_hooks(PyObject*, PyObject* text) {
  std::string now = text == Py_None ? std::string() : std::string(text_of(text));
  const std::string before = disable_saved_tensor_hooks(std::move(now));
  return before.empty() ? none() : string(before);
}

PyMethodDef functions[] = {
    {"_push_saved_tensors_default_hooks", guarded<push_hooks>, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_default_hooks", guarded<pop_hooks>, METH_NOARGS, nullptr},
    {"_top_saved_tensors_default_hooks", guarded<top_hooks>, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", guarded<disable_hooks>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::shared_ptr<SavedTensorHooks> python_saved_hooks(PyObject* pack, PyObject* unpack) {
  return std::make_shared<PythonSavedHooks>(pack, unpack);
}

Object saved_field_object(const Ref<Node>& node, const OpNode::Field& field) {
  SavedObject* o = new_object(node);
  o->field = new OpNode::Field(field);
  return Object::take(reinterpret_cast<PyObject*>(o));
}

Object saved_tensor_object(const Ref<Node>& owner, const SavedTensor& saved) {
  SavedObject* o = new_object(owner);
  o->saved = new SavedTensor(saved);
  return Object::take(reinterpret_cast<PyObject*>(o));
}

void add_saved_tensors(PyObject* module) {
  add_type(module, saved_type, "_SavedTensor");
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
