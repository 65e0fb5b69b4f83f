// Derivative rules of scatter_reduce and index_reduce.
#pragma once
#include "dispatch/rules.h"

namespace facula::scatter_gradients {

// Gradients of self and src (scatter_reduce), self and source (index_reduce), for every reduction.
void scatter_reduce(Backward& b);
void index_reduce(Backward& b);
// A gradient of index's sizes as one of a source's, which may be larger: zeros behind it.
Tensor for_source(const Tensor& grad, IntSpan sizes);

}  // namespace facula::scatter_gradients
