#include "dispatch/schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"
#include "dispatch/schema_lexer.h"

namespace facula {
namespace {

using detail::SchemaLexer;
using detail::Token;

// Bounds that no honest schema meets; hostile text may not exhaust the stack or the memory.
constexpr int max_depth = 64;
constexpr int64_t max_list_size = 4096;
constexpr size_t first_named_alias_bit = 26;
constexpr size_t alias_bits = 32;

// The enumeration words that may stand as defaults, beside names of dtypes.
constexpr std::array<std::pair<std::string_view, int64_t>, 7> enum_words{{{"Mean", 1},
                                                                          {"Sum", 2},
                                                                          {"contiguous_format", 0},
                                                                          {"preserve_format", 1},
                                                                          {"channels_last", 2},
                                                                          {"channels_last_3d", 3},
                                                                          {"strided", 0}}};

// The number that a word stands for, or -1.
int64_t value_of_word(std::string_view word) {
  for (const auto& [name, value] : enum_words)
    if (name == word) return value;
  const DType d = dtype_by_name(word);
  return d == DType::Undefined ? -1 : static_cast<int64_t>(d);
}

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : lexer_(text) {}

  Schema schema() {
    operator_name();
    arguments();
    lexer_.expect("->");
    results();
    lexer_.expect_end();
    return std::move(schema_);
  }

  SchemaType lone_type() {
    TypeAndAlias t = type();
    lexer_.expect_end();
    if (t.alias || t.list_alias)
      throw_error(ErrorKind::Runtime, "parse_schema_type(): expected no alias set");
    return std::move(t.type);
  }

 private:
  struct TypeAndAlias {
    SchemaType type;
    AliasInfo alias;
    AliasInfo list_alias;
  };

  // Counts nested types for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(SchemaParser& p) : depth_(p.depth_) {
      if (++depth_ > max_depth) p.lexer_.fail("types are nested too deeply");
    }
    ~Nesting() { --depth_; }

