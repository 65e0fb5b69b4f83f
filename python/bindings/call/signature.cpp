#include "bindings/call/signature.h"

#include <algorithm>
#include <cstring>

namespace facula::python {
namespace {

struct Alias {
  const char *ours, *numpy, *second;
};
constexpr Alias numpy_names[] = {{"dim", "axis", nullptr},
                                 {"keepdim", "keepdims", nullptr},
                                 {"input", "x", "a"},
                                 {"other", "x2", nullptr}};

PyObject* interned(const std::string& s) {
  PyObject* p = PyUnicode_InternFromString(s.c_str());
  if (!p) throw_python();
  return p;
}

bool is_factory(const Schema& s) {
  return s.index_of("dtype") >= 0 && s.index_of("layout") >= 0 && s.index_of("device") >= 0 &&
         s.index_of("pin_memory") >= 0;
}

Parameter make_parameter(const OpInfo& info, size_t i, const OpRecord& record, Style style) {
  Parameter p;
  p.argument = &info.schema.args[i];
  p.index = static_cast<uint8_t>(i);
  const SchemaType& type = p.argument->type;
  const bool integral = type.kind == TypeKind::Int || type.kind == TypeKind::SymInt;
  p.tensor = type.kind == TypeKind::Tensor && !type.list;
  p.tensors = type.kind == TypeKind::Tensor && type.list;
  p.integer = integral && !type.list;
  p.integers = integral && type.list;
  p.one_int = p.integers && type.list_size == 1;
  p.floating = type.kind == TypeKind::Float && !type.list;
  p.boolean = type.kind == TypeKind::Bool && !type.list;
  const std::string& n = p.argument->name;
  // In functions `self` is called `input`, unless it is a list.
  const bool is_input = style == Style::Function && n == "self" && !p.argument->type.list;
  p.name = interned(is_input ? "input" : n);
  // A number cannot be written to, and has no methods.
  p.number = record.numbers.has(n) && !p.argument->is_written() &&
             !(style == Style::Method && n == "self");
  p.scalar = p.number || (type.kind == TypeKind::Scalar && !type.list);
  p.required = !p.argument->has_default;
  if (style == Style::Schema) return p;
  const std::string_view shown = text_of(p.name);
  for (const Alias& a : numpy_names) {
    if (shown != a.ours) continue;
    p.other_names[0] = interned(a.numpy);
    if (a.second) p.other_names[1] = interned(a.second);
  }
  return p;
}

const char* scalar_type_name(TypeKind k) {
  switch (k) {
    case TypeKind::Tensor:
      return "Tensor";
    case TypeKind::Int:
    case TypeKind::SymInt:
      return "int";
    case TypeKind::Float:
    case TypeKind::SymFloat:
      return "float";
    case TypeKind::Bool:
    case TypeKind::SymBool:
      return "bool";
    case TypeKind::Complex:
      return "complex";
    case TypeKind::Scalar:
      return "Number";
    case TypeKind::Str:
      return "str";
    case TypeKind::ScalarType:
      return "torch.dtype";
    case TypeKind::Layout:
      return "torch.layout";
    case TypeKind::MemoryFormat:
      return "torch.memory_format";
    case TypeKind::Device:
      return "torch.device";
    case TypeKind::Generator:
      return "torch.Generator";
    case TypeKind::Storage:
      return "torch.Storage";
    case TypeKind::Dimname:
      return "name";
    default:
      return "object";
  }
}

std::string default_text(const Default& d) {
  switch (d.kind) {
    case Default::Int:
      return std::to_string(d.i);
    case Default::Bool:
      return d.i ? "True" : "False";
    case Default::Str:
      return "'" + d.s + "'";
    case Default::Float: {
      Object f = Object::take(PyFloat_FromDouble(d.d));
      return std::string(text_of(Object::take(PyObject_Repr(f.get())).get()));
    }
    case Default::IntList: {
      std::string s = "(";
      for (size_t i = 0; i < d.ints.size(); ++i) s += (i ? ", " : "") + std::to_string(d.ints[i]);
      return s + (d.ints.size() == 1 ? ",)" : ")");
    }
    case Default::EmptyList:
      return "()";
    default:
      return "None";
  }
}

const Operator* out_variant(const Operator& op) {
  return op.variant == Variant::Base ? op.variant_of(Variant::Out) : nullptr;
}

bool takes_scalar(const Signature& s) {
  return std::ranges::any_of(s.info->schema.args, [](const Argument& a) {
    return a.type.kind == TypeKind::Scalar && !a.keyword_only;
  });
}

bool is_number(const Parameter& p) { return p.integer || p.floating || (p.scalar && !p.number); }

// Below zero where the first positional parameter that is a tensor in one signature and a number in
// the other is the tensor in `a`, above zero where it is in `b`.
int tensors_first(const Signature& a, const Signature& b) {
  const size_t shared = std::min(a.positional, b.positional);
  for (size_t i = 0; i < shared; ++i) {
    const Parameter &p = a.parameters[i], &q = b.parameters[i];
    if (p.tensor && is_number(q)) return -1;
    if (q.tensor && is_number(p)) return 1;
  }
  return 0;
}

// The order in which PyTorch's parser tries overloads: those with fewer required arguments first,
// and tensors before numbers, since a 0-dim tensor is accepted as a number.
bool tried_before(const std::unique_ptr<Signature>& a, const std::unique_ptr<Signature>& b) {
  auto plain = [](const Signature& s) { return s.info->schema.overload.empty(); };
  if (const int order = tensors_first(*a, *b)) return order < 0;
  if (takes_scalar(*a) && !takes_scalar(*b)) return false;
  return plain(*a) && !plain(*b) && a->positional <= b->positional;
}

}  // namespace

std::string python_type_name(const SchemaType& t) {
  const char* one = scalar_type_name(t.kind);
  if (!t.list) return one;
  if (t.kind == TypeKind::Tensor) return "tuple of Tensors";
  return std::string("tuple of ") + (t.kind == TypeKind::Scalar ? "Scalar" : one) + "s";
}

bool serves(const Operator& op, Style style) {
  if (style == Style::Schema) return true;
  if (op.variant == Variant::Out) return false;
  const uint32_t forms = op.record->forms;
  if (style == Style::Function) {
    if (op.variant == Variant::Functional) return forms & function;
    return forms & function;
  }
  return forms & method && op.info().schema.index_of("self") >= 0;
}

Signature::Signature(Operator& o, Style st) : op(&o), info(&o.info()), style(st) {
  const OpRecord& record = *op->record;
  const std::vector<Argument>& args = info->schema.args;
  std::vector<size_t> order;
  for (size_t i = 0; i < args.size(); ++i) order.push_back(i);
  const int self = style == Style::Method ? info->schema.index_of("self") : -1;
  if (self > 0) std::rotate(order.begin(), order.begin() + self, order.begin() + self + 1);
  for (size_t i : order) {
    parameters.push_back(make_parameter(*info, i, record, style));
    const bool keyword_only = args[i].keyword_only;
    positional += !keyword_only;
    if (!parameters.back().required) continue;
    required = parameters.size();
    all_required |= uint64_t{1} << (required - 1);
  }
  for (const Argument& a : args) defaults.push_back(default_value(a));
  // PyTorch's public functions (not its schemas) reduce nothing where `reduction` is left out.
  if (style != Style::Schema && std::string_view(record.python_module) != "nn")
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].default_value.s == "Mean") defaults[i] = Value::of_int(0);
  if (style == Style::Function) out_op = const_cast<Operator*>(out_variant(*op));
  factory = style != Style::Schema && is_factory(info->schema);
  plain = style != Style::Schema && info->results == 1 && defaults.size() <= most_plain_args;
  const size_t own = style == Style::Method ? 1 : 0;
  if (positional == own + 1 && style != Style::Schema) {
    const SchemaType& t = parameters[own].type();
    varargs = t.list && (t.kind == TypeKind::Int || t.kind == TypeKind::SymInt);
  }
}

