// One view operation between a value and a view of it, as functionalization repeats and undoes it.
#pragma once
#include <optional>
#include <vector>

#include "dispatch/call.h"
#include "dispatch/owned_value.h"

namespace facula {

// The call of a view operator, to be made again on another base.
struct ViewCall {
  const Operator* op;
  std::vector<OwnedValue> args;  // that of the base is empty
  int base;                      // the index of its argument
  int result, item;              // which result it is; which of a list, or -1

  Tensor on(const Tensor& value) const;
};

// A view operation, which can be applied to a base and undone to write the view back into it.
struct ViewStep {
  enum class Kind : uint8_t { Strided, Conjugate, Negative, AsReal, AsComplex, Bits };
  Kind kind = Kind::Strided;
  IntVec sizes, strides;  // of Strided; the offset is relative to the base's
  int64_t offset = 0;
  DType dtype = DType::Undefined, base_dtype = DType::Undefined;  // of Bits
  bool copies = false;           // computed by the copying form of the view operator
  std::optional<ViewCall> call;  // the operator that made it, where it serves any such base

  // The operation that leads from a value to a view of it, found by comparing the two.
  static ViewStep between(const Tensor& from, const Tensor& view);
  // The view of a base. `as_copy` says whether steps with `copies` are copied.
  Tensor view_of(const Tensor& base, bool as_copy = true) const;
  // A new base, in which the elements of the view are replaced.
  Tensor put_into(const Tensor& base, const Tensor& view) const;
};

// The call `c` of a view operator whose result it is, or none where the call says more than how to
// get from a base to its view.
std::optional<ViewCall> view_call(const OpCall& c, int result, int item);

}  // namespace facula
