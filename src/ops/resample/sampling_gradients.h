// Derivatives of the gradients of grid sampling.
#pragma once

namespace facula {
class Backward;

// The rule of grid_sampler_2d_backward and grid_sampler_3d_backward, by cotangent, input and grid.
void sampling_second_gradients(Backward& b);
}  // namespace facula
