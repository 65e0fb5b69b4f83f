// Parameters and statistics of normalisation kernels in the type that sums are made in.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/in_order.h"
#include "kernels/cpu/isa.h"

namespace facula::cpu::FACULA_ISA {

// A tensor's elements, contiguous, in the wide type; null where the tensor is undefined.
template <class A>
class WideInput {
 public:
  explicit WideInput(Tensor&&) = delete;
  explicit WideInput(const Tensor& t)
      : converted_(!t.defined() || t.dtype() == dtype_of<A> ? Tensor() : converted(t, dtype_of<A>)),
        tensor_(converted_.defined() ? converted_ : t) {}
  const A* data() const { return tensor_->defined() ? tensor_->data<A>() : nullptr; }

 private:
  const Tensor converted_;
  const InOrder tensor_;
};

// Room for a result in the wide type; finish() converts it into the result. Null when undefined.
// The result must outlive it.
template <class A>
class WideResult {
 public:
  explicit WideResult(Tensor&&) = delete;
  explicit WideResult(const Tensor& t) : target_(t) {
    if (t.defined() && !(t.dtype() == dtype_of<A> && t.is_contiguous()))
      room_ = empty_tensor(t.sizes(), dtype_of<A>);
  }
  A* data() const {
    const Tensor& to = room_.defined() ? room_ : target_;
    return to.defined() ? to.data<A>() : nullptr;
  }
  void finish() const {
    if (room_.defined()) copy(target_, room_);
  }

 private:
  const Tensor& target_;
  Tensor room_;
};

}  // namespace facula::cpu::FACULA_ISA
