#include "bindings/skip/program.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/saved_tensor.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/types.h"
#include "core/debug.h"
#include "core/holders.h"
#include "core/inline_vector.h"
#include "dispatch/modes_watch.h"

namespace facula::python {
namespace {

constexpr int deepest = 4;

bool is_immutable(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return true;
  return is_dtype(o) || is_layout(o) || is_memory_format(o);
}

// What is compared by value.
bool is_number(PyObject* o) {
  return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || is_device(o);
}

bool is_same_number(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Attributes of a tensor's object could stand before its methods.
bool has_attributes(PyObject* tensor) {
  PyObject* dict = kept(tensor)->dict;
  return dict && PyDict_GET_SIZE(dict) > 0;
}

}  // namespace

// --- state

ProgramState ProgramState::now() {
  return {thread_state.grad_enabled, thread_state.inference, facula::default_dtype()};
}

bool ProgramState::is_plain() {
  const ThreadState& s = thread_state;
  if (s.modes != recorder_of_thread || (s.modes && s.modes->below)) return false;
  if (!(s.include - LayerSet(Layer::Modes)).empty() || !s.exclude.empty()) return false;
  if (s.pre_autograd_modes || s.interpreters || s.node_watchers) return false;
  if (s.saved_tensors && top_saved_tensor_hooks()) return false;
  if (s.overrides.depth || !s.overrides.all_enabled || !s.overrides.subclass_enabled) return false;
  if (s.grad_level || s.autocast.enabled || s.computing_tangent || forward_levels.load())
    return false;
  if (!s.default_device.is_cpu() || !s.forward_grad_enabled) return false;
  if (anomaly_enabled() || tracks_allocations() || debug::prints(debug::Level::Calls)) return false;
#if PY_VERSION_HEX < 0x030C0000
  const PyThreadState* here = PyThreadState_Get();
  if (here->c_tracefunc || here->c_profilefunc) return false;
#endif
  return true;
}

// --- arguments

ArgumentForm ArgumentForm::of(PyObject* o, std::vector<PyObject*>& found,
                              std::vector<PyObject*>& lists) {
  ArgumentForm form;
  check(lists.size() < 1000, "it has very many arguments");
  if (is_tensor(o)) {
    check(is_plain_tensor(o) && TensorFacts::describe(*tensor_of(o).get()),
          "an argument is a tensor of a special kind");
    check(!has_attributes(o), "an argument is a tensor with attributes");
    form.kind_ = Kind::Tensor;
    form.object_ = Object::share(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    form.facts_.emplace_back(*tensor_of(o).get());
    found.push_back(o);
  } else if (is_immutable(o) || is_number(o)) {
    form.kind_ = is_number(o) ? Kind::Number : Kind::Same;
    form.object_ = Object::share(o);
  } else if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    form.kind_ = PyTuple_CheckExact(o) ? Kind::Tuple : Kind::List;
    lists.push_back(o);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      form.items_.push_back(of(PySequence_Fast_GET_ITEM(o, i), found, lists));
  } else if (PyDict_CheckExact(o)) {
    form.kind_ = Kind::Dict;
    lists.push_back(o);
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      check(PyUnicode_CheckExact(key), "an argument is a dict whose keys are no texts");
      form.keys_.push_back(Object::share(key));
      form.items_.push_back(of(value, found, lists));
    }
  } else {
    throw Error(ErrorKind::Runtime, "an argument is a ", type_name(o));
  }
  return form;
}

bool ArgumentForm::fits(PyObject* o, InlineVector<TensorImpl*, 16>& tensors) const {
  switch (kind_) {
    case Kind::Tensor: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != object_.get() || !is_plain_tensor(o))
        return false;
      if (has_attributes(o)) return false;
      TensorImpl* t = impl_of(o);
      if (!t || !facts_[0].hold(*t)) return false;
      tensors.push_back(t);
      return true;
    }
    case Kind::Same:
      return o == object_.get();
    case Kind::Number:
      return is_same_number(o, object_.get());
    case Kind::Tuple:
    case Kind::List: {
      const auto n = static_cast<Py_ssize_t>(items_.size());
      if (kind_ == Kind::Tuple ? !PyTuple_CheckExact(o) : !PyList_CheckExact(o)) return false;
      if (PySequence_Fast_GET_SIZE(o) != n) return false;
      for (Py_ssize_t i = 0; i < n; ++i)
        if (!items_[static_cast<size_t>(i)].fits(PySequence_Fast_GET_ITEM(o, i), tensors))
          return false;
      return true;
    }
    case Kind::Dict: {
      if (!PyDict_CheckExact(o) || PyDict_GET_SIZE(o) != static_cast<Py_ssize_t>(items_.size()))
        return false;
      size_t i = 0;
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value); ++i)
        if (!PyUnicode_CheckExact(key) || !is_same_number(key, keys_[i].get()) ||
            !items_[i].fits(value, tensors))
          return false;
      return true;
    }
  }
  return false;
}

