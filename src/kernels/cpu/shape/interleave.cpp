#include "kernels/cpu/shape/interleave.h"

#include "core/dtype.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// With the count known, the compiler makes shuffles of the loop.
template <size_t count, class T>
[[gnu::noinline]] void in_turns(const void* const* from, int64_t begin, int64_t end,
                                T* __restrict to) {
  const T* rows[count];
  for (size_t k = 0; k < count; ++k) rows[k] = static_cast<const T*>(from[k]) + begin;
  to += begin * static_cast<int64_t>(count);
  for (int64_t i = 0, n = end - begin; i < n; ++i)
#pragma GCC unroll 4
    for (size_t k = 0; k < count; ++k) to[i * static_cast<int64_t>(count) + k] = rows[k][i];
}

}  // namespace

void interleave(const void* const* from, size_t count, size_t itemsize, int64_t begin, int64_t end,
                void* to) {
  visit_size(itemsize, [&]<class T>(Type<T>) {
    if (count == 2) return in_turns<2>(from, begin, end, static_cast<T*>(to));
    if (count == 3) return in_turns<3>(from, begin, end, static_cast<T*>(to));
    in_turns<4>(from, begin, end, static_cast<T*>(to));
  });
}

}  // namespace facula::cpu::FACULA_ISA
