// Elementwise loops over operands whose neighbours lie along another dimension than the result's,
// as in x + y.t(): blocks of such operands are transposed into a buffer, so that each cache line is
// read once and row functions find neighbours.
#include <algorithm>

#include "core/threads.h"
#include "kernels/cpu/loop/loop.h"
#include "kernels/cpu/loop/transpose.h"

namespace facula::cpu {
namespace {

constexpr int64_t block_rows = 32, block_columns = 128;
constexpr int64_t shortest = 16;  // shorter rows and columns are no worse where they lie
constexpr size_t widest = 16;     // bytes of an element

}  // namespace

// The dimension along which such operands have their neighbours, or -1 where there are none.
int LoopPlan::crossed_dim() const {
  const int inner = static_cast<int>(sizes_.size()) - 1;
  if (inner < 1 || sizes_[inner] < shortest) return -1;
  if (strides_[0][inner] != static_cast<int64_t>(itemsizes_[0])) return -1;
  int found = -1;
  for (int k = 1; k < operands_; ++k) {
    const auto size = static_cast<int64_t>(itemsizes_[k]);
    if (strides_[k][inner] == size || strides_[k][inner] == 0) continue;
    for (int d = 0; d < inner; ++d) {
      if (strides_[k][d] != size || sizes_[d] < shortest) continue;
      if (found >= 0 && found != d) return -1;
      found = d;
    }
  }
  return found;
}

void LoopPlan::run_crossed(RowFn row, const void* context, int64_t grain) const {
  const int dim = crossed_dim(), inner = static_cast<int>(sizes_.size()) - 1;
  const int64_t n = sizes_[inner], rows = sizes_[dim], planes = numel() / (rows * n);
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  const int64_t together = std::max<int64_t>(1, grain / (block_rows * n));
  parallel_for(planes * blocks, together, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * block_rows;
      char* at[most_operands];
      for (int k = 0; k < operands_; ++k) at[k] = data_[k] + first * strides_[k][dim];
      int64_t rest = b / blocks;
      for (int d = inner - 1; d >= 0; --d) {
        if (d == dim) continue;
        for (int k = 0; k < operands_; ++k) at[k] += rest % sizes_[d] * strides_[k][d];
        rest /= sizes_[d];
      }
      run_block(row, context, dim, at, std::min(block_rows, rows - first));
    }
  });
}

// Some rows from `at` on, a few columns at a time.
void LoopPlan::run_block(RowFn row, const void* context, int dim, char* const* at,
                         int64_t rows) const {
  alignas(64) char buffers[2][block_rows * block_columns * widest];
  const int64_t n = sizes_.back();
  for (int64_t first = 0; first < n; first += block_columns) {
    const int64_t columns = std::min(block_columns, n - first);
    char* from[most_operands];
    int64_t steps[most_operands], row_steps[most_operands];
    int used = 0;
    for (int k = 0; k < operands_; ++k) {
      const auto size = static_cast<int64_t>(itemsizes_[k]);
      from[k] = at[k] + first * strides_[k].back();
      steps[k] = strides_[k].back();
      row_steps[k] = strides_[k][dim];
      const bool crossed = k > 0 && size > 0 && row_steps[k] == size && steps[k] != size;
      if (!crossed || steps[k] == 0 || used == 2) continue;
      char* buffer = buffers[used++];
      transpose_plane(buffer, block_columns * size, from[k], steps[k], rows, columns,
                      itemsizes_[k]);
      from[k] = buffer;
      steps[k] = size;
      row_steps[k] = block_columns * size;
    }
    for (int64_t r = 0; r < rows; ++r) {
      row(context, from, steps, columns);
      for (int k = 0; k < operands_; ++k) from[k] += row_steps[k];
    }
  }
}

}  // namespace facula::cpu
