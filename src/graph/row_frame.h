// How the operands of a group that reduces rows lie beside its rows.
#pragma once
#include "core/tensor.h"
#include "kernels/cpu/reduce/described_reduction.h"

namespace facula {

// What an operand has for an element of a row: an element of its own, one number of the row, one
// that all rows have in this place, or the same number everywhere.
enum class Extent : uint8_t { Full, Row, Column, One, Other };

// The shape that the rows of a group have together: its last dimensions are reduced, and elements
// lie in their order.
class RowFrame {
 public:
  // What an operand may not be: more than a tile of it would leave the cache.
  static constexpr int64_t longest_row = 8192;

  RowFrame() = default;
  // Of a reduction of `input`. Not valid where rows are too long to be done one by one.
  RowFrame(const Tensor& input, const cpu::RowReduction& reduction);

  bool is_valid() const { return rows_ > 0; }
  // One row in pieces, whose sum nobody reads before the end.
  bool is_whole() const { return whole_; }
  int64_t rows() const { return rows_; }
  int64_t row() const { return row_; }
  bool operator==(const RowFrame& o) const {
    return rows_ == o.rows_ && row_ == o.row_ && whole_ == o.whole_ && same_sizes(sizes_, o.sizes_);
  }

  // Of an operand of a call whose result has the frame's shape.
  Extent extent(const Tensor& t) const;
  // Whether a tensor has one number for each row in that shape.
  bool is_row_of(const Tensor& t) const;
  bool is_full(const Tensor& t) const { return t.is_contiguous() && same_sizes(t.sizes(), sizes_); }
  // Whether all of a tensor's elements are numbers of rows, whatever its shape.
  bool has_rows(const Tensor& t) const { return t.is_contiguous() && t.numel() == rows_; }

 private:
  bool matches(const Tensor& t, size_t from, size_t to, bool ones) const;

  IntVec sizes_;
  size_t outer_ = 0;  // dimensions that remain
  int64_t rows_ = 0, row_ = 0;
  bool whole_ = false;
};

}  // namespace facula