int ArgumentForm::traverse(visitproc visit, void* arg) const {
  Py_VISIT(object_.get());
  for (const Object& k : keys_) Py_VISIT(k.get());
  for (const ArgumentForm& i : items_)
    if (const int r = i.traverse(visit, arg)) return r;
  return 0;
}

// --- results

ResultForm ResultForm::of(PyObject* o, const StepRecorder& r, std::vector<Slot>& used, int depth) {
  ResultForm form;
  check(depth < deepest, "its result is nested deeply");
  if (is_tensor(o)) {
    const Slot* slot = r.slot_of(tensor_of(o).get());
    check(slot != nullptr, "it returns a tensor of unknown origin");
    form.kind_ = Kind::Tensor;
    form.slot_ = *slot;
    used.push_back(*slot);
  } else if (is_immutable(o) || is_number(o)) {
    form.object_ = Object::share(o);
  } else if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    form.kind_ = PyTuple_CheckExact(o) ? Kind::Tuple : Kind::List;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      form.items_.push_back(of(PySequence_Fast_GET_ITEM(o, i), r, used, depth + 1));
  } else if (PyDict_CheckExact(o)) {
    form.kind_ = Kind::Dict;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      check(is_number(key), "it returns a dict whose keys are neither texts nor numbers");
      form.keys_.push_back(Object::share(key));
      form.items_.push_back(of(value, r, used, depth + 1));
    }
  } else {
    throw Error(ErrorKind::Runtime, "it returns a ", type_name(o));
  }
  return form;
}

Object ResultForm::make(const Tensors& t) const {
  const auto n = static_cast<Py_ssize_t>(items_.size());
  switch (kind_) {
    case Kind::Tensor:
      return wrapped(Tensor::share(t.at(slot_)));
    case Kind::Constant:
      return object_;
    case Kind::Tuple: {
      Object made = Object::take(PyTuple_New(n));
      for (Py_ssize_t i = 0; i < n; ++i)
        PyTuple_SET_ITEM(made.get(), i, items_[static_cast<size_t>(i)].make(t).leak());
      return made;
    }
    case Kind::List: {
      Object made = Object::take(PyList_New(n));
      for (Py_ssize_t i = 0; i < n; ++i)
        PyList_SET_ITEM(made.get(), i, items_[static_cast<size_t>(i)].make(t).leak());
      return made;
    }
    case Kind::Dict: {
      Object made = Object::take(PyDict_New());
      for (size_t i = 0; i < items_.size(); ++i)
        checked(PyDict_SetItem(made.get(), keys_[i].get(), items_[i].make(t).get()));
      return made;
    }
  }
  return none();
}

int ResultForm::traverse(visitproc visit, void* arg) const {
  Py_VISIT(object_.get());
  for (const Object& k : keys_) Py_VISIT(k.get());
  for (const ResultForm& i : items_)
    if (const int r = i.traverse(visit, arg)) return r;
  return 0;
}

