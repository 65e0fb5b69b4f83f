// Quantized tensors: integers in a storage, and a quantizer that says what they are worth.
#pragma once
#include "core/quantized_dtype.h"
#include "core/tensor.h"
#include "kernels/cpu/quantized/affine.h"

namespace facula {

// Numbers are PyTorch's.
enum class QScheme : int8_t {
  PerTensorAffine = 0,
  PerChannelAffine = 1,
  PerTensorSymmetric = 2,   // of observers; tensors have the affine scheme
  PerChannelSymmetric = 3,  // likewise
  PerChannelAffineFloatQParams = 4,
};

// value = (integer - zero_point) * scale, for the whole tensor or for each channel along an axis.
struct Quantizer {
  QScheme scheme = QScheme::PerTensorAffine;
  double scale = 1;
  int64_t zero_point = 0;
  // By channel: float64 and int64; both float32 for the scheme of float parameters.
  Tensor scales, zero_points;
  int64_t axis = 0;

  bool per_channel() const { return scheme != QScheme::PerTensorAffine; }
  bool operator==(const Quantizer& o) const;
};

// The quantizer lives in the tensor's extension, so that plain tensors know nothing of it. The
// storage holds the integers.
struct QuantizedExtension final : Extension {
  QuantizedExtension(const ExtensionKind& kind, Quantizer q)
      : Extension(kind), quantizer(std::move(q)) {}
  Extension* clone() const override { return new QuantizedExtension(*kind, quantizer); }

  Quantizer quantizer;
};

// The kind, registered with its kernels at its first use.
const ExtensionKind& quantized_kind();

bool is_quantized(const Tensor& t);
// RuntimeError for a plain tensor.
const Quantizer& quantizer_of(const Tensor& t);
void set_quantizer(const Tensor& t, Quantizer q);

// The integers as a plain tensor over the same memory; where several elements share a byte, all
// bytes in a row.
Tensor integers_of(const Tensor& t);
// A quantized tensor over the memory of `integers`.
Tensor over_integers(const Tensor& integers, DType dtype, Quantizer q);
// The same for packed elements, whose bytes do not say the sizes.
Tensor over_bytes(const Tensor& bytes, IntSpan sizes, DType dtype, Quantizer q);
// Memory of its own, not set.
Tensor empty_quantized(IntSpan sizes, IntSpan strides, DType dtype, const Quantizer& q);

// RuntimeError unless the quantizer fits a tensor of these sizes.
void check_channels(const Quantizer& q, IntSpan sizes, const char* what);
// RuntimeError for a zero point of a whole tensor that is no integer of the dtype.
void check_zero_point(const Quantizer& q, DType dtype);
// Parameters of each channel as vectors that kernels read.
struct HeldParameters {
  explicit HeldParameters(const Quantizer& q);
  cpu::AffineParameters view() const;

 private:
  const Quantizer& q_;
  Tensor scales_, zero_points_;
};

Tensor quantize(const Tensor& values, DType dtype, const Quantizer& q);
Tensor dequantized(const Tensor& t);

// Puts the kernels of facula's operators in for the kind.
void add_quantized_kernels(const ExtensionKind& kind);

}  // namespace facula
