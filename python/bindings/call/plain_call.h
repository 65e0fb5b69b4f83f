// The shortest way from Python to a call, with no mode on: tensors that nothing overrides, numbers,
// bools, None and short lists of them. Everything else takes the usual way.
#pragma once
#include "bindings/call/parse.h"
#include "bindings/modes/overrides.h"

namespace facula::python {

// A tensor of more elements makes the call one of some microseconds, in which other threads should
// have the GIL. What runs in lower precision under autocast multiplies matrices.
inline int64_t long_call_elements(const Operator& op) {
  if (op.info().view) return INT64_MAX;
  return op.record->autocast == Autocast::LowerPrecision ? 2048 : 8192;
}

// zeros, rand: operators without tensors, whose lists of ints are sizes.
inline bool makes_from_sizes(const OpInfo& info) { return !(info.tensor_args | info.list_args); }
inline bool product_exceeds(IntSpan sizes, int64_t most) {
  int64_t product = 1;
  for (const int64_t n : sizes)
    if (__builtin_mul_overflow(product, n, &product)) return true;
  return product > most;
}

// Calls the operator of a signature with a few tensors, ints and bools, or with one list of tensors
// or ints; its other parameters keep their defaults. Null with no error set when the usual way must
// be taken.
PyObject* try_plain_call(const Signature& s, const Given& given);

// An operator of two operands whose further arguments have plain defaults.
class PlainBinary {
 public:
  // Finds it among the overloads of a name; `usable` stays false where none fits.
  explicit PlainBinary(const char* name);
  // The result, or null with no error set when the usual way must be taken.
  PyObject* try_call(PyObject* a, PyObject* b) const;

 private:
  bool read(PyObject* o, int operand, Value& v) const;

  const Operator* op_ = nullptr;
  int64_t most_ = 0;  // elements
  bool numbers_[2] = {};
  Value rest_[2];
};

}  // namespace facula::python
