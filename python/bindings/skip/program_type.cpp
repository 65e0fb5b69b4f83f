// The Python type of programs, by whose methods the reader (facula/_dynamo/skip) builds one.
#include <memory>

#include "bindings/skip/program.h"

namespace facula::python {
namespace {

PyObject* new_program(PyTypeObject* type, PyObject*, PyObject*) {
  return guard([&] {
    Object o = Object::take(type->tp_alloc(type, 0));
    reinterpret_cast<ProgramObject*>(o.get())->program = new Program;
    return o.leak();
  });
}
int traverse(PyObject* o, visitproc visit, void* arg) {
  const Program* p = reinterpret_cast<ProgramObject*>(o)->program;
  return p ? p->traverse(visit, arg) : 0;
}
int clear(PyObject* o) {
  if (Program* p = reinterpret_cast<ProgramObject*>(o)->program) p->clear();
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  const std::unique_ptr<Program> last(
      std::exchange(reinterpret_cast<ProgramObject*>(o)->program, nullptr));
  if (last) last->end();
  Py_TYPE(o)->tp_free(o);
}

// take_arguments(args, kwargs): the lists and dicts among the arguments.
Object take_arguments(PyObject* o, PyObject* both) {
  PyObject *args, *kwargs;
  if (!PyArg_ParseTuple(both, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) throw_python();
  std::vector<PyObject*> lists;
  program_of(o).take_arguments(args, kwargs, lists);
  const Object found = Object::take(PyList_New(0));
  for (PyObject* l : lists) checked(PyList_Append(found.get(), l));
  return found;
}

Object begin(PyObject* o, PyObject*) {
  program_of(o).begin();
  return none();
}
Object end(PyObject* o, PyObject*) {
  program_of(o).end();
  return none();
}
Object finish(PyObject* o, PyObject* result) {
  program_of(o).finish(result);
  return none();
}
Object hold(PyObject* o, PyObject* tensor) {
  check_type(is_tensor(tensor), "expected a Tensor; got ", type_name(tensor));
  program_of(o).hold(tensor);
  return none();
}
Object holds(PyObject* o, PyObject*) { return boolean(program_of(o).look() == Standing::Same); }

template <void (Watches::*Add)(PyObject*)>
Object watch(PyObject* o, PyObject* thing) {
  (program_of(o).watches.*Add)(thing);
  return none();
}
template <void (Watches::*Add)(PyObject*, PyObject*)>
Object watch_part(PyObject* o, PyObject* both) {
  PyObject *thing, *name;
  if (!PyArg_ParseTuple(both, "OO", &thing, &name)) throw_python();
  (program_of(o).watches.*Add)(thing, name);
  return none();
}

// Whether a tensor is an argument, held, or made by the program.
Object is_known(PyObject* o, PyObject* t) {
  return boolean(is_tensor(t) && program_of(o).recorder().slot_of(tensor_of(t).get()));
}
// Whether what Python can ask such a tensor is always the same.
Object has_known_geometry(PyObject* o, PyObject* t) {
  return boolean(program_of(o).recorder().has_known_geometry(tensor_of(t).get()));
}
// Whether a tensor was made by the program.
Object is_made(PyObject* o, PyObject* t) {
  const Slot* slot = program_of(o).recorder().slot_of(tensor_of(t).get());
  return boolean(slot && slot->kind == Slot::Made);
}

// watch_attribute(owner, name): whether an object of ours was given an attribute of this name.
Object watch_attribute(PyObject* o, PyObject* both) {
  PyObject *owner, *name;
  if (!PyArg_ParseTuple(both, "OO", &owner, &name)) throw_python();
  Watches& watches = program_of(o).watches;
  if (!is_tensor(owner)) watches.add_instance(owner);
  PyObject** dict = is_tensor(owner) ? &kept(owner)->dict : _PyObject_GetDictPtr(owner);
  if (!dict || !*dict) return boolean(false);  // of held tensors it is watched that there is none
  watches.add_item(*dict, name);
  return boolean(PyDict_Contains(*dict, name) > 0);
}

Object forget_used(PyObject* o, PyObject*) {
  program_of(o).forget_used();
  return none();
}
Object need_distinct_arguments(PyObject* o, PyObject*) {
  program_of(o).need_distinct_arguments();
  return none();
}
Object was_used(PyObject* o, PyObject* t) {
  return boolean(program_of(o).recorder().was_used(tensor_of(t).get()));
}

Object counts(PyObject* o, PyObject*) {
  const Program& p = program_of(o);
  return Object::take(Py_BuildValue("{s:n,s:n}", "calls",
                                    static_cast<Py_ssize_t>(p.steps().count()), "watched",
                                    static_cast<Py_ssize_t>(p.watches.size())));
}

PyMethodDef methods[] = {
    {"take_arguments", guarded<take_arguments>, METH_VARARGS,
     "Takes the form of a call's arguments; gives the lists and dicts among them."},
    {"begin", guarded<begin>, METH_NOARGS, "Takes down this thread's calls from here on."},
    {"end", guarded<end>, METH_NOARGS, "Takes down no more."},
    {"finish", guarded<finish>, METH_O, "Makes the program, which gives a result like this one."},
    {"hold", guarded<hold>, METH_O, "Makes known a tensor that is read from elsewhere."},
    {"holds", guarded<holds>, METH_NOARGS, "Whether all that was read is as it was."},
    {"watch_instance", guarded<watch<&Watches::add_instance>>, METH_O, nullptr},
    {"watch_function", guarded<watch<&Watches::add_function>>, METH_O, nullptr},
    {"watch_cell", guarded<watch<&Watches::add_cell>>, METH_O, nullptr},
    {"watch_list", guarded<watch<&Watches::add_list>>, METH_O, nullptr},
    {"watch_dict", guarded<watch<&Watches::add_dict>>, METH_O, nullptr},
    {"watch_item", guarded<watch_part<&Watches::add_item>>, METH_VARARGS, nullptr},
    {"watch_name", guarded<watch_part<&Watches::add_name>>, METH_VARARGS, nullptr},
    {"watch_attribute", guarded<watch_attribute>, METH_VARARGS, nullptr},
    {"watch_own_name", guarded<watch_part<&Watches::add_own_name>>, METH_VARARGS, nullptr},
    {"is_known", guarded<is_known>, METH_O, nullptr},
    {"is_made", guarded<is_made>, METH_O, nullptr},
    {"has_known_geometry", guarded<has_known_geometry>, METH_O, nullptr},
    {"forget_used", guarded<forget_used>, METH_NOARGS, nullptr},
    {"need_distinct_arguments", guarded<need_distinct_arguments>, METH_NOARGS, nullptr},
    {"was_used", guarded<was_used>, METH_O, "Whether a call took the tensor since forget_used()."},
    {"counts", guarded<counts>, METH_NOARGS, "How many calls it has, and how much it watches."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._SkipProgram";
  t.tp_doc = "A stored program of a compiled function.";
  t.tp_basicsize = sizeof(ProgramObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  t.tp_new = new_program;
  t.tp_dealloc = dealloc;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_methods = methods;
  return t;
}

}  // namespace

PyTypeObject program_type = make_type();

void add_program_type(PyObject* module) { add_type(module, program_type, "_SkipProgram"); }

}  // namespace facula::python
