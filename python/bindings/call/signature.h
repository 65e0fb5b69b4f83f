// Signatures: what the argument parser needs of an operator, made from its schema at the first
// call.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/module/python.h"
#include "dispatch/call.h"

namespace facula::python {

// The kinds of Python callables for operators.
enum class Style : uint8_t {
  Function,  // facula.add: `self` is called `input`
  Method,    // Tensor.add: `self` comes first, wherever it is in the schema
  Schema,    // facula.ops.aten.add: names are those of the schema
};

struct Parameter {
  PyObject* name = nullptr;       // interned, never freed
  PyObject* other_names[2] = {};  // NumPy's names for it, which PyTorch accepts too
  const Argument* argument = nullptr;
  uint8_t index = 0;      // among the operator's arguments
  bool tensor = false;    // one Tensor
  bool tensors = false;   // a list of Tensors
  bool integer = false;   // one int
  bool integers = false;  // a list of ints
  bool one_int = false;   // a list of ints for which one int may be given
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
  size_t positional = 0;      // how many may be given by position, including self
  size_t required = 0;        // index after the last required parameter
  uint64_t all_required = 0;  // one bit for each required parameter
  // Its only positional parameter is a list of ints, which may be given as several arguments.
  bool varargs = false;
  bool factory = false;         // accepts requires_grad
  bool plain = false;           // simple enough for plain_call.h
  std::vector<Value> defaults;  // of all the operator's arguments

  static constexpr size_t nowhere = SIZE_MAX;
  // The index of the parameter whose name is this object. Compares addresses, since names in calls
  // are nearly always interned.
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

// The name of a type in PyTorch's error texts: "Tensor", "int", "tuple of ints".
std::string python_type_name(const SchemaType& t);

// The overloads that one Python callable chooses from.
struct Packet {
  std::string ns, name;  // of the operators
  std::string shown;     // its name in Python: `name` or an alias
  std::string module;    // "facula", "facula._C._nn", "facula.Tensor"
  Style style = Style::Function;
  Operator* only = nullptr;  // if set, the packet has only this overload

  // In the order in which the parser tries them. Made at the first call.
  const std::vector<std::unique_ptr<Signature>>& signatures();
  // The first signature that accepts so many positional arguments; null before signatures() was
  // called.
  const Signature* first_for(size_t positional) const {
    for (const auto& s : signatures_)
      if (positional <= s->positional || s->varargs) return s.get();
    return nullptr;
  }

  // Adds overloads that were defined since.
  void refresh();

 private:
  std::vector<std::unique_ptr<Signature>> signatures_;
};

// Whether the operator is available as a Python callable of this style.
bool serves(const Operator& op, Style style);

}  // namespace facula::python
