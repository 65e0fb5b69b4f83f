// Special functions, by family; they need not vectorise.
#pragma once
#include "kernels/scalar/bessel.h"
#include "kernels/scalar/gamma.h"
#include "kernels/scalar/orthogonal.h"
#include "kernels/scalar/probability.h"
