// backward, hooks of tensors, and nodes of the graph as Python objects.
#include <cstddef>
#include <map>

#include "autograd_objects.h"
#include "convert.h"
#include "function_node.h"
#include "operators.h"
#include "overrides.h"
#include "tensor_members.h"
#include "traverse.h"

namespace facula::python {
namespace {

NodeObject* self_of(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

Node& node_of(PyObject* o) {
  Node* n = self_of(o)->node;
  check(n != nullptr, "this node of the autograd graph is no longer part of a graph");
  return *n;
}

// Ends a Python hook's view of gradients: None stands for an undefined one.
Object gradient_tuple(const Gradients& grads) {
  Object t = Object::take(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), checked(wrap(grads[i])));
  return t;
}

Object hook_values(PyObject* hooks) { return Object::take(PyMapping_Values(hooks)); }

// Runs the hooks of a dict on one gradient; each may return another.
Tensor run_hooks(PyObject* hooks, const Tensor& grad) {
  const Object values = hook_values(hooks);
  Tensor current = grad;
  bool changed = false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
    const Object g = wrapped(current);
    const Object r = Object::take(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), g.get()));
    if (r.get() == Py_None) continue;
    check_type(is_tensor(r.get()), "expected Variable, but hook returned '", type_name(r.get()),
               "'");
    current = tensor_of(r.get());
    changed = true;
  }
  return changed ? current : Tensor();
}

// A Python object in a std::function: counted under the GIL.
class Held {
 public:
  explicit Held(PyObject* o) : o_(Py_NewRef(o)) {}
  Held(const Held& other) : o_(other.o_) {
    HoldGil gil;
    Py_INCREF(o_);
  }
  ~Held() {
    if (!may_release()) return;
    HoldGil gil;
    Py_DECREF(o_);
  }
  Held& operator=(const Held&) = delete;
  PyObject* get() const { return o_; }

 private:
  PyObject* o_;
};

Object ordered_dict() {
  static PyObject* make = nullptr;
  if (!make) make = imported("collections", "OrderedDict").leak();
  return Object::take(PyObject_CallNoArgs(make));
}
Object removable_handle(PyObject* hooks) {
  static PyObject* make = nullptr;
  if (!make) make = imported("facula.utils.hooks", "RemovableHandle").leak();
  return Object::take(PyObject_CallOneArg(make, hooks));
}
Object add_to(PyObject* hooks, PyObject* hook) {
  Object handle = removable_handle(hooks);
  const Object id = attribute(handle.get(), "id");
  checked(PyObject_SetItem(hooks, id.get(), hook));
  return handle;
}

}  // namespace

void attach_hooks(const Tensor& t, PyObject* hooks) {
  if (grad_fn(t)) {
    add_hook(t, [held = Held(hooks)](const Tensor& g) {
      HoldGil gil;
      return run_hooks(held.get(), g);
    });
    return;
  }
  // A leaf's hooks live with its object, so that the collector sees cycles through them.
  TensorImpl* impl = t.get();
  add_hook(t, [impl](const Tensor& g) {
    HoldGil gil;
    PyObject* o = static_cast<PyObject*>(impl->python_object.load());
    PyObject* dict = o ? reinterpret_cast<TensorObject*>(o)->backward_hooks : nullptr;
    return dict ? run_hooks(Object::share(dict).get(), g) : Tensor();
  });
}

Object register_hook(PyObject* self, PyObject* hook) {
  if (!is_exact_tensor(self) || function_mode_active()) {
    const Object args = Object::take(PyTuple_Pack(1, hook));
    if (Object r = self_override(self, "register_hook", args.get())) return r;
  }
  const Tensor& t = tensor_of(self);
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  auto* o = reinterpret_cast<TensorObject*>(self);
  if (!o->backward_hooks) {
    o->backward_hooks = ordered_dict().leak();
    attach_hooks(t, o->backward_hooks);
  }
  return add_to(o->backward_hooks, hook);
}

Object register_post_accumulate_hook(PyObject* self, PyObject* hook) {
  const Object hooks = ordered_dict();
  add_post_accumulate_hook(tensor_of(self), [held = Held(hooks.get())](const Tensor& t) {
    HoldGil gil;
    const Object values = hook_values(held.get());
    const Object o = wrapped(t);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i)
      Object::take(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), o.get()));
  });
  Object handle = add_to(hooks.get(), hook);
  // The handle's reference to the dict is weak; the hook owns it through the tensor.
  return handle;
}

