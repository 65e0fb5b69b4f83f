// A fast path from Python to a call that handles only the common case: no mode is active, and the
// arguments are plain tensors, numbers, bools, None and short lists of these. The parser (parse.h)
// handles everything else.
#pragma once
#include "bindings/call/parse.h"
#include "bindings/modes/overrides.h"

namespace facula::python {

// With tensors of more elements than this, a call takes microseconds and should release the GIL,
// which the fast path does not do. Operators with autocast class LowerPrecision are matrix products
// and the like, which take longer.
inline int64_t long_call_elements(const Operator& op) {
  if (op.info().view) return INT64_MAX;
  return op.record->autocast == Autocast::LowerPrecision ? 2048 : 8192;
}

// Whether it has no tensor arguments, like zeros and rand: its lists of ints are sizes then.
inline bool makes_from_sizes(const OpInfo& info) { return !(info.tensor_args | info.list_args); }
inline bool product_exceeds(IntSpan sizes, int64_t most) {
  int64_t product = 1;
  for (const int64_t n : sizes)
    if (__builtin_mul_overflow(product, n, &product)) return true;
  return product > most;
}

// Calls the operator of a signature with a few tensors, ints and bools, or with one list of tensors
// or ints; other parameters get their defaults. Returns null without an error if the fast path does
// not apply.
PyObject* try_plain_call(const Signature& s, const Given& given);

// The fast path for binary operators of the number protocol, such as a + b.
class PlainBinary {
 public:
  // Finds it among the overloads of a name; `usable` stays false where none fits.
  explicit PlainBinary(const char* name);
  // The result, or null without an error if the fast path does not apply.
  PyObject* try_call(PyObject* a, PyObject* b) const;

 private:
  bool read(PyObject* o, int operand, Value& v) const;

  const Operator* op_ = nullptr;
  int64_t most_ = 0;  // long_call_elements()
  bool numbers_[2] = {};
  Value rest_[2];
};

}  // namespace facula::python
