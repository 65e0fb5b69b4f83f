// The engine: runs a graph backward.
#pragma once
#include "autograd/variable.h"

namespace facula {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;   // grad(): undefined for inputs outside of the graph
  bool accumulate = true;      // into leaves; false for grad()
};

// Gradients of `roots` (each with its cotangent) flow to leaves, or with `inputs` given only to
// those: the result has one gradient per input when accumulate is off.
std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                 std::span<const Tensor> inputs, const BackwardOptions& options);

// Adds two gradients; in place where `into` belongs to nobody else and no graph is recorded.
Tensor accumulate(Tensor into, const Tensor& more);
// A leaf's new .grad: keeps `fresh` itself where nobody else holds it and its layout fits.
Tensor accumulate_leaf(const Tensor& grad, Tensor fresh, const Tensor& leaf);

}  // namespace facula
