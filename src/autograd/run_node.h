// One node of a backward pass: its hooks, its derivative, and what is looked at in between.
#pragma once
#include "autograd/node.h"

namespace facula {

// Runs hooks on the gradients of single outputs; retain_grad() is one of them.
void run_tensor_hooks(Node& n, Gradients& grads);

// The gradients of the node's inputs. `keep_saved`: what it saved stays, for another pass.
Gradients run_node(Node& n, Gradients grads, bool keep_saved);

}  // namespace facula
