// Backward passes and hooks of tensors for Python.
#include <mutex>

#include "autograd/anomaly.h"
#include "autograd/node_watch.h"
#include "bindings/autograd/autograd_objects.h"
#include "bindings/autograd/function_node.h"
#include "bindings/autograd/hook_calls.h"
#include "bindings/autograd/saved_tensor_object.h"
#include "bindings/call/convert.h"
#include "bindings/call/operators.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"
#include "dispatch/mutations.h"
#include "ops/create/copy.h"
#include "transforms/inner_mode.h"

namespace facula::python {
namespace {

// The hooks of a tensor with a grad_fn. They belong to the node that it had when they were added.
struct NodeHookDict {
  Held dict;
  Tensor operator()(const Tensor& g) const {
    HoldGil gil;
    return run_hooks(dict.get(), g);
  }
};
// The post-accumulate hooks of a leaf.
struct PostAccumulateDict {
  Held dict;
  void operator()(const Tensor& t) const {
    HoldGil gil;
    const Object values = hook_values(dict.get()), o = wrapped(t);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      const Object r = Object::take(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), o.get()));
      check_type(r.get() == Py_None || is_tensor(r.get()), "expected Variable, but hook returned '",
                 type_name(r.get()), "'");
    }
  }
};

// Whether the dict's hooks belong to the tensor's present grad_fn, which an in-place change
// replaces.
bool attached_to_present_node(const Tensor& t, PyObject* dict) {
  const Ref<Node> n = grad_fn(t);
  if (!n) return true;
  if (!n->has_hooks()) return false;
  const std::lock_guard guard(n->lock);
  for (const NodeTensorHook& h : n->hooks().tensor)
    if (const auto* held = h.call.target<NodeHookDict>(); held && held->dict.get() == dict)
      return true;
  return false;
}

}  // namespace

void attach_hooks(const Tensor& t, PyObject* hooks) {
  if (grad_fn(t)) {
    add_hook(t, NodeHookDict{Held(hooks)}, hooks);
    return;
  }
  // A leaf's hooks are kept by its Python object, so that the collector sees cycles through them.
  TensorImpl* impl = t.get();
  add_hook(t, [impl](const Tensor& g) {
    HoldGil gil;
    PyObject* o = static_cast<PyObject*>(impl->python_object.load());
    PyObject* dict = o ? reinterpret_cast<TensorObject*>(o)->backward_hooks : nullptr;
    return dict ? run_hooks(Object::share(dict).get(), g) : Tensor();
  });
}

Object register_hook(PyObject* self, PyObject* hook) {
  if (!is_plain_tensor(self) || function_mode_active()) {
    const Object args = Object::take(PyTuple_Pack(1, hook));
    if (Object r = self_override(self, "register_hook", args.get())) return r;
  }
  const Tensor& t = tensor_of(self);
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  auto* o = reinterpret_cast<TensorObject*>(self);
  if (o->backward_hooks && !attached_to_present_node(t, o->backward_hooks))
    Py_CLEAR(o->backward_hooks);
  if (!o->backward_hooks) {
    o->backward_hooks = ordered_dict().leak();
    attach_hooks(t, o->backward_hooks);
  }
  return add_to(o->backward_hooks, hook);
}

PyObject* post_accumulate_hooks(const Tensor& t) {
  AutogradMeta* m = t->autograd;
  const LeafHooks* all = m ? m->leaf_hooks.load(std::memory_order_acquire) : nullptr;
  if (!all) return nullptr;
  const std::lock_guard guard(m->lock);
  for (const PostAccumulateHook& h : all->post_accumulate)
    if (const auto* held = h.call.target<PostAccumulateDict>()) return held->dict.get();
  return nullptr;
}

Object register_post_accumulate_hook(PyObject* self, PyObject* hook) {
  const Tensor& t = tensor_of(self);
  if (PyObject* there = post_accumulate_hooks(t)) return add_to(there, hook);
  const Object hooks = ordered_dict();
  add_post_accumulate_hook(t, PostAccumulateDict{Held(hooks.get())}, hooks.get());
  // The handle has only a weak reference to the dict; the hook owns it.
  return add_to(hooks.get(), hook);
}

// --- backward

