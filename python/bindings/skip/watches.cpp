#include "bindings/skip/watches.h"

#include <algorithm>

namespace facula::python {
namespace {

enum Bit : uint8_t { conj = 1, neg = 2, inference = 4, wrapped = 8, leaf_grad = 16, history = 32 };

uint8_t bits_of(const TensorImpl& t) {
  unsigned bits = 0;
  if (t.conj) bits |= conj;
  if (t.neg) bits |= neg;
  if (t.inference) bits |= inference;
  if (t.wrapped_number) bits |= wrapped;
  if (t.autograd && t.autograd->requires_grad) bits |= leaf_grad;
  if (t.autograd && t.autograd->grad_fn) bits |= history;
  return static_cast<uint8_t>(bits);
}

uint64_t version_of(const PyDictObject* d) {
#if PY_VERSION_HEX < 0x030C0000
  return d->ma_version_tag;
#else
  return 0;  // programs are stored on CPython 3.11 only
#endif
}

// Whether two objects are the same to a program: one object, or equal immutable numbers and texts.
bool is_same(PyObject* now, PyObject* expected) {
  if (now == expected) return true;
  if (!now || !expected || Py_TYPE(now) != Py_TYPE(expected)) return false;
  if (PyFloat_CheckExact(now)) {
    const double a = PyFloat_AS_DOUBLE(now), b = PyFloat_AS_DOUBLE(expected);
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (!PyLong_CheckExact(now) && !PyUnicode_CheckExact(now)) return false;
  return PyObject_RichCompareBool(now, expected, Py_EQ) == 1;
}

bool is_number(PyObject* o) {
  return o && (PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
               PyUnicode_CheckExact(o));
}

}  // namespace

TensorFacts::TensorFacts(const TensorImpl& t)
    : layers_(t.layers), dtype_(t.dtype), device_(t.device), ndim_(t.ndim), bits_(bits_of(t)) {
  geometry_.assign(t.sizes().data(), 2 * size_t{t.ndim});
}

bool TensorFacts::describe(const TensorImpl& t) {
  return !t.extension && t.storage && t.layout == Layout::Strided &&
         (t.layers - (backend_layers | Layer::Autograd)).empty();
}

bool TensorFacts::hold(const TensorImpl& t) const {
  return t.ndim == ndim_ && t.dtype == dtype_ && t.device == device_ && t.layers == layers_ &&
         bits_of(t) == bits_ && describe(t) &&
         std::memcmp(t.sizes().data(), geometry_.data(), 16 * size_t{ndim_}) == 0;
}

// --- adding

void Watches::keep(PyObject* o) { kept_.push_back(Object::share(o)); }

void Watches::add_word(PyObject* const* place) {
  for (const Word& w : words_)
    if (w.place == place) return;
  if (*place) keep(*place);
  words_.push_back({place, *place});
}

void Watches::add_instance(PyObject* o) {
  keep(o);
  add_word(reinterpret_cast<PyObject* const*>(&o->ob_type));
  if (PyObject** dict = _PyObject_GetDictPtr(o)) {
    if (!*dict) Object::take(PyObject_GenericGetDict(o, nullptr));
    add_word(dict);
  }
}

void Watches::add_function(PyObject* function) {
  keep(function);
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  add_word(&f->func_code);
  add_word(&f->func_defaults);
  add_word(&f->func_kwdefaults);
  if (f->func_kwdefaults) add_dict(f->func_kwdefaults);
}

void Watches::add_cell(PyObject* cell) {
  keep(cell);
  add_word(&reinterpret_cast<PyCellObject*>(cell)->ob_ref);
}

Watches::Dict& Watches::dict_of(PyObject* dict) {
  check_type(PyDict_Check(dict), "expected a dict; got ", type_name(dict));
  auto* d = reinterpret_cast<PyDictObject*>(dict);
  for (Dict& known : dicts_)
    if (known.dict == d) return known;
  keep(dict);
  return dicts_.emplace_back(Dict{d, version_of(d), false, {}});
}

void Watches::add_item(PyObject* dict, PyObject* key) {
  Dict& d = dict_of(dict);
  for (const Item& i : d.items)
    if (d.whole || i.key == key) return;
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (!found && PyErr_Occurred()) throw_python();
  keep(key);
  if (found) keep(found);
  d.items.push_back({key, found});
}

void Watches::add_dict(PyObject* dict) {
  // Subclasses may keep an order of their own.
  check(PyDict_CheckExact(dict) || PyDict_GET_SIZE(dict) == 0, "a ", type_name(dict),
        " is walked through");
  Dict& d = dict_of(dict);
  if (d.whole) return;
  d.whole = true;
  d.items.clear();
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    keep(key);
    keep(value);
    d.items.push_back({key, value});
  }
}

void Watches::add_name(PyObject* type, PyObject* name) {
  check_type(PyType_Check(type), "expected a class; got ", type_name(type));
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  PyObject* found = _PyType_Lookup(t, name);
  check(t->tp_version_tag != 0, "the class ", t->tp_name, " cannot be watched");
  keep(name);
  if (found) keep(found);
  auto known = std::ranges::find(classes_, t, &Class::type);
  if (known == classes_.end()) {
    keep(type);
    known = classes_.insert(known, Class{t, t->tp_version_tag, {}});
  }
  for (const Item& i : known->names)
    if (i.key == name) return;
  known->names.push_back({name, found});
}

void Watches::add_own_name(PyObject* type, PyObject* name) {
  check_type(PyType_Check(type), "expected a class; got ", type_name(type));
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  keep(type);
  add_word(&t->tp_mro);
  add_item(t->tp_dict, name);
}

void Watches::add_list(PyObject* list) {
  auto* l = reinterpret_cast<PyListObject*>(list);
  if (std::ranges::find(lists_, l, &List::list) != lists_.end()) return;
  keep(list);
  std::vector<PyObject*> items;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    keep(PyList_GET_ITEM(list, i));
    items.push_back(PyList_GET_ITEM(list, i));
  }
  lists_.push_back({l, std::move(items)});
}

