// How samples of gamma and Dirichlet distributions move with the parameters, at a fixed quantile.
#pragma once
#include <cstdint>

namespace facula::dist {

// d sample / d alpha of a standard gamma variate: -(dP/dalpha) / density, with P its distribution
// function. float, double.
template <class T>
void standard_gamma_grad(T* out, const T* alpha, const T* sample, int64_t n);

// d x / d alpha / (1 - x) of a Beta(alpha, total - alpha) variate x, which is one coordinate of a
// Dirichlet sample. float, double.
template <class T>
void dirichlet_grad(T* out, const T* x, const T* alpha, const T* total, int64_t n);

}  // namespace facula::dist