namespace {

// Roots or inputs of a pass, given as tensors or as pairs of node and output number.
struct Ends {
  std::vector<Tensor> tensors;  // undefined for those given as pairs
  std::vector<Edge> edges;
};

bool is_edge(PyObject* o) {
  return PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 &&
         PyObject_TypeCheck(PyTuple_GET_ITEM(o, 0), &node_type);
}
Edge edge_of(PyObject* o) {
  Node* n = reinterpret_cast<NodeObject*>(PyTuple_GET_ITEM(o, 0))->node;
  const long nr = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
  if (PyErr_Occurred()) throw_python();
  check(n && nr >= 0 && static_cast<size_t>(nr) < n->outputs.size(),
        "this gradient edge leads to output ", nr, " of a node that has no such output");
  return {Ref<Node>::share(n), static_cast<uint32_t>(nr)};
}

Ends ends_of(PyObject* o) {
  Ends ends;
  const Object items = Object::take(PySequence_Fast(o, "expected a sequence of Tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    check_kind(item == Py_None ? ErrorKind::Assertion : ErrorKind::Runtime,
               is_tensor(item) || is_edge(item), "expected Tensors or GradientEdges; got ",
               type_name(item));
    ends.tensors.push_back(is_tensor(item) ? tensor_of(item) : Tensor());
    ends.edges.push_back(is_tensor(item) ? Edge() : edge_of(item));
  }
  return ends;
}

std::vector<Tensor> cotangents_of(PyObject* o) {
  std::vector<Tensor> list;
  if (o == Py_None) return list;
  if (is_tensor(o)) return {tensor_of(o)};
  const Object iterator = Object::take(PyObject_GetIter(o));
  while (PyObject* next = PyIter_Next(iterator.get())) {
    const Object item = Object::take(next);
    check_type(item.get() == Py_None || is_tensor(item.get()),
               "expected Tensors or None as gradients; got ", type_name(item.get()));
    list.push_back(item.get() == Py_None ? Tensor() : tensor_of(item.get()));
  }
  if (PyErr_Occurred()) throw_python();
  return list;
}

void check_cotangent(const Tensor& given, IntSpan sizes, DType dtype, size_t i) {
  check(same_sizes(given.sizes(), sizes), "Mismatch in shape: grad_output[", i, "] has ",
        str(given.sizes()), " and output[", i, "] has ", str(sizes));
  check(is_complex(given.dtype()) == is_complex(dtype), "grad_output[", i, "] and output[", i,
        "] must both be real or both complex; got ", name(given.dtype()), " and ", name(dtype));
}

// The initial gradient of a root: the given one, or 1 for a scalar.
Tensor start_of(const Tensor& root, const Tensor& given, size_t i) {
  if (given.defined()) {
    check_cotangent(given, root.sizes(), root.dtype(), i);
    return given;
  }
  check(!requires_grad(root) || root.numel() == 1,
        "grad can be implicitly created only for scalar outputs");
  check(!is_complex(root.dtype()) || !requires_grad(root),
        "grad can be implicitly created only for real scalar outputs but got facula.",
        name(root.dtype()));
  static NamedOperator ones("ones_like");
  return ones.tensor(
      {pack(root), Value(), Value(), Value(), Value(), pack(MemoryFormat::Preserve)});
}
Tensor start_of(const Edge& root, const Tensor& given, size_t i) {
  const OutputMeta& m = root.node->outputs[root.output_nr];
  if (given.defined()) {
    check_cotangent(given, m.sizes, m.dtype, i);
    return given;
  }
  int64_t numel = 1;
  for (int64_t n : m.sizes) numel *= n;
  check(numel == 1, "grad can be implicitly created only for scalar outputs");
  static NamedOperator ones("ones");
  return ones.tensor({pack(IntSpan(m.sizes)), pack(m.dtype), Value(), pack(m.device)});
}

void warn_of_cycle(const BackwardOptions& options) {
  static bool warned = false;
  if (!options.create_graph || !options.accumulate || std::exchange(warned, true)) return;
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "backward(create_graph=True) ties a parameter and its .grad in a cycle, which "
                   "leaks until "
                   ".grad is set to None; grad() makes no cycle",
                   1) < 0)
    throw_python();
}

// Converts roots to edges of the graph, and checks those that were given as tensors.
std::vector<Edge> root_edges(const Ends& roots) {
  std::vector<Edge> edges = roots.edges;
  for (size_t i = 0; i < edges.size(); ++i) {
    const Tensor& t = roots.tensors[i];
    if (!t.defined()) continue;
    check(requires_grad(t), "element ", i,
          " of tensors does not require grad and does not have a grad_fn");
    edges[i] = gradient_edge(t);
  }
  return edges;
}
std::vector<Edge> input_edges(const Ends& inputs, const BackwardOptions& options) {
  std::vector<Edge> edges = inputs.edges;
  for (size_t i = 0; i < edges.size(); ++i) {
    const Tensor& t = inputs.tensors[i];
    if (!t.defined()) continue;
    if (options.accumulate && !(is_leaf(t) && requires_grad(t))) retain_grad(t);
    check(requires_grad(t), "One of the differentiated Tensors does not require grad");
    edges[i] = gradient_edge(t);
  }
  return edges;
}

