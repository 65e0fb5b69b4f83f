// Gradients that are passed from one node to another.
#pragma once
#include "autograd/node.h"

namespace facula {

// Whether a sum of gradients may be changed in place: nobody else holds it, and it is dense.
bool may_add_to(const Tensor& sum);

Tensor fit_slow(Tensor g, const OutputMeta& m, const Node& from, size_t index);

// Converts a gradient for the node that receives it: sums it over broadcast dimensions and casts it
// to the dtype of the forward result. `from` returned it as gradient `index`. RuntimeError if that
// is not possible.
inline Tensor fit(Tensor g, const OutputMeta& m, const Node& from, size_t index) {
  if (!g.defined()) return g;
  const bool fits =
      g.dtype() == m.dtype && same_sizes(g.sizes(), m.sizes) && g.device() == m.device;
  return fits ? g : fit_slow(std::move(g), m, from, index);
}

}  // namespace facula
