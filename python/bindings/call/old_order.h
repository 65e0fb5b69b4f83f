// The order of arguments that PyTorch's first releases had: add(input, alpha, other).
#pragma once
#include <optional>

#include "bindings/call/parse.h"

namespace facula::python {

// The same arguments in today's form: `order` by position, the rest by keyword.
class Reordered {
 public:
  // Empty where `given` does not have as many positional arguments as the operator's old order.
  static std::optional<Reordered> of(const Signature& s, const Given& given);

  Given given() const { return {args_.data(), positional_, keywords_.get()}; }
  // "addcmul(input, value, tensor1, tensor2)"
  void warn(const Packet& packet) const;

 private:
  std::vector<PyObject*> args_;  // borrowed
  size_t positional_ = 0;
  Object keywords_;
  std::string order_;
};

}  // namespace facula::python
