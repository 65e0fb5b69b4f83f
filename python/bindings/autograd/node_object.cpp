// Nodes of the autograd graph as Python objects.
#include "bindings/autograd/node_object.h"

#include <cstddef>
#include <map>

#include "bindings/autograd/autograd_objects.h"
#include "bindings/autograd/hook_calls.h"
#include "bindings/autograd/saved_tensor_object.h"
#include "bindings/autograd/traverse.h"
#include "bindings/call/convert.h"

namespace facula::python {
namespace {

NodeObject* self_of(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }

Node& node_of(PyObject* o) {
  Node* n = self_of(o)->node;
  check(n != nullptr, "this node of the autograd graph is no longer part of a graph");
  return *n;
}

// The node forgets this object first: callbacks of weak references and destructors of objects in
// the dict may ask for the node's object, and must get another one.
void node_dealloc(PyObject* o) {
  NodeObject* self = self_of(o);
  PyObject_GC_UnTrack(o);
  if (self->node) {
    void* own = o;
    self->node->python_object.compare_exchange_strong(own, nullptr);
  }
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  if (Node* n = std::exchange(self->node, nullptr); n && self->owns_node)
    Ref<Node>::take(n).reset();
  Py_TYPE(o)->tp_free(o);  // the subclass's dealloc, which called this one, releases the class
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
        checked(Py_BuildValue("(Ok)", to.get(), static_cast<unsigned long>(e.output_nr))));
  }
  return all;
}
Object node_name(PyObject* o, PyObject*) { return string(node_of(o).name()); }
Object node_variable(PyObject* o, PyObject*) {
  const Tensor leaf = node_of(o).leaf();
  if (!leaf.defined())
    throw Error(ErrorKind::Attribute, "'", type_name(o), "' object has no attribute 'variable'");
  return wrapped(leaf);
}
Object node_sequence(PyObject* o, PyObject*) {
  return Object::take(PyLong_FromUnsignedLongLong(node_of(o).sequence));
}

// The metadata dict of a node, which stays when the node's Python object is freed.
struct PythonMetadata final : NodeMetadata {
  void show_held(HeldVisitor& visitor) const override { visitor.object(dict.get()); }
  Held dict{Object::take(PyDict_New()).get()};
};

Object input_metadata(PyObject* o, PyObject*) {
  static PyObject* make = nullptr;
  if (!make) make = imported("facula.autograd.graph", "_input_metadata").leak();
  const Node& n = node_of(o);
  Object all = Object::take(PyList_New(0));
  for (const OutputMeta& m : n.outputs) {
    Object sizes = Object::take(PyTuple_New(static_cast<Py_ssize_t>(m.sizes.size())));
    for (size_t d = 0; d < m.sizes.size(); ++d)
      PyTuple_SET_ITEM(sizes.get(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(m.sizes[d]));
    const Object dtype = value_object(pack(m.dtype)), device = value_object(pack(m.device));
    const Object item = Object::take(
        PyObject_CallFunctionObjArgs(make, sizes.get(), dtype.get(), device.get(), nullptr));
    checked(PyList_Append(all.get(), item.get()));
  }
  return Object::take(PyList_AsTuple(all.get()));
}

// --- hooks

Object register_node_hook(PyObject* o, PyObject* hook) {
  const Object hooks = ordered_dict();
  const auto run = [held = Held(hooks.get())](Gradients& grads, const Gradients& outputs) {
    HoldGil gil;
    const Object values = hook_values(held.get()), out = gradient_tuple(outputs);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      PyObject* f = PyList_GET_ITEM(values.get(), i);
      const Object in = gradient_tuple(grads);
      PyObject* stack[] = {in.get(), out.get()};
      replace_gradients(f, Object::take(PyObject_Vectorcall(f, stack, 2, nullptr)).get(), grads);
    }
  };
  node_of(o).add_post_hook(run, hooks.get());
  return add_to(hooks.get(), hook);
}
Object register_node_prehook(PyObject* o, PyObject* hook) {
  const Object hooks = ordered_dict();
  const auto run = [held = Held(hooks.get())](Gradients& grads) {
    HoldGil gil;
    const Object values = hook_values(held.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      PyObject* f = PyList_GET_ITEM(values.get(), i);
      const Object in = gradient_tuple(grads);
      replace_gradients(f, Object::take(PyObject_CallOneArg(f, in.get())).get(), grads);
    }
  };
  node_of(o).add_pre_hook(run, hooks.get());
  return add_to(hooks.get(), hook);
}

