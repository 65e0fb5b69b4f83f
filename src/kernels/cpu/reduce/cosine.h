// Cosines of the angles between rows, in one pass.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

FACULA_PER_ISA(
    // out[r] = the sum of products of row r of both, each divided by its length, at least eps.
    // Contiguous tensors of float or double; rows lie along the last dimension.
    void cosine_of_rows(const Tensor& x, const Tensor& y, double eps, const Tensor& out);)

}  // namespace facula::cpu
