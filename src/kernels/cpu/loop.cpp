#include "kernels/cpu/loop.h"

#include <algorithm>

#include "core/checked.h"
#include "core/threads.h"

namespace facula::cpu {

// Elements that one task handles: small enough to balance, large enough to pay for its claim.
static constexpr int64_t task_elements = 32768;

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
      if (strides_[k][d] != strides_[k][d + 1] * sizes_[d + 1]) return false;
  sizes_[0] = numel();
  sizes_.resize(1);
  for (int k = 0; k < operands_; ++k) {
    strides_[k][0] = strides_[k][dims - 1];
    strides_[k].resize(1);
  }
  return true;
}

void LoopPlan::simplify() {
  if (collapse()) return;
  const int dims = static_cast<int>(sizes_.size());
  IntVec order;  // outermost first
  for (int d = 0; d < dims; ++d)
    if (sizes_[d] != 1) order.push_back(d);
  // Larger steps outside, judged by the first operand in which both dimensions move.
  auto outside = [&](int64_t a, int64_t b) {
    for (int k = 0; k < operands_; ++k) {
      const int64_t x = std::abs(strides_[k][a]), y = std::abs(strides_[k][b]);
      if (x == 0 || y == 0 || x == y) continue;
      return x > y;
    }
    return a < b;
  };
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0 && outside(order[j], order[j - 1]); --j)
      std::swap(order[j], order[j - 1]);

  // Whether the i-th of them lies within a step of the one before, for all operands.
  auto merges = [&](size_t i) {
    for (int k = 0; k < operands_; ++k)
      if (strides_[k][order[i - 1]] != strides_[k][order[i]] * sizes_[order[i]]) return false;
    return true;
  };
  IntVec starts;  // places in `order` where a merged dimension begins
  for (size_t i = 0; i < order.size(); ++i)
    if (i == 0 || !merges(i)) starts.push_back(static_cast<int64_t>(i));
  IntVec sizes(starts.size(), 1), steps(starts.size());
  auto last_of = [&](size_t g) {
    return g + 1 < starts.size() ? static_cast<size_t>(starts[g + 1]) - 1 : order.size() - 1;
  };
  for (int k = 0; k < operands_; ++k) {
    for (size_t g = 0; g < starts.size(); ++g) steps[g] = strides_[k][order[last_of(g)]];
    strides_[k] = steps;
  }
  for (size_t g = 0; g < starts.size(); ++g)
    for (size_t i = static_cast<size_t>(starts[g]); i <= last_of(g); ++i)
      sizes[g] *= sizes_[order[i]];
  sizes_ = sizes;
}

void LoopPlan::run_range(RowFn row, const void* context, int64_t first, int64_t last) const {
  const int outer = static_cast<int>(sizes_.size()) - 1;
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

void LoopPlan::run(RowFn row, const void* context, bool serial) {
  const int64_t total = numel();
  if (total == 0) return;
  if (sizes_.empty()) {
    const int64_t zero[most_operands] = {};
    return row(context, data_, zero, 1);
  }
  const int64_t n = sizes_.back(), rows = total / n;
  if (rows == 1 && !serial) {  // split the one row
    return parallel_for(n, task_elements, [&](int64_t begin, int64_t end) {
      char* at[most_operands];
      int64_t step[most_operands];
      for (int k = 0; k < operands_; ++k) {
        step[k] = strides_[k].back();
        at[k] = data_[k] + begin * step[k];
      }
      row(context, at, step, end - begin);
    });
  }
  if (serial) return run_range(row, context, 0, rows);
  const int64_t grain = std::max<int64_t>(1, task_elements / n);
  parallel_for(rows, grain,
               [&](int64_t begin, int64_t end) { run_range(row, context, begin, end); });
}

}  // namespace facula::cpu