// --- calling a node

PyObject* node_call(PyObject* o, PyObject* args, PyObject*) {
  return guard([&] {
    const auto n = Ref<Node>::share(&node_of(o));
    const auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
    check_type(given == n->outputs.size(), "expected ", n->outputs.size(), " arguments, got ",
               given, " instead");
    Gradients grads;
    for (size_t i = 0; i < given; ++i) {
      PyObject* g = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
      check_type(g == Py_None || is_tensor(g), "expected Tensors or None as gradients; argument ",
                 i, " is ", type_name(g));
      grads.push_back(g == Py_None ? Tensor() : tensor_of(g));
    }
    Gradients out;
    {
      const DropGil drop(true);
      out = n->apply(std::move(grads));
    }
    return out.size() == 1 ? wrapped(out[0]).leak() : gradient_tuple(out).leak();
  });
}

// --- fields: _saved_self, _raw_saved_self

OpNode& op_node_of(PyObject* o) { return static_cast<OpNode&>(node_of(o)); }

Object int_tuple_of(IntSpan v) {
  Object t = Object::take(PyTuple_New(static_cast<Py_ssize_t>(v.size())));
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(v[i])));
  return t;
}

PyObject* read_field(PyObject* o, void* closure) {
  return guard([&] {
    const auto& f = *static_cast<const OpNode::Field*>(closure);
    OpNode& n = op_node_of(o);
    switch (f.kind) {
      case OpNode::Field::Number: {
        Object v = value_object(n.number(f.index));
        return PyList_Check(v.get()) ? checked(PyList_AsTuple(v.get())) : v.leak();
      }
      case OpNode::Field::Sizes:
        return int_tuple_of(n.saved_sizes(f.index)).leak();
      case OpNode::Field::Result:
        return wrap(n.saved_result(f.index));
      default:
        break;
    }
    const Value& given = n.number(f.index);
    if (given.is_number()) return value_object(given).leak();
    if (f.list) return gradient_tuple(n.saved_list(f.index)).leak();
    return n.keeps(f.index) ? wrap(n.saved_arg(f.index)) : Py_NewRef(Py_None);
  });
}
PyObject* read_raw_field(PyObject* o, void* closure) {
  return guard([&] {
    const auto& f = *static_cast<const OpNode::Field*>(closure);
    OpNode& n = op_node_of(o);
    const auto node = Ref<Node>::share(&n);
    if (!f.list) return saved_field_object(node, f).leak();
    const size_t length = n.list_length(f);
    Object all = Object::take(PyTuple_New(static_cast<Py_ssize_t>(length)));
    OpNode::Field element = f;
    for (; element.element < length; ++element.element)
      PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(element.element),
                       saved_field_object(node, element).leak());
    return all.leak();
  });
}

void add_getter(PyTypeObject* type, const std::string& name, getter read, const OpNode::Field& f) {
  // Never freed, like the type that it belongs to.
  auto* def = new PyGetSetDef{};
  def->name = (new std::string(name))->c_str();
  def->get = read;
  def->closure = new OpNode::Field(f);
  const Object d = Object::take(PyDescr_NewGetSet(type, def));
  checked(PyDict_SetItemString(type->tp_dict, def->name, d.get()));
}

