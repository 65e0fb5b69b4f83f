#include "kernels/cpu/loop/row_copies.h"

#include "kernels/cpu/loop/copy_bytes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t line = 64;
// Rows are prefetched this many bytes ahead of their copy, and at most so much of one row.
constexpr int64_t prefetch_distance = 4096, max_prefetched = 1024;

// Copies of one length, which is known to the compiler where it is a usual one.
template <int64_t size>
struct Copy {
  static constexpr int64_t asked = size;
  int64_t bytes;
  [[gnu::always_inline]] void operator()(char* to, const char* from) const {
    if constexpr (size > 0)
      __builtin_memcpy(to, from, size);
    else
      copy_bytes(to, from, static_cast<size_t>(bytes));
  }
  [[gnu::always_inline]] void prefetch(const char* from) const {
    const int64_t length = size > 0 ? size : bytes < max_prefetched ? bytes : max_prefetched;
    for (int64_t at = 0; at < length; at += line) __builtin_prefetch(from + at);
    if (length >= line) __builtin_prefetch(from + length - 1);  // it need not begin with a line
  }
  // How many rows ahead of its copy a row is prefetched.
  int64_t ahead() const {
    const int64_t rows = prefetch_distance / (size > 0 ? size : bytes > 0 ? bytes : 1);
    return rows < 2 ? 2 : rows > 32 ? 32 : rows;
  }
};

// Calls body with the Copy of a length.
template <class Body>
[[gnu::always_inline]] inline auto with_copy(int64_t bytes, Body&& body) {
  switch (bytes) {
    case 4:
      return body(Copy<4>{bytes});
    case 8:
      return body(Copy<8>{bytes});
    case 16:
      return body(Copy<16>{bytes});
    case 32:
      return body(Copy<32>{bytes});
    case 64:
      return body(Copy<64>{bytes});
    case 128:
      return body(Copy<128>{bytes});
    case 256:
      return body(Copy<256>{bytes});
    default:
      return body(Copy<0>{bytes});
  }
}

// An index is read once, so that nobody changes it after it was tested.
template <class I>
bool take(const ByteRows& table, int64_t rows, const I* indices, int64_t n, char* to) {
  const auto count = static_cast<uint64_t>(rows);
  const auto number = [&](int64_t i) {
    return static_cast<uint64_t>(static_cast<int64_t>(indices[i]));
  };
  return with_copy(table.bytes, [&](const auto& copy) {
    const int64_t ahead = copy.ahead(), step = table.step;
    for (int64_t i = 0; i < n; ++i, to += table.bytes) {
      if (i + ahead < n)
        if (const uint64_t next = number(i + ahead); next < count)
          copy.prefetch(table.first + static_cast<int64_t>(next) * step);
      const uint64_t row = number(i);
      if (row >= count) return false;
      copy(to, table.first + static_cast<int64_t>(row) * step);
    }
    return true;
  });
}

}  // namespace

void copy_rows(const ByteRows& from, int64_t count, char* to, int64_t to_step) {
  with_copy(from.bytes, [&](const auto& copy) {
    const char* row = from.first;
    const int64_t ahead = copy.ahead() * from.step;
    const bool dense = from.step == from.bytes;  // the processor sees what comes
    for (int64_t i = 0; i < count; ++i, row += from.step, to += to_step) {
      if (!dense) copy.prefetch(row + ahead);
      copy(to, row);
    }
  });
}

bool take_rows(const ByteRows& table, int64_t rows, const void* indices, int64_t n, char* to) {
  return take(table, rows, static_cast<const int64_t*>(indices), n, to);
}
bool take_rows_narrow(const ByteRows& table, int64_t rows, const void* indices, int64_t n,
                      char* to) {
  return take(table, rows, static_cast<const int32_t*>(indices), n, to);
}

}  // namespace facula::cpu::FACULA_ISA
