// Parameters and statistics of normalisation kernels in the type that sums are accumulated in.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/loop/contiguous.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu::FACULA_ISA {

// A tensor's elements, contiguous, in the accumulation type; null where the tensor is undefined.
template <class A>
class ConvertedInput {
 public:
  explicit ConvertedInput(Tensor&&) = delete;
  explicit ConvertedInput(const Tensor& t)
      : converted_(!t.defined() || t.dtype() == dtype_of<A> ? Tensor() : converted(t, dtype_of<A>)),
        tensor_(converted_.defined() ? converted_ : t) {}
  const A* data() const { return tensor_->defined() ? tensor_->data<A>() : nullptr; }

 private:
  const Tensor converted_;
  const ContiguousTensor tensor_;
};

// Room for a result in the accumulation type; store() converts it into the result. Null when
// undefined. The result must outlive it.
template <class A>
class ConvertedResult {
 public:
  explicit ConvertedResult(Tensor&&) = delete;
  explicit ConvertedResult(const Tensor& t) : target_(t) {
    if (t.defined() && !(t.dtype() == dtype_of<A> && t.is_contiguous()))
      room_ = empty_tensor(t.sizes(), dtype_of<A>);
  }
  A* data() const {
    const Tensor& to = room_.defined() ? room_ : target_;
    return to.defined() ? to.data<A>() : nullptr;
  }
  void store() const {
    if (room_.defined()) copy(target_, room_);
  }

 private:
  const Tensor& target_;
  Tensor room_;
};

}  // namespace facula::cpu::FACULA_ISA
