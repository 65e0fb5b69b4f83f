// Runs one node of a backward pass: its hooks, its derivative, and the checks of anomaly mode.
#pragma once
#include "autograd/node.h"

namespace facula {

// Runs the hooks on gradients of single outputs, and stores those of outputs with retain_grad().
void run_tensor_hooks(Node& n, Gradients& grads);

// Returns the gradients of the node's inputs. `keep_saved`: saved tensors stay for another pass.
Gradients run_node(Node& n, Gradients grads, bool keep_saved);

}  // namespace facula
