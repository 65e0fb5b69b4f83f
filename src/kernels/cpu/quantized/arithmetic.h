// Sums and products of quantized values, number by number.
#pragma once
#include "core/dtype.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Integers of one scale and zero point.
struct AffineNumbers {
  const void* integers;
  float scale, zero_point;
};
enum class QuantizedOperation : uint8_t { Add, Multiply };

// How the result is quantized; values below zero become zero first where `relu` says so.
struct AffineResult {
  float scale, zero_point, least, greatest;
  bool relu;
};

FACULA_PER_ISA(
    // `result` is memory of n integers; these and both operands' are of `type`, int8 or uint8.
    void quantized_binary(QuantizedOperation operation, DType type, const AffineNumbers& a,
                          const AffineNumbers& b, int64_t n, const AffineResult& how,
                          void* result);)

}  // namespace facula::cpu
