// Batches of small matrices by parts, for kernels that take many of them at once.
#pragma once
#include "kernels/cpu/linalg/matrices.h"

namespace facula::cpu {

// Calls body(first, many) for parts of a batch of `count` matrices, the same parts for any number
// of threads; `work` is what one matrix takes.
template <class F>
void for_each_part(int64_t count, int64_t work, F&& body) {
  constexpr int64_t part = 64;
  for_each_matrix((count + part - 1) / part, work * part,
                  [&](int64_t i) { body(i * part, std::min(part, count - i * part)); });
}

}  // namespace facula::cpu
