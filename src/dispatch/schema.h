// PyTorch's schema language: an operator's name, arguments and results.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace facula {

enum class TypeKind : uint8_t {
  Tensor,
  Int,
  SymInt,
  Float,
  SymFloat,
  Bool,
  SymBool,
  Complex,
  Scalar,
  Str,
  ScalarType,
  Layout,
  MemoryFormat,
  Device,
  DeviceIndex,
  Generator,
  Storage,
  Stream,
  Dimname,
  QScheme,
  Quantizer,
  ConstQuantizerPtr,
  Any,
  AnyClass,
  AnyEnum,
  Capsule,
  None,
  List,    // only as an element: int[][] is a list of `List`, whose one child is int[]
  Dict,    // children: key, value
  Tuple,   // children: members
  Union,   // children: members
  Future,  // child: its value; the same for RRef and Await
  RRef,
  Await,
  Class,  // name: dotted path
  Var,    // name: t, tKey, ...
};

struct TypeDetail;

// A type. For lists `kind` is that of the elements: Tensor?[] is {Tensor, list, optional_elements},
// int[1]? is {Int, optional, list, list_size 1}.
struct SchemaType {
  TypeKind kind = TypeKind::Tensor;
  bool optional = false;
  bool list = false;
  bool optional_elements = false;
  int32_t list_size = -1;                    // 2 for int[2], else -1
  std::shared_ptr<const TypeDetail> detail;  // null unless the kind has children or a name

  std::string str() const;  // "int[1]?"
};

struct TypeDetail {
  std::vector<SchemaType> children;
  std::string name;
};

// The alias sets that a value belongs to before and after the call. Bits 0 to 25 are the sets a to
// z; higher bits are longer names, which Schema::alias_names lists.
struct AliasInfo {
  uint32_t before = 0;
  uint32_t after = 0;
  bool write = false;
  bool wildcard_before = false;  // may be in any set
  bool wildcard_after = false;

  explicit operator bool() const {
    return before != 0 || after != 0 || wildcard_before || wildcard_after;
  }
  bool operator==(const AliasInfo&) const = default;
};

struct Default {
  enum Kind : uint8_t {
    Absent,
    None,
    Int,
    Float,
    Bool,         // i
    Complex,      // d, imag
    Str,          // s
    Word,         // s, and its enumeration value in i: `contiguous_format`, `Mean`, `long`
    IntList,      // ints
    BoolList,     // ints
    FloatList,    // floats
    ComplexList,  // floats: real, imaginary, real, ...
    EmptyList,    // [] for lists of any other type
  };
  Kind kind = Absent;
  int64_t i = 0;
  double d = 0;  // also the value of Int and Bool
  double imag = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

// An argument or a result.
struct Argument {
  std::string name;  // may be empty for results
  uint32_t name_hash = 0;
  SchemaType type;
  AliasInfo alias;       // of the value, or of a list's elements: Tensor(a!), Tensor(a!)[]
  AliasInfo list_alias;  // of the list itself: Tensor[](a!)
  bool keyword_only = false;
  bool has_default = false;
  Default default_value;

  bool is_written() const { return alias.write || list_alias.write; }
};

struct Schema {
  std::string ns;  // "aten"; empty when the text names none
  std::string name;
  std::string overload;
  std::vector<Argument> args;
  std::vector<Argument> results;
  std::vector<std::string> alias_names;  // of alias bits 26 and up
  bool vararg_args = false;
  bool vararg_results = false;

  // The index of the argument of that name, or -1.
  int index_of(std::string_view name) const;
  // The text that PyTorch's str(schema) gives; enumeration words are printed as their numbers.
  std::string str() const;
};

// FNV-1a.
constexpr uint32_t name_hash(std::string_view s) {
  uint32_t h = 2166136261u;
  for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

// Parses "ns::name.overload(Tensor self, *, Scalar alpha=1) -> Tensor". Throws RuntimeError with
// the place of the mistake when the text is no schema.
Schema parse_schema(std::string_view text);

// Parses one type, "Tensor?[]"; alias sets are not allowed.
SchemaType parse_schema_type(std::string_view text);

namespace detail {
struct TypeName {
  std::string_view name;
  TypeKind kind;
  std::string_view printed;  // how PyTorch prints it, where that differs
};
// The types that are written by one word.
const std::vector<TypeName>& type_names();
}  // namespace detail

}  // namespace facula
