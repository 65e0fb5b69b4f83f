// The loop engine: several operands walked together over one broadcast shape. Dimensions are
// dropped, reordered and merged once; then rows go to an inner loop.
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace facula::cpu {

inline constexpr int most_operands = 8;

// Elements that one task handles: small enough to balance, large enough to pay for its claim.
// Loops whose elements cost more than the memory they touch take fewer.
inline constexpr int64_t task_elements = 32768;

// Computes n elements: data[k] is the first of operand k, strides[k] its step in bytes.
using RowFn = void (*)(const void* context, char* const* data, const int64_t* strides, int64_t n);

class LoopPlan {
 public:
  // The shape to walk; operands are broadcast to it.
  explicit LoopPlan(IntSpan sizes) : sizes_(sizes) {}
  // Adds a tensor (memory of any geometry that broadcasts to the shape).
  void add(const Tensor& t);
  // Adds memory with explicit sizes and strides in elements.
  void add(void* data, IntSpan sizes, IntSpan strides, size_t itemsize);
  // Adds one element that every position reads.
  void add_constant(const void* data);
  // Sorts dimensions by the strides of the first operand (then the others) and merges neighbours.
  void simplify();

  // Runs rows, on several threads where there is more than one task of `grain` elements.
  void run(RowFn row, const void* context, int64_t grain = task_elements);
  // The same on this thread, in the logical order.
  void run_serially(RowFn row, const void* context);

  // The same for rows that compute elements of operand 0 one by one from those of the others:
  // short rows are put together, and operands that lie across are transposed block by block.
  void run_elementwise(RowFn row, const void* context, int64_t grain = task_elements);

  int64_t numel() const;
  const IntVec& sizes() const { return sizes_; }
  const IntVec& strides(int operand) const { return strides_[operand]; }
  char* data(int operand) const { return data_[operand]; }

 private:
  bool collapse();
  void move_dim(size_t from, size_t to);
  void keep_dims(size_t n);
  void drop_ones();
  bool outside(size_t a, size_t b) const;
  void sort();
  void merge();
  void run_plane(RowFn row, const void* context, int64_t first_row, int64_t last_row) const;
  void run_range(RowFn row, const void* context, int64_t first_row, int64_t last_row) const;
  bool tiles_pay() const;
  void run_tiles(RowFn row, const void* context, int64_t grain) const;
  int crossed_dim() const;
  void run_crossed(RowFn row, const void* context, int64_t grain) const;
  void run_block(RowFn row, const void* context, int dim, char* const* at, int64_t rows) const;
  int operands_ = 0;
  size_t itemsizes_[most_operands] = {};  // 0: a constant
  IntVec sizes_;                          // outermost first
  IntVec strides_[most_operands];         // bytes
  char* data_[most_operands] = {};
};

}  // namespace facula::cpu
