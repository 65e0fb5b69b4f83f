#include "bindings/autograd/function_node.h"

#include <algorithm>

#include "autograd/custom.h"
#include "autograd/engine.h"
#include "autograd/node_watch.h"
#include "bindings/autograd/saved_tensor_object.h"
#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/tensor/tensor_type.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

NodeObject* self_of(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

// The node of a Function: runs `context._run_backward(gradients)`, and owns the context.
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
    const auto count = static_cast<Py_ssize_t>(grads.size());
    const Object given = Object::take(boxed ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* grad = checked(wrap(gradient(grads, static_cast<size_t>(i))));
      boxed ? PyList_SET_ITEM(given.get(), i, grad) : PyTuple_SET_ITEM(given.get(), i, grad);
    }
    // Now only the list holds the gradients, so that backward can free them early.
    if (boxed) grads.clear();
    const Object returned = called(context_, "_run_backward", given.get());
    return taken(returned.get());
  }
  void release_saved() override {
    std::vector<SavedTensor> freed;  // destroyed after unlocking, since that may run other code
    const std::lock_guard guard(lock);
    if (saved.empty()) return;
    freed.swap(saved);
    released = true;
  }
  // Returns copies, since another thread may release the node meanwhile.
  std::vector<SavedTensor> saved_now() {
    const std::lock_guard guard(lock);
    return saved;
  }

  void show_held(HeldVisitor& visitor) const override {
    Node::show_held(visitor);
    visitor.object(context_);
    for (const SavedTensor& s : saved) s.show_held(visitor);
  }

  // Which arguments are tensors; others have no edge, and backward must return None for them.
  std::vector<bool> is_tensor_argument;
  std::vector<SavedTensor> saved;
  bool materialize = true, boxed = false;
  std::atomic<bool> released{false};  // atomic, since it is read without locking

 private:
  Tensor gradient(const Gradients& grads, size_t i) const {
    const OutputMeta& m = outputs[i];
    if (grads[i].defined() || !materialize || m.dtype == DType::Undefined) return grads[i];
    static NamedOperator zeros("zeros");
    return zeros.tensor({pack(IntSpan(m.sizes)), pack(m.dtype), Value(), pack(m.device)});
  }
  // Detaches a gradient from its Python object if Python does not keep it. The object would count
  // as an owner, and prevent the engine from adding in place or making the gradient .grad without a
  // copy.
  static Tensor without_object(const Tensor& t, bool unkept) {
    const bool plain = (t->layers - backend_layers).empty() && !t->autograd && !t->extension;
    if (!unkept || !plain || thread_state.grad_enabled) return t;
    return alias_tensor(t, t.sizes(), t.strides(), t.storage_offset());
  }
  Gradients taken(PyObject* returned) const {
    const Object fast =
        PyTuple_Check(returned) ? Object::share(returned) : Object::take(PyTuple_Pack(1, returned));
    // The references to a gradient that nobody else holds: the tuple's, and that of `returned` if
    // it is the gradient itself.
    const Py_ssize_t holders = fast.get() == returned ? 1 : 2;
    size_t n = static_cast<size_t>(PyTuple_GET_SIZE(fast.get()));
    const size_t wanted = is_tensor_argument.size();
    // Superfluous Nones at the end are ignored.
    while (n > wanted && PyTuple_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(n - 1)) == Py_None)
      --n;
    check(n == wanted, "function ", name(), " returned an incorrect number of gradients (expected ",
          wanted, ", got ", n, ")");
    Gradients grads;
    for (size_t i = 0; i < n; ++i) {
      PyObject* g = PyTuple_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i));
      if (!is_tensor_argument[i]) {
        check(g == Py_None, "function ", name(), " returned a gradient at position ", i + 1,
              ", where forward's input was no tensor; "
              "expected None");
        continue;
      }
      check(g == Py_None || is_tensor(g), "function ", name(),
            ": expected Tensors or None as gradients; got ", type_name(g));
      grads.push_back(g == Py_None ? Tensor()
                                   : without_object(tensor_of(g), Py_REFCNT(g) == holders));
    }
    return grads;
  }

  PyObject* context_;
};

// The node of a context; null until forward has returned.
PythonNode* node_of(PyObject* context) {
  check_type(PyObject_TypeCheck(context, &node_type), "expected the context of a Function; got ",
             type_name(context));
  return static_cast<PythonNode*>(self_of(context)->node);
}

std::vector<Tensor> tensors_in(PyObject* tuple) {
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyObject* o = PyTuple_GET_ITEM(tuple, i); is_tensor(o)) list.push_back(tensor_of(o));
  return list;
}

void keep(PythonNode& node, PyObject* to_save, const std::vector<Tensor>& before,
          const std::vector<Tensor>& after) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(to_save); ++i) {
    PyObject* o = PyTuple_GET_ITEM(to_save, i);
    check_type(o == Py_None || is_tensor(o),
               "save_for_backward can only save variables, but argument ", i, " is of type ",
               type_name(o));
    if (o == Py_None) {
      node.saved.emplace_back();
      continue;
    }
    Tensor t = tensor_of(o);
    bool output = false;
    // If an output is saved, saves the tensor that the caller gets.
    for (size_t k = 0; k < before.size() && !output; ++k)
      if (before[k].defined() && (before[k].is_same(t) || after[k].is_same(t))) {
        t = after[k];
        output = true;
      }
    node.saved.emplace_back(t, output);
  }
}

