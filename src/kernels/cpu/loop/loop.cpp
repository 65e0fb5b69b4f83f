#include "kernels/cpu/loop/loop.h"

#include <algorithm>

#include "core/checked.h"
#include "core/threads.h"

namespace facula::cpu {

void LoopPlan::add(void* data, IntSpan sizes, IntSpan strides, size_t itemsize) {
  check(operands_ < most_operands, "LoopPlan: more than ", most_operands, " operands");
  // Rules of shape see to this; memory beyond a tensor's end must not be touched if one does not.
  bool fits = sizes.size() <= sizes_.size();
  const size_t extra = fits ? sizes_.size() - sizes.size() : 0;
  for (size_t d = 0; fits && d < sizes.size(); ++d)
    fits = sizes[d] == 1 || sizes[d] == sizes_[d + extra];
  check(fits, "expected a tensor that broadcasts to ", str(sizes_), "; got ", str(sizes));
  IntVec& s = strides_[operands_];
  s.resize(sizes_.size());
  // Strides of an empty tensor may be any numbers, and nobody steps along them.
  for (size_t d = 0; d < sizes.size(); ++d)
    s[d + extra] = sizes[d] == 1 ? 0 : wrapping_mul(strides[d], static_cast<int64_t>(itemsize));
  itemsizes_[operands_] = itemsize;
  data_[operands_++] = static_cast<char*>(data);
}

void LoopPlan::add(const Tensor& t) {
  add(t.numel() ? t.data() : nullptr, t.sizes(), t.strides(), t.itemsize());
}

void LoopPlan::add_constant(const void* data) {
  strides_[operands_] = IntVec(sizes_.size());
  data_[operands_++] = static_cast<char*>(const_cast<void*>(data));
}

int64_t LoopPlan::numel() const {
  int64_t n = 1;
  for (int64_t s : sizes_) n *= s;
  return n;
}

// The usual case: all operands lie in memory without gaps, in the order of the dimensions.
bool LoopPlan::collapse() {
  const size_t dims = sizes_.size();
  if (dims < 2) return dims == 1;
  for (size_t d = 0; d + 1 < dims; ++d)
    for (int k = 0; k < operands_; ++k)
      if (strides_[k][d] != wrapping_mul(strides_[k][d + 1], sizes_[d + 1])) return false;
  sizes_[0] = numel();
  sizes_.resize(1);
  for (int k = 0; k < operands_; ++k) {
    strides_[k][0] = strides_[k][dims - 1];
    strides_[k].resize(1);
  }
  return true;
}

void LoopPlan::move_dim(size_t from, size_t to) {
  sizes_[to] = sizes_[from];
  for (int k = 0; k < operands_; ++k) strides_[k][to] = strides_[k][from];
}

void LoopPlan::keep_dims(size_t n) {
  if (n == sizes_.size()) return;
  sizes_.resize(n);
  for (int k = 0; k < operands_; ++k) strides_[k].resize(n);
}

void LoopPlan::drop_ones() {
  size_t kept = 0;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (sizes_[d] == 1) continue;
    if (kept != d) move_dim(d, kept);
    ++kept;
  }
  keep_dims(kept);
}

// Whether `a` has the larger steps, judged by the first operand in which both dimensions move.
bool LoopPlan::outside(size_t a, size_t b) const {
  for (int k = 0; k < operands_; ++k) {
    const int64_t x = std::abs(strides_[k][a]), y = std::abs(strides_[k][b]);
    if (x != 0 && y != 0 && x != y) return x > y;
  }
  return false;
}

void LoopPlan::sort() {
  for (size_t i = 1; i < sizes_.size(); ++i)
    for (size_t j = i; j > 0 && outside(j, j - 1); --j) {
      std::swap(sizes_[j], sizes_[j - 1]);
      for (int k = 0; k < operands_; ++k) std::swap(strides_[k][j], strides_[k][j - 1]);
    }
}

// Joins dimensions that lie within a step of the one before, for all operands.
void LoopPlan::merge() {
  if (sizes_.empty()) return;
  size_t last = 0;
  for (size_t d = 1; d < sizes_.size(); ++d) {
    bool within = true;
    for (int k = 0; k < operands_; ++k)
      within &= strides_[k][last] == wrapping_mul(strides_[k][d], sizes_[d]);
    const int64_t before = within ? sizes_[last] : 1;
    if (!within) ++last;
    move_dim(d, last);
    sizes_[last] *= before;
  }
  keep_dims(last + 1);
}

void LoopPlan::simplify() {
  if (collapse()) return;
  drop_ones();
  sort();
  merge();
}

// Rows of a plan of two dimensions.
void LoopPlan::run_plane(RowFn row, const void* context, int64_t first, int64_t last) const {
  char* at[most_operands];
  int64_t step[most_operands];
  for (int k = 0; k < operands_; ++k) {
    at[k] = data_[k] + first * strides_[k][0];
    step[k] = strides_[k][1];
  }
  for (int64_t r = first; r < last; ++r) {
    row(context, at, step, sizes_[1]);
    for (int k = 0; k < operands_; ++k) at[k] += strides_[k][0];
  }
}

void LoopPlan::run_range(RowFn row, const void* context, int64_t first, int64_t last) const {
  const int outer = static_cast<int>(sizes_.size()) - 1;
  if (outer == 1) return run_plane(row, context, first, last);
  IntVec index(static_cast<size_t>(outer));
  char* at[most_operands];
  int64_t step[most_operands];
  for (int k = 0; k < operands_; ++k) {
    at[k] = data_[k];
    step[k] = strides_[k][outer];
  }
  int64_t rest = first;
  for (int d = outer - 1; d >= 0; --d) {
    index[d] = rest % sizes_[d];
    rest /= sizes_[d];
    for (int k = 0; k < operands_; ++k) at[k] += index[d] * strides_[k][d];
  }
  for (int64_t r = first; r < last; ++r) {
    row(context, at, step, sizes_[outer]);
    for (int d = outer - 1; d >= 0; --d) {
      for (int k = 0; k < operands_; ++k) at[k] += strides_[k][d];
      if (++index[d] < sizes_[d]) break;
      for (int k = 0; k < operands_; ++k) at[k] -= sizes_[d] * strides_[k][d];
      index[d] = 0;
    }
  }
}

void LoopPlan::run_serially(RowFn row, const void* context) {
  const int64_t total = numel();
  if (total == 0) return;
  if (sizes_.empty()) {
    const int64_t zero[most_operands] = {};
    return row(context, data_, zero, 1);
  }
  run_range(row, context, 0, total / sizes_.back());
}

void LoopPlan::run(RowFn row, const void* context, int64_t grain) {
  const int64_t total = numel();
  if (total <= grain) return run_serially(row, context);
  const int64_t n = sizes_.back(), rows = total / n;
  if (rows == 1) {  // split the one row
    return parallel_for(n, grain, [&](int64_t begin, int64_t end) {
      char* at[most_operands];
      int64_t step[most_operands];
      for (int k = 0; k < operands_; ++k) {
        step[k] = strides_[k].back();
        at[k] = data_[k] + begin * step[k];
      }
      row(context, at, step, end - begin);
    });
  }
  parallel_for(rows, std::max<int64_t>(1, grain / n),
               [&](int64_t begin, int64_t end) { run_range(row, context, begin, end); });
}

}  // namespace facula::cpu
