// LU factors with partial pivoting, and what is solved with them.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Factors each matrix of A (..., m, n) as P L U. LU has L below its diagonal and U on and above it;
// pivots (..., min(m, n)), from 1, the rows that changed places in turn; info (...) 0, or the
// number, from 1, of the first pivot that is zero.
void lu_factor(const Tensor& A, const Tensor& LU, const Tensor& pivots, const Tensor& info);

// Solves A X = B, or X A = B unless `left`, with the factors of A, or of which A is the adjoint.
// Leading sizes of LU and B are broadcast to those of X. RuntimeError for pivots that are no rows.
void lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint,
              const Tensor& X);

// The parts of which LU and pivots were made; undefined ones are left out.
void lu_unpack(const Tensor& LU, const Tensor& pivots, const Tensor& P, const Tensor& L,
               const Tensor& U);

}  // namespace facula::cpu
