// The recorder of compiled functions for Python (graph/recorder.h).
#include "bindings/modes/recorder_bindings.h"

#include <utility>

#include "bindings/module/gil.h"
#include "bindings/tensor/tensor_type.h"
#include "codegen/loop_cache.h"
#include "core/pending.h"
#include "dispatch/running_calls.h"
#include "graph/recorder.h"
#include "graph/units.h"

namespace facula::python {
namespace {

// An exception on its way, put aside while other code runs.
class RaisedError {
 public:
  RaisedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  // What was raised since has it in its context, as in a `finally` block.
  ~RaisedError() {
    if (!type_) return;
    if (PyErr_Occurred())
      chain();
    else
      PyErr_Restore(type_, value_, trace_);
  }
  RaisedError(const RaisedError&) = delete;

 private:
  void chain() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyErr_NormalizeException(&type_, &value_, &trace_);
    PyException_SetContext(value, value_);
    Py_XDECREF(type_);
    Py_XDECREF(trace_);
    PyErr_Restore(type, value, trace);
  }
  PyObject *type_, *value_, *trace_;
};

// Called at breaks: a function of Python that this thread's outermost compiled call has given.
thread_local constinit PyObject* break_function __attribute__((tls_model("initial-exec"))) =
    nullptr;

void call_break_function(std::string_view reason) {
  const HoldGil gil;
  if (!break_function) return;
  const Object told = Object::take(PyObject_CallFunction(break_function, "s#", reason.data(),
                                                         static_cast<Py_ssize_t>(reason.size())));
}

// Loops are compiled by the library beside ours, or by that of the package facula_compiler.
void install_loop_compiler() {
  static bool once = false;
  if (std::exchange(once, true)) return;
  loop_cache::install();
  Py_AtExit(loop_cache::stop);
  if (loop_cache::has_library()) return;
  PyObject* package = PyImport_ImportModule("facula_compiler");
  PyObject* path = package ? PyObject_GetAttrString(package, "library") : nullptr;
  const char* text = path ? PyUnicode_AsUTF8(path) : nullptr;
  if (text) loop_cache::set_library(text);
  Py_XDECREF(path);
  Py_XDECREF(package);
  PyErr_Clear();
}

PyObject* call_recorded(PyObject* on_break, PyObject* const* args, Py_ssize_t count,
                        PyObject* names) {
  return in_recorder(on_break, [&](bool) -> PyObject* {
    check_type(count > 0, "expected a function");
    return PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(count - 1), names);
  });
}

// _recorded(function, *args, **kwargs)
PyObject* recorded(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return call_recorded(nullptr, args, count, names);
}
// _recorded_telling(on_break, function, *args, **kwargs)
PyObject* recorded_telling(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return call_recorded(count ? args[0] : nullptr, args + 1, count - 1, names);
}

Object finish(PyObject*, PyObject*) {
  finish_pending_work();
  return none();
}

Object counts(PyObject*, PyObject*) {
  const Recorder::Counts c = Recorder::counts();
  return Object::take(Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "recorded", c.recorded,
                                    "run_at_once", c.run_at_once, "dropped", c.dropped, "fused",
                                    c.fused, "groups", c.groups, "runs", c.runs));
}

Object note_recorded_units(PyObject*, PyObject* on) {
  note_units(on == Py_True);
  return none();
}

Object tuple_of_sizes(const std::vector<int64_t>& sizes) {
  Object t = Object::take(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i)
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  return t;
}

// The units as dicts.
Object recorded_units(PyObject*, PyObject*) {
  Object list = Object::take(PyList_New(0));
  for (const Unit& u : take_units()) {
    const Object calls = Object::take(PyTuple_New(static_cast<Py_ssize_t>(u.calls.size())));
    for (size_t i = 0; i < u.calls.size(); ++i)
      PyTuple_SET_ITEM(calls.get(), static_cast<Py_ssize_t>(i),
                       PyUnicode_FromString(u.calls[i].c_str()));
    const Object made = Object::take(Py_BuildValue(
        "{s:O,s:O,s:K,s:K,s:K,s:L,s:L}", "calls", calls.get(), "sizes",
        tuple_of_sizes(u.sizes).get(), "bytes_read", u.bytes_read, "bytes_written", u.bytes_written,
        "bytes_alone", u.bytes_alone, "start", u.start, "nanoseconds", u.nanoseconds));
    checked(PyList_Append(list.get(), made.get()));
  }
  return list;
}

Object set_least_deferred(PyObject*, PyObject* n) {
  const long long least = PyLong_AsLongLong(n);
  if (least == -1 && PyErr_Occurred()) throw_python();
  return Object::take(PyLong_FromLongLong(least_deferred.exchange(least)));
}

