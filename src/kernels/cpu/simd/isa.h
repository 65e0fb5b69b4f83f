// Which instruction set a kernel file is being built for. The build defines FACULA_ISA (base, avx2,
// avx512) and compiles each file of kernels/cpu once per set, into a namespace of that name.
#pragma once
#include <cstddef>
#include <cstdint>

namespace facula {
enum class Isa : uint8_t;
Isa current_isa();
}  // namespace facula

#ifndef FACULA_ISA
#define FACULA_ISA base
#endif

// Declares the same functions in the namespace of every instruction set that is built, and names
// one of them as a kernel: FACULA_PER_ISA(void sum(const Tensor& self, const Tensor& result);)
// then `inline constexpr KernelRef sum_kernel = FACULA_BY_ISA(sum);`.
#if defined(FACULA_HAS_AVX512) && defined(FACULA_HAS_AVX2)
#define FACULA_PER_ISA(...) \
  namespace base {          \
  __VA_ARGS__               \
  }                         \
  namespace avx2 {          \
  __VA_ARGS__               \
  }                         \
  namespace avx512 {        \
  __VA_ARGS__               \
  }
#define FACULA_BY_ISA(f)                                                     \
  ::facula::KernelRef {                                                      \
    {&::facula::typed::kernel<&base::f>, &::facula::typed::kernel<&avx2::f>, \
     &::facula::typed::kernel<&avx512::f>},                                  \
    {}                                                                       \
  }
#elif defined(FACULA_HAS_AVX2)
#define FACULA_PER_ISA(...) \
  namespace base {          \
  __VA_ARGS__               \
  }                         \
  namespace avx2 {          \
  __VA_ARGS__               \
  }
#define FACULA_BY_ISA(f)                                                         \
  ::facula::KernelRef {                                                          \
    {&::facula::typed::kernel<&base::f>, &::facula::typed::kernel<&avx2::f>}, {} \
  }
#else
#define FACULA_PER_ISA(...) \
  namespace base {          \
  __VA_ARGS__               \
  }
#define FACULA_BY_ISA(f)                     \
  ::facula::KernelRef {                      \
    {&::facula::typed::kernel<&base::f>}, {} \
  }
#endif

// The function of that name of the instruction set in force (dispatch/record.h), as a pointer.
#if defined(FACULA_HAS_AVX512) && defined(FACULA_HAS_AVX2)
#define FACULA_OF_ISA(f) \
  ::facula::cpu::of_isa(&::facula::cpu::base::f, &::facula::cpu::avx2::f, &::facula::cpu::avx512::f)
#elif defined(FACULA_HAS_AVX2)
#define FACULA_OF_ISA(f) ::facula::cpu::of_isa(&::facula::cpu::base::f, &::facula::cpu::avx2::f)
#else
#define FACULA_OF_ISA(f) ::facula::cpu::of_isa(&::facula::cpu::base::f)
#endif

namespace facula::cpu {
// The entry for the instruction set in force; the last one where sets above it are not built.
template <class F, class... More>
F* of_isa(F* base, More*... more) {
  F* const all[] = {base, more...};
  const auto wanted = static_cast<size_t>(::facula::current_isa());
  return all[wanted < sizeof...(more) ? wanted : sizeof...(more)];
}
}  // namespace facula::cpu
