// Python's operators on tensors, each of which calls a method.
#include "bindings/call/callable.h"
#include "bindings/call/plain_call.h"
#include "bindings/modes/overrides.h"
#include "bindings/tensor/tensor_members.h"

namespace facula::python {
namespace {

// Returns NotImplemented in place of TypeError, so that Python asks the other operand's class.
PyObject* or_not_implemented(PyObject* result) {
  if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

// A method that is looked up by name at its first use.
template <size_t N>
struct Word {
  char text[N];
  constexpr Word(const char (&s)[N]) { std::copy_n(s, N, text); }
};
template <Word Name>
PyObject* bound_method() {
  static PyObject* found = nullptr;
  if (!found) found = method_object(Name.text);
  if (!found)
    throw Error(ErrorKind::NotImplemented, "facula has no operator aten::", Name.text,
                " in this build");
  return found;
}
template <Word Name>
PyObject* bound_function() {
  static PyObject* found = nullptr;
  if (!found) found = function_object("", Name.text);
  if (!found)
    throw Error(ErrorKind::NotImplemented, "facula has no operator aten::", Name.text,
                " in this build");
  return found;
}

PyObject* call_two(PyObject* callable, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  return call_packet(callable, packet_of(callable), Given{args, 2, nullptr}).leak();
}

template <Word Name>
PyObject* method_two(PyObject* a, PyObject* b) {
  return or_not_implemented(guard([&] {
    static const PlainBinary plain(Name.text);
    if (PyObject* result = plain.try_call(a, b)) return result;
    return call_two(bound_method<Name>(), a, b);
  }));
}
template <Word Name>
PyObject* function_two(PyObject* a, PyObject* b) {
  return or_not_implemented(guard([&] { return call_two(bound_function<Name>(), a, b); }));
}

// Operators that commute, or whose function accepts a number as its first argument.
template <Word Name>
PyObject* commuting(PyObject* a, PyObject* b) {
  return is_tensor(a) ? method_two<Name>(a, b) : method_two<Name>(b, a);
}
template <Word Name>
PyObject* ordered(PyObject* a, PyObject* b) {
  return is_tensor(a) ? method_two<Name>(a, b) : function_two<Name>(a, b);
}

PyObject* subtract(PyObject* a, PyObject* b) {
  return is_tensor(a) ? method_two<"sub">(a, b) : function_two<"rsub">(b, a);
}
PyObject* divide(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return method_two<"div">(a, b);
  return or_not_implemented(guard([&] {
    PyObject* args[] = {b};
    PyObject* reciprocal = bound_method<"reciprocal">();
    const Object inverse = call_packet(reciprocal, packet_of(reciprocal), Given{args, 1, nullptr});
    if (is_array(a)) return checked(PyNumber_Multiply(inverse.get(), a));
    return call_two(bound_method<"mul">(), inverse.get(), a);
  }));
}
PyObject* power(PyObject* a, PyObject* b, PyObject*) {
  return is_tensor(a) ? method_two<"pow">(a, b) : function_two<"pow">(a, b);
}
template <Word Name>
PyObject* in_place(PyObject* a, PyObject* b) {
  return or_not_implemented(guard([&] {
    static const PlainBinary plain(Name.text);
    if (PyObject* result = plain.try_call(a, b)) return result;
    return call_two(bound_method<Name>(), a, b);
  }));
}
// CPython also uses this slot for += of sequences, where it must not return NotImplemented.
PyObject* in_place_add(PyObject* a, PyObject* b) {
  PyObject* r = in_place<"add_">(a, b);
  if (r != Py_NotImplemented) return r;
  Py_DECREF(r);
  const PyNumberMethods* other = is_tensor(b) ? nullptr : Py_TYPE(b)->tp_as_number;
  if (other && other->nb_add) {
    r = other->nb_add(a, b);
    if (r != Py_NotImplemented) return r;
    Py_DECREF(r);
  }
  return PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for +=: '%.100s' and '%.100s'",
                      type_name(a), type_name(b));
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place<"pow_">(a, b); }

// a @= b makes a new tensor, since its shape may differ from a's.
template <Word Name>
PyObject* unary(PyObject* o) {
  return guard([&] {
    PyObject* method = bound_method<Name>();
    return call_packet(method, packet_of(method), Given{&o, 1, nullptr}).leak();
  });
}
PyObject* positive(PyObject* o) {
  return guard([&] {
    if (Object r = self_override(o, "__pos__")) return r.leak();
    check(tensor_of(o).dtype() != DType::Bool, "+tensor: a number type was expected; got bool");
    return Py_NewRef(o);
  });
}

PyObject* invert(PyObject* o) {
  return guard([&] {
    if (Object r = self_override(o, "__invert__")) return r.leak();
    const DType d = tensor_of(o).dtype();
    check_type(is_integral(d, true), "~: a tensor of integers or bools was expected; got ",
               name(d));
    PyObject* method = bound_method<"bitwise_not">();
    return call_packet(method, packet_of(method), Given{&o, 1, nullptr}).leak();
  });
}

// --- conversions to Python numbers, by item()

Object item(PyObject* o) {
  static PyObject* word = PyUnicode_InternFromString("item");
  Object number = Object::take(PyObject_CallMethodNoArgs(o, word));
  // The result may come from an override; a tensor would lead to endless recursion.
  check_type(!is_tensor(number.get()), "item() should return a number, returned ",
             type_name(number.get()));
  return number;
}

int truth(PyObject* o) {
  int result = 0;
  const int status = guard_status([&] {
    if (Object r = self_override(o, "__bool__")) {
      check_type(PyBool_Check(r.get()), "__bool__ should return bool, returned ",
                 type_name(r.get()));
      result = r.get() == Py_True;
      return;
    }
    const Tensor& t = tensor_of(o);
    check(t.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
    check(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
    checked(result = PyObject_IsTrue(item(o).get()));
  });
  return status < 0 ? -1 : result;
}

void check_single(PyObject* o) {
  check_value(tensor_of(o).numel() == 1,
              "only one element tensors can be converted to numbers; got ", tensor_of(o).numel(),
              " elements");
}
void check_real(const Object& number, const char* type) {
  check(!PyComplex_Check(number.get()), "value cannot be converted to type ", type,
        " without overflow");
}

PyObject* to_float(PyObject* o) {
  return guard([&] {
    if (Object r = self_override(o, "__float__")) return r.leak();
    check_single(o);
    const Object number = item(o);
    check_real(number, "double");
    return checked(PyNumber_Float(number.get()));
  });
}
PyObject* to_int(PyObject* o) {
  return guard([&] {
    if (Object r = self_override(o, "__int__")) return r.leak();
    check_single(o);
    const Object number = item(o);
    check_real(number, "int64_t");
    return checked(PyNumber_Long(number.get()));
  });
}
PyObject* to_index(PyObject* o) {
  return guard([&]() -> PyObject* {
    if (Object r = self_override(o, "__index__")) return r.leak();
    const Tensor& t = tensor_of(o);
    check_type(t.numel() == 1 && is_integral(t.dtype(), true),
               "__index__(): expected a tensor that holds one integer; got ", t.numel(),
               " elements of dtype ", name(t.dtype()));
    return checked(PyNumber_Index(item(o).get()));
  });
}

PyNumberMethods make_number() {
  PyNumberMethods n = {};
  n.nb_add = commuting<"add">;
  n.nb_subtract = subtract;
  n.nb_multiply = commuting<"mul">;
  n.nb_remainder = ordered<"remainder">;
  n.nb_power = power;
  n.nb_negative = unary<"neg">;
  n.nb_positive = positive;
  n.nb_absolute = unary<"abs">;
  n.nb_bool = truth;
  n.nb_invert = invert;
  n.nb_lshift = ordered<"bitwise_left_shift">;
  n.nb_rshift = ordered<"bitwise_right_shift">;
  n.nb_and = commuting<"bitwise_and">;
  n.nb_xor = commuting<"bitwise_xor">;
  n.nb_or = commuting<"bitwise_or">;
  n.nb_int = to_int;
  n.nb_float = to_float;
  n.nb_inplace_add = in_place_add;
  n.nb_inplace_subtract = in_place<"sub_">;
  n.nb_inplace_multiply = in_place<"mul_">;
  n.nb_inplace_remainder = in_place<"remainder_">;
  n.nb_inplace_power = in_place_power;
  n.nb_inplace_lshift = in_place<"bitwise_left_shift_">;
  n.nb_inplace_rshift = in_place<"bitwise_right_shift_">;
  n.nb_inplace_and = in_place<"bitwise_and_">;
  n.nb_inplace_xor = in_place<"bitwise_xor_">;
  n.nb_inplace_or = in_place<"bitwise_or_">;
  n.nb_floor_divide = ordered<"floor_divide">;
  n.nb_true_divide = divide;
  n.nb_inplace_floor_divide = in_place<"floor_divide_">;
  n.nb_inplace_true_divide = in_place<"div_">;
  n.nb_index = to_index;
  n.nb_matrix_multiply = ordered<"matmul">;
  return n;
}

}  // namespace

PyNumberMethods tensor_number = make_number();

// NumPy arrays leave comparisons with tensors to the tensor. If the method does not accept the
// array, it is compared as a tensor over its memory, since Python would else compare the two
// identities.
template <Word Name>
static PyObject* equality(PyObject* a, PyObject* b) {
  PyObject* result = method_two<Name>(a, b);
  if (result != Py_NotImplemented || !is_array(b)) return result;
  Py_DECREF(result);
  return or_not_implemented(guard([&] {
    const Object other = wrapped(tensor_over_array(b, false));
    return call_two(bound_method<Name>(), a, other.get());
  }));
}

PyObject* tensor_compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT:
      return method_two<"lt">(a, b);
    case Py_LE:
      return method_two<"le">(a, b);
    case Py_EQ:
      return equality<"eq">(a, b);
    case Py_NE:
      return equality<"ne">(a, b);
    case Py_GT:
      return method_two<"gt">(a, b);
    default:
      return method_two<"ge">(a, b);
  }
}

Py_hash_t tensor_hash(PyObject* o) {
  return reinterpret_cast<Py_hash_t>(o);  // its id, as in PyTorch
}

}  // namespace facula::python
