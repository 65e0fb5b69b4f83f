// Reflectors: QR factors as LAPACK keeps them, and products with them.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Factors each matrix of A (..., m, n) as Q R: a has R on and above its diagonal, and below it the
// vectors of the reflectors whose product is Q; tau (..., min(m, n)) has their factors.
void geqrf(const Tensor& A, const Tensor& a, const Tensor& tau);

// The first columns of the product of reflectors, as many as `a` (..., m, n) has.
void householder_product(const Tensor& a, const Tensor& tau, const Tensor& Q);

// Q C, or C Q unless `left`, Q the product of the reflectors, or its adjoint if `adjoint`.
void multiply_reflectors(const Tensor& a, const Tensor& tau, const Tensor& C, bool left,
                         bool adjoint, const Tensor& product);

// Q (..., m, q) and R (..., r, n) of each matrix; with as many columns and rows as they have. An
// undefined Q is left out.
void qr(const Tensor& A, const Tensor& Q, const Tensor& R);

}  // namespace facula::cpu
