// How the distribution kernels consume a generator: words in blocks, uniforms from words.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "core/interrupts.h"
#include "core/random.h"
#include "kernels/cpu/random/rows.h"
#include "kernels/cpu/random/units.h"

namespace facula::dist {

template <class T>
inline constexpr bool is_reduced = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float = is_reduced<T> || std::is_floating_point_v<T>;

// Bits of precision, the hidden one included.
template <class T>
inline constexpr int digits = std::numeric_limits<T>::digits;
template <>
inline constexpr int digits<Half> = 11;
template <>
inline constexpr int digits<BFloat16> = 8;

// Between the parts of a long draw, by the holder of the generator's mutex: the user may end the
// call. The question may wait for a thread that wants to draw, so the mutex is free meanwhile.
inline void pause_draw(Generator& g) {
  if (interrupts.ask == nullptr || interrupt_clock() < interrupts.next) [[likely]]
    return;
  struct Released {
    Generator& g;
    explicit Released(Generator& of) : g(of) { g.mutex().unlock(); }
    ~Released() { g.mutex().lock(); }
  };
  const Released released(g);
  poll_interrupts();
}

// Calls f(i) for i in [0, n); it draws as often as it likes.
template <class F>
void for_each_draw(Generator& g, int64_t n, F f) {
  constexpr int64_t block = 1024;
  for (int64_t start = 0; start < n; start += block) {
    if (start > 0) pause_draw(g);
    const int64_t end = std::min(n, start + block);
    for (int64_t i = start; i < end; ++i) f(i);
  }
}

// Calls f(first, words, m) for runs of m of [0, n), with as many words or pairs of words.
template <int words_each, class F>
void for_each_run(Generator& g, int64_t n, F f) {
  constexpr int64_t room = 1024, block = room / words_each;
  const TwisterLoops loops{FACULA_OF_ISA(twist_words), FACULA_OF_ISA(temper_words)};
  uint32_t words[room];
  for (int64_t start = 0; start < n; start += block) {
    if (start > 0) pause_draw(g);
    const int64_t m = std::min(block, n - start);
    g.fill32(words, m * words_each, loops);
    f(start, static_cast<const uint32_t*>(words), m);
  }
}

// Calls f(i, word) for i in [0, n) with successive 32-bit outputs.
template <class F>
void for_each_word(Generator& g, int64_t n, F f) {
  for_each_run<1>(g, n, [&](int64_t start, const uint32_t* words, int64_t m) {
    for (int64_t i = 0; i < m; ++i) f(start + i, words[i]);
  });
}

// Calls f(i, word) for i in [0, n) with successive 64-bit outputs.
template <class F>
void for_each_pair(Generator& g, int64_t n, F f) {
  for_each_run<2>(g, n, [&](int64_t start, const uint32_t* words, int64_t m) {
    for (int64_t i = 0; i < m; ++i) f(start + i, pair_at(words, i));
  });
}

// Calls f(i, u) for i in [0, n) with successive double uniforms.
template <class F>
void for_each_unit(Generator& g, int64_t n, F f) {
  for_each_pair(g, n, [&](int64_t i, uint64_t word) { f(i, unit_double(word)); });
}

inline double next_unit(Generator& g) { return unit_double(g.next64()); }

// The two normals that the method of Box and Muller makes of two uniforms.
struct NormalPair {
  double first, second;
};
NormalPair normal_pair(double u1, double u2);
// One standard normal; every second one comes from the generator's cache.
double next_normal(Generator& g);

}  // namespace facula::dist
