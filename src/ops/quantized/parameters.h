// How a scale and a zero point are chosen for a range of values.
#pragma once
#include <cstdint>

namespace facula {

struct AffineChoice {
  double scale;
  int64_t zero_point;
};
struct ChoiceOptions {
  bool preserves_zero_center = false;  // the range is widened to be as far below zero as above
  bool reduces_range = false;          // half of the integers, for sums that may not overflow
};
// For integers in [least, greatest] and values in [low, high]; the range is widened to hold zero,
// which gets an integer of its own.
AffineChoice choose_parameters(float low, float high, int64_t least, int64_t greatest,
                               const ChoiceOptions& options = {});

}  // namespace facula
