// How a reduction walks its input: which dimensions remain, which go, and how the work is split.
#pragma once
#include <optional>

#include "core/tensor.h"

namespace facula::cpu {

// Strides are in elements; dimensions outermost first, merged where memory allows. Either the last
// reduced dimension is walked as rows of lanes, or a remaining one is walked as columns.
struct ReducePlan {
  static constexpr int64_t widest = 1024;  // columns of one task
  // Strided columns: as many as keep their cache lines in the first-level cache.
  static constexpr int64_t strided = 64;

  IntVec kept, kept_in, kept_out;  // without the columns
  IntVec reduced, reduced_in;      // at least one; split into `parts` along the first
  bool columns = false;
  int64_t width = 1, width_in = 1, width_out = 1;
  int64_t tile = 1, tiles = 1;  // columns of a task, tasks over the columns
  int64_t folded = 1;           // rows of few columns that are walked as one, side by side
  int64_t tasks = 1, parts = 1, part_length = 1;
  int64_t count = 1;  // elements that go into one result
  int64_t results = 1;

  // Where task t begins: element offsets into input and output.
  struct Place {
    int64_t in, out, columns;
  };
  Place place(int64_t task) const;
  // How many elements one task of one part reads.
  int64_t task_work() const;
};

// `dims` are wrapped dimensions of self; the result is contiguous.
ReducePlan plan_reduction(const Tensor& self, const IntVec& dims);
// No dimensions given means all.
IntVec reduced_dims(const std::optional<IntSpan>& dim, int64_t ndim);
IntVec reduced_sizes(IntSpan sizes, const IntVec& dims, bool keepdim);

}  // namespace facula::cpu
