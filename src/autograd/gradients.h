// Gradients on their way between nodes.
#pragma once
#include "autograd/node.h"

namespace facula {

// Whether a sum of gradients belongs to its pass alone, so that it can be changed in place.
bool may_add_to(const Tensor& sum);

Tensor fit_slow(Tensor g, const OutputMeta& m, const Node& from, size_t index);

// A gradient as the node that receives it must see it: summed over broadcast dimensions, of the
// forward result's dtype. `from` returned it as its result `index`; RuntimeError when it cannot
// fit.
inline Tensor fit(Tensor g, const OutputMeta& m, const Node& from, size_t index) {
  if (!g.defined()) return g;
  const bool fits =
      g.dtype() == m.dtype && same_sizes(g.sizes(), m.sizes) && g.device() == m.device;
  return fits ? g : fit_slow(std::move(g), m, from, index);
}

}  // namespace facula