// --- backward

namespace {

std::vector<Tensor> tensors_of(PyObject* o, const char* what) {
  std::vector<Tensor> list;
  if (!o || o == Py_None) return list;
  if (is_tensor(o)) return {tensor_of(o)};
  const Object items = Object::take(PySequence_Fast(o, "expected a sequence of Tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    check_type(item == Py_None || is_tensor(item), what, ": expected Tensors; element ", i, " is ",
               type_name(item));
    list.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return list;
}

// The gradient that a root starts from: ones for a scalar, unless one is given.
Tensor start_of(const Tensor& root, const Tensor& given) {
  check_kind(ErrorKind::Assertion, root.defined(), "Expected output to be a torch.Tensor");
  if (given.defined()) {
    check(same_sizes(given.sizes(), root.sizes()),
          "Mismatch in shape: grad_output[0] has a shape of torch.Size(", str(given.sizes()),
          ") and output[0] has a shape of torch.Size(", str(root.sizes()), ").");
    check(is_complex(given.dtype()) == is_complex(root.dtype()),
          "For complex Tensors, both grad_output and output "
          "are required to have the same dtype. Mismatch in dtype: grad_output[0] has a dtype of "
          "facula.",
          name(given.dtype()), " and output[0] has a dtype of facula.", name(root.dtype()), ".");
    return given;
  }
  check(!requires_grad(root) || root.numel() == 1,
        "grad can be implicitly created only for scalar outputs");
  check(!is_complex(root.dtype()) || !requires_grad(root),
        "grad can be implicitly created only for real scalar outputs but got facula.",
        name(root.dtype()));
  static NamedOperator ones("ones_like");
  return ones.tensor({pack(root)});
}

std::vector<Tensor> run(const std::vector<Tensor>& roots, std::vector<Tensor> cotangents,
                        const std::vector<Tensor>& inputs, const BackwardOptions& options) {
  cotangents.resize(roots.size());
  {
    const GradMode off(options.create_graph);
    for (size_t i = 0; i < roots.size(); ++i) cotangents[i] = start_of(roots[i], cotangents[i]);
  }
  const DropGil drop(true);
  return run_backward(roots, cotangents, inputs, options);
}

bool truth(PyObject* o) {
  const int t = PyObject_IsTrue(o);
  checked(t);
  return t == 1;
}

}  // namespace

Object tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
  PyObject *gradient = Py_None, *retain = Py_None, *create = Py_False, *inputs = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO:backward", const_cast<char**>(keys),
                                   &gradient, &retain, &create, &inputs))
    throw_python();
  check_type(gradient == Py_None || is_tensor(gradient),
             "gradients can be either Tensors or None, but got ", type_name(gradient));
  BackwardOptions options;
  options.create_graph = truth(create);
  options.retain_graph = retain == Py_None ? options.create_graph : truth(retain);
  options.allow_unused = true;
  const std::vector<Tensor> to = tensors_of(inputs, "backward()");
  check(inputs == Py_None || !to.empty(), "`inputs` argument to `backward()` cannot be empty.");
  run({tensor_of(self)}, tensors_of(gradient, "backward()"), to, options);
  return none();
}

namespace {

// _run_backward(roots, cotangents, retain_graph, create_graph, inputs, allow_unused, accumulate)
Object run_engine(PyObject*, PyObject* args, PyObject*) {
  PyObject *roots, *cotangents, *inputs;
  BackwardOptions options;
  int retain, create, unused, accumulate;
  if (!PyArg_ParseTuple(args, "OOppOpp:_run_backward", &roots, &cotangents, &retain, &create,
                        &inputs, &unused, &accumulate))
    throw_python();
  options.retain_graph = retain;
  options.create_graph = create;
  options.allow_unused = unused;
  options.accumulate = accumulate;
  const std::vector<Tensor> grads =
      run(tensors_of(roots, "grad()"), tensors_of(cotangents, "grad()"),
          tensors_of(inputs, "grad()"), options);
  if (accumulate) return none();
  return gradient_tuple(grads);
}

// --- nodes

void node_dealloc(PyObject* o) {
  NodeObject* self = self_of(o);
  PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  if (Node* n = std::exchange(self->node, nullptr)) {
    n->python_object.store(nullptr);
    if (self->owns_node) Ref<Node>::take(n).reset();
  }
  Py_TYPE(o)->tp_free(o);  // the class's own dealloc, which called this one, lets go of the class
}
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o)->dict);
  return self_of(o)->owns_node ? traverse_node(*self_of(o)->node, visit, arg) : 0;
}
int node_clear(PyObject* o) {
  Py_CLEAR(self_of(o)->dict);
  return 0;
}