std::vector<Tensor> run(const Ends& roots, std::vector<Tensor> cotangents, const Ends& inputs,
                        const BackwardOptions& options) {
  cotangents.resize(roots.tensors.size());
  {
    const GradMode off(options.create_graph);
    for (size_t i = 0; i < cotangents.size(); ++i)
      cotangents[i] = roots.tensors[i].defined() ? start_of(roots.tensors[i], cotangents[i], i)
                                                 : start_of(roots.edges[i], cotangents[i], i);
  }
  const std::vector<Edge> from = root_edges(roots), to = input_edges(inputs, options);
  warn_of_cycle(options);
  const DropGil drop(true);
  return run_backward(from, cotangents, to, options);
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
  BackwardOptions options;
  options.create_graph = truth(create);
  options.retain_graph = retain == Py_None ? options.create_graph : truth(retain);
  options.allow_unused = true;
  Ends to;
  if (inputs != Py_None) {
    const Object single = is_tensor(inputs) || is_edge(inputs)
                              ? Object::take(PyTuple_Pack(1, inputs))
                          : PyDict_Check(inputs) ? Object::take(PyDict_Values(inputs))
                                                 : Object::share(inputs);
    to = ends_of(single.get());
    check(!to.tensors.empty(), "`inputs` argument to `backward()` cannot be empty.");
  }
  std::vector<Tensor> cotangents = cotangents_of(gradient);
  check(cotangents.size() <= 1, "got 1 tensors and ", cotangents.size(), " gradients");
  run({{tensor_of(self)}, {Edge()}}, std::move(cotangents), to, options);
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
      run(ends_of(roots), cotangents_of(cotangents), ends_of(inputs), options);
  if (accumulate) return none();
  return gradient_tuple(grads);
}

// --- the running pass

Object queue(PyObject*, PyObject* callback) {
  check_type(PyCallable_Check(callback), "queue_callback(): expected a callable; got ",
             type_name(callback));
  queue_callback([held = Held(callback)] {
    HoldGil gil;
    Object::take(PyObject_CallNoArgs(held.get()));
  });
  return none();
}
Object pass_id(PyObject*, PyObject*) { return integer(current_pass()); }
Object pass_keeps_graph(PyObject*, PyObject*) { return boolean(current_pass_keeps_graph()); }
Object pass_is_partial(PyObject*, PyObject*) { return boolean(current_pass_is_partial()); }
Object will_run(PyObject*, PyObject* node) {
  check_type(PyObject_TypeCheck(node, &node_type), "expected a node of the graph; got ",
             type_name(node));
  Node* n = reinterpret_cast<NodeObject*>(node)->node;
  return boolean(n && pass_will_run(*n));
}
Object running_node(PyObject*, PyObject*) {
  Node* n = current_node();
  return n ? node_object(Ref<Node>::share(n)) : none();
}
Object several_threads(PyObject*, PyObject*) { return boolean(multithreading_enabled()); }
Object layout_enforced(PyObject*, PyObject*) { return boolean(grad_layout_enforced()); }
Object set_layout_enforced(PyObject*, PyObject* on) {
  set_grad_layout_enforced(strict_bool(on, "set_grad_layout_enforcement_enabled"));
  return none();
}
Object set_several_threads(PyObject*, PyObject* on) {
  set_multithreading(strict_bool(on, "set_multithreading_enabled"));
  return none();
}

// --- node_creation_hook

struct PythonNodeWatcher final : NodeWatcher {
  explicit PythonNodeWatcher(PyObject* f) : hook(f) {}
  void see(const Ref<Node>& node) override {
    HoldGil gil;
    const Object o = node_object(node);
    Object::take(PyObject_CallOneArg(hook.get(), o.get()));
  }
  Held hook;
};
Object push_creation_hook(PyObject*, PyObject* hook) {
  check_type(PyCallable_Check(hook), "node_creation_hook(): expected a callable; got ",
             type_name(hook));
  push_node_watcher(new PythonNodeWatcher(hook));
  return none();
}
Object pop_creation_hook(PyObject*, PyObject*) {
  delete pop_node_watcher();
  return none();
}

// --- versions