// Applies set_output_grad_dtype(): for each output a dtype, or None for any.
void declare_dtypes(Node& node, PyObject* dtypes, const CustomResults& results) {
  if (dtypes == Py_None) return;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    PyObject* d = PyTuple_GET_ITEM(dtypes, static_cast<Py_ssize_t>(i));
    OutputMeta& m = node.outputs[i];
    if (d == Py_None) {
      m.any_dtype = true;
      continue;
    }
    const Tensor& t = results.outputs[i];
    const auto same = [&](const Tensor& o) { return t.is_same(o); };
    const bool differentiable =
        t.defined() && is_differentiable(t.dtype()) && std::ranges::none_of(results.constant, same);
    check(differentiable, "set_output_grad_dtype(): output ", i,
          " is no differentiable tensor, which takes None; got ", name(dtype_value(d)));
    check(is_differentiable(dtype_value(d)), "set_output_grad_dtype(): output ", i,
          " can have no gradient of dtype ", name(dtype_value(d)));
    m.dtype = dtype_value(d);
  }
}

// _attach_function(context, arguments, outputs, dirty, non_differentiable, to_save, dtypes,
// materialize, recording) -> the outputs for the caller. arguments to dtypes are tuples; dtypes has
// one item for each output, or is None.
Object attach(PyObject*, PyObject* args, PyObject*) {
  PyObject *context, *arguments, *outputs, *dirty, *constant, *to_save, *dtypes;
  int materialize, recording;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!Opp:_attach_function", &node_type, &context,
                        &PyTuple_Type, &arguments, &PyTuple_Type, &outputs, &PyTuple_Type, &dirty,
                        &PyTuple_Type, &constant, &PyTuple_Type, &to_save, &dtypes, &materialize,
                        &recording))
    throw_python();
  CustomResults results{tensors_in(arguments), {}, tensors_in(dirty), tensors_in(constant)};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject* o = PyTuple_GET_ITEM(outputs, i);
    results.outputs.push_back(is_tensor(o) ? tensor_of(o) : Tensor());
  }
  Ref<Node> node;
  if (recording) {
    auto* made = new PythonNode(context);
    node = Ref<Node>::take(made);
    made->materialize = materialize;
    made->boxed = attribute(context, "_boxed").get() == Py_True;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
      PyObject* a = PyTuple_GET_ITEM(arguments, i);
      made->is_tensor_argument.push_back(is_tensor(a));
      if (is_tensor(a)) node->next.push_back(gradient_edge(tensor_of(a)));
    }
  }
  const std::vector<Tensor> attached = attach_results(node, results, warn_user);
  if (node) {
    keep(static_cast<PythonNode&>(*node), to_save, results.outputs, attached);
    declare_dtypes(*node, dtypes, results);
    node_complete(node);
  }
  Object tuple = Object::take(PyTuple_New(PyTuple_GET_SIZE(outputs)));
  for (size_t i = 0; i < attached.size(); ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    PyObject* given = PyTuple_GET_ITEM(outputs, at);
    const bool same = !attached[i].defined() || attached[i].is_same(results.outputs[i]);
    PyTuple_SET_ITEM(tuple.get(), at, same ? Py_NewRef(given) : checked(wrap(attached[i])));
  }
  return tuple;
}

// _saved_tensors(context) -> the saved tensors.
Object saved_tensors(PyObject*, PyObject* context) {
  PythonNode* n = node_of(context);
  if (!n) return Object::take(PyTuple_New(0));
  check(!n->released,
        "Trying to backward through the graph a second time: its saved tensors are gone; keep them "
        "with "
        "retain_graph=True");
  const auto owner = Ref<Node>::share(n);
  const std::vector<SavedTensor> saved = n->saved_now();
  Object all = Object::take(PyTuple_New(static_cast<Py_ssize_t>(saved.size())));
  for (size_t i = 0; i < saved.size(); ++i) {
    const Tensor t = saved[i].defined() ? saved[i].unpack(owner, *n) : Tensor();
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), checked(wrap(t)));
  }
  return all;
}

Object raw_saved_tensors(PyObject*, PyObject* context) {
  PythonNode* n = node_of(context);
  const std::vector<SavedTensor> saved = n ? n->saved_now() : std::vector<SavedTensor>();
  Object all = Object::take(PyTuple_New(static_cast<Py_ssize_t>(saved.size())));
  for (size_t i = 0; i < saved.size(); ++i)
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i),
                     saved_tensor_object(Ref<Node>::share(n), saved[i]).leak());
  return all;
}

Object clear_saved(PyObject*, PyObject* context) {
  if (PythonNode* n = node_of(context)) {
    n->release_saved();
    n->released = false;
  }
  return none();
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
// _input_grad_buffers(context) -> for each argument of forward its accumulated gradient, or None.
Object input_grad_buffers(PyObject*, PyObject* context) {
  PythonNode* n = node_of(context);
  check(n != nullptr, "input_grad_buffers: can be read only while this node's backward runs");
  const std::vector<Tensor> found = gradient_buffers(*n);
  Object tuple = Object::take(PyTuple_New(static_cast<Py_ssize_t>(n->is_tensor_argument.size())));
  for (size_t i = 0, edge = 0; i < n->is_tensor_argument.size(); ++i) {
    const Tensor t = n->is_tensor_argument[i] ? found[edge++] : Tensor();
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(wrap(t)));
  }
  return tuple;
}

PyMethodDef functions[] = {{"_attach_function", with_keywords(guarded_keywords<attach>),
                            METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"_saved_tensors", guarded<saved_tensors>, METH_O, nullptr},
                           {"_raw_saved_tensors", guarded<raw_saved_tensors>, METH_O, nullptr},
                           {"_clear_saved_tensors", guarded<clear_saved>, METH_O, nullptr},
                           {"_input_grad_buffers", guarded<input_grad_buffers>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_function_nodes(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
