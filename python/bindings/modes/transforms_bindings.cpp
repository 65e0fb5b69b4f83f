// Function transforms, functionalization, tracing and fake tensors for Python.
#include "bindings/modes/transforms_bindings.h"

#include <memory>

#include "autograd/forward.h"
#include "bindings/modes/modes.h"
#include "bindings/module/package.h"
#include "bindings/tensor/tensor_type.h"
#include "dispatch/data_sizes.h"
#include "dispatch/warnings.h"
#include "graph/trace.h"
#include "ops/norm/batch_norm_form.h"
#include "transforms/autocast.h"
#include "transforms/fake.h"
#include "transforms/functional.h"
#include "transforms/interpreters.h"
#include "transforms/layers.h"

namespace facula::python {
namespace {

template <class... Out>
void parse(PyObject* args, const char* format, Out... out) {
  if (!PyArg_ParseTuple(args, format, out...)) throw_python();
}

const Tensor& tensor_argument(PyObject* o, const char* function) {
  check_type(is_tensor(o), function, "(): expected a Tensor; got ", type_name(o));
  return tensor_of(o);
}

std::vector<Tensor> tensor_sequence(PyObject* o, const char* function) {
  const Object items = Object::take(PySequence_Fast(o, "expected a sequence of Tensors"));
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    list.push_back(tensor_argument(PySequence_Fast_GET_ITEM(items.get(), i), function));
  return list;
}

Object tensor_tuple(const std::vector<Tensor>& list) {
  Object t = Object::take(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i),
                     list[i].defined() ? wrap(list[i]) : Py_NewRef(Py_None));
  return t;
}

int64_t level_argument(PyObject* o) {
  const int64_t v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) throw_python();
  return v;
}

// --- levels

Object vmap_push(PyObject*, PyObject* args) {
  long long size;
  const char* randomness;
  parse(args, "Ls:_vmap_increment_nesting", &size, &randomness);
  return integer(push_vmap(size, randomness_by_name(randomness)));
}
Object grad_push(PyObject*, PyObject*) { return integer(push_grad()); }
Object jvp_push(PyObject*, PyObject*) { return integer(push_jvp()); }
Object pop(PyObject*, PyObject* level) {
  pop_interpreter(level_argument(level));
  return none();
}
Object level_now(PyObject*, PyObject*) { return integer(current_level()); }

Object batch(PyObject*, PyObject* args) {
  PyObject* t;
  long long dim, level;
  parse(args, "OLL:_add_batch_dim", &t, &dim, &level);
  return wrapped(add_batch_dim(tensor_argument(t, "_add_batch_dim"), dim, level));
}
Object unbatch(PyObject*, PyObject* args) {
  PyObject* t;
  long long level, size, dim;
  parse(args, "OLLL:_remove_batch_dim", &t, &level, &size, &dim);
  return wrapped(remove_batch_dim(tensor_argument(t, "_remove_batch_dim"), level, size, dim));
}
Object grad_wrap(PyObject*, PyObject* args) {
  PyObject* t;
  long long level;
  parse(args, "OL:_wrap_for_grad", &t, &level);
  return wrapped(wrap_for_grad(tensor_argument(t, "_wrap_for_grad"), level));
}
Object grad_unwrap(PyObject*, PyObject* args) {
  PyObject* t;
  long long level;
  parse(args, "OL:_unwrap_for_grad", &t, &level);
  return wrapped(unwrap_for_grad(tensor_argument(t, "_unwrap_for_grad"), level));
}
Object is_batched(PyObject*, PyObject* t) {
  const TransformWrapper* w = transform_wrapper(tensor_argument(t, "is_batchedtensor"));
  return boolean(w && w->batched);
}
Object is_grad_wrapper(PyObject*, PyObject* t) {
  const TransformWrapper* w = transform_wrapper(tensor_argument(t, "is_gradtrackingtensor"));
  return boolean(w && !w->batched);
}
Object is_wrapper(PyObject*, PyObject* t) {
  const Tensor& x = tensor_argument(t, "is_functorch_wrapped_tensor");
  return boolean(transform_wrapper(x) || functional_part(x));
}
// The depth of a wrapper's level, where 1 is the outermost; -1 for other tensors.
Object depth_of(PyObject*, PyObject* t) {
  const TransformWrapper* w = transform_wrapper(tensor_argument(t, "maybe_get_level"));
  return integer(w ? depth_of_level(w->level) : -1);
}
Object level_of(PyObject*, PyObject* t) {
  const TransformWrapper* w = transform_wrapper(tensor_argument(t, "_level_of"));
  return integer(w ? w->level : -1);
}
Object batch_dim_of(PyObject*, PyObject* t) {
  const TransformWrapper* w = transform_wrapper(tensor_argument(t, "maybe_get_bdim"));
  return integer(w && w->batched ? 0 : -1);
}
Object value_of(PyObject*, PyObject* o) {
  const Tensor& t = tensor_argument(o, "get_unwrapped");
  if (functional_part(t)) return wrapped(from_functional(t));
  const TransformWrapper* w = transform_wrapper(t);
  check(w, "get_unwrapped(): expected a tensor of a function transform; got a plain one");
  return wrapped(Tensor(w->value));
}

