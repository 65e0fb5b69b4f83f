#include "bindings/modes/overrides.h"

#include "bindings/modes/subclass.h"

#include "bindings/module/package.h"
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

PlainSubclass plain_subclass = {};

namespace {

OverrideState& state() { return thread_state.overrides; }

// Pushes a mode on this thread's stack; the top runs first.
void push_mode_object(Object mode) {
  OverrideState& s = state();
  s.modes = new FunctionMode(mode.leak(), Ref<FunctionMode>::take(s.modes));
  ++s.depth;
}
// Pops the top of the stack.
Ref<FunctionMode> pop_mode_link() {
  OverrideState& s = state();
  check(s.modes != nullptr, "trying to pop from empty mode stack");
  Ref<FunctionMode> top = Ref<FunctionMode>::take(s.modes);
  s.modes = Ref<FunctionMode>(top->below).leak();
  --s.depth;
  return top;
}

PyObject* disabled_function = nullptr;
PyObject* disabled_dispatch = nullptr;

PyObject* word(const char* text, PyObject*& kept) {
  if (!kept) kept = PyUnicode_InternFromString(text);
  return kept;
}
PyObject* function_word() {
  static PyObject* kept = nullptr;
  return word("__torch_function__", kept);
}
PyObject* dispatch_word() {
  static PyObject* kept = nullptr;
  return word("__torch_dispatch__", kept);
}

bool is_basic(PyTypeObject* t) {
  return t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type ||
         t == &PyTuple_Type || t == &PyList_Type || t == &PyDict_Type || t == Py_TYPE(Py_None) ||
         t == &PySlice_Type || t == &PyComplex_Type || t == &PyType_Type || t == &PyEllipsis_Type;
}

// Looks up an attribute of a class without binding it; borrowed.
PyObject* class_attribute(PyTypeObject* t, PyObject* name) { return _PyType_Lookup(t, name); }

void note_plain_subclass(PyTypeObject* t) {
  if (!PyType_IsSubtype(t, &tensor_base_type) || t->tp_version_tag == 0 ||
      !PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG))
    return;
  PyObject* dispatch = class_attribute(t, dispatch_word());
  if (!dispatch || dispatch == disabled_dispatch) plain_subclass = {t, t->tp_version_tag};
}

// Whether the class has a __torch_function__ of its own. The answers for a few classes are cached
// by version tag, which changes when the class does.
bool overrides(PyTypeObject* t) {
  struct Known {
    PyTypeObject* type;
    unsigned version;
    bool answer;
  };
  static Known table[16] = {};
  Known& known = table[reinterpret_cast<uintptr_t>(t) >> 5 & 15];
  const bool valid = PyType_HasFeature(t, Py_TPFLAGS_VALID_VERSION_TAG);
  if (known.type == t && valid && known.version == t->tp_version_tag) return known.answer;
  PyObject* f = class_attribute(t, function_word());
  const bool answer = f && f != disabled_function;
  known = {t, t->tp_version_tag, answer};
  if (!answer) note_plain_subclass(t);
  return answer;
}

Object try_override(PyObject* holder, PyObject* function, PyObject* types, PyObject* args,
                    PyObject* kwargs) {
  const Object method = attribute(holder, "__torch_function__");
  PyObject* stack[] = {function, types, args, kwargs};
  return Object::take(PyObject_Vectorcall(method.get(), stack, kwargs ? 4 : 3, nullptr));
}

Object types_of(const std::vector<Object>& overloaded) {
  Object types = Object::take(PyTuple_New(static_cast<Py_ssize_t>(overloaded.size())));
  for (size_t i = 0; i < overloaded.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(overloaded[i].get()))));
  return types;
}

// Removes the top mode while it runs.
class ModeOff {
 public:
  ModeOff() : mode_(pop_mode_link()) {}
  ~ModeOff() {
    Ref<FunctionMode>::take(state().modes).reset();
    state().modes = mode_.leak();
    ++state().depth;
  }
  ModeOff(const ModeOff&) = delete;
  PyObject* mode() const { return static_cast<PyObject*>(mode_->object); }

 private:
  Ref<FunctionMode> mode_;
};

std::string function_name(PyObject* f) {
  const Object name = Object::take(PyObject_Str(f));
  return std::string(text_of(name.get()));
}

}  // namespace

bool has_override(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (is_plain_tensor(o) || is_basic(t)) return false;
  if (!state().subclass_enabled || !state().all_enabled) return false;
  return overrides(t);
}

void note_overloaded(PyObject* o, std::vector<Object>& list) {
  if (!has_override(o)) return;
  PyTypeObject* t = Py_TYPE(o);
  size_t at = list.size();
  for (size_t i = 0; i < list.size(); ++i) {
    if (Py_TYPE(list[i].get()) == t) return;
    // Subclasses are asked before their bases.
    if (at == list.size() && PyType_IsSubtype(t, Py_TYPE(list[i].get()))) at = i;
  }
  list.insert(list.begin() + static_cast<long>(at), Object::share(o));
}

