// Second derivatives that the normalisations share.
#pragma once
#include "core/tensor.h"

namespace facula {

// An input as it was normalised over `dims`: by `rstd`, its mean taken off or not.
struct Normalized {
  Tensor normal, rstd;
  IntVec dims;
  bool centred = true;
  bool fixed = false;  // by statistics that do not depend on the input

  Tensor mean(const Tensor& t) const;
  // What normalising lets through of a change: neither shifts (where centred) nor scalings.
  Tensor project(const Tensor& u) const;
};

// Gradients of a backward operator by its arguments; `weight` is still to be summed to its shape.
struct SecondOrder {
  Tensor grad_out, input, weight;
};

// The backward operator gives rstd * project(grad_out * weight), the sum of grad_out * normal and
// the sum of grad_out; v, vw and vb are the gradients of these three, undefined where none came, as
// weight may be. The statistics count as functions of the input.
SecondOrder second_order(const Normalized& n, const Tensor& grad_out, const Tensor& weight,
                         const Tensor& v, const Tensor& vw, const Tensor& vb);

}  // namespace facula