// --- the program

void Program::take_arguments(PyObject* args, PyObject* kwargs, std::vector<PyObject*>& lists) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    positional_.push_back(ArgumentForm::of(PyTuple_GET_ITEM(args, i), inputs_, lists));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
    names_.push_back(Object::share(key));
    named_.push_back(ArgumentForm::of(value, inputs_, lists));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = tensor_of(inputs_[i]);
    check(!recorder_.slot_of(t.get()), "a tensor is given twice");
    recorder_.know(t, {Slot::Input, static_cast<uint32_t>(i)});
  }
}

void Program::begin() {
  check(ProgramState::is_plain(), "a mode, a hook or a tracer is on");
  state_ = ProgramState::now();
  warnings_ = warnings_given();
  recorder_.begin();
}

void Program::hold(PyObject* tensor) {
  const Tensor& t = tensor_of(tensor);
  if (const Slot* slot = recorder_.slot_of(t.get())) {
    check(slot->kind == Slot::Held, "a tensor comes both as an argument and from elsewhere");
    return;
  }
  const size_t at = watches.add_tensor(tensor);
  recorder_.know(t, {Slot::Held, static_cast<uint32_t>(at)});
}

void Program::finish(PyObject* result) {
  recorder_.end();
  check(recorder_.failure().empty(), recorder_.failure());
  check(warnings_given() == warnings_, "an operator warns");
  check(ProgramState::now() == state_ && ProgramState::is_plain(), "it changes a setting");
  std::vector<Slot> used;
  result_ = ResultForm::of(result, recorder_, used);
  steps_ = recorder_.finish(used);
  inputs_.clear();
  check(watches.look() == Standing::Same, "it changes what it reads");
  finished_ = true;
}

bool Program::fits(PyObject* const* args, Py_ssize_t count, PyObject* names,
                   InlineVector<TensorImpl*, 16>& tensors) const {
  const auto named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  if (static_cast<size_t>(count) != positional_.size() || named != named_.size()) return false;
  for (size_t i = 0; i < positional_.size(); ++i)
    if (!positional_[i].fits(args[i], tensors)) return false;
  for (size_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i));
    if (!is_same_number(name, names_[i].get())) return false;
    if (!named_[i].fits(args[positional_.size() + i], tensors)) return false;
  }
  return ProgramState::now() == state_ && (!distinct_ || are_distinct(tensors));
}

bool Program::are_distinct(const InlineVector<TensorImpl*, 16>& tensors) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (tensors[i] == tensors[k]) return false;
  for (size_t i = 0; i < watches.tensors(); ++i)
    for (const TensorImpl* t : tensors)
      if (t == impl_of(watches.tensor(i))) return false;
  return true;
}

Object Program::run(const InlineVector<TensorImpl*, 16>& inputs) const {
  InlineVector<Tensor, 32> made;
  made.reserve(steps_.made());
  for (uint32_t i = 0; i < steps_.made(); ++i) made.push_back({});
  // Arguments may sit in lists that other threads change.
  InlineVector<Tensor, 16> kept;
  for (TensorImpl* t : inputs) kept.push_back(Tensor::share(t));
  const Tensors tensors{inputs.begin(), &watches, made.begin()};
  steps_.run(tensors);
  return result_.make(tensors);
}

int Program::traverse(visitproc visit, void* arg) const {
  for (const ArgumentForm& f : positional_)
    if (const int r = f.traverse(visit, arg)) return r;
  for (const ArgumentForm& f : named_)
    if (const int r = f.traverse(visit, arg)) return r;
  if (const int r = result_.traverse(visit, arg)) return r;
  return watches.traverse(visit, arg);
}

void Program::clear() {
  finished_ = false;
  positional_.clear();
  named_.clear();
  result_ = {};
  watches.clear();
}

}  // namespace facula::python
