#include "kernels/cpu/elementwise/select.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Without branches, which cost ten times as much where the condition is random.
template <class T>
[[gnu::always_inline]] inline void select_row(T* out, const uint8_t* condition, const T* a,
                                              const T* b, int64_t step_a, int64_t step_b,
                                              int64_t n) {
  // The result may be an operand, element by element.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T mask = static_cast<T>(0 - static_cast<T>(condition[i] != 0));
    out[i] = static_cast<T>((a[i * step_a] & mask) | (b[i * step_b] & static_cast<T>(~mask)));
  }
}

template <class T>
void select_elements(char* const* data, const int64_t* steps, int64_t n, const void*) {
  constexpr int64_t one = sizeof(T);
  const auto flat = [&](int k) { return steps[k] == one || steps[k] == 0; };
  if constexpr (std::is_integral_v<T>) {
    if (steps[0] == one && steps[1] == 1 && flat(2) && flat(3)) {
      auto* out = reinterpret_cast<T*>(data[0]);
      const auto* c = reinterpret_cast<const uint8_t*>(data[1]);
      const auto *a = reinterpret_cast<const T*>(data[2]), *b = reinterpret_cast<const T*>(data[3]);
      if (steps[2] && steps[3]) return select_row(out, c, a, b, 1, 1, n);
      if (steps[2]) return select_row(out, c, a, b, 1, 0, n);
      if (steps[3]) return select_row(out, c, a, b, 0, 1, n);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const char* from = data[1][i * steps[1]] != 0 ? data[2] + i * steps[2] : data[3] + i * steps[3];
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = *reinterpret_cast<const T*>(from);
  }
}

}  // namespace

LoopFn select_loop(size_t itemsize) {
  LoopFn loop = nullptr;
  visit_size(itemsize, [&]<class T>(Type<T>) { loop = &select_elements<T>; });
  return loop;
}

}  // namespace facula::cpu::FACULA_ISA
