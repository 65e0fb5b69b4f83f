// What derivatives of decompositions share, and what is said where one was not found.
#pragma once
#include <string>

#include "dispatch/meta.h"

namespace facula::linalg {

// States a result of matrices that stand column by column.
void column_result(Meta& m, int i, IntSpan sizes, DType dtype);

// Whether a derivative of what is computed from t may be asked for.
bool may_be_differentiated(const Tensor& t);

// Square matrices with their diagonals replaced.
Tensor with_diagonal(const Tensor& square, const Tensor& diagonal);

// RuntimeError where a loss depends on the phase of complex vectors, which is arbitrary: `turned`
// is their adjoint times their gradient, whose diagonal is real where it does not.
void check_phase(const Tensor& turned, const char* op, const char* vectors);

// " of matrix 3", or nothing where there is but one.
std::string where_of(const Tensor& status, int64_t i);

// LinAlgError where a status of kernels/cpu/linalg/eigen.h is not 0.
void check_converged(const Tensor& status, const char* op, const char* values);

}  // namespace facula::linalg
