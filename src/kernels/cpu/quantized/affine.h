// Between floats and integers: value = (integer - zero_point) * scale.
#pragma once
#include "core/tensor.h"
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// A dense block of values whose dimensions are (outer, channels, inner).
struct ChannelBlock {
  int64_t outer = 1, channels = 1, inner = 0;
  int64_t numel() const { return outer * channels * inner; }
};

// How each channel is quantized; one entry serves all channels where there is only one.
struct AffineParameters {
  const double* scales;
  const int64_t* zero_points;
  const double* float_zero_points;  // instead of zero_points, where they are no integers; or null
  int64_t count;
};

// What fake quantization reads: integers that are out of range are clamped, and marked.
struct FakeRange {
  int64_t least, greatest;
};

FACULA_PER_ISA(
    // `integers` is memory of int8, uint8 or int32, as `type` says; values beyond [least,
    // greatest] become these. Not a number becomes the greatest, and of int32 the least.
    void quantize_block(const float* values, const ChannelBlock& block, const AffineParameters& p,
                        DType type, int64_t least, int64_t greatest, void* integers);
    void dequantize_block(const void* integers, DType type, const ChannelBlock& block,
                          const AffineParameters& p, float* values);
    // (quantize, then dequantize) with scales and zero points of float, broadcast to self's sizes;
    // mask says where the integer was in range.
    void fake_quantize(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                       FakeRange range, bool per_channel, const Tensor& output,
                       const Tensor& mask);)

}  // namespace facula::cpu
