// The programs of one compiled function, and calls that look among them before Python runs.
#include <algorithm>
#include <memory>

#include "bindings/modes/recorder_bindings.h"
#include "bindings/skip/program.h"

namespace facula::python {
namespace {

constexpr size_t most_programs = 8;
constexpr uint32_t default_calls_before = 8;
constexpr uint32_t most_calls_before = 1 << 20;
// A program that was played as often has paid for its reading.
constexpr uint64_t worth_a_reading = 64;

struct Site {
  PyObject* read = nullptr;  // read(site, function, args, kwargs): calls it, and adds a program
  Object function;           // of the programs
  std::vector<Object> programs;
  uint32_t calls_before = default_calls_before;  // a reading, without a program that fits
  uint32_t wait = default_calls_before;          // the same, longer after readings that did not pay
  uint32_t missed = 0, readings = 0;
  uint64_t played = 0, played_before = 0;  // and by the last reading
  std::string refused;                     // why the last reading gave no program
};
struct SiteObject {
  PyObject_HEAD Site* site;
};
Site& site_of(PyObject* o) { return *reinterpret_cast<SiteObject*>(o)->site; }

auto place(Site& site, size_t i) { return site.programs.begin() + static_cast<std::ptrdiff_t>(i); }

// Drops the programs that read what is no longer there: they would keep alive what Python dropped.
void drop_gone(Site& site) {
  std::vector<Object> gone;
  for (size_t i = site.programs.size(); i-- > 0;) {
    if (program_of(site.programs[i].get()).look() != Standing::Gone) continue;
    gone.push_back(site.programs[i]);
    site.programs.erase(place(site, i));
  }
}

// The result of the program for these arguments; null without an error if there is none, or if the
// function itself has to raise.
PyObject* try_programs(Site& site, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (site.programs.empty() || !ProgramState::is_plain()) return nullptr;
  for (size_t i = 0; i < site.programs.size(); ++i) {
    const Object kept = site.programs[i];
    Program& p = program_of(kept.get());
    InlineVector<TensorImpl*, 16> inputs;
    if (!p.fits(args, count, names, inputs)) continue;
    const Standing standing = p.look();
    if (standing == Standing::Gone) return drop_gone(site), try_programs(site, args, count, names);
    if (standing != Standing::Same) continue;
    if (i > 0)
      std::rotate(site.programs.begin(), site.programs.begin() + static_cast<std::ptrdiff_t>(i),
                  site.programs.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ++site.played;
    PyObject* result = guard([&] { return p.run(inputs).leak(); });
    if (!result && p.steps().can_repeat() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
    return result;
  }
  return nullptr;
}

// Readings cost as much as a thousand calls, so each that did not pay doubles the wait for the
// next.
bool reads_now(Site& site, bool opened) {
  if (!opened || ++site.missed < site.wait || !ProgramState::is_plain()) return false;
  const bool paid = site.readings == 0 || site.played - site.played_before >= worth_a_reading;
  site.wait = paid ? site.calls_before : std::min(2 * site.wait, most_calls_before);
  site.missed = 0;
  site.played_before = site.played;
  ++site.readings;
  site.refused.clear();
  return true;
}

PyObject* read(PyObject* o, PyObject* function, PyObject* const* args, Py_ssize_t count,
               PyObject* names) {
  const Object positional = Object::take(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  const Object named = Object::take(PyDict_New());
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    checked(PyDict_SetItem(named.get(), PyTuple_GET_ITEM(names, i), args[count + i]));
  return PyObject_CallFunctionObjArgs(site_of(o).read, o, function, positional.get(), named.get(),
                                      nullptr);
}

// _recorded_skipping(site, function, *args, **kwargs)
PyObject* call_skipping(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return in_recorder(nullptr, [&](bool opened) -> PyObject* {
    check_type(count > 1, "expected a site and a function");
    PyObject *o = args[0], *function = args[1];
    Site& site = site_of(o);
    PyObject* const* rest = args + 2;
    if (site.function.get() != function) {
      const std::vector<Object> others = std::exchange(site.programs, {});
      site.function = Object::share(function);
    }
    if (opened) {
      PyObject* result = try_programs(site, rest, count - 2, names);
      if (result || PyErr_Occurred()) return result;
    }
    if (reads_now(site, opened)) return read(o, function, rest, count - 2, names);
    return PyObject_Vectorcall(function, rest, static_cast<size_t>(count - 2), names);
  });
}

// --- the type

PyObject* new_site(PyTypeObject* type, PyObject* args, PyObject*) {
  return guard([&] {
    PyObject* read;
    if (!PyArg_ParseTuple(args, "O", &read)) throw_python();
    Object o = Object::take(type->tp_alloc(type, 0));
    auto site = std::make_unique<Site>();
    site->read = Py_NewRef(read);
    reinterpret_cast<SiteObject*>(o.get())->site = site.release();
    return o.leak();
  });
}

int traverse_site(PyObject* o, visitproc visit, void* arg) {
  if (!reinterpret_cast<SiteObject*>(o)->site) return 0;
  Py_VISIT(site_of(o).read);
  Py_VISIT(site_of(o).function.get());
  for (const Object& p : site_of(o).programs) Py_VISIT(p.get());
  return 0;
}
int clear_site(PyObject* o) {
  if (!reinterpret_cast<SiteObject*>(o)->site) return 0;
  const std::vector<Object> programs = std::exchange(site_of(o).programs, {});
  const Object function = std::exchange(site_of(o).function, Object());
  Py_CLEAR(site_of(o).read);
  return 0;
}
void dealloc_site(PyObject* o) {
  PyObject_GC_UnTrack(o);
  clear_site(o);
  delete reinterpret_cast<SiteObject*>(o)->site;
  Py_TYPE(o)->tp_free(o);
}

Object add_program(PyObject* o, PyObject* program) {
  check_type(Py_TYPE(program) == &program_type, "expected a program");
  Site& site = site_of(o);
  drop_gone(site);
  const Object last = site.programs.size() < most_programs ? Object() : site.programs.back();
  if (last) site.programs.pop_back();
  site.programs.insert(site.programs.begin(), Object::share(program));
  return none();
}
Object set_refused(PyObject* o, PyObject* reason) {
  site_of(o).refused = std::string(text_of(reason));
  return none();
}
Object set_calls_before(PyObject* o, PyObject* n) {
  site_of(o).calls_before = site_of(o).wait = static_cast<uint32_t>(PyLong_AsUnsignedLong(n));
  if (PyErr_Occurred()) throw_python();
  return none();
}
Object counts(PyObject* o, PyObject*) {
  const Site& s = site_of(o);
  return Object::take(
      Py_BuildValue("{s:K,s:I,s:n,s:s}", "played", static_cast<unsigned long long>(s.played),
                    "readings", s.readings, "programs", static_cast<Py_ssize_t>(s.programs.size()),
                    "refused", s.refused.c_str()));
}

PyMethodDef methods[] = {
    {"add", guarded<add_program>, METH_O, "Adds a program, which is looked at first."},
    {"set_refused", guarded<set_refused>, METH_O, "Why the last reading gave no program."},
    {"set_calls_before", guarded<set_calls_before>, METH_O,
     "How many calls without a program come before a reading."},
    {"counts", guarded<counts>, METH_NOARGS, "What it has done, as a dict."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject make_type() {
  PyTypeObject t = blank_type();
  t.tp_name = "facula._C._SkipSite";
  t.tp_doc = "The stored programs of a compiled function.";
  t.tp_basicsize = sizeof(SiteObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  t.tp_new = new_site;
  t.tp_dealloc = dealloc_site;
  t.tp_traverse = traverse_site;
  t.tp_clear = clear_site;
  t.tp_methods = methods;
  return t;
}
PyTypeObject site_type = make_type();

PyMethodDef functions[] = {
    {"_recorded_skipping",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_skipping)),
     METH_FASTCALL | METH_KEYWORDS,
     "Calls a function with the recorder on, or its stored program."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_skip(PyObject* module) {
  add_program_type(module);
  add_type(module, site_type, "_SkipSite");
  checked(PyModule_AddFunctions(module, functions));
  add_frame_functions(module);
}

}  // namespace facula::python
