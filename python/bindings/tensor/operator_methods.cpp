// Tensor.__add__ and the other methods that Python's operators stand for, with keywords: the
// methods of the operators that they name, but for what does not fit they return NotImplemented.
//
// CPython fills the slots of a subclass with a slow search for these methods, because it knows only
// its own descriptors; where a class has ours, its slots become Tensor's again.
#include "bindings/tensor/operator_methods.h"
#include "bindings/call/callable.h"
#include "bindings/tensor/tensor_members.h"

namespace facula::python {
namespace {

template <size_t N>
struct Word {
  char text[N];
  constexpr Word(const char (&s)[N]) { std::copy_n(s, N, text); }
};
template <Word Name>
constexpr auto kept_name = Name;

constexpr int with_keywords = METH_FASTCALL | METH_KEYWORDS;
using FastMethod = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
PyCFunction as_function(FastMethod f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyObject* run(binaryfunc PyNumberMethods::* slot, PyObject* a, PyObject* b) {
  return (tensor_number.*slot)(a, b);
}
PyObject* run(ternaryfunc PyNumberMethods::* slot, PyObject* a, PyObject* b) {
  return (tensor_number.*slot)(a, b, Py_None);
}
// One of the six comparisons, as `Slot` of the templates below.
struct Comparison {
  int op;
};
PyObject* run(Comparison c, PyObject* a, PyObject* b) { return tensor_compare(a, b, c.op); }

// The method of an operator with any arguments that the operator has.
PyObject* call_operator(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* names) {
  PyObject* result = guard([&] {
    PyObject* method = method_object(name);
    std::vector<PyObject*> all{self};
    all.insert(all.end(), args, args + count + (names ? PyTuple_GET_SIZE(names) : 0));
    const Given given{all.data(), static_cast<size_t>(count) + 1, names};
    return call_packet(method, packet_of(method), given).leak();
  });
  if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

// self + other: the operator whose method is called `Name`.
template <auto Slot, Word Name>
PyObject* forward(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (count == 1 && !names) return run(Slot, self, args[0]);
  return call_operator(Name.text, self, args, count, names);
}

// other + self, where no operator has the operands in this order.
template <auto Slot>
PyObject* reflected(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
  const bool fits =
      count + keywords == 1 &&
      (count == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "other") == 0);
  if (!fits) Py_RETURN_NOTIMPLEMENTED;
  return run(Slot, args[0], self);
}

PyObject* contains(PyObject* self, PyObject* element) {
  const int found = tensor_sequence.sq_contains(self, element);
  return found < 0 ? nullptr : PyBool_FromLong(found);
}

// --- the table, where methods of one slot stand together

// Makes a slot of a class made by a class statement that of Tensor.
using TakeSlot = void (*)(PyHeapTypeObject&);
template <auto Slot>
void take(PyHeapTypeObject& type) {
  type.as_number.*Slot = tensor_number.*Slot;
}
void take_comparison(PyHeapTypeObject& type) { type.ht_type.tp_richcompare = tensor_compare; }
void take_contains(PyHeapTypeObject& type) {
  type.as_sequence.sq_contains = tensor_sequence.sq_contains;
}

struct OperatorMethod {
  PyMethodDef method;
  TakeSlot take;
};
template <Word Name, auto Slot, Word Operator>
OperatorMethod method() {
  const FastMethod f = forward<Slot, Operator>;
  return {{kept_name<Name>.text, as_function(f), with_keywords, nullptr}, take<Slot>};
}
template <Word Name, auto Slot>
OperatorMethod reflected_method() {
  const FastMethod f = reflected<Slot>;
  return {{kept_name<Name>.text, as_function(f), with_keywords, nullptr}, take<Slot>};
}
template <Word Name, int Op, Word Operator>
OperatorMethod comparison() {
  const FastMethod f = forward<Comparison{Op}, Operator>;
  return {{kept_name<Name>.text, as_function(f), with_keywords, nullptr}, take_comparison};
}

using Number = PyNumberMethods;

OperatorMethod operator_methods[] = {
    method<"__add__", &Number::nb_add, "add">(),
    method<"__radd__", &Number::nb_add, "add">(),
    method<"__iadd__", &Number::nb_inplace_add, "add_">(),
    method<"__sub__", &Number::nb_subtract, "sub">(),
    reflected_method<"__rsub__", &Number::nb_subtract>(),
    method<"__isub__", &Number::nb_inplace_subtract, "sub_">(),
    method<"__mul__", &Number::nb_multiply, "mul">(),
    method<"__rmul__", &Number::nb_multiply, "mul">(),
    method<"__imul__", &Number::nb_inplace_multiply, "mul_">(),
    method<"__matmul__", &Number::nb_matrix_multiply, "matmul">(),
    reflected_method<"__rmatmul__", &Number::nb_matrix_multiply>(),
    method<"__truediv__", &Number::nb_true_divide, "div">(),
    reflected_method<"__rtruediv__", &Number::nb_true_divide>(),
    method<"__itruediv__", &Number::nb_inplace_true_divide, "div_">(),
    method<"__floordiv__", &Number::nb_floor_divide, "floor_divide">(),
    reflected_method<"__rfloordiv__", &Number::nb_floor_divide>(),
    method<"__ifloordiv__", &Number::nb_inplace_floor_divide, "floor_divide_">(),
    method<"__mod__", &Number::nb_remainder, "remainder">(),
    reflected_method<"__rmod__", &Number::nb_remainder>(),
    method<"__imod__", &Number::nb_inplace_remainder, "remainder_">(),
    method<"__pow__", &Number::nb_power, "pow">(),
    reflected_method<"__rpow__", &Number::nb_power>(),
    method<"__ipow__", &Number::nb_inplace_power, "pow_">(),
    method<"__lshift__", &Number::nb_lshift, "bitwise_left_shift">(),
    reflected_method<"__rlshift__", &Number::nb_lshift>(),
    method<"__ilshift__", &Number::nb_inplace_lshift, "bitwise_left_shift_">(),
    method<"__rshift__", &Number::nb_rshift, "bitwise_right_shift">(),
    reflected_method<"__rrshift__", &Number::nb_rshift>(),
    method<"__irshift__", &Number::nb_inplace_rshift, "bitwise_right_shift_">(),
    method<"__and__", &Number::nb_and, "bitwise_and">(),
    reflected_method<"__rand__", &Number::nb_and>(),
    method<"__iand__", &Number::nb_inplace_and, "bitwise_and_">(),
    method<"__or__", &Number::nb_or, "bitwise_or">(),
    reflected_method<"__ror__", &Number::nb_or>(),
    method<"__ior__", &Number::nb_inplace_or, "bitwise_or_">(),
    method<"__xor__", &Number::nb_xor, "bitwise_xor">(),
    reflected_method<"__rxor__", &Number::nb_xor>(),
    method<"__ixor__", &Number::nb_inplace_xor, "bitwise_xor_">(),
    comparison<"__lt__", Py_LT, "lt">(),
    comparison<"__le__", Py_LE, "le">(),
    comparison<"__eq__", Py_EQ, "eq">(),
    comparison<"__ne__", Py_NE, "ne">(),
    comparison<"__gt__", Py_GT, "gt">(),
    comparison<"__ge__", Py_GE, "ge">(),
    {{"__contains__", contains, METH_O,
      "__contains__($self, element, /)\n--\n\nWhether an element equals `element`."},
     take_contains},
};

// __rdiv__ is a function that looks at no class, so that it raises what Python's code raises.
PyObject* divide_reflected(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  static PyObject* function = nullptr;
  return guard([&] {
    if (!function) function = imported("facula._tensor", "__rdiv__").leak();
    return checked(PyObject_Vectorcall(function, args, static_cast<size_t>(count), names));
  });
}
PyMethodDef divide_reflected_method = {"__rdiv__", as_function(divide_reflected), with_keywords,
                                       nullptr};

// --- the slots of subclasses

bool overrides(PyTypeObject* type, const OperatorMethod& m) {
  const Object name = Object::take(PyUnicode_InternFromString(m.method.ml_name));
  return _PyType_Lookup(type, name.get()) != _PyType_Lookup(&tensor_base_type, name.get());
}

}  // namespace

void add_operator_methods() {
  for (OperatorMethod& m : operator_methods) add_tensor_method(m.method);
  const Object function = Object::take(PyCFunction_New(&divide_reflected_method, nullptr));
  const Object method = Object::take(PyInstanceMethod_New(function.get()));
  checked(PyDict_SetItemString(tensor_base_type.tp_dict, "__rdiv__", method.get()));
}

void take_operator_slots(PyTypeObject* type) {
  auto& heap_type = *reinterpret_cast<PyHeapTypeObject*>(type);
  const auto end = std::end(operator_methods);
  for (auto m = std::begin(operator_methods); m != end;) {
    const auto next =
        std::find_if(m, end, [&](const OperatorMethod& other) { return other.take != m->take; });
    if (std::none_of(m, next, [&](const OperatorMethod& of) { return overrides(type, of); }))
      m->take(heap_type);
    m = next;
  }
}

void take_operator_slots_below(PyTypeObject* type) {
  take_operator_slots(type);
  const Object classes = Object::take(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyType_Type), "__subclasses__", "O", type));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(classes.get()); ++i)
    take_operator_slots_below(reinterpret_cast<PyTypeObject*>(PyList_GET_ITEM(classes.get(), i)));
}

}  // namespace facula::python
