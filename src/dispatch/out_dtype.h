// Flags of records for operators whose out= PyTorch does not cast into: numbers beside those of
// Flags in record.h.
#pragma once
#include "dispatch/record.h"

namespace facula {

// Each tensor of out= has the dtype of its result.
inline constexpr uint32_t exact_out = 1u << 17;
// A real result is not written to complex numbers.
inline constexpr uint32_t real_out = 1u << 18;
// Whether something holds: out= is of bool or uint8.
inline constexpr uint32_t truth_out = 1u << 19;
// Zeros and ones: out= is of any dtype but a complex one.
inline constexpr uint32_t count_out = 1u << 21;

}  // namespace facula
