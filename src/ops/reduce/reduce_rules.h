// What reductions share: shape rules and the way a gradient goes back to the input's shape.
#pragma once
#include "dispatch/meta.h"
#include "dispatch/rules.h"
#include "ops/meta_rules.h"

namespace facula::reduction {

// Adds the dimensions that went, as ones; t itself where they were kept.
Tensor restored(const Tensor& t, IntSpan sizes, const IntVec& dims, bool keepdim);
// The dimensions that the call went over: its argument "dim", a number, a list or None for all.
IntVec dims_of(Backward& b);
// restored, by the call's arguments "dim" and "keepdim" where it has them.
Tensor restored(Backward& b, const Tensor& t);
// restored and repeated over self's sizes.
Tensor expanded(Backward& b, const Tensor& t);
// The gradient of the p-norm over dims; norm and grad have those dimensions, of size one. Undefined
// for p = 0.
Tensor vector_norm_gradient(const Tensor& self, const Tensor& norm, const Tensor& grad, double p,
                            const IntVec& dims);
// How many elements went into one result.
int64_t reduced_count(Backward& b);

void state(Meta& m, int result, const Tensor& self, const IntVec& dims, bool keepdim, DType dtype);
// One dimension; 0-dim tensors have one of size 1.
IntVec one_dim(int64_t dim, int64_t ndim);
// A reduction without an identity cannot run over nothing.
void check_not_empty(const char* op, const Tensor& self, const IntVec& dims, bool given);
// Raises where a tensor given as out= for result i is not of the dtype; PyTorch does not cast
// there.
void check_out_dtype(const Meta& m, int i, DType dtype);

}  // namespace facula::reduction