size_t Watches::add_tensor(PyObject* tensor) {
  const Tensor& t = tensor_of(tensor);
  check(TensorFacts::describe(*t.get()), "a tensor of a special kind is read");
  keep(tensor);
  add_word(reinterpret_cast<PyObject* const*>(&tensor->ob_type));
  add_word(&kept(tensor)->dict);
  tensors_.push_back({tensor, TensorFacts(*t.get())});
  return tensors_.size() - 1;
}

// --- checking

Standing Watches::Dict::look() {
  if (version_of(dict) == version) [[likely]]
    return Standing::Same;
  auto* o = reinterpret_cast<PyObject*>(dict);
  if (whole) {
    if (PyDict_GET_SIZE(o) != static_cast<Py_ssize_t>(items.size())) return Standing::Gone;
    size_t i = 0;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value); ++i)
      if (key != items[i].key || !is_same(value, items[i].expected)) return Standing::Gone;
    version = version_of(dict);
    return Standing::Same;
  }
  Standing found = Standing::Same;
  for (const Item& i : items) {
    // Keys are texts, whose comparison runs no code of Python's.
    PyObject* now = PyDict_GetItemWithError(o, i.key);
    if (!now) PyErr_Clear();
    if (is_same(now, i.expected)) continue;
    if (!is_number(now) || !is_number(i.expected)) return Standing::Gone;
    found = Standing::Differs;
  }
  if (found == Standing::Same) version = version_of(dict);
  return found;
}

bool Watches::Class::holds() {
  if (type->tp_version_tag == version) [[likely]]
    return true;
  for (const Item& i : names)
    if (_PyType_Lookup(type, i.key) != i.expected) return false;
  version = type->tp_version_tag;
  return version != 0;
}

bool Watches::List::holds() const {
  auto* o = reinterpret_cast<PyObject*>(list);
  if (PyList_GET_SIZE(o) != static_cast<Py_ssize_t>(items.size())) return false;
  for (size_t i = 0; i < items.size(); ++i)
    if (!is_same(PyList_GET_ITEM(o, static_cast<Py_ssize_t>(i)), items[i])) return false;
  return true;
}

Standing Watches::look() {
  for (const Word& w : words_)
    if (*w.place != w.expected) return Standing::Gone;
  Standing found = Standing::Same;
  for (Dict& d : dicts_) {
    const Standing s = d.look();
    if (s == Standing::Gone) return s;
    found = std::max(found, s);
  }
  for (Class& c : classes_)
    if (!c.holds()) return Standing::Gone;
  for (const List& l : lists_)
    if (!l.holds()) return Standing::Gone;
  for (const HeldTensor& t : tensors_) {
    const TensorImpl* impl = impl_of(t.object);
    if (!impl) return Standing::Gone;
    if (!t.facts.hold(*impl)) found = Standing::Differs;
  }
  return found;
}

size_t Watches::size() const {
  size_t n = words_.size() + lists_.size() + tensors_.size();
  for (const Dict& d : dicts_) n += d.items.size();
  for (const Class& c : classes_) n += c.names.size();
  return n;
}

int Watches::traverse(visitproc visit, void* arg) const {
  for (const Object& o : kept_) Py_VISIT(o.get());
  return 0;
}

void Watches::clear() {
  words_.clear();
  dicts_.clear();
  classes_.clear();
  lists_.clear();
  tensors_.clear();
  std::vector<Object>().swap(kept_);
}

}  // namespace facula::python
