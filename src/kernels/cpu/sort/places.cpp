#include "kernels/cpu/sort/places.h"

#include <algorithm>

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t together = 32;  // values that are searched for side by side

template <bool right, class T>
[[gnu::always_inline]] inline bool comes_before(T element, T v) {
  return right ? !(element > v) : !(element >= v);
}

// Halves the ranges of all values in step, without branches: nobody could predict them, and one
// search alone would wait for each of its comparisons.
template <bool right, class T>
void search(const T* row, int64_t length, const T* v, int64_t* to) {
  int64_t begin[together] = {};
  while (length > 1) {
    const int64_t half = length / 2;
    for (int64_t k = 0; k < together; ++k)
      begin[k] += half & -static_cast<int64_t>(comes_before<right>(row[begin[k] + half - 1], v[k]));
    length -= half;
  }
  for (int64_t k = 0; k < together; ++k)
    to[k] = begin[k] + comes_before<right>(row[begin[k]], v[k]);
}

template <bool right, class T>
void find(const T* row, int64_t length, const T* v, int64_t n, int64_t* to) {
  int64_t i = 0;
  for (; i + together <= n; i += together) search<right>(row, length, v + i, to + i);
  if (i == n) return;
  T values[together];
  int64_t places[together];
  for (int64_t k = 0; k < together; ++k) values[k] = v[i + std::min(k, n - i - 1)];
  search<right>(row, length, values, places);
  std::copy(places, places + (n - i), to + i);
}

}  // namespace

template <class T>
bool rises(const T* row, int64_t length) {
  bool yes = length == 0 || row[0] == row[0];
  for (int64_t i = 1; i < length; ++i) yes &= row[i] >= row[i - 1];
  return yes;
}

template <class T>
void find_places(const T* row, int64_t length, const T* v, int64_t n, bool right, int64_t* to) {
  if (length == 0)
    std::fill_n(to, n, 0);
  else if (right)
    find<true>(row, length, v, n, to);
  else
    find<false>(row, length, v, n, to);
}

#define FACULA_PLACES(T)                  \
  template bool rises(const T*, int64_t); \
  template void find_places(const T*, int64_t, const T*, int64_t, bool, int64_t*)
FACULA_PLACES(float);
FACULA_PLACES(double);
FACULA_PLACES(Half);
FACULA_PLACES(BFloat16);
FACULA_PLACES(uint8_t);
FACULA_PLACES(int8_t);
FACULA_PLACES(int16_t);
FACULA_PLACES(int32_t);
FACULA_PLACES(int64_t);
#undef FACULA_PLACES

}  // namespace facula::cpu::FACULA_ISA