// --- the interpreter on top, for custom Functions

// (kind, level, batch size, randomness), or None.
Object top_interpreter(PyObject*, PyObject*) {
  const Interpreter* top = thread_state.interpreters;
  if (!top) return none();
  static constexpr const char* kinds[] = {"vmap", "grad", "jvp"};
  static constexpr const char* modes[] = {"error", "different", "same"};
  return Object::take(Py_BuildValue(
      "(sLLs)", kinds[static_cast<int>(top->kind)], static_cast<long long>(top->level),
      static_cast<long long>(top->batch_size), modes[static_cast<int>(top->randomness)]));
}
constexpr const char* without_top_name = "facula._C._functorch.WithoutTop";
Object take_top_off(PyObject*, PyObject*) {
  check(thread_state.interpreters, "_take_top_off(): no function transform is on");
  auto off = std::make_unique<WithoutTop>();
  Object o = Object::take(PyCapsule_New(off.get(), without_top_name, nullptr));
  off.release();
  return o;
}
Object put_top_on(PyObject*, PyObject* capsule) {
  auto* off = static_cast<WithoutTop*>(PyCapsule_GetPointer(capsule, without_top_name));
  if (!off) throw_python();
  checked(PyCapsule_SetName(capsule, "facula._C._functorch.used"));
  delete off;
  return none();
}

// --- forward mode

Object dual_mode(PyObject*, PyObject*) { return boolean(forward_mode_on()); }
Object dual_enter(PyObject*, PyObject*) {
  enter_dual_level();
  return none();
}
Object dual_exit(PyObject*, PyObject*) {
  exit_dual_level();
  return none();
}
Object dual_on(PyObject*, PyObject*) { return boolean(dual_level_on()); }
Object dual_make(PyObject*, PyObject* args) {
  PyObject *primal, *tangent;
  parse(args, "OO:make_dual", &primal, &tangent);
  return wrapped(make_dual_at_level(tensor_argument(primal, "make_dual"),
                                    tensor_argument(tangent, "make_dual")));
}
Object dual_unpack(PyObject*, PyObject* t) {
  auto [primal, tangent] = unpack_dual_at_level(tensor_argument(t, "unpack_dual"));
  const Object first = wrapped(primal), second = tangent.defined() ? wrapped(tangent) : none();
  return Object::take(PyTuple_Pack(2, first.get(), second.get()));
}
// Whether an argument of a custom Function has a tangent at the current level.
Object dual_question(PyObject*, PyObject* t) {
  return boolean(forward_mode_on() && has_tangent(tensor_argument(t, "_has_tangent")));
}
Object computing_tangent(PyObject*, PyObject* on) {
  return boolean(std::exchange(thread_state.computing_tangent, on == Py_True));
}
Object dual_set(PyObject*, PyObject* args) {
  PyObject *t, *tangent;
  parse(args, "OO:_set_tangent", &t, &tangent);
  set_tangent(tensor_argument(t, "_set_tangent"), tensor_argument(tangent, "_set_tangent"));
  return none();
}

// --- printing, with all levels and modes removed

struct SetAside {
  Interpreter* interpreters;
  DispatchMode* modes;
  LayerSet include;
};
constexpr const char* set_aside_name = "facula._C._functorch.SetAside";

Object set_aside(PyObject*, PyObject*) {
  auto kept = std::make_unique<SetAside>();
  kept->include = thread_state.include;
  kept->interpreters = take_interpreters();
  kept->modes = std::exchange(thread_state.modes, nullptr);
  thread_state.include -= Layer::Modes;
  Object o = Object::take(PyCapsule_New(kept.get(), set_aside_name, [](PyObject* c) {
    delete static_cast<SetAside*>(PyCapsule_GetPointer(c, set_aside_name));
  }));
  kept.release();
  return o;
}
Object put_back(PyObject*, PyObject* capsule) {
  auto* kept = static_cast<SetAside*>(PyCapsule_GetPointer(capsule, set_aside_name));
  if (!kept) throw_python();
  put_interpreters(kept->interpreters);
  thread_state.modes = kept->modes;
  thread_state.include = kept->include;
  return none();
}