Object increment_version(PyObject*, PyObject* list) {
  const Object items = Object::take(PySequence_Fast(list, "expected tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(items.get(), i);
    check_type(is_tensor(o), "increment_version(): expected tensors; got ", type_name(o));
    const Tensor& t = tensor_of(o);
    check(!t->inference, "increment_version(): an inference tensor counts no versions");
    t.get()->bump_version();
    note_mutation(*t.get(), nullptr);
  }
  return none();
}
Object set_version(PyObject*, PyObject* args) {
  PyObject* o;
  unsigned version;
  if (!PyArg_ParseTuple(args, "OI:_set_version", &o, &version)) throw_python();
  check_type(is_tensor(o), "expected a Tensor; got ", type_name(o));
  tensor_of(o)->share_version()->value.store(version);
  return none();
}
Object is_view_object(PyObject*, PyObject* o) {
  check_type(is_tensor(o), "expected a Tensor; got ", type_name(o));
  return boolean(is_view(tensor_of(o)));
}
Object detach_object(PyObject*, PyObject* o) {
  check_type(is_tensor(o), "expected a Tensor; got ", type_name(o));
  detach_in_place(tensor_of(o));
  return Object::share(o);
}
Object post_accumulate_dict(PyObject*, PyObject* o) {
  check_type(is_tensor(o), "expected a Tensor; got ", type_name(o));
  PyObject* dict = post_accumulate_hooks(tensor_of(o));
  return dict ? Object::share(dict) : none();
}

PyMethodDef functions[] = {
    {"_run_backward",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded_keywords<run_engine>)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_queue_callback", guarded<queue>, METH_O, nullptr},
    {"_current_graph_task_id", guarded<pass_id>, METH_NOARGS, nullptr},
    {"_get_current_graph_task_keep_graph", guarded<pass_keeps_graph>, METH_NOARGS, nullptr},
    {"_is_partial_pass", guarded<pass_is_partial>, METH_NOARGS, nullptr},
    {"_will_engine_execute_node", guarded<will_run>, METH_O, nullptr},
    {"_current_autograd_node", guarded<running_node>, METH_NOARGS, nullptr},
    {"_is_multithreading_enabled", guarded<several_threads>, METH_NOARGS, nullptr},
    {"_is_grad_layout_enforcement_enabled", guarded<layout_enforced>, METH_NOARGS, nullptr},
    {"_set_grad_layout_enforcement_enabled", guarded<set_layout_enforced>, METH_O, nullptr},
    {"_set_multithreading_enabled", guarded<set_several_threads>, METH_O, nullptr},
    {"_push_node_creation_hook", guarded<push_creation_hook>, METH_O, nullptr},
    {"_pop_node_creation_hook", guarded<pop_creation_hook>, METH_NOARGS, nullptr},
    {"_increment_version", guarded<increment_version>, METH_O, nullptr},
    {"_set_version", guarded<set_version>, METH_VARARGS, nullptr},
    {"_is_view", guarded<is_view_object>, METH_O, nullptr},
    {"_detach_in_place", guarded<detach_object>, METH_O, nullptr},
    {"_post_accumulate_hooks", guarded<post_accumulate_dict>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// --- threads of the engine

// Gives a worker a Python thread state, so that an error which a hook raises is kept after the
// hook.
void* enter_thread() {
  PyGILState_Ensure();
  return PyEval_SaveThread();
}
void leave_thread(void* state) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(state));
  PyGILState_Release(PyGILState_UNLOCKED);
}
void* take_error() {
  HoldGil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (!type) return nullptr;
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(trace);
  Py_DECREF(type);
  return value;
}
void set_error(void* error) {
  HoldGil gil;
  auto* value = static_cast<PyObject*>(error);
  PyErr_Restore(Py_NewRef(Py_TYPE(value)), value, PyException_GetTraceback(value));
}
void drop_error(void* error) {
  if (!may_take_gil()) return;
  HoldGil gil;
  Py_DECREF(static_cast<PyObject*>(error));
}
constexpr ThreadHooks python_threads{enter_thread, leave_thread, take_error, set_error, drop_error};

}  // namespace

void set_tensor_data(const Tensor& t, const Tensor& from) {
  check_strided(t, "Tensor.data");
  check_strided(from, "Tensor.data");
  check(t->layout == from->layout, "Tensor.data: expected a tensor of the same layout");
  check(!requires_grad(t) || is_differentiable(from.dtype()),
        "Tensor.data: a tensor that requires grad takes only floating or complex data");
  // The tensor keeps its grad_fn and version counter, but its gradients must have the new geometry.
  const bool other_kind = t.dtype() != from.dtype() || t.device() != from.device();
  {
    const OnlyInnerModes direct;
    ops::set_data(t, from);
  }
  GraphNode* leaf = t->autograd && other_kind ? t->autograd->accumulator.load() : nullptr;
  if (auto* node = static_cast<Node*>(leaf); node && !node->outputs.empty())
    node->outputs[0] = {IntVec(from.sizes()), from.dtype(), from.device()};
}

void add_autograd(PyObject* module) {
  add_nodes(module);
  checked(PyModule_AddFunctions(module, functions));
  add_function_nodes(module);
  add_saved_tensors(module);
  add_anomaly(module);
  thread_hooks.store(&python_threads, std::memory_order_release);
}

}  // namespace facula::python
