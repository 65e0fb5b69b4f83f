// Batching rules of families, which records name; implemented in transforms/batch_rules.cpp.
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
// Products of two matrices, batches of them, matrix and vector, two vectors.
void matmul(Batch& b);
// beta * self + alpha * (a product of the two arguments that follow): addmm, baddbmm.
void add_matmul(Batch& b);
// Views by the geometry that they give one sample.
void view_geometry(Batch& b);
// Only dimensions of the sample are squeezed.
void squeeze(Batch& b);
void repeat(Batch& b);
// One tensor reduced to a scalar: the operator `NAME.dim`, or another that says the same.
void whole(Batch& b);
// argmax and its like: `dim` may be None, and then counts through all elements.
void arg_reduction(Batch& b);
// Images, volumes and sequences, batched or not: the batch dimension joins theirs.
void fold1d(Batch& b);
void fold2d(Batch& b);
void fold3d(Batch& b);
void convolution(Batch& b);
void convolution_backward(Batch& b);
// Losses of two tensors with a `reduction`, and their gradients.
void loss(Batch& b);
void loss_backward(Batch& b);
void nll(Batch& b);
void nll_backward(Batch& b);
void batch_norm(Batch& b);
void batch_norm_backward(Batch& b);
void group_norm(Batch& b);
void group_norm_backward(Batch& b);
// Norms over the last dimensions, with a scale (and a shift) of their own for each sample.
void layer_norm(Batch& b);
void layer_norm_backward(Batch& b);
void embedding(Batch& b);
void embedding_backward(Batch& b);
// Indexing with tensors, and writing through such indices.
void index(Batch& b);
void index_put(Batch& b);
void index_select(Batch& b);
// index_add and its like.
void index_write(Batch& b);
void take(Batch& b);
void put(Batch& b);
void search(Batch& b);
// Random numbers by rows of a tensor.
void draw_rows(Batch& b);

}  // namespace facula::batch
