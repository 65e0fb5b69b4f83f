// Products of unsigned bytes (activations) by signed bytes (weights), summed in int32, and what
// becomes of the sums.
#pragma once
#include "core/tensor.h"
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Weights are packed once: panels of `byte_columns` columns, in each the columns' next four bytes
// along k side by side, which is what instructions that add four products at once take.
inline constexpr int64_t byte_columns = 16;
inline int64_t byte_steps(int64_t k) { return (k + 3) / 4; }
inline int64_t packed_bytes(int64_t n, int64_t k) {
  return (n + byte_columns - 1) / byte_columns * byte_columns * byte_steps(k) * 4;
}

// value = (integer - zero point) * scale on both sides.
struct ByteWeights {
  int64_t n, k;
  const int8_t* packed;
  const int32_t* sums;         // of each column along k
  const double* scales;        // one for all columns, or one for each
  const int64_t* zero_points;  // likewise
  int64_t parameters;          // how many there are
  const float* bias;           // or null
};
struct ByteRows {
  int64_t m;
  const uint8_t* data;  // rows of k bytes
  int64_t pitch;        // between rows
  double scale;
  int64_t zero_point;
};
// Where quantized results go; rows `pitch` apart.
struct ByteResult {
  uint8_t* data;
  int64_t pitch;
  double scale;
  int64_t zero_point;
  bool relu;
};
struct FloatResult {
  float* data;
  int64_t pitch;
  bool relu;
};

// A convolution of bytes whose channels are innermost. Absent dimensions have size 1.
struct ByteConvolution {
  int64_t batch, channels, groups, outputs;  // outputs: channels of the result
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  const uint8_t* data;
  double scale;
  int64_t zero_point;
};

FACULA_PER_ISA(
    // `weights` has n rows of k bytes, dense.
    void pack_bytes(const int8_t* weights, int64_t n, int64_t k, int8_t* packed, int32_t* sums);
    void multiply_bytes(const ByteRows& rows, const ByteWeights& weights, const ByteResult& result);
    void multiply_bytes_to_float(const ByteRows& rows, const ByteWeights& weights,
                                 const FloatResult& result);
    // The weights of each group in turn: outputs / groups columns, k the kernel's taps with the
    // channels innermost.
    void convolve_bytes(const ByteConvolution& shape, const ByteWeights* groups,
                        const ByteResult& result);
    // Sums without zero points: result (m, n) of int32.
    void multiply_integers(const ByteRows& rows, const ByteWeights& weights, int32_t* result);)

}  // namespace facula::cpu
