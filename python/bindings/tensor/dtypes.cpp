// dtype, layout and memory_format objects; finfo and iinfo.
#include <cmath>
#include <cstring>
#include <limits>

#include "bindings/module/package.h"
#include "bindings/tensor/types.h"

namespace facula::python {
namespace {

PyObject* dtype_objects[dtype_slots];
PyObject* layout_objects[most_layouts];
PyObject* memory_format_objects[4];

WordObject* self_of(PyObject* o) { return reinterpret_cast<WordObject*>(o); }

PyObject* word_repr(PyObject* o) {
  return guard([&] { return string(in_package(self_of(o)->name)).leak(); });
}
PyObject* word_reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(self_of(o)->name); }
PyObject* word_module(PyObject*, void*) {
  return guard([] { return string(package_name()).leak(); });
}
PyObject* word_copy(PyObject* o, PyObject*) { return Py_NewRef(o); }

PyMethodDef word_methods[] = {{"__reduce__", word_reduce, METH_NOARGS, nullptr},
                              {"__copy__", word_copy, METH_NOARGS, nullptr},
                              {"__deepcopy__", word_copy, METH_O, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyGetSetDef word_properties[] = {{"__module__", word_module, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <bool (*Test)(DType)>
PyObject* dtype_flag(PyObject* o, void*) {
  return PyBool_FromLong(Test(dtype_value(o)));
}
PyObject* dtype_is_signed(PyObject* o, void*) {
  return guard([&] {
    const DType d = dtype_value(o);
    check(info(d).kind > DTypeKind::Opaque, "is_signed: expected a dtype of numbers; got ",
          name(d));
    return PyBool_FromLong(is_signed(d));
  });
}
// Whether elements are read as numbers: not those that are only kept and moved.
bool has_numbers(DType d) {
  return visit_elements(d, [](auto) {});
}
PyObject* dtype_legacy_name(PyObject* o, void*) {
  return PyUnicode_FromString(info(dtype_value(o)).legacy_name);
}
PyObject* dtype_itemsize(PyObject* o, void*) {
  return PyLong_FromSize_t(info(dtype_value(o)).size);
}
PyObject* dtype_to_real(PyObject* o, PyObject*) {
  return Py_NewRef(dtype_object(real_of(dtype_value(o))));
}
PyObject* dtype_to_complex(PyObject* o, PyObject*) {
  return guard([&] {
    const DType d = dtype_value(o);
    const DType to = d == DType::BFloat16 ? DType::BComplex32 : complex_of(d);
    check(is_complex(d) || real_of(to) == d, "to_complex(): no complex dtype has parts of dtype ",
          name(d));
    return Py_NewRef(dtype_object(to));
  });
}

// Short names: f32, bf16, i64, u8, c64, f8e4m3fn, b2x4. Narrow integers keep their name.
PyObject* dtype_abbreviation(PyObject* o, void*) {
  static constexpr const char* words[][2] = {{"bfloat", "bf"}, {"float", "f"}, {"bcomplex", "bc"},
                                             {"complex", "c"}, {"uint", "u"},  {"int", "i"},
                                             {"bits", "b"}};
  return guard([&] {
    const DType d = dtype_value(o);
    std::string text(name(d));
    if (text == "bool") return string("b8").leak();
    if (info(d).kind == DTypeKind::Narrow) return string(text).leak();
    for (const auto& [word, short_word] : words) {
      const std::string_view prefix = word;
      if (!text.starts_with(prefix)) continue;
      text = short_word + text.substr(prefix.size());
      if (info(d).kind == DTypeKind::Opaque && text.find('x') == text.npos) text += "x1";
      std::erase(text, '_');
      break;
    }
    return string(text).leak();
  });
}

PyMethodDef dtype_methods[] = {
    {"__reduce__", word_reduce, METH_NOARGS, nullptr},
    {"__copy__", word_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", word_copy, METH_O, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The real dtype of a complex one's parts."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype whose parts have this dtype."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef dtype_properties[] = {
    {"is_floating_point", dtype_flag<is_floating>, nullptr, nullptr, nullptr},
    {"is_complex", dtype_flag<is_complex>, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {"itemsize", dtype_itemsize, nullptr, nullptr, nullptr},
    {"_has_numbers", dtype_flag<has_numbers>, nullptr, nullptr, nullptr},
    {"_legacy_name", dtype_legacy_name, nullptr, nullptr, nullptr},
    {"abbr", dtype_abbreviation, nullptr, nullptr, nullptr},
    {"__module__", word_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject word_type(const char* name, PyMethodDef* methods, PyGetSetDef* properties,
                       const char* doc) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(WordObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_repr = word_repr;
  t.tp_methods = methods;
  t.tp_getset = properties;
  t.tp_doc = doc;
  return t;
}

PyObject* add_word(PyObject* module, PyTypeObject& type, int value, const char* name) {
  WordObject* o = PyObject_New(WordObject, &type);
  if (!o) throw_python();
  o->value = value;
  o->name = name;
  PyObject* p = reinterpret_cast<PyObject*>(o);
  checked(PyObject_SetAttrString(module, name, p));
  return p;  // never freed
}

// --- finfo and iinfo

struct InfoObject {
  PyObject_HEAD DType dtype;
};

struct FloatFacts {
  double eps, max, tiny, smallest_subnormal, resolution;
};

FloatFacts float_facts(DType d) {
  switch (d) {
    case DType::Float16:
      return {0x1p-10, 65504.0, 0x1p-14, 0x1p-24, 1e-3};
    case DType::BFloat16:
      return {0x1p-7, 0x1.FEp127, 0x1p-126, 0x1p-133, 1e-2};
    case DType::Float32:
      return {0x1p-23, 0x1.FFFFFEp127, 0x1p-126, 0x1p-149, 1e-6};
    case DType::Float8E4M3:
      return {0x1p-3, 448.0, 0x1p-6, 0x1p-9, 1.0};
    case DType::Float8E5M2:
      return {0x1p-2, 57344.0, 0x1p-14, 0x1p-16, 1.0};
    case DType::Float8E4M3FNUZ:
      return {0x1p-3, 240.0, 0x1p-7, 0x1p-10, 1.0};
    case DType::Float8E5M2FNUZ:
      return {0x1p-2, 57344.0, 0x1p-15, 0x1p-17, 1.0};
    case DType::Float8E8M0:
      return {1.0, 0x1p127, 0x1p-127, 0x1p-127, 1.0};
    default:
      return {0x1p-52, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074, 1e-15};
  }
}

DType& info_dtype(PyObject* o) { return reinterpret_cast<InfoObject*>(o)->dtype; }

PyObject* new_info(PyTypeObject* type, DType d) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) info_dtype(o) = d;
  return o;
}

PyObject* finfo_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"type", nullptr};
  PyObject* given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:finfo", const_cast<char**>(keys), &given))
    return nullptr;
  if (given && !is_dtype(given)) {
    PyErr_Format(PyExc_TypeError,
                 "finfo(): argument 'type' (position 1) must be torch.dtype, not %s",
                 type_name(given));
    return nullptr;
  }
  DType d = real_of(given ? dtype_value(given) : default_dtype());
  if (!is_floating(d) || d == float4x2) {
    PyErr_Format(PyExc_TypeError, "finfo(): expected a floating-point or complex dtype; got %s",
                 name(d));
    return nullptr;
  }
  return new_info(type, d);
}

PyObject* iinfo_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keys[] = {"type", nullptr};
  PyObject* given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:iinfo", const_cast<char**>(keys), &dtype_type,
                                   &given))
    return nullptr;
  const DType d = dtype_value(given);
  if (!is_integral(d, false)) {
    PyErr_Format(PyExc_TypeError, "iinfo(): expected an integer dtype; got %s", name(d));
    return nullptr;
  }
  return new_info(type, d);
}

template <auto Field>
PyObject* float_fact(PyObject* o, void*) {
  return PyFloat_FromDouble(float_facts(info_dtype(o)).*Field);
}
// The least number: of a format without a sign its smallest power of two.
double least_number(DType d) {
  const FloatFacts f = float_facts(d);
  return is_signed(d) ? -f.max : f.tiny;
}
PyObject* finfo_min(PyObject* o, void*) { return PyFloat_FromDouble(least_number(info_dtype(o))); }
PyObject* info_bits(PyObject* o, void*) { return PyLong_FromSize_t(8 * itemsize(info_dtype(o))); }
PyObject* info_name(PyObject* o, void*) { return PyUnicode_FromString(name(info_dtype(o))); }
PyObject* iinfo_max(PyObject* o, void*) {
  const DType d = info_dtype(o);
  const int bits = static_cast<int>(8 * itemsize(d)) - (is_signed(d) ? 1 : 0);
  return PyLong_FromUnsignedLongLong(bits == 64 ? ~0ull : (1ull << bits) - 1);
}
PyObject* iinfo_min(PyObject* o, void*) {
  const DType d = info_dtype(o);
  if (!is_signed(d)) return PyLong_FromLong(0);
  const int bits = static_cast<int>(8 * itemsize(d)) - 1;
  return PyLong_FromLongLong(bits == 63 ? INT64_MIN : -(1ll << bits));
}

PyObject* finfo_repr(PyObject* o) {
  const FloatFacts f = float_facts(info_dtype(o));
  auto short_text = [](double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%g", v);
    return std::string(text);
  };
  const std::string text =
      concat("finfo(resolution=", short_text(f.resolution),
             ", min=", short_text(least_number(info_dtype(o))), ", max=", short_text(f.max),
             ", eps=", short_text(f.eps), ", smallest_normal=", short_text(f.tiny),
             ", tiny=", short_text(f.tiny), ", dtype=", name(info_dtype(o)), ")");
  return PyUnicode_FromString(text.c_str());
}
PyObject* iinfo_repr(PyObject* o) {
  return guard([&] {
    const Object low = Object::take(iinfo_min(o, nullptr)),
                 high = Object::take(iinfo_max(o, nullptr));
    return PyUnicode_FromFormat("iinfo(min=%S, max=%S, dtype=%s)", low.get(), high.get(),
                                name(info_dtype(o)));
  });
}
PyObject* info_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((info_dtype(a) == info_dtype(b)) == (op == Py_EQ));
}
Py_hash_t info_hash(PyObject* o) { return static_cast<Py_hash_t>(info_dtype(o)) + 1; }

PyGetSetDef finfo_properties[] = {
    {"bits", info_bits, nullptr, nullptr, nullptr},
    {"eps", float_fact<&FloatFacts::eps>, nullptr, nullptr, nullptr},
    {"max", float_fact<&FloatFacts::max>, nullptr, nullptr, nullptr},
    {"min", finfo_min, nullptr, nullptr, nullptr},
    {"tiny", float_fact<&FloatFacts::tiny>, nullptr, nullptr, nullptr},
    {"smallest_normal", float_fact<&FloatFacts::tiny>, nullptr, nullptr, nullptr},
    {"smallest_subnormal", float_fact<&FloatFacts::smallest_subnormal>, nullptr, nullptr, nullptr},
    {"resolution", float_fact<&FloatFacts::resolution>, nullptr, nullptr, nullptr},
    {"dtype", info_name, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef iinfo_properties[] = {{"bits", info_bits, nullptr, nullptr, nullptr},
                                  {"max", iinfo_max, nullptr, nullptr, nullptr},
                                  {"min", iinfo_min, nullptr, nullptr, nullptr},
                                  {"dtype", info_name, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject info_type(const char* name, newfunc make, PyGetSetDef* properties, reprfunc repr,
                       const char* doc) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_basicsize = sizeof(InfoObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = make;
  t.tp_repr = repr;
  t.tp_getset = properties;
  t.tp_richcompare = info_compare;
  t.tp_hash = info_hash;
  t.tp_doc = doc;
  return t;
}
PyTypeObject finfo_type = info_type("facula.finfo", finfo_new, finfo_properties, finfo_repr,
                                    "Numerical limits of a floating-point dtype.");
PyTypeObject iinfo_type = info_type("facula.iinfo", iinfo_new, iinfo_properties, iinfo_repr,
                                    "Numerical limits of an integer dtype.");

}  // namespace

PyTypeObject dtype_type =
    word_type("facula.dtype", dtype_methods, dtype_properties, "The type of a tensor's elements.");
PyTypeObject layout_type = word_type("facula.layout", word_methods, word_properties,
                                     "How a tensor is laid out in memory.");
PyTypeObject memory_format_type = word_type("facula.memory_format", word_methods, word_properties,
                                            "The order of a tensor's dimensions in memory.");

PyObject* dtype_object(DType d) {
  PyObject* o = dtype_objects[static_cast<int>(d)];
  check(o != nullptr, "this dtype has no Python object");
  return o;
}
// The object of a registered layout is made at its first use.
PyObject* layout_object(Layout l) {
  PyObject*& o = layout_objects[static_cast<int>(l)];
  if (o) return o;
  WordObject* word = PyObject_New(WordObject, &layout_type);
  if (!word) throw_python();
  word->value = static_cast<int>(l);
  word->name = layout_name(l);
  return o = reinterpret_cast<PyObject*>(word);
}
PyObject* memory_format_object(MemoryFormat f) {
  return memory_format_objects[static_cast<int>(f)];
}

DType dtype_like(PyObject* o) {
  if (is_dtype(o)) return dtype_value(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Float64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::Complex128;
  return DType::Undefined;
}

void add_dtypes(PyObject* module) {
  add_type(module, dtype_type, "dtype");
  add_type(module, layout_type, "layout");
  add_type(module, memory_format_type, "memory_format");
  add_type(module, finfo_type, "finfo");
  add_type(module, iinfo_type, "iinfo");
  for (int i = 0; i < dtype_slots; ++i) {
    const DType d = static_cast<DType>(i);
    if (d == DType::Undefined || !name(d)) continue;
    dtype_objects[i] = add_word(module, dtype_type, i, name(d));
  }
  for (const DTypeAlias& a : dtype_aliases)
    checked(PyObject_SetAttrString(module, a.name, dtype_object(a.dtype)));
  for (int i = 0; i <= static_cast<int>(Layout::Jagged); ++i)
    layout_objects[i] = add_word(module, layout_type, i, layout_name(static_cast<Layout>(i)));
  const char* formats[] = {"contiguous_format", "preserve_format", "channels_last",
                           "channels_last_3d"};
  for (int i = 0; i < 4; ++i)
    memory_format_objects[i] = add_word(module, memory_format_type, i, formats[i]);
}

}  // namespace facula::python
