// For kernels that describe their loop by themselves (LoopOfCall, pointwise.h).
#pragma once

namespace facula::cpu {

struct LoopOfCall;

// What a kernel that runs now is to fill in instead of computing; null: it computes.
LoopOfCall* described_loop();

}  // namespace facula::cpu
