#include "kernels/cpu/reduce/plan.h"

#include <algorithm>

#include "core/checked.h"
#include "kernels/cpu/reduce/described_reduction.h"

namespace facula::cpu {
namespace {

struct Dim {
  int64_t size, in, out;
};
using Dims = SmallVector<Dim, 6>;

// Largest steps first. By insertion: the lists are short, and a stable sort of the library would
// take memory.
void order(Dims& dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    for (size_t k = i; k > 0 && dims[k].in > dims[k - 1].in; --k) std::swap(dims[k], dims[k - 1]);
}

Dims merged(const Dims& dims) {
  Dims out;
  for (const Dim& d : dims) {
    // Strides of a tensor without elements may be any numbers.
    const bool joins = !out.empty() && out.back().in == saturating_mul(d.in, d.size) &&
                       out.back().out == saturating_mul(d.out, d.size);
    if (joins)
      out.back() = {out.back().size * d.size, d.in, d.out};
    else
      out.push_back(d);
  }
  return out;
}

bool any_empty(const Dims& dims) {
  return std::ranges::any_of(dims, [](const Dim& d) { return d.size == 0; });
}

// Short rows waste lanes: columns, even strided ones, keep several results under way.
constexpr int64_t shortest_row = 64;

bool prefers_columns(const Dims& kept, const Dims& reduced) {
  if (kept.empty() || kept.back().size < 2) return false;
  if (reduced.empty()) return true;
  const Dim k = kept.back(), r = reduced.back();
  if (r.size < shortest_row && k.size >= 4) return true;
  const bool dense = k.in == 1 && r.in == k.size;  // rows are walked side by side
  return k.in < r.in && (k.size >= 4 || dense);
}

// Long parts of rows are read in about the order of memory, which counts beyond the second-level
// cache; within it, accumulators that are few count more.
int64_t most_columns(const Tensor& self) {
  constexpr int64_t cached_bytes = int64_t{2} << 20, few = 256;
  const int64_t bytes = self.numel() * static_cast<int64_t>(itemsize(self.dtype()));
  return bytes > cached_bytes ? ReducePlan::widest : few;
}

// Adjacent rows are walked as one row of at least this many elements.
constexpr int64_t folded_width = 32;

int64_t rows_folded(const ReducePlan& p) {
  const bool dense = p.tiles == 1 && p.width_in == 1 && p.reduced_in.back() == p.width;
  int64_t rows = 1;
  while (dense && rows * p.width < folded_width && 4 * rows <= p.reduced.back()) rows *= 2;
  return rows;
}

// From this many elements in one task, it is split; enough tasks need no splitting.
constexpr int64_t part_elements = 65536, enough_tasks = 32, most_parts = 256;

void split(ReducePlan& p) {
  const int64_t first = p.reduced[0], work = p.count * p.tile;
  if (p.tasks >= enough_tasks || work < 2 * part_elements) return;
  const int64_t wanted = std::min({work / part_elements, most_parts, first});
  p.part_length = (first + wanted - 1) / wanted;
  if (!p.columns && p.reduced.size() == 1) p.part_length = (p.part_length + 1023) / 1024 * 1024;
  p.parts = (first + p.part_length - 1) / p.part_length;
}

}  // namespace

IntVec reduced_dims(const std::optional<IntSpan>& dim, int64_t ndim) {
  IntVec dims;
  if (!dim || dim->empty()) {
    for (int64_t d = 0; d < ndim; ++d) dims.push_back(d);
    return dims;
  }
  for (int64_t d : *dim) {
    const int64_t w = wrap_dim(d, ndim);
    check(std::ranges::find(dims, w) == dims.end(), "dim ", w,
          " appears multiple times in the list of dims");
    dims.push_back(w);
  }
  return dims;
}

IntVec reduced_sizes(IntSpan sizes, const IntVec& dims, bool keepdim) {
  IntVec out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool gone = std::ranges::find(dims, static_cast<int64_t>(d)) != dims.end();
    if (!gone) out.push_back(sizes[d]);
    if (gone && keepdim) out.push_back(1);
  }
  return out;
}

ReducePlan plan_rows(int64_t rows, int64_t row) {
  ReducePlan p;
  p.kept.push_back(rows);
  p.kept_in.push_back(row);
  p.kept_out.push_back(1);
  p.reduced.push_back(row);
  p.reduced_in.push_back(1);
  p.tasks = p.results = rows;
  p.count = p.part_length = row;
  return p;
}

ReducePlan plan_one_row(int64_t numel) {
  ReducePlan p;
  p.reduced.push_back(numel);
  p.reduced_in.push_back(1);
  p.count = p.part_length = numel;
  split(p);
  return p;
}

// Without results: the sizes of what would be reduced may be too large to be multiplied.
static ReducePlan plan_nothing() {
  ReducePlan p = plan_one_row(0);
  p.tasks = p.results = 0;
  return p;
}

ReducePlan plan_reduction(const Tensor& self, const IntVec& dims) {
  if (dims.size() == static_cast<size_t>(self.dim()) && self.is_contiguous())
    return plan_one_row(self.numel());
  Dims kept, reduced;
  int64_t out_stride = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const int64_t size = self.sizes()[d], stride = self.strides()[d];
    const bool gone = std::ranges::find(dims, d) != dims.end();
    if (size != 1 && gone) reduced.push_back({size, stride, 0});
    if (size != 1 && !gone) kept.push_back({size, stride, out_stride});
    if (!gone) out_stride *= size;
  }
  if (any_empty(kept)) return plan_nothing();
  if (any_empty(reduced)) reduced = {{0, 1, 0}};
  std::reverse(kept.begin(), kept.end());
  std::reverse(reduced.begin(), reduced.end());
  order(kept);
  order(reduced);
  kept = merged(kept);
  reduced = merged(reduced);

  ReducePlan p;
  p.columns = prefers_columns(kept, reduced);
  if (p.columns) {
    p.width = kept.back().size;
    p.width_in = kept.back().in;
    p.width_out = kept.back().out;
    p.tile = std::min(p.width, p.width_in == 1 ? most_columns(self) : ReducePlan::strided);
    p.tiles = (p.width + p.tile - 1) / p.tile;
    kept.pop_back();
  }
  if (reduced.empty()) reduced.push_back({1, 1, 0});
  for (const Dim& d : kept) {
    p.kept.push_back(d.size);
    p.kept_in.push_back(d.in);
    p.kept_out.push_back(d.out);
    p.tasks *= d.size;
  }
  for (const Dim& d : reduced) {
    p.reduced.push_back(d.size);
    p.reduced_in.push_back(d.in);
    p.count *= d.size;
  }
  p.results = p.tasks * p.width;
  p.tasks *= p.tiles;
  p.part_length = p.reduced[0];
  if (p.columns) p.folded = rows_folded(p);
  split(p);
  return p;
}

ReducePlan::Place ReducePlan::place(int64_t task) const {
  // Divisions take as long as a short row.
  const int64_t column = tiles == 1 ? 0 : task % tiles * tile;
  int64_t rest = tiles == 1 ? task : task / tiles;
  Place at{column * width_in, column * width_out, std::min(tile, width - column)};
  for (size_t d = kept.size(); d-- > 1; rest /= kept[d]) {
    at.in += rest % kept[d] * kept_in[d];
    at.out += rest % kept[d] * kept_out[d];
  }
  if (kept.size() > 0) {
    at.in += rest * kept_in[0];
    at.out += rest * kept_out[0];
  }
  return at;
}

int64_t ReducePlan::task_work() const {
  return std::max<int64_t>(1, count / reduced[0] * part_length * tile);
}

}  // namespace facula::cpu