Object next_functions(PyObject* o, PyObject*) {
  const Node& n = node_of(o);
  Object all = Object::take(PyTuple_New(static_cast<Py_ssize_t>(n.next.size())));
  for (size_t i = 0; i < n.next.size(); ++i) {
    const Edge& e = n.next[i];
    const Object to = e ? node_object(e.node) : none();
    PyTuple_SET_ITEM(
        all.get(), static_cast<Py_ssize_t>(i),
        Object::take(Py_BuildValue("(Ok)", to.get(), static_cast<unsigned long>(e.output_nr)))
            .leak());
  }
  return all;
}
Object node_name(PyObject* o, PyObject*) { return string(node_of(o).name()); }
Object node_variable(PyObject* o, PyObject*) {
  const Tensor leaf = node_of(o).leaf();
  if (!leaf.defined())
    throw Error(ErrorKind::Attribute, "'", node_of(o).name(),
                "' object has no attribute 'variable'");
  return wrapped(leaf);
}
Object node_sequence(PyObject* o, PyObject*) {
  return Object::take(PyLong_FromUnsignedLongLong(node_of(o).sequence));
}
Object node_metadata(PyObject* o, PyObject*) {
  PyObject*& dict = self_of(o)->dict;
  if (!dict) dict = checked(PyDict_New());
  PyObject* there = PyDict_GetItemString(dict, "metadata");
  if (there) return Object::share(there);
  Object made = Object::take(PyDict_New());
  checked(PyDict_SetItemString(dict, "metadata", made.get()));
  return made;
}

// What a hook returned in place of gradients; nothing for None.
void replace_gradients(PyObject* returned, Gradients& grads, const char* what) {
  if (returned == Py_None) return;
  const bool tuple = PyTuple_Check(returned);
  check(tuple || grads.size() == 1, what, " must return None or a tuple of gradients; got ",
        type_name(returned));
  const size_t n = tuple ? static_cast<size_t>(PyTuple_GET_SIZE(returned)) : 1;
  check(n == grads.size(), what, " returned an incorrect number of values (got ", n,
        ", but expected ", grads.size(), ")");
  for (size_t i = 0; i < n; ++i) {
    PyObject* g = tuple ? PyTuple_GET_ITEM(returned, static_cast<Py_ssize_t>(i)) : returned;
    check_type(g == Py_None || is_tensor(g), what, " must return Tensors or None; got ",
               type_name(g));
    grads[i] = g == Py_None ? Tensor() : tensor_of(g);
  }
}

Object register_node_hook(PyObject* o, PyObject* hook) {
  const Object hooks = ordered_dict();
  node_of(o).post_hooks.push_back(
      {new_hook_id(), [held = Held(hooks.get())](Gradients& grads, const Gradients& outputs) {
         HoldGil gil;
         const Object values = hook_values(held.get()), out = gradient_tuple(outputs);
         for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
           const Object in = gradient_tuple(grads);
           PyObject* stack[] = {in.get(), out.get()};
           replace_gradients(Object::take(PyObject_Vectorcall(PyList_GET_ITEM(values.get(), i),
                                                              stack, 2, nullptr))
                                 .get(),
                             grads, "hook");
         }
       }});
  return add_to(hooks.get(), hook);
}
Object register_node_prehook(PyObject* o, PyObject* hook) {
  const Object hooks = ordered_dict();
  node_of(o).pre_hooks.push_back(
      {new_hook_id(), [held = Held(hooks.get())](Gradients& grads) {
         HoldGil gil;
         const Object values = hook_values(held.get());
         for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
           const Object in = gradient_tuple(grads);
           replace_gradients(
               Object::take(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), in.get())).get(),
               grads, "prehook");
         }
       }});
  return add_to(hooks.get(), hook);
}

