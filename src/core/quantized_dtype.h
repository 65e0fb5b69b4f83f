// The dtypes of quantized tensors, numbered as PyTorch's. They stand apart from DType's enumerators
// since no kernel takes them: what computes with a quantized tensor reads its integers, which are a
// plain tensor over the same memory (ops/quantized/quantizer.h). For the same reason itemsize() of
// them is 0, and their bytes are info(d).size.
#pragma once
#include "core/dtype.h"

namespace facula {

inline constexpr DType qint8 = DType{12}, quint8 = DType{13}, qint32 = DType{14};
// Several elements in each byte, the first in the lowest bits.
inline constexpr DType quint4x2 = DType{16}, quint2x4 = DType{17};

inline constexpr uint64_t quantized_dtypes = 1u << 12 | 1u << 13 | 1u << 14 | 1u << 16 | 1u << 17;
constexpr bool is_quantized(DType d) { return is_among(quantized_dtypes, d); }

// The dtype of the integers; of whole bytes where several elements share one.
inline DType integers_of(DType d) {
  if (d == qint8) return DType::Int8;
  return d == qint32 ? DType::Int32 : DType::UInt8;
}
inline int bits_of(DType d) {
  if (d == quint4x2) return 4;
  if (d == quint2x4) return 2;
  return d == qint32 ? 32 : 8;
}
inline int per_byte(DType d) { return d == qint32 ? 1 : 8 / bits_of(d); }

// The least and the greatest integer.
struct IntegerRange {
  int64_t least, greatest;
};
inline IntegerRange range_of(DType d) {
  const int64_t count = int64_t{1} << bits_of(d);
  if (d == qint8 || d == qint32) return {-count / 2, count / 2 - 1};
  return {0, count - 1};
}

}  // namespace facula
