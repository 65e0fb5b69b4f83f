#include "function_node.h"

#include "convert.h"
#include "operators.h"
#include "tensor_type.h"

namespace facula::python {
namespace {

NodeObject* self_of(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

// Runs `context._run_backward(gradients)`. Owns the context, whose node it is.
struct PythonNode final : Node {
  explicit PythonNode(PyObject* context) : context_(Py_NewRef(context)) {
    self_of(context)->node = this;
    self_of(context)->owns_node = false;
    python_object.store(context);
  }
  ~PythonNode() override {
    if (!may_release()) return;
    HoldGil gil;
    self_of(context_)->node = nullptr;
    Py_DECREF(context_);
  }
  std::string name() const override {
    const char* n = Py_TYPE(context_)->tp_name;
    const char* dot = std::strrchr(n, '.');
    return dot ? dot + 1 : n;
  }
  Gradients apply(Gradients grads) override {
    HoldGil gil;
    const Object given = Object::take(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
    for (size_t i = 0; i < grads.size(); ++i)
      PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), checked(wrap(gradient(grads, i))));
    const Object returned =
        Object::take(PyObject_CallMethod(context_, "_run_backward", "(O)", given.get()));
    return taken(returned.get());
  }
  void release_saved() override {
    HoldGil gil;
    Object::take(PyObject_CallMethod(context_, "_release_saved", nullptr));
  }

  void show_held(HeldVisitor& visitor) const override {
    Node::show_held(visitor);
    visitor.object(context_);
  }

  // Which arguments are tensors: others have no edge, and their gradient must be None.
  std::vector<bool> is_tensor_argument;
  bool materialize = true;

 private:
  Tensor gradient(const Gradients& grads, size_t i) const {
    if (grads[i].defined() || !materialize) return grads[i];
    static NamedOperator zeros("zeros");
    const OutputMeta& m = outputs[i];
    return zeros.tensor({pack(IntSpan(m.sizes)), pack(m.dtype), Value(), pack(m.device)});
  }
  Gradients taken(PyObject* returned) const {
    const Object fast = PyTuple_Check(returned) || PyList_Check(returned)
                            ? Object::take(PySequence_Tuple(returned))
                            : Object::take(PyTuple_Pack(1, returned));
    size_t n = static_cast<size_t>(PyTuple_GET_SIZE(fast.get()));
    const size_t wanted = is_tensor_argument.size();
    // Further Nones at the end are forgiven.
    while (n > wanted && PyTuple_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(n - 1)) == Py_None)
      --n;
    check(n == wanted, "function ", name(), " returned an incorrect number of gradients (expected ",
          wanted, ", got ", n, ")");
    Gradients grads;
    for (size_t i = 0; i < n; ++i) {
      PyObject* g = PyTuple_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i));
      if (!is_tensor_argument[i]) {
        check(g == Py_None, "function ", name(),
              " returned a gradient different from None at position ", i + 1,
              ", but the corresponding forward input was not a Variable");
        continue;
      }
      check_type(g == Py_None || is_tensor(g), "expected Variable or None (got ", type_name(g),
                 ")");
      grads.push_back(g == Py_None ? Tensor() : tensor_of(g));
    }
    return grads;
  }

  PyObject* context_;
};

bool contains(PyObject* tuple, PyObject* o) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  return false;
}

// _attach_function(context, arguments, outputs, dirty, non_differentiable, materialize) -> outputs
// with the context's node as history. All but the first and last are tuples.
Object attach(PyObject*, PyObject* args, PyObject*) {
  PyObject *context, *arguments, *outputs, *dirty, *constant;
  int materialize;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!p:_attach_function", &node_type, &context, &PyTuple_Type,
                        &arguments, &PyTuple_Type, &outputs, &PyTuple_Type, &dirty, &PyTuple_Type,
                        &constant, &materialize))
    throw_python();
  auto* python_node = new PythonNode(context);
  const auto node = Ref<Node>::take(python_node);
  python_node->materialize = materialize;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
    PyObject* a = PyTuple_GET_ITEM(arguments, i);
    python_node->is_tensor_argument.push_back(is_tensor(a));
    if (is_tensor(a)) node->next.push_back(gradient_edge(tensor_of(a)));
  }
  Object result = Object::take(PyTuple_New(PyTuple_GET_SIZE(outputs)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject* o = PyTuple_GET_ITEM(outputs, i);
    Object out = Object::share(o);
    if (!is_tensor(o)) {
      node->outputs.push_back({});
    } else if (contains(dirty, o)) {
      check_inplace(tensor_of(o), true);
      rebase_history(tensor_of(o), node);
    } else if (contains(constant, o) || !is_differentiable(tensor_of(o).dtype())) {
      node->outputs.push_back(
          {IntVec(tensor_of(o).sizes()), tensor_of(o).dtype(), tensor_of(o).device()});
    } else {
      // An input that is returned as it came gets a header of its own.
      if (contains(arguments, o) || requires_grad(tensor_of(o)))
        out = wrapped(detached(tensor_of(o)));
      set_history(tensor_of(out.get()), node);
    }
    PyTuple_SET_ITEM(result.get(), i, out.leak());
  }
  return result;
}

// --- a saved tensor with its version

struct SavedObject {
  PyObject_HEAD SavedTensor* saved;
};
PyObject* unpack(PyObject* o, PyObject* context) {
  return guard([&] {
    check_type(PyObject_TypeCheck(context, &node_type),
               "unpack() expected the context of a Function");
    Node* n = self_of(context)->node;
    const auto owner = n ? Ref<Node>::share(n) : Ref<Node>();
    return wrap(reinterpret_cast<SavedObject*>(o)->saved->unpack(owner, *n));
  });
}
void saved_dealloc(PyObject* o) {
  delete reinterpret_cast<SavedObject*>(o)->saved;
  Py_TYPE(o)->tp_free(o);
}
PyMethodDef saved_methods[] = {{"unpack", unpack, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyTypeObject make_saved_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._SavedTensor";
  t.tp_basicsize = sizeof(SavedObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_dealloc = saved_dealloc;
  t.tp_methods = saved_methods;
  return t;
}
PyTypeObject saved_type = make_saved_type();

Object save(PyObject*, PyObject* args, PyObject*) {
  PyObject* tensor;
  int is_output;
  if (!PyArg_ParseTuple(args, "Op:_save_tensor", &tensor, &is_output)) throw_python();
  check_type(is_tensor(tensor),
             "save_for_backward can only save variables, but argument is of type ",
             type_name(tensor));
  SavedObject* o = PyObject_New(SavedObject, &saved_type);
  if (!o) throw_python();
  o->saved = new SavedTensor(tensor_of(tensor), is_output);
  return Object::take(reinterpret_cast<PyObject*>(o));
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyMethodDef functions[] = {
    {"_attach_function", with_keywords(guarded_keywords<attach>), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_save_tensor", with_keywords(guarded_keywords<save>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_function_nodes(PyObject* module) {
  checked(PyType_Ready(&saved_type));
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace facula::python