   private:
    int& depth_;
  };

  // ---- The whole ----

  void operator_name() {
    schema_.name = lexer_.expect_word("the operator's name");
    if (lexer_.accept("::")) {
      schema_.ns = std::exchange(schema_.name, {});
      schema_.name = lexer_.expect_word("the operator's name");
    }
    if (!lexer_.accept(".")) return;
    const Token overload = lexer_.token();
    schema_.overload = lexer_.expect_word("the overload's name");
    if (overload.text == "default" || overload.text.starts_with("__"))
      lexer_.fail_at(overload, concat("'", overload.text, "' may not name an overload"));
  }

  void arguments() {
    lexer_.expect("(");
    bool keyword_only = false;
    while (!lexer_.accept(")")) {
      if (lexer_.accept("...")) {
        schema_.vararg_args = true;
        return lexer_.expect(")");
      }
      if (lexer_.accept("*")) {
        keyword_only = true;
      } else {
        schema_.args.push_back(argument(keyword_only));
      }
      if (!lexer_.at(")")) separator();
    }
  }

  // A comma, with something behind it.
  void separator() {
    lexer_.expect(",");
    if (lexer_.at(")")) lexer_.fail_expected("an argument");
  }

  Argument argument(bool keyword_only) {
    Argument a = typed();
    a.keyword_only = keyword_only;
    a.name = lexer_.expect_word("the argument's name");
    a.name_hash = name_hash(a.name);
    if (lexer_.accept("=")) {
      a.has_default = true;
      a.default_value = default_of(a.type);
    }
    return a;
  }

  void results() {
    if (lexer_.accept("...")) {
      schema_.vararg_results = true;
      return;
    }
    if (!lexer_.accept("(")) return schema_.results.push_back(result());
    while (!lexer_.accept(")")) {
      if (lexer_.accept("...")) {
        schema_.vararg_results = true;
        return lexer_.expect(")");
      }
      schema_.results.push_back(result());
      if (!lexer_.at(")")) separator();
    }
  }

  Argument result() {
    Argument r = typed();
    if (lexer_.token().kind == Token::Word) r.name = lexer_.take().text;
    r.name_hash = name_hash(r.name);
    return r;
  }

  Argument typed() {
    TypeAndAlias t = type();
    Argument a;
    a.type = std::move(t.type);
    a.alias = t.alias;
    a.list_alias = t.list_alias;
    return a;
  }

  // ---- Types ----

  TypeAndAlias type() {
    const Nesting nesting(*this);
    TypeAndAlias t;
    t.type = base_type();
    if (lexer_.at("(")) t.alias = alias();
    int lists = 0;
    for (;;) {
      if (lexer_.accept("?")) {
        t.type.optional = true;
        // PyTorch prints the alias set of an optional element behind the mark.
        if (lexer_.at("(") && !t.alias) t.alias = alias();
      } else if (lexer_.at("[")) {
        if (++lists > max_depth) lexer_.fail("types are nested too deeply");
        if (t.list_alias) lexer_.fail("an alias set of an inner list is not supported");
        t.type = list_of(std::move(t.type));
        if (lexer_.at("(")) t.list_alias = alias();
      } else {
        return t;
      }
    }
  }

  SchemaType list_of(SchemaType element) {
    lexer_.expect("[");
    SchemaType list;
    if (element.list) {
      list.kind = TypeKind::List;
      list.optional_elements = std::exchange(element.optional, false);
      list.detail = with_children({std::move(element)});
    } else {
      list = std::move(element);
      list.optional_elements = std::exchange(list.optional, false);
    }
    list.list = true;
    if (lexer_.token().kind == Token::Number) list.list_size = list_size();
    lexer_.expect("]");
    return list;
  }

  int32_t list_size() {
    const Token token = lexer_.token();
    const int64_t n = integer(lexer_.take(), false);
    if (n > max_list_size) lexer_.fail_at(token, "the list is too long");
    return static_cast<int32_t>(n);
  }

  SchemaType base_type() {
    if (lexer_.at("(")) return nested(TypeKind::Tuple, 0, max_members);
    const Token token = lexer_.token();
    const std::string_view word = lexer_.expect_word("a type");
    for (const detail::TypeName& known : detail::type_names())
      if (known.name == word) return simple(known.kind);
    if (word == "Dict") return nested(TypeKind::Dict, 2, 2);
    if (word == "Union") return nested(TypeKind::Union, 1, max_members);
    if (word == "Future") return nested(TypeKind::Future, 1, 1);
    if (word == "RRef") return nested(TypeKind::RRef, 1, 1);
    if (word == "Await") return nested(TypeKind::Await, 1, 1);
    if (word == "__torch__") return class_type();
    if (word[0] >= 'a' && word[0] <= 'z') return named(TypeKind::Var, std::string(word));
    lexer_.fail_at(token, concat("'", word, "' is no type"));
  }

  static constexpr size_t max_members = 256;

  // "(T, ...)" with so many members; alias sets in it are read and mean nothing, as in PyTorch.
  SchemaType nested(TypeKind kind, size_t least, size_t most) {
    std::vector<SchemaType> members;
    lexer_.expect("(");
    while (!lexer_.at(")")) {
      if (!members.empty()) lexer_.expect(",");
      if (members.size() == most) lexer_.fail_expected("')'");
      members.push_back(type().type);
    }
    if (members.size() < least) lexer_.fail_expected("a type");
    lexer_.expect(")");
    SchemaType t = simple(kind);
    t.detail = with_children(std::move(members));
    return t;
  }

  SchemaType class_type() {
    std::string path = "__torch__";
    do {
      lexer_.expect(".");
      path += concat(".", lexer_.expect_word("a part of the class's name"));
    } while (lexer_.at("."));
    return named(TypeKind::Class, std::move(path));
  }

  static SchemaType simple(TypeKind kind) {
    SchemaType t;
    t.kind = kind;
    return t;
  }
  static SchemaType named(TypeKind kind, std::string name) {
    SchemaType t = simple(kind);
    t.detail = std::make_shared<const TypeDetail>(TypeDetail{{}, std::move(name)});
    return t;
  }
  static std::shared_ptr<const TypeDetail> with_children(std::vector<SchemaType> children) {
    return std::make_shared<const TypeDetail>(TypeDetail{std::move(children), {}});
  }

  // ---- Alias sets ----

  AliasInfo alias() {
    lexer_.expect("(");
    AliasInfo a;
    alias_sets(a.before, a.wildcard_before);
    a.write = lexer_.accept("!");
    if (lexer_.accept("->")) {
      alias_sets(a.after, a.wildcard_after);
    } else {
      a.after = a.before;
      a.wildcard_after = a.wildcard_before;
    }
    lexer_.expect(")");
    return a;
  }

  void alias_sets(uint32_t& sets, bool& wildcard) {
    do {
      if (lexer_.accept("*")) {
        wildcard = true;
      } else {
        sets |= uint32_t{1} << alias_bit();
      }
    } while (lexer_.accept("|"));
  }

  size_t alias_bit() {
    const std::string_view name = lexer_.expect_word("an alias set");
    if (name.size() == 1 && name[0] >= 'a' && name[0] <= 'z')
      return static_cast<size_t>(name[0] - 'a');
    std::vector<std::string>& names = schema_.alias_names;
    const auto found = std::find(names.begin(), names.end(), name);
    const size_t bit = first_named_alias_bit + static_cast<size_t>(found - names.begin());
    if (bit == alias_bits) lexer_.fail("there are too many alias sets of other names than a to z");
    if (found == names.end()) names.emplace_back(name);
    return bit;
  }

  // ---- Defaults ----

  Default default_of(const SchemaType& type) {
    if (lexer_.at("[")) return list_default(type);
    Default value = single_default();
    const bool is_float = type.kind == TypeKind::Float && !type.list && !type.optional;
    if (is_float && value.kind == Default::Int) value.kind = Default::Float;
    const bool fills = type.list && (value.kind == Default::Int || value.kind == Default::Float ||
                                     value.kind == Default::Bool || value.kind == Default::Complex);
    if (!fills) return value;
    // A number stands for a list of it. An optional list of unknown size may have one too.
    if (type.list_size < 0 && !type.optional) lexer_.fail("a list of no size needs a list default");
    const int64_t count = std::max<int64_t>(1, type.list_size);
    return as_list(std::vector<Default>(static_cast<size_t>(count), value), type);
  }

  Default single_default() {
    const Token token = lexer_.token();
    switch (token.kind) {
      case Token::String:
        return string_default();
      case Token::Word:
        return word_default();
      case Token::Number:
        return number_default(false);
      default:
        break;
    }
    if (!lexer_.accept("-")) lexer_.fail_expected("a default");
    if (lexer_.at_word("inf")) return word_default(true);
    if (lexer_.token().kind != Token::Number) lexer_.fail_expected("a number");
    return number_default(true);
  }

  Default string_default() {
    Default value;
    value.kind = Default::Str;
    value.s = lexer_.unquote(lexer_.token());
    lexer_.take();
    return value;
  }

  Default word_default(bool negative = false) {
    const Token token = lexer_.take();
    Default value;
    if (token.text == "None") {
      value.kind = Default::None;
    } else if (token.text == "True" || token.text == "False") {
      value.kind = Default::Bool;
      value.i = token.text == "True";
      value.d = static_cast<double>(value.i);
    } else if (token.text == "inf" || token.text == "nan") {
      const double size = token.text == "inf" ? std::numeric_limits<double>::infinity()
                                              : std::numeric_limits<double>::quiet_NaN();
      value.kind = Default::Float;
      value.d = negative ? -size : size;
    } else {
      value.kind = Default::Word;
      value.s = token.text;
      value.i = value_of_word(token.text);
      if (value.i < 0) lexer_.fail_at(token, concat("'", token.text, "' is no default"));
    }
    return value;
  }

  Default number_default(bool negative) {
    const Token token = lexer_.take();
    Default value;
    if (token.text.ends_with('j')) {
      value.kind = Default::Complex;
      value.imag = real(token, token.text.substr(0, token.text.size() - 1), negative);
    } else if (token.text.find_first_of(".eE") != std::string_view::npos) {
      value.kind = Default::Float;
      value.d = real(token, token.text, negative);
    } else {
      value.kind = Default::Int;
      value.i = integer(token, negative);
      value.d = static_cast<double>(value.i);
    }
    return value;
  }

  double real(const Token& token, std::string_view digits, bool negative) const {
    double x = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, x);
    if (error != std::errc() || stop != end) lexer_.fail_at(token, "the number is out of range");
    return negative ? -x : x;
  }

  int64_t integer(const Token& token, bool negative) const {
    uint64_t x = 0;
    const char* end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), end, x);
    if (stop != end) lexer_.fail_at(token, "expected an integer");
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + negative;
    if (error != std::errc() || x > limit) lexer_.fail_at(token, "the number is out of range");
    return static_cast<int64_t>(negative ? -x : x);
  }

  Default list_default(const SchemaType& type) {
    const Token token = lexer_.token();
    if (!type.list) lexer_.fail("a list is no default of this type");
    lexer_.expect("[");
    std::vector<Default> elements;
    while (!lexer_.accept("]")) {
      if (!elements.empty()) lexer_.expect(",");
      elements.push_back(single_default());
    }
    Default value = as_list(elements, type);
    if (value.kind == Default::Absent)
      lexer_.fail_at(token, "list defaults are for integers, floats, bools and complex numbers");
    return value;
  }

  // What kind of list may hold the values of this type; Absent when there is none.
  static Default::Kind list_kind(const SchemaType& type, const std::vector<Default>& elements) {
    const auto has = [&](Default::Kind kind) {
      return std::any_of(elements.begin(), elements.end(),
                         [kind](const Default& e) { return e.kind == kind; });
    };
    if (has(Default::Str) || has(Default::None)) return Default::Absent;
    switch (type.kind) {
      case TypeKind::Bool:
      case TypeKind::SymBool:
        return Default::BoolList;
      case TypeKind::Float:
      case TypeKind::SymFloat:
        return has(Default::Complex) ? Default::Absent : Default::FloatList;
      case TypeKind::Complex:
        return Default::ComplexList;
      case TypeKind::Scalar:
        if (has(Default::Complex)) return Default::ComplexList;
        return has(Default::Float) ? Default::FloatList : Default::IntList;
      case TypeKind::Int:
      case TypeKind::SymInt:
      case TypeKind::ScalarType:
      case TypeKind::Layout:
      case TypeKind::MemoryFormat:
      case TypeKind::DeviceIndex:
        return has(Default::Float) || has(Default::Complex) ? Default::Absent : Default::IntList;
      default:
        return elements.empty() ? Default::EmptyList : Default::Absent;
    }
  }

  static Default as_list(const std::vector<Default>& elements, const SchemaType& type) {
    Default value;
    value.kind = list_kind(type, elements);
    for (const Default& e : elements) {
      if (value.kind == Default::IntList || value.kind == Default::BoolList) {
        value.ints.push_back(e.i);
      } else {
        value.floats.push_back(e.d);
        if (value.kind == Default::ComplexList) value.floats.push_back(e.imag);
      }
    }
    return value;
  }

  SchemaLexer lexer_;
  Schema schema_;
  int depth_ = 0;
};

}  // namespace