Object call_overrides(PyObject* function, const std::vector<Object>& overloaded, PyObject* args,
                      PyObject* kwargs) {
  const Object types = types_of(overloaded);
  if (function_mode_active()) {
    const ModeOff off;
    const Object r = try_override(off.mode(), function, types.get(), args, kwargs);
    if (r.get() != Py_NotImplemented) return r;
  }
  for (const Object& o : overloaded) {
    const Object r = try_override(o.get(), function, types.get(), args, kwargs);
    if (r.get() != Py_NotImplemented) return r;
  }
  throw_type(concat("no implementation found for '", function_name(function),
                    "' on types that implement __torch_function__: ",
                    text_of(Object::take(PyObject_Repr(types.get())).get())));
}

Object self_override(PyObject* self, const char* name, PyObject* args, PyObject* kwargs) {
  if (is_plain_tensor(self) && !function_mode_active()) return {};
  std::vector<Object> overloaded;
  note_overloaded(self, overloaded);
  if (overloaded.empty() && !function_mode_active()) return ask_class(self, name, args, kwargs);
  Object function = attribute(reinterpret_cast<PyObject*>(tensor_type), name);
  // For a property the function is its __get__.
  if (!PyCallable_Check(function.get())) function = attribute(function.get(), "__get__");
  const Py_ssize_t more = args ? PyTuple_GET_SIZE(args) : 0;
  const Object all = Object::take(PyTuple_New(more + 1));
  PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < more; ++i)
    PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  return call_overrides(function.get(), overloaded, all.get(), kwargs);
}

Object argument_override(const char* name, PyObject* args, PyObject* kwargs) {
  std::vector<Object> overloaded;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    note_overloaded(PyTuple_GET_ITEM(args, i), overloaded);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);)
    note_overloaded(value, overloaded);
  if (overloaded.empty() && !function_mode_active()) return {};
  const Object function = imported("facula", name);
  return call_overrides(function.get(), overloaded, args, kwargs);
}

Object argument_override(const char* name, PyObject* argument) {
  if (!has_override(argument) && !function_mode_active()) return {};
  const Object args = Object::take(PyTuple_Pack(1, argument));
  return argument_override(name, args.get(), nullptr);
}

Object mode_override(const char* name, PyObject* args, PyObject* kwargs) {
  if (!function_mode_active()) return {};
  const Object function = imported("facula", name);
  return call_overrides(function.get(), {}, args, kwargs);
}

void mark_subclass(PyTypeObject* type, const Tensor& t) {
  if (type == tensor_type) return;
  PyObject* f = class_attribute(type, dispatch_word());
  if (f && f != disabled_dispatch) t->layers |= Layer::Subclass;
}

PyObject* disabled_torch_function() { return disabled_function; }

