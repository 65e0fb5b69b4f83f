// Parameters and statistics of normalisation kernels in the type that sums are made in.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"

namespace facula::cpu::FACULA_ISA {

// A tensor's elements, contiguous, in the wide type; null where the tensor is undefined.
template <class A>
class WideInput {
 public:
  explicit WideInput(const Tensor& t) {
    if (t.defined()) tensor_ = contiguous(t.dtype() == dtype_of<A> ? t : converted(t, dtype_of<A>));
  }
  const A* data() const { return tensor_.defined() ? tensor_.data<A>() : nullptr; }

 private:
  Tensor tensor_;
};

// Room for a result in the wide type; finish() converts it into the result. Null when undefined.
template <class A>
class WideResult {
 public:
  explicit WideResult(const Tensor& t) : target_(t) {
    if (!t.defined()) return;
    tensor_ =
        t.dtype() == dtype_of<A> && t.is_contiguous() ? t : empty_tensor(t.sizes(), dtype_of<A>);
  }
  A* data() const { return tensor_.defined() ? tensor_.data<A>() : nullptr; }
  void finish() const {
    if (target_.defined() && !tensor_.is_same(target_)) copy(target_, tensor_);
  }

 private:
  Tensor target_, tensor_;
};

}  // namespace facula::cpu::FACULA_ISA
