#include "bindings/call/parse_errors.h"

#include "bindings/tensor/tensor_type.h"

namespace facula::python {
namespace {

// Describes an argument: "Tensor", "int", "list of [int, int]" or "tuple of (int, str)".
std::string argument_text(PyObject* o, bool with_items) {
  if (is_exact_tensor(o)) return "Tensor";
  const bool tuple = PyTuple_CheckExact(o), list = PyList_CheckExact(o);
  std::string name = type_name(o);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos) name = name.substr(dot + 1);
  if (!with_items || !(tuple || list)) return name;
  std::string s = tuple ? "tuple of (" : "list of [";
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n && i < 20; ++i) {
    if (i) s += ", ";
    s += argument_text(PySequence_Fast_GET_ITEM(o, i), false);
  }
  if (n > 20) s += ", ...";
  if (tuple && n == 1) s += ",";
  return s + (tuple ? ")" : "]");
}

// The index of the element that does not fit a list of ints, floats or tensors; -1 if it is no
// list.
Py_ssize_t bad_element(const SchemaType& type, PyObject* o, Parsed& scratch) {
  if (!type.list || !(PyList_Check(o) || PyTuple_Check(o))) return -1;
  SchemaType element = type;
  element.list = false;
  element.optional = type.optional_elements;
  Py_ssize_t bad = -1;
  read_items(o, [&](size_t i, PyObject* item) {
    Value v;
    if (!read_value(element, false, item, v, scratch)) bad = static_cast<Py_ssize_t>(i);
    return bad < 0;
  });
  return bad;
}

class Report {
 public:
  Report(Packet& p, const Given& g)
      : packet_(p), given_(g), own_(p.style == Style::Method ? 1 : 0) {}

  std::string single(const Signature& s, const Misfit& m) const {
    switch (m.kind) {
      case Misfit::TooMany:
        return too_many(s);
      case Misfit::Missing:
        return missing(s, m);
      case Misfit::Unexpected:
        return call() + " got an unexpected keyword argument '" + std::string(text_of(m.object)) +
               "'";
      case Misfit::Twice:
        return call() + " got multiple values for argument '" + std::string(text_of(m.object)) +
               "'";
      case Misfit::WrongExtra:
        return concat(call(), ": argument '", text_of(m.key), "' must be ",
                      text_of(m.key) != "out" ? "bool"
                      : s.info->results > 1   ? "tuple of Tensors"
                                              : "Tensor",
                      ", not ", argument_text(m.object, false));
      default:
        return wrong_type(s, m);
    }
  }

  // PyTorch chooses a signature by the first element of a list of ints. If a later element does not
  // fit, its error names that element.
  std::string unpacking(const Signature& s, const Misfit& m) const {
    if (m.kind != Misfit::WrongType && m.kind != Misfit::WrongKeyword) return {};
    const Parameter& p = s.parameters[m.at];
    if (!p.type().list || (p.type().kind != TypeKind::Int && p.type().kind != TypeKind::SymInt))
      return {};
    Parsed scratch;
    const Py_ssize_t at = bad_element(p.type(), m.object, scratch);
    if (at < 1) return {};
    return concat(call(), ": argument '", text_of(p.name), "' failed to unpack the object at pos ",
                  at + 1, " with error \"type must be tuple of ints,but got ",
                  argument_text(PySequence_Fast_GET_ITEM(m.object, at), false), "\"");
  }

  // Whether the signature accepts so many arguments.
  bool has_room(const Signature& s) const {
    const size_t most = s.parameters.size() - own_ + (s.out_op ? 1 : 0) + (s.factory ? 1 : 0);
    return given_.positional - own_ + given_.keyword_count() <= most;
  }

  std::string several() const {
    std::string s = call() + " received an invalid combination of arguments - got " + got() +
                    ", but expected one of:\n";
    for (const auto& signature : packet_.signatures()) s += " * " + signature->str() + "\n";
    return s;
  }

 private:
  std::string call() const { return packet_.shown + "()"; }

  std::string too_many(const Signature& s) const {
    const size_t most = s.positional - own_, got = given_.positional - own_;
    return concat(call(), " takes ", most, " positional argument", most == 1 ? "" : "s", " but ",
                  got, got == 1 ? " was given" : " were given");
  }

  std::string missing(const Signature& s, const Misfit& m) const {
    std::string names;
    int count = 0;
    for (size_t i = own_; i < s.parameters.size(); ++i) {
      const bool given = m.seen ? m.seen >> i & 1 : i < given_.positional;
      if (!s.parameters[i].required || given) continue;
      names += (count++ ? ", \"" : "\"") + std::string(text_of(s.parameters[i].name)) + "\"";
    }
    return concat(call(), " missing ", count, " required positional argument", "s: ", names);
  }

  std::string wrong_type(const Signature& s, const Misfit& m) const {
    if (m.at < own_)
      return concat("descriptor '", packet_.shown,
                    "' for 'facula.Tensor' objects doesn't apply to a '",
                    argument_text(m.object, false), "' object");
    const Parameter& p = s.parameters[m.at];
    std::string text = concat(call(), ": argument '", text_of(p.name), "'");
    if (m.kind == Misfit::WrongType) text += concat(" (position ", m.at + 1 - own_, ")");
    const std::string wanted = python_type_name(p.type());
    Parsed scratch;
    if (p.type().kind == TypeKind::Tensor && p.type().list &&
        (PyList_Check(m.object) || PyTuple_Check(m.object))) {
      const Py_ssize_t bad = bad_element(p.type(), m.object, scratch);
      if (bad >= 0)
        return concat("expected Tensor as element ", bad, " in argument ", m.at - own_,
                      ", but got ", argument_text(PySequence_Fast_GET_ITEM(m.object, bad), false));
    }
    const Py_ssize_t at = bad_element(p.type(), m.object, scratch);
    if (at < 0) return text + " must be " + wanted + ", not " + argument_text(m.object, false);
    return concat(text, " must be ", wanted, ", but found element of type ",
                  argument_text(PySequence_Fast_GET_ITEM(m.object, at), false), " at pos ", at);
  }

  std::string got() const {
    std::string s = "(";
    for (size_t i = own_; i < given_.positional; ++i)
      s += (i > own_ ? ", " : "") + argument_text(given_.args[i], true);
    for (size_t k = 0; k < given_.keyword_count(); ++k) {
      if (s.size() > 1) s += ", ";
      s += concat(text_of(given_.keyword(k)), "=", argument_text(given_.keyword_value(k), true));
    }
    return s + ")";
  }

  Packet& packet_;
  const Given& given_;
  size_t own_;
};

}  // namespace

void throw_misfit(Packet& packet, const Given& given, const std::vector<Misfit>& reasons) {
  const auto& signatures = packet.signatures();
  const Report report(packet, given);
  check_kind(ErrorKind::NotImplemented, !signatures.empty(), packet.shown,
             "(): there is no operator of this name in this form");
  // If only one signature accepts so many arguments, its reason says more than the list of all.
  size_t plausible = 0, count = 0;
  for (size_t i = 0; i < signatures.size(); ++i) {
    if (const std::string text = report.unpacking(*signatures[i], reasons[i]); !text.empty())
      throw_type(text);
    if (!report.has_room(*signatures[i])) continue;
    plausible = i;
    ++count;
  }
  if (signatures.size() == 1) count = 1;
  if (count == 1) throw_type(report.single(*signatures[plausible], reasons[plausible]));
  throw_type(report.several());
}

}  // namespace facula::python