Object loop_counts(PyObject*, PyObject*) {
  const loop_cache::Counts c = loop_cache::counts();
  return Object::take(Py_BuildValue("{s:K,s:K,s:K,s:K,s:O,s:s}", "compiled", c.compiled, "loaded",
                                    c.loaded, "failed", c.failed, "used", c.used, "available",
                                    c.available ? Py_True : Py_False, "error",
                                    loop_cache::last_error().c_str()));
}

Object wait_for_loops(PyObject*, PyObject*) {
  const WithoutInterpreter out;
  loop_cache::wait();
  return none();
}

Object set_loop_sightings(PyObject*, PyObject* n) {
  const long long sightings = PyLong_AsLongLong(n);
  if (sightings == -1 && PyErr_Occurred()) throw_python();
  loop_cache::set_sightings(static_cast<uint32_t>(sightings));
  return none();
}

// Makes `o` the object of a tensor that had another one.
void become_object_of(PyObject* o, TensorImpl* t) {
  kept(o)->impl = t;
  t->python_object.store(o);
}

// Under the scheme of counts, C++ holds a reference to the object of a tensor that it shares.
bool object_is_shared(TensorImpl* t) { return !scheme::owns_dealloc && t->use_count() > 1; }

// _swap_tensor_impl(a, b): each object becomes that of the other's tensor, history included.
// What Python refers to stays where it is: names, weak references, attributes, classes.
Object swap_tensor_impl(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO:_swap_tensor_impl", &a, &b)) throw_python();
  check_type(is_tensor(a) && is_tensor(b), "_swap_tensor_impl(): expected two Tensors; got ",
             type_name(a), " and ", type_name(b));
  TensorImpl *of_a = tensor_of(a).get(), *of_b = tensor_of(b).get();
  const bool a_shared = object_is_shared(of_a), b_shared = object_is_shared(of_b);
  become_object_of(a, of_b);
  become_object_of(b, of_a);
  if (a_shared == b_shared) return none();
  PyObject* now_shared = a_shared ? b : a;
  Py_INCREF(now_shared);
  Py_DECREF(now_shared == a ? b : a);  // the caller holds one, too
  return none();
}

Object is_open(PyObject*, PyObject*) { return boolean(Recorder::is_open()); }

template <PyObject* (*F)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
PyCFunction with_keywords() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(F));
}

PyMethodDef functions[] = {
    {"_recorded", with_keywords<recorded>(), METH_FASTCALL | METH_KEYWORDS,
     "Calls a function with the recorder on."},
    {"_recorded_telling", with_keywords<recorded_telling>(), METH_FASTCALL | METH_KEYWORDS,
     "The same with a function before it that is called at breaks, with the reason."},
    {"_finish_recorded", guarded<finish>, METH_NOARGS, "Runs what was put off on this thread."},
    {"_recorder_counts", guarded<counts>, METH_NOARGS, "What this thread has recorded, as a dict."},
    {"_note_recorded_units", guarded<note_recorded_units>, METH_O,
     "Whether notes are taken of what runs on this thread; forgets those so far."},
    {"_recorded_units", guarded<recorded_units>, METH_NOARGS,
     "What has run on this thread since: a list of dicts, one for each call or group."},
    {"_set_least_deferred", guarded<set_least_deferred>, METH_O,
     "From how many elements on calls wait; gives the number that held before."},
    {"_loop_counts", guarded<loop_counts>, METH_NOARGS,
     "What the compiler of loops has done in this process, as a dict."},
    {"_wait_for_loops", guarded<wait_for_loops>, METH_NOARGS,
     "Waits until no loop is left to compile."},
    {"_set_loop_sightings", guarded<set_loop_sightings>, METH_O,
     "From how many sightings on a loop is compiled."},
    {"_swap_tensor_impl", guarded<swap_tensor_impl>, METH_VARARGS,
     "Exchanges the tensors of two objects; the objects stay."},
    {"_is_recording", guarded<is_open>, METH_NOARGS, "Whether the recorder is on."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool open_recorder(PyObject* on_break) {
  if (!Recorder::open(on_break ? &call_break_function : nullptr)) return false;
  break_function = on_break;
  install_loop_compiler();
  return true;
}

PyObject* close_recorder(PyObject* result) {
  break_function = nullptr;
  const RaisedError before;
  const auto close = [] {
    Recorder::close();
    return Py_None;
  };
  if (!guard(close)) Py_CLEAR(result);
  return result;
}

void add_recorder_functions(PyObject* module) {
  checked(PyModule_AddFunctions(module, functions));
  object_is_ours.store([](const ObjectCounted& c) {
    auto* o = static_cast<PyObject*>(c.python_object.load());
    return o && Py_REFCNT(o) == 1;
  });
}

}  // namespace facula::python
