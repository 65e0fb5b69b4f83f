// How a convolution is computed: one choice for each pass, by the shape, the dtype, the memory of
// the operands and the instruction set alone.
#pragma once
#include <optional>
#include <string_view>

#include "core/dtype.h"
#include "kernels/cpu/conv/core.h"

namespace facula::cpu {

enum class Route : uint8_t {
  DepthwisePlanes,  // one channel in a group, rows dense: plane by plane
  Depthwise,        // one channel in a group: vectors of channels
  Winograd,         // 3x3 kernels: transformed tiles
  Im2col,           // products of unfolded positions and packed weights, channels innermost
  Channels,         // weight gradients: sums with the input channels across the lanes
  Planes,           // sums over the taps of zero-padded planes; computes everything
};
inline constexpr int route_count = 6;

enum class ConvPass : uint8_t { Forward, InputGradient, WeightGradient };

// As FACULA_CONV and debug output spell it: "depthwise_planes", "depthwise", "winograd", "im2col",
// "channels", "planes".
const char* name(Route route);
const char* name(ConvPass pass);
// The route that the environment's FACULA_CONV asks for; RuntimeError for a name that is none.
std::optional<Route> forced_route();

// What a choice depends on. `source` and `other` are strides in elements: of what is read and of
// the result; for a weight gradient of the result's gradient and of the input.
struct ConvProblem {
  ConvPass pass;
  DType dtype;
  const ConvShape& shape;
  const int64_t* source;
  const int64_t* other;
  bool whole = true;  // false for a part that Winograd's method gave back as not finite
};

// The route of a problem: the one that is forced where it can do the problem, else the first that
// pays.
FACULA_PER_ISA(Route conv_route(const ConvProblem& problem);)

}  // namespace facula::cpu