void add_fields(PyTypeObject* type, const OpNode& node) {
  for (const OpNode::Field& f : node.fields()) {
    const bool sizes = f.kind == OpNode::Field::Sizes;
    add_getter(type, "_saved_" + f.name + (sizes ? "_sym_sizes" : ""), read_field, f);
    if (f.kind == OpNode::Field::Argument || f.kind == OpNode::Field::Result)
      add_getter(type, "_raw_saved_" + f.name, read_raw_field, f);
  }
  PyType_Modified(type);
}

// --- the types

template <auto F>
PyObject* getter_of(PyObject* o, void*) {
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
PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
  return nullptr;
}

Object metadata_of(PyObject* o, PyObject*) { return node_metadata(node_of(o)); }

PyMethodDef node_methods[] = {
    {"name", guarded<node_name>, METH_NOARGS, "The name of the node, \"AddBackward0\"."},
    {"register_hook", guarded<register_node_hook>, METH_O,
     "Registers hook(grad_inputs, grad_outputs), run after the node. Returns a removable handle."},
    {"register_prehook", guarded<register_node_prehook>, METH_O,
     "Registers hook(grad_outputs), run before the node. Returns a removable handle."},
    {"_sequence_nr", guarded<node_sequence>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_properties[] = {
    {"next_functions", getter_of<next_functions>, nullptr, "Pairs of node and output number.",
     nullptr},
    {"variable", getter_of<node_variable>, nullptr, "The leaf that an accumulation node serves.",
     nullptr},
    {"metadata", getter_of<metadata_of>, nullptr, "A dict that stays with the node.", nullptr},
    {"_input_metadata", getter_of<input_metadata>, nullptr, nullptr, nullptr},
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
  t.tp_call = node_call;
  t.tp_dictoffset = offsetof(NodeObject, dict);
  t.tp_weaklistoffset = offsetof(NodeObject, weakrefs);
  t.tp_new = PyType_GenericNew;
  t.tp_repr = node_repr;
  t.tp_methods = node_methods;
  t.tp_getset = node_properties;
  t.tp_doc = "A node of the autograd graph.";
  return t;
}

// "torch::autograd::CopySlices" -> "CopySlices"
std::string class_name(const std::string& name) {
  const size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

// Makes one Python class for each name of a node, which repr() and type() show.
PyTypeObject* class_of(const Node& n) {
  static auto* classes = new std::map<std::string, PyTypeObject*>;
  const std::string name = class_name(n.name());
  PyTypeObject*& c = (*classes)[name];
  if (c) return c;
  const Object made = Object::take(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type),
                                                         "s(O){s()ss}", name.c_str(), &node_type,
                                                         "__slots__", "__module__", "builtins"));
  c = reinterpret_cast<PyTypeObject*>(Py_NewRef(made.get()));
  c->tp_new = refuse_new;
  if (const auto* op = dynamic_cast<const OpNode*>(&n)) add_fields(c, *op);
  return c;
}

}  // namespace

PyTypeObject node_type = make_node_type();

Object node_object(const Ref<Node>& n) {
  // An object with no references is being deallocated, which CPython delays for long chains.
  if (auto* there = static_cast<PyObject*>(n->python_object.load()); there && Py_REFCNT(there) > 0)
    return Object::share(there);
  PyTypeObject* type = class_of(*n);
  Object o = Object::take(type->tp_alloc(type, 0));
  self_of(o.get())->node = Ref<Node>(n).leak();
  self_of(o.get())->owns_node = true;
  n->python_object.store(o.get());
  return o;
}

Object node_metadata(Node& n) {
  std::unique_ptr<NodeMetadata>& there = n.hooks().metadata;
  if (!there) there = std::make_unique<PythonMetadata>();
  return Object::share(static_cast<PythonMetadata&>(*there).dict.get());
}

void add_nodes(PyObject* module) { add_type(module, node_type, "_Node"); }

}  // namespace facula::python
