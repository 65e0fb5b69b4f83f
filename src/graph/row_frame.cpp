#include "graph/row_frame.h"

namespace facula {

RowFrame::RowFrame(const Tensor& input, const cpu::RowReduction& reduction) {
  if (!input.is_contiguous() || reduction.row < 2) return;
  whole_ = reduction.rows == 1 && cpu::plan_one_row(reduction.row).parts > 1;
  if (whole_ ? !reduction.pieces : reduction.row > longest_row) return;
  sizes_ = IntVec(input.sizes());
  outer_ = sizes_.size();
  for (int64_t inner = 1; outer_ > 0 && inner < reduction.row;) inner *= sizes_[--outer_];
  rows_ = reduction.rows;
  row_ = reduction.row;
}

// Whether t, its dimensions aligned with the last ones of the frame, has the frame's sizes from
// dimension `from` up to `to`, or only ones there.
bool RowFrame::matches(const Tensor& t, size_t from, size_t to, bool ones) const {
  const size_t missing = sizes_.size() - static_cast<size_t>(t.dim());
  for (size_t d = from; d < to; ++d) {
    const int64_t size = d < missing ? 1 : t.sizes()[d - missing];
    if (size != (ones ? 1 : sizes_[d])) return false;
  }
  return true;
}

bool RowFrame::is_row_of(const Tensor& t) const {
  const size_t all = sizes_.size();
  return t.is_contiguous() && static_cast<size_t>(t.dim()) <= all && matches(t, 0, outer_, false) &&
         matches(t, outer_, all, true);
}

Extent RowFrame::extent(const Tensor& t) const {
  if (is_full(t)) return Extent::Full;
  if (t.numel() == 1) return Extent::One;
  if (static_cast<size_t>(t.dim()) > sizes_.size() || whole_) return Extent::Other;
  if (is_row_of(t)) return Extent::Row;
  const bool column =
      t.is_contiguous() && matches(t, 0, outer_, true) && matches(t, outer_, sizes_.size(), false);
  return column ? Extent::Column : Extent::Other;
}

}  // namespace facula
