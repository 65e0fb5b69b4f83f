// Why arguments did not fit, and PyTorch's texts for it.
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
  size_t at = 0;               // parameter
  PyObject* object = nullptr;  // the argument, or the keyword's name; borrowed
  uint64_t seen = 0;           // Missing: parameters that were given
  PyObject* key = nullptr;     // WrongExtra: the keyword; borrowed
  explicit operator bool() const { return kind != None; }
};

// Raises TypeError; one reason for each signature of the packet.
[[noreturn]] void throw_misfit(Packet& packet, const Given& given,
                               const std::vector<Misfit>& reasons);

}  // namespace facula::python
