// The library's plans, once for each instruction set, without its threads and its cache.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>

#include "core/allocator.h"
#include "kernels/cpu/simd/isa.h"

// Functions of one name would be merged by the linker, so each set has a namespace of its own.
#define FACULA_JOIN_NAMES(a, b) a##b
#define FACULA_NAME_FOR_ISA(a, b) FACULA_JOIN_NAMES(a, b)
#define pocketfft FACULA_NAME_FOR_ISA(pocketfft_, FACULA_ISA)
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 0

// The library takes room for each transform with these, which it finds before the C library's.
namespace pocketfft::detail {
inline constexpr size_t size_bytes = facula::cpu_alignment;  // where a block's size is kept
inline void* malloc(size_t bytes) {
  char* block = static_cast<char*>(facula::cpu_allocate(bytes + size_bytes));
  ::new (block) size_t(bytes + size_bytes);
  return block + size_bytes;
}
inline void free(void* p) {
  char* block = static_cast<char*>(p) - size_bytes;
  facula::cpu_free(block, *reinterpret_cast<size_t*>(block));
}
}  // namespace pocketfft::detail
#include <pocketfft/pocketfft_hdronly.h>

namespace facula::cpu::FACULA_ISA {

template <class T>
using ComplexPlan = pocketfft::detail::pocketfft_c<T>;
template <class T>
using RealPlan = pocketfft::detail::pocketfft_r<T>;
// As the library lays out complex numbers, or vectors of them: all real parts first.
template <class T>
using PlanComplex = pocketfft::detail::cmplx<T>;
// A vector of one number of each of `lanes_of<T>` lines.
template <class T>
using PlanVector = pocketfft::detail::vtype_t<T>;
template <class T>
using PlanArray = pocketfft::detail::arr<T>;
// exp(2 pi i k / n), of length n.
template <class T>
using PlanRoots = pocketfft::detail::sincos_2pibyn<T>;
// About how many operations a plan of this length takes, in the library's own measure.
inline double plan_cost(int64_t length) {
  return pocketfft::detail::util::cost_guess(static_cast<size_t>(length));
}
inline bool is_prime(int64_t n) {
  const auto length = static_cast<size_t>(n);
  return length > 1 && pocketfft::detail::util::largest_prime_factor(length) == length;
}
template <class T>
inline constexpr int64_t lanes_of = pocketfft::detail::VLEN<T>::val;

}  // namespace facula::cpu::FACULA_ISA

#undef pocketfft
#undef FACULA_NAME_FOR_ISA
#undef FACULA_JOIN_NAMES
