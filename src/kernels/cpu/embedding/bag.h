// Bags of embeddings: rows of a table by number, reduced bag by bag. The code gathers and scatters,
// so it is compiled once.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace facula::cpu {

enum class BagMode : uint8_t { Sum, Mean, Max };

// Row numbers in one list, a contiguous int64 vector; bag b holds those from starts[b] to
// starts[b + 1] - 1.
struct Bags {
  Tensor numbers;
  std::vector<int64_t> starts;
  int64_t padding = -1;  // a row number that is passed over; -1: none

  int64_t count() const { return static_cast<int64_t>(starts.size()) - 1; }
};

// Tensors to fill: the bags' values; by place in the list of numbers, which bag it belongs to (or
// empty); how many rows each bag holds, padding not counted; for Max, the row that each element
// came from.
struct BagResults {
  const Tensor &values, &bag_numbers, &sizes, &chosen;
};

// `scales` (one for each number; for sums) may be undefined. Raises RuntimeError where a number is
// no row of the table.
void embedding_bags(const Tensor& weight, const Bags& bags, BagMode mode, const Tensor& scales,
                    const BagResults& results);

}  // namespace facula::cpu
