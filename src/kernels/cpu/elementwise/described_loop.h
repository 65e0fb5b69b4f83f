// For kernels that describe their loop by themselves (LoopOfCall, pointwise.h).
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

struct LoopOfCall;

// What a kernel that runs now is to fill in instead of computing; null: it computes.
LoopOfCall* described_loop();

// A copy of argument `arg`, with conversion, whose elements lie in the result's order; not
// described otherwise, since a kernel that turns planes is better at those.
void describe_copy(const Tensor& to, const Tensor& from, int arg, LoopOfCall& loop);

}  // namespace facula::cpu
