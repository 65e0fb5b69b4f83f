// A tensor's elements one after the other, without counting a tensor that has them so already.
#pragma once
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {

// The tensor itself, or a contiguous copy. The tensor must outlive it.
class ContiguousTensor {
 public:
  explicit ContiguousTensor(Tensor&&) = delete;
  explicit ContiguousTensor(const Tensor& t)
      : tensor_(&t), copy_(is_in_order(t) ? Tensor() : contiguous(t)) {}
  ContiguousTensor(const ContiguousTensor&) = delete;
  const Tensor& operator*() const { return copy_.defined() ? copy_ : *tensor_; }
  const Tensor* operator->() const { return &**this; }

 private:
  static bool is_in_order(const Tensor& t) {
    return !t.defined() || (t.is_contiguous() && !t->conj && !t->neg);
  }
  const Tensor* tensor_;
  Tensor copy_;
};

}  // namespace facula::cpu
