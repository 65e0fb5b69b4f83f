// The lines of two tensors along one dimension, line by line of the first beside the second's.
#pragma once
#include "core/tensor.h"

namespace facula::cpu {

// Sizes must be equal but for those of the dimension itself. Lines are numbered in the order in
// which those of the first tensor lie in memory.
class LinePairs {
 public:
  LinePairs(const Tensor& from, const Tensor& to, int64_t dim);

  int64_t count() const { return count_; }
  int64_t from_step() const { return from_step_; }  // between elements of a line
  int64_t to_step() const { return to_step_; }
  // Lines one distance from each other in both tensors, and where the first begins, in elements.
  struct Run {
    int64_t from, to, count;
  };
  Run run(int64_t first, int64_t most) const;
  int64_t from_distance() const { return dims_.empty() ? 0 : dims_[0].from; }
  int64_t to_distance() const { return dims_.empty() ? 0 : dims_[0].to; }
  // Where lines first, first + 1, ... begin, in elements.
  void starts(int64_t first, int64_t n, int64_t* from, int64_t* to) const;

 private:
  struct Dim {
    int64_t size, from, to;
  };
  SmallVector<Dim, 4> dims_;  // the innermost first
  int64_t count_ = 1, from_step_ = 1, to_step_ = 1;
};

}  // namespace facula::cpu