template <auto F>
PyObject* getter(PyObject* o, void*) {
  return guarded<F>(o, nullptr);
}
PyObject* node_repr(PyObject* o) {
  return PyUnicode_FromFormat("<%s object at %p>", type_name(o), static_cast<void*>(o));
}
PyObject* node_dict(PyObject* o, void*) {
  PyObject*& dict = self_of(o)->dict;
  if (!dict) dict = PyDict_New();
  return Py_XNewRef(dict);
}

PyMethodDef node_methods[] = {
    {"name", guarded<node_name>, METH_NOARGS, "The name of the node, \"AddBackward0\"."},
    {"register_hook", guarded<register_node_hook>, METH_O,
     "Registers hook(grad_inputs, grad_outputs)."},
    {"register_prehook", guarded<register_node_prehook>, METH_O,
     "Registers hook(grad_outputs), run before the node."},
    {"_sequence_nr", guarded<node_sequence>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_properties[] = {
    {"next_functions", getter<next_functions>, nullptr, nullptr, nullptr},
    {"variable", getter<node_variable>, nullptr, nullptr, nullptr},
    {"metadata", getter<node_metadata>, nullptr, nullptr, nullptr},
    {"__dict__", node_dict, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_node_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula.autograd.graph.Node";
  t.tp_basicsize = sizeof(NodeObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_dealloc = node_dealloc;
  t.tp_traverse = node_traverse;
  t.tp_clear = node_clear;
  t.tp_dictoffset = offsetof(NodeObject, dict);
  t.tp_weaklistoffset = offsetof(NodeObject, weakrefs);
  t.tp_new = PyType_GenericNew;
  t.tp_repr = node_repr;
  t.tp_methods = node_methods;
  t.tp_getset = node_properties;
  t.tp_doc = "A node of the autograd graph.";
  return t;
}

// Every name of node has a class of its own, as repr and users expect.
PyTypeObject* class_of(const std::string& name) {
  static auto* classes = new std::map<std::string, PyTypeObject*>;
  PyTypeObject*& c = (*classes)[name];
  if (c) return c;
  const Object made =
      Object::take(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O){s()}",
                                         name.c_str(), &node_type, "__slots__"));
  return c = reinterpret_cast<PyTypeObject*>(Py_NewRef(made.get()));
}

PyMethodDef functions[] = {
    {"_run_backward",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded_keywords<run_engine>)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject node_type = make_node_type();

Object node_object(const Ref<Node>& n) {
  if (void* there = n->python_object.load()) return Object::share(static_cast<PyObject*>(there));
  PyTypeObject* type = class_of(n->name());
  Object o = Object::take(type->tp_alloc(type, 0));
  self_of(o.get())->node = Ref<Node>(n).leak();
  self_of(o.get())->owns_node = true;
  n->python_object.store(o.get());
  return o;
}

void set_tensor_data(const Tensor& t, const Tensor& from) {
  check(t->layout == from->layout,
        "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
        "incompatible tensor type.");
  check(!requires_grad(t) || is_differentiable(from.dtype()),
        "data set to a tensor that requires gradients must be floating point or complex dtype");
  // The tensor keeps its identity, history and version counter; gradients must fit anew.
  const bool autograd = t->layers.has(Layer::Autograd);
  if (t->autograd && (t.dtype() != from.dtype() || t.device() != from.device()))
    if (GraphNode* acc = t->autograd->accumulator.load()) {
      auto* node = static_cast<Node*>(acc);
      if (!node->outputs.empty())
        node->outputs[0] = {IntVec(from.sizes()), from.dtype(), from.device()};
    }
  t->storage = from->storage;
  t->offset = from->offset;
  t->dtype = from->dtype;
  t->device = from->device;
  t->conj = from->conj;
  t->neg = from->neg;
  t->layers = from->layers - LayerSet(Layer::Autograd);
  if (autograd) t->layers |= Layer::Autograd;
  t->set_geometry(IntVec(from.sizes()), IntVec(from.strides()));
}

void add_autograd(PyObject* module) {
  add_type(module, node_type, "_Node");
  checked(PyModule_AddFunctions(module, functions));
  add_function_nodes(module);
}

}  // namespace facula::python
