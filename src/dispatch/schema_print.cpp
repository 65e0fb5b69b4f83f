// Schemas back to text, in the form of PyTorch's str(schema).
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "dispatch/schema.h"

namespace facula {
namespace {

constexpr size_t letters = 26;
constexpr size_t alias_bits = 32;

std::string joined(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& part : parts) s += s.empty() ? part : ", " + part;
  return s;
}

std::string members(const SchemaType& type) {
  std::vector<std::string> parts;
  for (const SchemaType& child : type.detail->children) parts.push_back(child.str());
  return "(" + joined(parts) + ")";
}

std::string base_type(const SchemaType& type) {
  switch (type.kind) {
    case TypeKind::List:
      return type.detail->children[0].str();
    case TypeKind::Dict:
      return "Dict" + members(type);
    case TypeKind::Tuple:
      return members(type);
    case TypeKind::Union:
      return "Union" + members(type);
    case TypeKind::Future:
      return "Future" + members(type);
    case TypeKind::RRef:
      return "RRef" + members(type);
    case TypeKind::Await:
      return "Await" + members(type);
    case TypeKind::Class:
    case TypeKind::Var:
      return type.detail->name;
    default:
      break;
  }
  for (const detail::TypeName& known : detail::type_names())
    if (known.kind == type.kind) return std::string(known.printed);
  throw_error(ErrorKind::NotImplemented, "str(schema): this kind of type has no name");
}

// PyTorch prints the names of several sets last first.
std::string alias_sets(uint32_t sets, bool wildcard, const Schema& schema) {
  std::string s = wildcard ? "*" : "";
  for (size_t bit = alias_bits; bit-- > 0;) {
    if ((sets >> bit & 1) == 0) continue;
    if (!s.empty()) s += '|';
    s += bit < letters ? std::string(1, static_cast<char>('a' + bit))
                       : schema.alias_names.at(bit - letters);
  }
  return s;
}

std::string alias(const AliasInfo& a, const Schema& schema) {
  if (!a) return {};
  std::string s = "(" + alias_sets(a.before, a.wildcard_before, schema);
  if (a.write) s += '!';
  if (a.before != a.after || a.wildcard_before != a.wildcard_after)
    s += " -> " + alias_sets(a.after, a.wildcard_after, schema);
  return s + ")";
}

// A type with the texts of its alias sets.
std::string type_text(const SchemaType& type, const std::string& alias_text,
                      const std::string& list_alias_text) {
  std::string s = base_type(type);
  if (type.list) {
    if (type.optional_elements) s += '?';
    s += alias_text;
    s += type.list_size < 0 ? "[]" : "[" + std::to_string(type.list_size) + "]";
    s += list_alias_text;
  } else {
    s += alias_text;
  }
  if (type.optional) s += '?';
  return s;
}

// 17 digits, and a point behind whole numbers.
std::string number(double x) {
  constexpr double int64_limit = 9223372036854775808.0;
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  if (std::fabs(x) < int64_limit && std::trunc(x) == x)
    return std::to_string(static_cast<int64_t>(x)) + ".";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x,
                                 std::chars_format::general, 17);
  return std::string(buffer.data(), end.ptr);
}

std::string complex_number(double re, double im) { return number(re) + "+" + number(im) + "j"; }

std::string quoted(const std::string& value) {
  constexpr std::string_view special = "\n\t\r\f\v\a\b\\'\"";
  constexpr std::string_view names = "ntrfvab\\'\"";
  std::string s = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t i = special.find(c); i != std::string_view::npos) {
      s += '\\';
      s += names[i];
    } else if (byte < 0x20 || byte == 0x7f) {
      s += '\\';
      for (const int shift : {6, 3, 0}) s += static_cast<char>('0' + (byte >> shift & 7));
    } else {
      s += c;
    }
  }
  return s + "\"";
}

std::vector<std::string> elements(const Default& value) {
  std::vector<std::string> parts;
  if (value.kind == Default::ComplexList) {
    for (size_t i = 0; i + 1 < value.floats.size(); i += 2)
      parts.push_back(complex_number(value.floats[i], value.floats[i + 1]));
    return parts;
  }
  for (const double x : value.floats) parts.push_back(number(x));
  for (const int64_t i : value.ints) {
    if (value.kind == Default::BoolList) {
      parts.emplace_back(i != 0 ? "True" : "False");
    } else {
      parts.push_back(std::to_string(i));
    }
  }
  return parts;
}

// Lists of one repeated integer, and defaults of optional lists, are printed as the number.
std::string list_text(const Default& value, const SchemaType& type) {
  const std::vector<std::string> parts = elements(value);
  const bool equal =
      std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) == parts.end();
  const bool plain_ints = type.kind == TypeKind::Int && !type.optional_elements;
  const bool short_form = type.optional ? !parts.empty() : plain_ints && parts.size() > 1;
  return equal && short_form ? parts[0] : "[" + joined(parts) + "]";
}

std::string default_text(const Default& value, const SchemaType& type) {
  switch (value.kind) {
    case Default::Absent:
      return {};
    case Default::None:
      return "None";
    case Default::Int:
    case Default::Word:
      return std::to_string(value.i);
    case Default::Bool:
      return value.i != 0 ? "True" : "False";
    case Default::Float:
      return number(value.d);
    case Default::Complex:
      return complex_number(value.d, value.imag);
    case Default::Str:
      return type.kind == TypeKind::Str ? quoted(value.s) : value.s;
    default:
      return list_text(value, type);
  }
}

std::string argument_text(const Argument& a, const Schema& schema) {
  std::string s = type_text(a.type, alias(a.alias, schema), alias(a.list_alias, schema));
  if (!a.name.empty()) s += " " + a.name;
  if (a.has_default) s += "=" + default_text(a.default_value, a.type);
  return s;
}

std::string arguments_text(const Schema& schema) {
  std::vector<std::string> parts;
  bool keyword_only = false;
  for (const Argument& a : schema.args) {
    if (a.keyword_only && !keyword_only) parts.emplace_back("*");
    keyword_only = keyword_only || a.keyword_only;
    parts.push_back(argument_text(a, schema));
  }
  if (schema.vararg_args) parts.emplace_back("...");
  return "(" + joined(parts) + ")";
}

std::string results_text(const Schema& schema) {
  std::vector<std::string> parts;
  for (const Argument& r : schema.results) parts.push_back(argument_text(r, schema));
  if (schema.vararg_results) parts.emplace_back("...");
  const bool bare = parts.size() == 1 && !parts[0].starts_with('(');
  return bare ? parts[0] : "(" + joined(parts) + ")";
}

}  // namespace

std::string SchemaType::str() const { return type_text(*this, {}, {}); }

std::string Schema::str() const {
  std::string s = ns.empty() ? name : ns + "::" + name;
  if (!overload.empty()) s += "." + overload;
  return s + arguments_text(*this) + " -> " + results_text(*this);
}

}  // namespace facula