namespace {

// --- context managers that turn overrides off; each object holds the old state

struct SwitchObject {
  PyObject_HEAD bool subclass_before, all_before;
};
SwitchObject* self_of(PyObject* o) { return reinterpret_cast<SwitchObject*>(o); }

template <bool All>
PyObject* switch_enter(PyObject* o, PyObject*) {
  self_of(o)->subclass_before = state().subclass_enabled;
  self_of(o)->all_before = state().all_enabled;
  state().subclass_enabled = false;
  if (All) state().all_enabled = false;
  return Py_NewRef(o);
}
PyObject* switch_exit(PyObject* o, PyObject*) {
  state().subclass_enabled = self_of(o)->subclass_before;
  state().all_enabled = self_of(o)->all_before;
  Py_RETURN_NONE;
}
PyObject* switch_new(PyTypeObject* type, PyObject*, PyObject*) { return type->tp_alloc(type, 0); }

template <bool All>
PyMethodDef switch_methods[] = {{"__enter__", switch_enter<All>, METH_NOARGS, nullptr},
                                {"__exit__", switch_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

template <bool All>
PyTypeObject switch_type(const char* name) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(SwitchObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_new = switch_new;
  t.tp_methods = switch_methods<All>;
  return t;
}
PyTypeObject subclass_off = switch_type<false>("facula._C.DisableTorchFunctionSubclass");
PyTypeObject all_off = switch_type<true>("facula._C.DisableTorchFunction");

// --- module functions

class SubclassesOff {
 public:
  SubclassesOff() : before_(std::exchange(state().subclass_enabled, false)) {}
  ~SubclassesOff() { state().subclass_enabled = before_; }

 private:
  bool before_;
};

PyObject* disabled_function_impl(PyObject*, PyObject* args, PyObject* given_keywords) {
  return guard([&] {
    const OwnKeywords own(given_keywords);
    PyObject *function, *types, *arguments = nullptr, *keywords = nullptr;
    static const char* keys[] = {"func", "types", "args", "kwargs", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, own.get(), "OO|OO", const_cast<char**>(keys), &function,
                                     &types, &arguments, &keywords))
      throw_python();
    const bool no_keywords = !keywords || keywords == Py_None;
    check_type(no_keywords || PyDict_Check(keywords), "expected a dict of keywords; got ",
               no_keywords ? "" : type_name(keywords));
    const Object tuple = Object::take(arguments ? PySequence_Tuple(arguments) : PyTuple_New(0));
    const SubclassesOff off;
    return PyObject_Call(function, tuple.get(), no_keywords ? nullptr : keywords);
  });
}

PyObject* push_function_mode(PyObject*, PyObject* mode) {
  return guard([&] {
    push_mode_object(Object::share(mode));
    return none().leak();
  });
}
PyObject* pop_function_mode(PyObject*, PyObject*) {
  return guard([&] { return Py_NewRef(static_cast<PyObject*>(pop_mode_link()->object)); });
}
PyObject* function_mode_depth(PyObject*, PyObject*) { return PyLong_FromLong(state().depth); }
PyObject* function_mode_at(PyObject*, PyObject* i) {
  const size_t at = PyLong_AsSize_t(i);
  if (PyErr_Occurred()) return nullptr;
  if (at >= static_cast<size_t>(state().depth)) {
    PyErr_SetString(PyExc_IndexError, "the stack of function modes is not as deep");
    return nullptr;
  }
  const FunctionMode* m = state().modes;
  for (size_t above = static_cast<size_t>(state().depth) - 1; above > at; --above)
    m = m->below.get();
  return Py_NewRef(static_cast<PyObject*>(m->object));
}
PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(state().subclass_enabled); }

Object has_any(PyObject*, PyObject* args) {
  const Object fast = Object::take(PySequence_Fast(args, "expected a sequence of arguments"));
  if (function_mode_active()) return boolean(true);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    if (has_override(PySequence_Fast_GET_ITEM(fast.get(), i))) return boolean(true);
  return boolean(false);
}
PyObject* has_variadic(PyObject* self, PyObject* args) { return guarded<has_any>(self, args); }
PyObject* has_unary(PyObject*, PyObject* o) {
  return PyBool_FromLong(function_mode_active() || has_override(o));
}

// handle_torch_function(public_api, relevant_args, *args, **kwargs)
PyObject* handle(PyObject*, PyObject* args, PyObject* given_keywords) {
  return guard([&] {
    const OwnKeywords own(given_keywords);
    PyObject* kwargs = own.get();
    check_type(PyTuple_GET_SIZE(args) >= 2,
               "handle_torch_function() expected a function and the relevant arguments");
    const Object relevant = Object::take(
        PySequence_Fast(PyTuple_GET_ITEM(args, 1), "expected a sequence of arguments"));
    std::vector<Object> overloaded;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(relevant.get()); ++i)
      note_overloaded(PySequence_Fast_GET_ITEM(relevant.get(), i), overloaded);
    const Object rest = Object::take(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
    const Object keywords = kwargs ? Object::share(kwargs) : Object::take(PyDict_New());
    return call_overrides(PyTuple_GET_ITEM(args, 0), overloaded, rest.get(), keywords.get()).leak();
  });
}

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef disabled_defs[] = {
    {"_disabled_torch_function_impl", with_keywords(disabled_function_impl),
     METH_VARARGS | METH_KEYWORDS,
     "Calls a function with the overrides of subclasses switched off."},
    {"_disabled_torch_dispatch_impl", with_keywords(disabled_function_impl),
     METH_VARARGS | METH_KEYWORDS, "Says that a class has no __torch_dispatch__."}};

PyMethodDef functions[] = {
    {"_push_on_torch_function_stack", push_function_mode, METH_O, nullptr},
    {"_pop_torch_function_stack", pop_function_mode, METH_NOARGS, nullptr},
    {"_len_torch_function_stack", function_mode_depth, METH_NOARGS, nullptr},
    {"_get_function_stack_at", function_mode_at, METH_O, nullptr},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_has_torch_function", guarded<has_any>, METH_O, nullptr},
    {"_has_torch_function_unary", has_unary, METH_O, nullptr},
    {"_has_torch_function_variadic", has_variadic, METH_VARARGS, nullptr},
    {"_handle_torch_function", with_keywords(handle), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_overrides(PyObject* module) {
  add_type(module, subclass_off, "DisableTorchFunctionSubclass");
  add_type(module, all_off, "DisableTorchFunction");
  checked(PyModule_AddFunctions(module, functions));
  const Object name = string(in_package("_C"));
  disabled_function = checked(PyCFunction_NewEx(&disabled_defs[0], nullptr, name.get()));
  disabled_dispatch = checked(PyCFunction_NewEx(&disabled_defs[1], nullptr, name.get()));
  checked(PyObject_SetAttrString(module, "_disabled_torch_function_impl", disabled_function));
  checked(PyObject_SetAttrString(module, "_disabled_torch_dispatch_impl", disabled_dispatch));
}

}  // namespace facula::python