std::string Signature::str() const {
  std::string s = "(";
  bool first = true, starred = false;
  auto add = [&](const std::string& text) {
    s += (first ? "" : ", ") + text;
    first = false;
  };
  for (size_t i = style == Style::Method; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (p.argument->keyword_only && !std::exchange(starred, true)) add("*");
    std::string text = python_type_name(p.type()) + " " + std::string(text_of(p.name));
    if (p.argument->has_default) {
      const std::string value = default_text(p.argument->default_value);
      if (!p.type().optional || value != "None")
        text += " = " + value;
      else
        text += " = None";
    }
    add(text);
  }
  if (out_op) {
    if (!std::exchange(starred, true)) add("*");
    add(info->results > 1 ? "tuple of Tensors out = None" : "Tensor out = None");
  }
  if (factory) {
    if (!std::exchange(starred, true)) add("*");
    add("bool requires_grad = False");
  }
  return s + ")";
}

std::string Signature::text_signature() const {
  std::string s = "(";
  bool first = true, starred = false;
  auto add = [&](const std::string& text) {
    s += (first ? "" : ", ") + text;
    first = false;
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (p.argument->keyword_only && !std::exchange(starred, true)) add("*");
    std::string text(text_of(p.name));
    if (style == Style::Method && i == 0) text = "$self";
    if (p.argument->has_default) text += "=" + default_text(p.argument->default_value);
    add(text);
  }
  if (out_op || factory) {
    if (!std::exchange(starred, true)) add("*");
    if (out_op) add("out=None");
    if (factory) add("requires_grad=False");
  }
  return s + ")";
}

const std::vector<std::unique_ptr<Signature>>& Packet::signatures() {
  if (!signatures_.empty()) return signatures_;
  if (only) {
    signatures_.push_back(std::make_unique<Signature>(*only, style));
    return signatures_;
  }
  for (Operator* op : find_overloads(ns, name))
    if (serves(*op, style)) signatures_.push_back(std::make_unique<Signature>(*op, style));
  std::stable_sort(signatures_.begin(), signatures_.end(), tried_before);
  return signatures_;
}

void Packet::refresh() {
  if (ns == "aten") return;
  // The name may have been removed and defined again.
  const std::vector<Operator*> now = find_overloads(ns, name);
  const auto op_of = [](const std::unique_ptr<Signature>& s) { return s->op; };
  if (!std::ranges::equal(now, signatures_, {}, {}, op_of)) signatures_.clear();
}

}  // namespace facula::python