PyMethodDef functorch_functions[] = {
    {"_vmap_increment_nesting", guarded<vmap_push>, METH_VARARGS, nullptr},
    {"_grad_increment_nesting", guarded<grad_push>, METH_NOARGS, nullptr},
    {"_jvp_increment_nesting", guarded<jvp_push>, METH_NOARGS, nullptr},
    {"_decrement_nesting", guarded<pop>, METH_O, nullptr},
    {"maybe_current_level", guarded<level_now>, METH_NOARGS, nullptr},
    {"_add_batch_dim", guarded<batch>, METH_VARARGS, nullptr},
    {"_remove_batch_dim", guarded<unbatch>, METH_VARARGS, nullptr},
    {"_wrap_for_grad", guarded<grad_wrap>, METH_VARARGS, nullptr},
    {"_unwrap_for_grad", guarded<grad_unwrap>, METH_VARARGS, nullptr},
    {"is_batchedtensor", guarded<is_batched>, METH_O, nullptr},
    {"is_gradtrackingtensor", guarded<is_grad_wrapper>, METH_O, nullptr},
    {"is_functorch_wrapped_tensor", guarded<is_wrapper>, METH_O, nullptr},
    {"maybe_get_level", guarded<depth_of>, METH_O, nullptr},
    {"_level_of", guarded<level_of>, METH_O, nullptr},
    {"maybe_get_bdim", guarded<batch_dim_of>, METH_O, nullptr},
    {"_top_interpreter", guarded<top_interpreter>, METH_NOARGS, nullptr},
    {"_take_top_off", guarded<take_top_off>, METH_NOARGS, nullptr},
    {"_put_top_on", guarded<put_top_on>, METH_O, nullptr},
    {"_set_aside", guarded<set_aside>, METH_NOARGS, nullptr},
    {"_put_back", guarded<put_back>, METH_O, nullptr},
    {"get_unwrapped", guarded<value_of>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// --- mode objects, which Python code pushes and pops in pairs

struct ModeObject {
  PyObject_HEAD DispatchMode* mode;
  bool pushed;
};
extern PyTypeObject mode_type;

Object mode_object(std::unique_ptr<DispatchMode> mode) {
  Object o = Object::take(mode_type.tp_alloc(&mode_type, 0));
  reinterpret_cast<ModeObject*>(o.get())->mode = mode.release();
  return o;
}
ModeObject* mode_of(PyObject* o) { return reinterpret_cast<ModeObject*>(o); }

void mode_dealloc(PyObject* o) {
  // A mode that is still on the stack is leaked, since the stack points to it.
  if (!mode_of(o)->pushed) delete mode_of(o)->mode;
  Py_TYPE(o)->tp_free(o);
}
Object enter(PyObject* self, PyObject*) {
  check(!mode_of(self)->pushed, "this dispatch mode is on the stack already");
  push_mode(mode_of(self)->mode);
  mode_of(self)->pushed = true;
  return Object::share(self);
}
Object leave(PyObject* self, PyObject*) {
  check(thread_state.modes == mode_of(self)->mode,
        "dispatch modes must be left in the reverse of the order in which "
        "they were entered");
  pop_mode();
  mode_of(self)->pushed = false;
  return boolean(false);
}
Object finish_trace(PyObject* self, PyObject* outputs);

PyMethodDef mode_methods[] = {
    {"__enter__", guarded<enter>, METH_NOARGS, nullptr},
    {"__exit__", guarded<leave>, METH_VARARGS, nullptr},
    {"finish", guarded<finish_trace>, METH_O, "The graph so far, with these outputs."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject make_mode_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._DispatchMode";
  t.tp_basicsize = sizeof(ModeObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  t.tp_dealloc = mode_dealloc;
  t.tp_methods = mode_methods;
  return t;
}
PyTypeObject mode_type = make_mode_type();

// --- functionalization

Object functionalize_mode(PyObject*, PyObject* copy_views) {
  return mode_object(std::make_unique<FunctionalizeMode>(copy_views == Py_True));
}
Object show_batch_norm_writes(PyObject*, PyObject* on) {
  return boolean(batch_norm_shows_writes(on == Py_True));
}
Object to_functional(PyObject*, PyObject* inputs) {
  return tensor_tuple(make_functional_inputs(tensor_sequence(inputs, "_to_functional_tensors")));
}
Object out_of_functional(PyObject*, PyObject* t) {
  return wrapped(leave_functional(tensor_argument(t, "_from_functional_tensor")));
}
Object is_functional(PyObject*, PyObject* t) {
  return boolean(functional_part(tensor_argument(t, "_is_functional_tensor")) != nullptr);
}
Object give_back(PyObject*, PyObject* args) {
  PyObject *inputs, *functional;
  int resized = 0;
  parse(args, "OO|p:_functional_write_back", &inputs, &functional, &resized);
  const std::vector<Tensor> to = tensor_sequence(inputs, "_functional_write_back");
  const std::vector<Tensor> from = tensor_sequence(functional, "_functional_write_back");
  check_value(to.size() == from.size(),
              "_functional_write_back(): expected as many functional tensors as inputs");
  write_back(to, from, resized ? WriteBack::Resized : WriteBack::All);
  return none();
}

// --- fake tensors

Object fake_mode(PyObject*, PyObject* allow_real) {
  return mode_object(std::make_unique<FakeMode>(allow_real == Py_True));
}
Object fake(PyObject*, PyObject* t) { return wrapped(make_fake(tensor_argument(t, "_make_fake"))); }
Object fake_question(PyObject*, PyObject* t) {
  return boolean(is_fake(tensor_argument(t, "_is_fake")));
}

// --- sizes that data decide

// A Python object that says them: Sizes, SampleNumbers and others of fx.experimental.
class PythonDataSizes final : public DataSizes {
 public:
  explicit PythonDataSizes(PyObject* sizes) : sizes_(sizes) {}
  int64_t size(int64_t limit) override {
    const HoldGil gil;
    const Object most = limit == no_limit ? none() : integer(limit);
    return number(Object::take(PyObject_CallMethod(sizes_, "size", "O", most.get())));
  }
  bool is_symbolic(int64_t n) override {
    const HoldGil gil;
    const long long given = n;
    const Object answer = Object::take(PyObject_CallMethod(sizes_, "is_symbolic", "L", given));
    return answer.get() == Py_True;
  }
  int64_t size_of_slice(int64_t dim, int64_t size, int64_t start, int64_t end,
                        int64_t step) override {
    const HoldGil gil;
    const long long n[] = {dim, size, start, end, step};
    return number(Object::take(
        PyObject_CallMethod(sizes_, "size_of_slice", "LLLLL", n[0], n[1], n[2], n[3], n[4])));
  }

  PyObject* object() const { return sizes_; }

 private:
  static int64_t number(const Object& o) {
    const int64_t n = PyLong_AsLongLong(o.get());
    if (n == -1 && PyErr_Occurred()) throw_python();
    return n;
  }
  PyObject* const sizes_;  // the caller's
};

Object with_data_sizes(PyObject*, PyObject* args) {
  PyObject *sizes, *function, *given, *named;
  parse(args, "OOO!O!:_with_data_sizes", &sizes, &function, &PyTuple_Type, &given, &PyDict_Type,
        &named);
  PythonDataSizes asked(sizes);
  const UseDataSizes use(&asked);
  return Object::take(PyObject_Call(function, given, named));
}

Object data_sizes_in_use(PyObject*) {
  const auto* asked = dynamic_cast<PythonDataSizes*>(data_sizes);
  return asked ? Object::share(asked->object()) : none();
}

// --- graphs

struct GraphObject {
  PyObject_HEAD graph::Graph* graph;
};
extern PyTypeObject graph_type;

const graph::Graph& graph_of(PyObject* o) { return *reinterpret_cast<GraphObject*>(o)->graph; }
Object graph_object(graph::Graph g) {
  Object o = Object::take(graph_type.tp_alloc(&graph_type, 0));
  reinterpret_cast<GraphObject*>(o.get())->graph = new graph::Graph(std::move(g));
  return o;
}
void graph_dealloc(PyObject* o) {
  delete reinterpret_cast<GraphObject*>(o)->graph;
  Py_TYPE(o)->tp_free(o);
}
PyObject* graph_text(PyObject* o) {
  return guard([&] { return string(graph_of(o).str()).leak(); });
}
Object graph_run(PyObject* o, PyObject* inputs) {
  return tensor_tuple(graph_of(o).run(tensor_sequence(inputs, "Graph.run")));
}
Object graph_clean(PyObject* o, PyObject*) {
  reinterpret_cast<GraphObject*>(o)->graph->eliminate_dead_code();
  return none();
}
Object graph_lint(PyObject* o, PyObject*) {
  graph_of(o).check_valid();
  return none();
}
// A list of (operator name, text of the node).
Object graph_nodes(PyObject* o, void*) {
  Object list = Object::take(PyList_New(0));
  for (const graph::Node& n : graph_of(o).nodes) {
    const Object pair =
        Object::take(Py_BuildValue("(ss)", n.op->name().c_str(), graph::str(n).c_str()));
    checked(PyList_Append(list.get(), pair.get()));
  }
  return list;
}
PyObject* graph_nodes_getter(PyObject* o, void* closure) {
  return guard([&] { return graph_nodes(o, closure).leak(); });
}

PyMethodDef graph_methods[] = {
    {"run", guarded<graph_run>, METH_O,
     "Runs the graph on a sequence of Tensors; returns a tuple."},
    {"eliminate_dead_code", guarded<graph_clean>, METH_NOARGS, "Removes nodes that nothing uses."},
    {"lint", guarded<graph_lint>, METH_NOARGS,
     "Raises RuntimeError where the graph is not well formed."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef graph_members[] = {
    {"nodes", graph_nodes_getter, nullptr, "One (operator, text) for each node.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_graph_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._Graph";
  t.tp_basicsize = sizeof(GraphObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  t.tp_dealloc = graph_dealloc;
  t.tp_str = graph_text;
  t.tp_repr = graph_text;
  t.tp_methods = graph_methods;
  t.tp_getset = graph_members;
  return t;
}
PyTypeObject graph_type = make_graph_type();

Object trace_mode(PyObject*, PyObject* inputs) {
  return mode_object(std::make_unique<TraceMode>(tensor_sequence(inputs, "_trace_mode")));
}
Object finish_trace(PyObject* self, PyObject* outputs) {
  auto* mode = dynamic_cast<TraceMode*>(mode_of(self)->mode);
  check_type(mode, "finish(): expected a tracing mode");
  return graph_object(mode->finish(tensor_sequence(outputs, "finish")));
}

Object clear_cast_cache(PyObject*, PyObject*) {
  clear_autocast_cache();
  return none();
}

PyMethodDef functions[] = {
    {"_functionalize_mode", guarded<functionalize_mode>, METH_O, nullptr},
    {"_batch_norm_shows_writes", guarded<show_batch_norm_writes>, METH_O,
     "Whether batch_norm() calls operators that tell what they write; returns what it did."},
    {"_to_functional_tensors", guarded<to_functional>, METH_O, nullptr},
    {"_from_functional_tensor", guarded<out_of_functional>, METH_O, nullptr},
    {"_is_functional_tensor", guarded<is_functional>, METH_O, nullptr},
    {"_functional_write_back", guarded<give_back>, METH_VARARGS, nullptr},
    {"_FakeMode", guarded<fake_mode>, METH_O, nullptr},
    {"_make_fake", guarded<fake>, METH_O, nullptr},
    {"_is_fake", guarded<fake_question>, METH_O, nullptr},
    {"_with_data_sizes", guarded<with_data_sizes>, METH_VARARGS,
     "What function(*args, **kwargs) gives while an object says the sizes that data decide."},
    {"_data_sizes", guarded_nullary<data_sizes_in_use>, METH_NOARGS,
     "The object that says the sizes that data decide, or None."},
    {"_trace_mode", guarded<trace_mode>, METH_O, nullptr},
    {"_enter_dual_level", guarded<dual_enter>, METH_NOARGS, nullptr},
    {"_exit_dual_level", guarded<dual_exit>, METH_NOARGS, nullptr},
    {"_dual_level_on", guarded<dual_on>, METH_NOARGS, nullptr},
    {"_set_computing_tangent", guarded<computing_tangent>, METH_O, nullptr},
    {"_forward_mode_on", guarded<dual_mode>, METH_NOARGS, nullptr},
    {"_make_dual", guarded<dual_make>, METH_VARARGS, nullptr},
    {"_unpack_dual", guarded<dual_unpack>, METH_O, nullptr},
    {"_has_tangent", guarded<dual_question>, METH_O, nullptr},
    {"_set_tangent", guarded<dual_set>, METH_VARARGS, nullptr},
    {"clear_autocast_cache", guarded<clear_cast_cache>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

void warn(const std::string& text) {
  HoldGil gil;
  warn_user(text.c_str());
}

}  // namespace

void add_transform_functions(PyObject* module) {
  checked(PyModule_AddFunctions(module, functions));
  add_type(module, mode_type, "_DispatchMode");
  add_type(module, graph_type, "_Graph");
  const Object functorch = Object::take(PyModule_New(in_package("_C._functorch").c_str()));
  checked(PyModule_AddFunctions(functorch.get(), functorch_functions));
  add_submodule(module, "_functorch", functorch.get());
  subclass_handler.store(&handle_subclass);
  warning_handler.store(&warn);
}

}  // namespace facula::python
