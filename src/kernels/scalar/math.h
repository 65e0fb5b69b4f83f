// The one source of scalar functions: templates over float and double (and integers, where that
// makes sense) in facula::scalar::math. Half and BFloat16 are computed in float by the caller;
// complex numbers are in complex_math.h, special functions in special.h.
//
// No library call outside slow paths, and only operations that IEEE 754 defines; polynomials are
// fused where the instruction set has fma (their bits differ between sets by a rounding), nothing
// else is. Selects stand where a branch would stop vectorisation.
#pragma once
#include "kernels/scalar/arithmetic.h"
#include "kernels/scalar/erf.h"
#include "kernels/scalar/exp.h"
#include "kernels/scalar/inverse.h"
#include "kernels/scalar/log.h"
#include "kernels/scalar/numeric.h"
#include "kernels/scalar/pow.h"
#include "kernels/scalar/trig.h"
