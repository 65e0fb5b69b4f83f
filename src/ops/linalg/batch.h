// Batching rules of linear algebra, which the family's records name.
#pragma once

namespace facula {
class Batch;
}

namespace facula::batch {

// Tensors whose leading dimensions are the same: matrices, and vectors that go with them.
void matrices(Batch& b);
// Matrices A and right-hand sides B (the first two arguments), of which B may have vectors.
void systems(Batch& b);
// Factors, their pivots and right-hand sides, whose leading dimensions broadcast.
void factored_systems(Batch& b);

// linalg.lstsq, some of whose results have no elements and no batch, by driver and rank.
void least_squares(Batch& b);

}  // namespace facula::batch
