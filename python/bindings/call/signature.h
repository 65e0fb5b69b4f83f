// What the argument parser knows of an operator: built once from its schema, when first called.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/module/python.h"
#include "dispatch/call.h"

namespace facula::python {

// How Python sees the operators of a name.
enum class Style : uint8_t {
  Function,  // facula.add: `self` is called `input`
  Method,    // Tensor.add: `self` comes first, whatever its place in the schema
  Schema,    // facula.ops.aten.add: names as in the schema
};

struct Parameter {
  PyObject* name = nullptr;       // interned, kept for good
  PyObject* other_names[2] = {};  // NumPy's, as PyTorch takes them
  const Argument* argument = nullptr;
  uint8_t index = 0;      // among the operator's arguments
  bool tensor = false;    // one Tensor
  bool tensors = false;   // a list of Tensors
  bool integer = false;   // one int
  bool integers = false;  // a list of ints
  bool one_int = false;   // a list of ints that one int stands for
  bool floating = false;  // one float
  bool boolean = false;   // one bool
  bool scalar = false;    // a number of any kind, or a Tensor argument that takes one
  bool number = false;    // a Tensor argument that takes a number
  bool required = false;

  const SchemaType& type() const { return argument->type; }
};

inline constexpr size_t most_plain_args = 12;

struct Signature {
  Signature(Operator& op, Style style);

  Operator* op;
  const OpInfo* info;
  Style style;
  Operator* out_op = nullptr;  // the variant with out=
  std::vector<Parameter> parameters;
  size_t positional = 0;      // how many may be given by position, self included
  size_t required = 0;        // one past the last parameter that must be given
  uint64_t all_required = 0;  // a bit for each parameter that must be
  bool varargs =
      false;  // its only positional parameter is a list of ints, which may be spelled out
  bool factory = false;         // takes requires_grad
  bool plain = false;           // few parameters and one result: plain_call.h may serve it
  std::vector<Value> defaults;  // of all the operator's arguments

  static constexpr size_t nowhere = SIZE_MAX;
  // The place of the parameter whose name is this very object: names in calls are nearly always the
  // interned ones.
  size_t place_of(PyObject* name) const {
    for (size_t at = 0; at < parameters.size(); ++at)
      if (parameters[at].name == name) return at;
    return nowhere;
  }
  // "(Tensor input, Tensor other, *, Number alpha, Tensor out)", as in PyTorch's error texts.
  std::string str() const;
  // "(input, other, *, alpha=1, out=None)"
  std::string text_signature() const;
};

// "Tensor", "int", "tuple of ints": a type as PyTorch's error texts have it.
std::string python_type_name(const SchemaType& t);

// All operators of one name that Python calls by it.
struct Packet {
  std::string ns, name;  // of the operators
  std::string shown;     // what Python calls it: the name or an alias
  std::string module;    // where the function is found: "facula", "facula._C._nn", "facula.Tensor"
  Style style = Style::Function;
  Operator* only = nullptr;  // this overload alone

  // In the order in which they are tried. Made when first asked for.
  const std::vector<std::unique_ptr<Signature>>& signatures();
  // The first that so many positional arguments may fit, once they are made.
  const Signature* first_for(size_t positional) const {
    for (const auto& s : signatures_)
      if (positional <= s->positional || s->varargs) return s.get();
    return nullptr;
  }

  // Looks again for operators that were defined since.
  void refresh();

 private:
  std::vector<std::unique_ptr<Signature>> signatures_;
};

// Whether operators of this record form are reached by functions, or by methods.
bool serves(const Operator& op, Style style);

}  // namespace facula::python
