// Rows of sparse matrices, shared out by their elements.
#pragma once
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/threads.h"

namespace facula::cpu::sparse {

// An index, read once: another thread may change it after it was checked.
[[gnu::always_inline]] inline int64_t read_once(const int64_t* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}

[[noreturn]] void column_outside(int64_t column, int64_t limit);
[[noreturn]] void row_outside(int64_t begin, int64_t end, int64_t n);

// A column that lies inside of the size. RuntimeError for any other.
[[gnu::always_inline]] inline int64_t checked_column(const int64_t* p, int64_t limit) {
  const int64_t column = read_once(p);
  if (static_cast<uint64_t>(column) >= static_cast<uint64_t>(limit)) [[unlikely]]
    column_outside(column, limit);
  return column;
}

// Where the elements of one row stand among n. RuntimeError where they cannot.
struct RowRange {
  int64_t begin, end;
};
[[gnu::always_inline]] inline RowRange row_range(const int64_t* starts, int64_t row, int64_t n) {
  const int64_t begin = read_once(starts + row), end = read_once(starts + row + 1);
  if (begin < 0 || begin > end || end > n) [[unlikely]]
    row_outside(begin, end, n);
  return {begin, end};
}

// What a chunk of work should take, in tenths of nanoseconds: threads that spin begin it at once.
inline constexpr int64_t chunk_tenth_ns = 20000;

// Calls body(begin, end) for ranges of rows that hold about as many elements each, in parallel.
// `grain` is how many elements, rows among them, are worth a call. Each row comes once, whatever
// the starts become meanwhile.
template <class Body>
void for_row_chunks(const int64_t* starts, int64_t rows, int64_t n, int64_t grain, Body&& body) {
  const int64_t total = n + rows, chunks = std::min(rows, total / std::max<int64_t>(grain, 1));
  if (chunks < 2) {
    if (rows > 0) body(int64_t{0}, rows);
    return;
  }
  std::vector<int64_t> edges(static_cast<size_t>(chunks) + 1, rows);
  edges[0] = 0;
  for (int64_t c = 1; c < chunks; ++c) {
    const int64_t wanted = total / chunks * c;
    int64_t low = edges[static_cast<size_t>(c) - 1], high = rows;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (read_once(starts + middle) + middle < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    edges[static_cast<size_t>(c)] = low;
  }
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t first = edges[static_cast<size_t>(c)], last = edges[static_cast<size_t>(c) + 1];
      if (first < last) body(first, last);
    }
  });
}

}  // namespace facula::cpu::sparse
