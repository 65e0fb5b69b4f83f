// Error texts for arguments that fit no signature.
#pragma once
#include "bindings/call/parse.h"

namespace facula::python {

struct Misfit {
  enum Kind : uint8_t {
    None,
    TooMany,
    Missing,
    WrongType,
    WrongKeyword,
    WrongExtra,  // out= or requires_grad=
    Unexpected,
    Twice
  };
  Kind kind = None;
  size_t at = 0;               // index of the parameter
  PyObject* object = nullptr;  // the argument, or the keyword's name; borrowed
  uint64_t seen = 0;           // for Missing: the parameters that were given, one bit for each
  PyObject* key = nullptr;     // for WrongExtra: the keyword; borrowed
  explicit operator bool() const { return kind != None; }
};

// Raises TypeError. `reasons` has one entry for each signature of the packet.
[[noreturn]] void throw_misfit(Packet& packet, const Given& given,
                               const std::vector<Misfit>& reasons);

}  // namespace facula::python
