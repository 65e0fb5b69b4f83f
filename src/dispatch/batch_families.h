// Batching rules by the kind of an operator, which records of several families name; implemented in
// ops/batch_rules.cpp. Rules of one family stand with its records: ops/FAMILY/batch.h.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Elementwise with broadcasting, in place too: `self` and its like line up behind the batch
// dimension.
void pointwise(Batch& b);
// One tensor; arguments called dim, dims, dim0, dim1, dim2, start_dim, end_dim name dimensions of
// it. Other batched tensors have the same rank (gather, scatter).
void dims(Batch& b);
// As dims, where other tensors have shapes of their own (index_select): they must not be batched,
// else samples are done one by one.
void dims_of_self(Batch& b);
// As dims, where none given means all of them: sum.dim_IntList, mean.dim, amax.
void reduction(Batch& b);
// One tensor whose leading dimensions are treated alike (tril, layer_norm); samples are done one by
// one where another is batched.
void leading(Batch& b);
void permutation(Batch& b);
// One tensor; `dim` is a place in the result (unsqueeze).
void new_dim(Batch& b);
// One tensor; size or shape lists the result's sizes, and stride its strides (view, expand,
// new_zeros).
void sizes(Batch& b);
// A list of tensors, joined along `dim` (cat) or along a new one (stack).
void list_dims(Batch& b);
void list_new_dim(Batch& b);
// Views by the geometry that they give one sample.
void view_geometry(Batch& b);
// Images, volumes and sequences, batched or not: the batch dimension joins theirs.
void fold1d(Batch& b);
void fold2d(Batch& b);
void fold3d(Batch& b);

}  // namespace facula::batch