const std::vector<detail::TypeName>& detail::type_names() {
  static const std::vector<TypeName> names{
      {"Tensor", TypeKind::Tensor, "Tensor"},
      {"int", TypeKind::Int, "int"},
      {"SymInt", TypeKind::SymInt, "SymInt"},
      {"float", TypeKind::Float, "float"},
      {"SymFloat", TypeKind::SymFloat, "SymFloat"},
      {"bool", TypeKind::Bool, "bool"},
      {"SymBool", TypeKind::SymBool, "SymBool"},
      {"complex", TypeKind::Complex, "complex"},
      {"Scalar", TypeKind::Scalar, "Scalar"},
      {"str", TypeKind::Str, "str"},
      {"ScalarType", TypeKind::ScalarType, "ScalarType"},
      {"Layout", TypeKind::Layout, "Layout"},
      {"MemoryFormat", TypeKind::MemoryFormat, "MemoryFormat"},
      {"Device", TypeKind::Device, "Device"},
      {"DeviceIndex", TypeKind::DeviceIndex, "int"},
      {"Generator", TypeKind::Generator, "Generator"},
      {"Storage", TypeKind::Storage, "Storage"},
      {"Stream", TypeKind::Stream, "Stream"},
      {"Dimname", TypeKind::Dimname, "Dimname"},
      {"QScheme", TypeKind::QScheme, "QScheme"},
      {"Quantizer", TypeKind::Quantizer, "Quantizer"},
      {"ConstQuantizerPtr", TypeKind::ConstQuantizerPtr, "int"},
      {"Any", TypeKind::Any, "Any"},
      {"AnyClassType", TypeKind::AnyClass, "AnyClassType"},
      {"AnyEnumType", TypeKind::AnyEnum, "AnyEnumType"},
      {"Capsule", TypeKind::Capsule, "Capsule"},
      {"NoneType", TypeKind::None, "NoneType"},
      {"None", TypeKind::None, "NoneType"},
  };
  return names;
}

Schema parse_schema(std::string_view text) { return SchemaParser(text).schema(); }

SchemaType parse_schema_type(std::string_view text) { return SchemaParser(text).lone_type(); }

int Schema::index_of(std::string_view wanted) const {
  const uint32_t hash = facula::name_hash(wanted);
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name_hash == hash && args[i].name == wanted) return static_cast<int>(i);
  return -1;
}

}  // namespace facula
