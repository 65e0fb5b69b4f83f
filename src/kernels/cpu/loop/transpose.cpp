#include "kernels/cpu/loop/transpose.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/dtype.h"

namespace facula::cpu {
namespace {

constexpr int64_t line = 64;  // bytes of a cache line

template <class T>
struct Vector {  // 16 bytes: any machine's registers, and few of them for a tile
  static constexpr int lanes = 16 / sizeof(T);
  typedef T type __attribute__((vector_size(16)));
};

// The lower (or upper) halves of two vectors, interleaved lane by lane.
template <class T, bool upper, class V, size_t... I>
[[gnu::always_inline]] inline V zip(V a, V b, std::index_sequence<I...>) {
  constexpr size_t n = sizeof...(I), first = upper ? n / 2 : 0;
  return __builtin_shuffle(a, b, V{static_cast<T>(first + I / 2 + (I % 2) * n)...});
}

// A square of as many vectors as one has lanes. Zipping row i with row i + n / 2 turns a bit of the
// row number into a bit of the lane number; after as many rounds as there are bits all have turned.
template <class T>
[[gnu::always_inline]] inline void transpose_tile(T* to, int64_t to_step, const T* from,
                                                  int64_t from_step) {
  using V = typename Vector<T>::type;
  constexpr int n = Vector<T>::lanes;
  constexpr auto all = std::make_index_sequence<static_cast<size_t>(n)>();
  V rows[n], next[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(&rows[i], from + i * from_step, sizeof(V));
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = zip<T, false>(rows[i], rows[i + n / 2], all);
      next[2 * i + 1] = zip<T, true>(rows[i], rows[i + n / 2], all);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(to + i * to_step, &rows[i], sizeof(V));
}

// A square whose side is a cache line: read by whole lines, put together in a buffer, and written
// by whole lines, so that steps of a power of two, which share few places of the cache, do no harm.
template <class T>
void transpose_square(char* to, int64_t to_step, const char* from, int64_t from_step) {
  constexpr int64_t side = line / sizeof(T), n = Vector<T>::lanes;
  alignas(line) T buffer[side * side];
  for (int64_t c = 0; c < side; c += n)
    for (int64_t r = 0; r < side; r += n)
      transpose_tile(buffer + r * side + c, side,
                     reinterpret_cast<const T*>(from + c * from_step) + r,
                     from_step / static_cast<int64_t>(sizeof(T)));
  for (int64_t r = 0; r < side; ++r) std::memcpy(to + r * to_step, buffer + r * side, line);
}

template <class T>
void transpose_rest(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows,
                    int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    T* row = reinterpret_cast<T*>(to + r * to_step);
    for (int64_t c = 0; c < columns; ++c)
      row[c] = reinterpret_cast<const T*>(from + c * from_step)[r];
  }
}

template <class T>
void transpose_strip(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows,
                     int64_t columns) {
  constexpr int64_t size = sizeof(T), side = line / size;
  const int64_t whole = rows / side * side;
  for (int64_t r = 0; r < whole; r += side) {
    if (columns == side)
      transpose_square<T>(to + r * to_step, to_step, from + r * size, from_step);
    else
      transpose_rest<T>(to + r * to_step, to_step, from + r * size, from_step, side, columns);
  }
  transpose_rest<T>(to + whole * to_step, to_step, from + whole * size, from_step, rows - whole,
                    columns);
}

template <class T>
void transpose_elements(char* to, int64_t to_step, const char* from, int64_t from_step,
                        int64_t rows, int64_t columns) {
  constexpr int64_t size = sizeof(T), side = line / size;
  for (int64_t c = 0; c < columns; c += side)
    transpose_strip<T>(to + c * size, to_step, from + c * from_step, from_step, rows,
                       std::min(side, columns - c));
}

}  // namespace

void transpose_plane(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows,
                     int64_t columns, size_t size) {
  const auto run = [&]<class T>(Type<T>) {
    transpose_elements<T>(to, to_step, from, from_step, rows, columns);
  };
  switch (size) {
    case 1:
      return run(Type<uint8_t>{});
    case 2:
      return run(Type<uint16_t>{});
    case 4:
      return run(Type<uint32_t>{});
    case 8:
      return run(Type<uint64_t>{});
    default:
      return transpose_rest<Bits128>(to, to_step, from, from_step, rows, columns);
  }
}

}  // namespace facula::cpu
