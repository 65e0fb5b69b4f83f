// Calls of an operator on the values of a sparse tensor.
#pragma once
#include "dispatch/call.h"

namespace facula::sparse {

// The operator of a call, in the form that makes a new tensor, with another tensor as argument
// `at`.
Tensor called_with(const OpCall& c, int at, const Tensor& replacement);

const Tensor& values_of(const Tensor& t);

}  // namespace facula::sparse
