// Histograms of points in any number of dimensions. The code scatters, so it is compiled once.
#pragma once
#include <span>
#include <vector>

#include "core/tensor.h"

namespace facula::cpu {

// Points (N, D), with weights (N) or undefined, counted into `out`, which has one bin between each
// two neighbours of edges[d] along dimension d. The last bin holds its right edge too; points
// outside and nan are passed over. `density` divides by the whole and by the bins' volumes.
void histogramdd(const Tensor& points, std::span<const Tensor> edges, const Tensor& weight,
                 bool density, const Tensor& out);

}  // namespace facula::cpu
