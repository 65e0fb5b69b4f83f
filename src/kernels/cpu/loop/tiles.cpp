// Elementwise loops whose rows are short: tiles of many rows go through the row function at once.
// Operands that are not contiguous over a tile are gathered into a buffer.
#include <algorithm>

#include "core/dtype.h"
#include "core/threads.h"
#include "kernels/cpu/loop/loop.h"

namespace facula::cpu {
namespace {

constexpr int64_t tile_elements = 512;  // of each operand: all of them fit in the first cache
constexpr int64_t short_row = 16;       // up to this length gathering pays
constexpr int64_t longest_row = 128;    // up to this length it pays to save calls

// How an operand lies over the two innermost dimensions.
enum class Lay { Direct, Constant, Periodic, Gathered };

struct Operand {
  Lay lay;
  char* data;
  int64_t outer, inner;  // strides in bytes
  size_t size;
};

Lay lay_of(int64_t outer, int64_t inner, int64_t n, int64_t size) {
  if (outer == 0 && inner == 0) return Lay::Constant;
  if (inner == size && outer == n * size) return Lay::Direct;
  return outer == 0 ? Lay::Periodic : Lay::Gathered;
}

template <class T>
void gather_rows(T* to, const Operand& from, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    const char* at = from.data + r * from.outer;
    for (int64_t i = 0; i < n; ++i) *to++ = *reinterpret_cast<const T*>(at + i * from.inner);
  }
}

template <class T>
void scatter_rows(const Operand& to, const T* from, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    char* at = to.data + r * to.outer;
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(at + i * to.inner) = *from++;
  }
}

// Calls f with the length as a constant where it is one of the most common.
template <class F>
void with_length(int64_t n, F&& f) {
  switch (n) {
    case 2:
      return f(int64_t{2});
    case 3:
      return f(int64_t{3});
    case 4:
      return f(int64_t{4});
    case 8:
      return f(int64_t{8});
    default:
      return f(n);
  }
}

void gather(char* to, const Operand& from, int64_t rows, int64_t n) {
  visit_size(from.size, [&]<class T>(Type<T>) {
    with_length(n, [&](int64_t m) { gather_rows(reinterpret_cast<T*>(to), from, rows, m); });
  });
}

void scatter(const Operand& to, const char* from, int64_t rows, int64_t n) {
  visit_size(to.size, [&]<class T>(Type<T>) {
    with_length(n, [&](int64_t m) { scatter_rows(to, reinterpret_cast<const T*>(from), rows, m); });
  });
}

// One run over `rows` rows of n elements, tile by tile; operand 0 is the result.
class TileRun {
 public:
  TileRun(RowFn row, const void* context, int64_t n) : row_(row), context_(context), n_(n) {}

  void add(const Operand& o) { operands_[count_++] = o; }

  void run(int64_t rows) {
    const int64_t tile = std::max<int64_t>(1, tile_elements / n_);
    for (int k = 1; k < count_; ++k)
      if (operands_[k].lay == Lay::Periodic) gather(buffers_[k], operands_[k], tile, n_);
    for (int64_t first = 0; first < rows; first += tile) run_tile(std::min(tile, rows - first));
  }

 private:
  void run_tile(int64_t rows) {
    char* at[most_operands];
    int64_t steps[most_operands];
    for (int k = 0; k < count_; ++k) {
      Operand& o = operands_[k];
      const bool in_place = o.lay == Lay::Direct || o.lay == Lay::Constant;
      at[k] = in_place ? o.data : buffers_[k];
      steps[k] = o.lay == Lay::Constant ? 0 : static_cast<int64_t>(o.size);
      if (k > 0 && o.lay == Lay::Gathered) gather(buffers_[k], o, rows, n_);
    }
    row_(context_, at, steps, rows * n_);
    if (operands_[0].lay != Lay::Direct) scatter(operands_[0], buffers_[0], rows, n_);
    for (int k = 0; k < count_; ++k) operands_[k].data += rows * operands_[k].outer;
  }

  RowFn row_;
  const void* context_;
  int64_t n_;
  int count_ = 0;
  Operand operands_[most_operands];
  alignas(64) char buffers_[most_operands][tile_elements * 16];
};

}  // namespace

// Whether short rows are better put together: then no operand needs more than a gather.
bool LoopPlan::tiles_pay() const {
  if (sizes_.size() < 2) return false;
  const size_t outer = sizes_.size() - 2;
  const int64_t n = sizes_.back();
  if (n > longest_row || sizes_[outer] < 2 * short_row || strides_[0][outer] == 0) return false;
  for (int k = 0; k < operands_; ++k) {
    const auto size = static_cast<int64_t>(itemsizes_[k]);
    const Lay lay = lay_of(strides_[k][outer], strides_[k].back(), n, size);
    if (size == 0 && lay != Lay::Constant) return false;
    if (n > short_row && (lay == Lay::Gathered || (k == 0 && lay != Lay::Direct))) return false;
  }
  return true;
}

void LoopPlan::run_tiles(RowFn row, const void* context, int64_t grain) const {
  const size_t outer = sizes_.size() - 2;
  const int64_t n = sizes_.back(), rows = sizes_[outer], planes = numel() / (rows * n);
  const int64_t part = std::max<int64_t>(1, grain / n), parts = (rows + part - 1) / part;
  const int64_t together = std::max<int64_t>(1, grain / (rows * n));
  parallel_for(planes * parts, together, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p % parts * part;
      TileRun run(row, context, n);
      for (int k = 0; k < operands_; ++k) {
        const IntVec& s = strides_[k];
        char* data = data_[k] + first * s[outer];
        int64_t rest = p / parts;
        for (size_t d = outer; d-- > 0; rest /= sizes_[d]) data += rest % sizes_[d] * s[d];
        const auto size = static_cast<int64_t>(itemsizes_[k]);
        run.add({lay_of(s[outer], s.back(), n, size), data, s[outer], s.back(), itemsizes_[k]});
      }
      run.run(std::min(part, rows - first));
    }
  });
}

void LoopPlan::run_elementwise(RowFn row, const void* context, int64_t grain) {
  if (numel() != 0 && tiles_pay()) return run_tiles(row, context, grain);
  if (numel() != 0 && crossed_dim() >= 0) return run_crossed(row, context, grain);
  run(row, context, grain);
}

}  // namespace facula::cpu
