#include "ops/quantized/parameters.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace facula {
namespace {

constexpr double least_scale = 6.1e-5f;  // smaller ones lose accuracy when they are multiplied

struct Range {
  double low, high;
};

Range centred(const Range& r, int64_t steps) {
  const double below = -(static_cast<double>(steps / 2) + 1),
               above = static_cast<double>(steps / 2);
  const double scale = std::max(std::fabs(r.low / below), std::fabs(r.high / above));
  return {scale * below, scale * above};
}

// The range for the least scale where the given one is smaller.
Range widened(const Range& r, double scale, double steps) {
  if (r.low == 0) return {0, least_scale * steps};
  if (r.high == 0) return {-least_scale * steps, 0};
  const double by = least_scale / scale;
  return {r.low * by, r.high * by};
}

}  // namespace

AffineChoice choose_parameters(float low, float high, int64_t least, int64_t greatest,
                               const ChoiceOptions& options) {
  if (options.reduces_range) {
    least /= 2;
    greatest /= 2;
  }
  int64_t range;
  check(!__builtin_sub_overflow(greatest, least, &range),
        "quantization range: expected quant_min and quant_max less than 2^63 apart; got ", least,
        " and ", greatest);
  const double steps = static_cast<double>(range);
  const bool around_zero = low < 0 && high > 0 && options.preserves_zero_center;
  Range r{low, high};
  if (around_zero) r = centred(r, range);
  r = {std::min(r.low, 0.0), std::max(r.high, 0.0)};
  double scale = (r.high - r.low) / steps;
  if (static_cast<float>(scale) == 0.0f || std::isinf(1.0f / static_cast<float>(scale)))
    scale = 0.1;
  if (scale < least_scale) {
    r = widened(r, scale, steps);
    scale = least_scale;
  }
  const auto bottom = static_cast<double>(least), top = static_cast<double>(greatest);
  // Of the two ends, the one whose zero point is rounded less.
  const double error_low = std::fabs(bottom) + std::fabs(r.low / scale),
               error_high = std::fabs(top) + std::fabs(r.high / scale);
  double zero = error_low < error_high ? bottom - r.low / scale : top - r.high / scale;
  if (around_zero) zero = (bottom + top) / 2;
  zero = std::clamp(std::nearbyint(zero), bottom, top);
  return {scale, static_cast<int64_t>(zero)};
}

}  // namespace facula
