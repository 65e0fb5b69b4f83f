// Sampling of images and volumes at the points of a grid.
#pragma once
#include "dispatch/typed.h"

namespace facula::cpu {

enum class Interpolation : int64_t { Linear = 0, Nearest = 1, Cubic = 2 };
enum class Padding : int64_t { Zeros = 0, Border = 1, Reflection = 2 };

// `spatial` is two or three; the grid's last dimension holds that many coordinates, width first.
void grid_sample(const Tensor& input, const Tensor& grid, int64_t spatial, Interpolation how,
                 Padding padding, bool align_corners, const Tensor& out);
// A result that is not wanted is an undefined tensor.
void grid_sample_backward(const Tensor& grad, const Tensor& input, const Tensor& grid,
                          int64_t spatial, Interpolation how, Padding padding, bool align_corners,
                          const Tensor& grad_input, const Tensor& grad_grid);

}  // namespace facula::cpu
