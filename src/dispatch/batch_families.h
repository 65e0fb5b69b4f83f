// Batching rules that records of several families share; implemented in ops/batch_rules.cpp. Rules
// that only one family uses are in ops/FAMILY/batch.h.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Elementwise operators with broadcasting, also in place: inserts dimensions of size 1 behind the
// batch dimension, so that the samples broadcast against each other.
void pointwise(Batch& b);
// Operators on one tensor with arguments that name dimensions of it (OpRecord::dims). Other batched
// tensors have the same rank (gather, scatter).
void dims(Batch& b);
// As dims, for operators whose other tensors have other shapes (index_select). If one of those is
// batched, the samples run one by one.
void dims_of_self(Batch& b);
// As dims, where giving no dimension means all of them: sum.dim_IntList, mean.dim, amax.
void reduction(Batch& b);
// Operators that treat all leading dimensions of one tensor alike (tril, layer_norm). If another
// tensor is batched, the samples run one by one.
void leading(Batch& b);
void permutation(Batch& b);
// Operators on one tensor whose `dim` is a dimension of the result (unsqueeze).
void new_dim(Batch& b);
// Operators on one tensor with arguments that list sizes and strides (OpRecord::sizes): view,
// expand, new_zeros.
void sizes(Batch& b);
// Operators that join a list of tensors along `dim` (cat) or along a new dimension (stack).
void list_dims(Batch& b);
void list_new_dim(Batch& b);
// Views that are given by sizes, strides and offset (as_strided), which count for one sample.
void view_geometry(Batch& b);
// Operators on sequences, images or volumes: merges the batch dimension into their own batch
// dimension, which may be absent.
void fold1d(Batch& b);
void fold2d(Batch& b);
void fold3d(Batch& b);

}  // namespace facula::batch
