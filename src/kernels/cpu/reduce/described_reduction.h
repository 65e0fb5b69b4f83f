// Reductions of neighbouring elements as what runs them, for those who have the elements piece by
// piece: each row is reduced as the kernel would in a call on the whole tensor, so that the bits
// are the same.
#pragma once
#include "kernels/cpu/reduce/reduction.h"

namespace facula::cpu {

struct RowReduction {
  ReductionFn loop = nullptr;              // null: not of this kind
  const PieceReduction* pieces = nullptr;  // of one row that is split into parts
  ReductionParams params;
  int64_t rows = 0, row = 0;  // how many, and elements in each
};

// While one is asked for on this thread, run_reduction() fills it in and computes nothing; `loop`
// stays null where rows are not walked one by one in the input's own dtype.
class DescribeReduction {
 public:
  explicit DescribeReduction(RowReduction& into);
  ~DescribeReduction();
  DescribeReduction(const DescribeReduction&) = delete;
};

// The plan of `rows` rows that are walked one by one.
ReducePlan plan_rows(int64_t rows, int64_t row);
// The plan of one row, in parts if it is long.
ReducePlan plan_one_row(int64_t row);

}  // namespace facula::cpu
