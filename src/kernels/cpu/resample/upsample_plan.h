// Which input elements a resampled element is made of, along one axis, and with which weights.
#pragma once
#include <optional>

#include "core/tensor.h"

namespace facula::cpu {

// The Aa filters widen with the scale when they shrink, so that no input is passed over.
enum class Filter : uint8_t { Nearest, NearestExact, Linear, Cubic, AaLinear, AaCubic };

struct Resampling {
  Filter filter;
  int spatial;
  bool align_corners;
  std::optional<double> scales[3];  // depth, height, width: as the user gave them
};

// Output i is the sum of weight[i * taps + t] * input[index[i * taps + t]] for t < count[i].
template <class A>
struct ResampleAxis {
  int64_t taps = 1;
  const int64_t* count = nullptr;
  const int64_t* index = nullptr;
  const A* weight = nullptr;
  Tensor memory[3];
};

// A is float or double: positions are computed in it.
template <class A>
ResampleAxis<A> resample_axis(const Resampling& how, int axis, int64_t input, int64_t output);
extern template ResampleAxis<float> resample_axis<float>(const Resampling&, int, int64_t, int64_t);
extern template ResampleAxis<double> resample_axis<double>(const Resampling&, int, int64_t,
                                                           int64_t);

// The same for bytes: weights are integers of `precision` fractional bits.
struct ByteAxis {
  ResampleAxis<double> axis;
  const int32_t* weight = nullptr;
  int precision = 0;
  Tensor memory;
};
ByteAxis byte_axis(const Resampling& how, int axis, int64_t input, int64_t output);

}  // namespace facula::cpu
