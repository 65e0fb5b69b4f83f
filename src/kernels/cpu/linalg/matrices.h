// Batches of matrices as LAPACK wants them: column by column, one matrix behind the other.
#pragma once
#include <algorithm>
#include <vector>

#include "core/tensor.h"
#include "core/threads.h"

namespace facula::cpu {

int64_t matrix_count(const Tensor& t);

// A new batch of matrices that stand column by column.
Tensor empty_columns(IntSpan sizes, DType dtype);
// Whether t is such a batch already.
bool stands_in_columns(const Tensor& t);
// t itself where it is, else a copy that is.
Tensor columns(const Tensor& t);

// Copies a batch of matrices, perhaps broadcast, into one that stands column by column. Small ones
// are turned one by one, for which copy() would take a loop over three dimensions.
void copy_to_columns(const Tensor& to, const Tensor& from);

// What a kernel fills column by column: the result itself where it stands so, else a tensor that
// store() copies into it.
class ColumnResult {
 public:
  explicit ColumnResult(const Tensor& result);
  const Tensor& tensor() const { return work_; }
  void store() const;

 private:
  const Tensor& result_;
  Tensor work_;
};

// The same for results without matrices (pivots, codes), which a kernel fills in order.
class ContiguousResult {
 public:
  explicit ContiguousResult(const Tensor& result);
  const Tensor& tensor() const { return work_; }
  void store() const;

 private:
  const Tensor& result_;
  Tensor work_;
};

// Where each item of a batch of `sizes` begins in t, in elements, when t's own leading sizes are
// broadcast to it; an item is what t's last `item_dims` dimensions span.
std::vector<int64_t> batch_offsets(const Tensor& t, IntSpan sizes, int64_t item_dims);

// The leading sizes of a batch of matrices.
inline IntSpan batch_sizes(const Tensor& t) {
  return t.sizes().first(static_cast<size_t>(t.dim() - 2));
}

// Calls body(i) for each matrix of a batch, on several threads where one takes `work` operations.
template <class F>
void for_each_matrix(int64_t count, int64_t work, F&& body) {
  constexpr int64_t operations_of_a_part = 16384;
  const int64_t grain = std::max<int64_t>(1, operations_of_a_part / std::max<int64_t>(1, work));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// A size as LAPACK takes it; RuntimeError where 32 bits are too few.
int lapack_size(int64_t n);

}  // namespace facula::cpu
