// Which instruction set a kernel file is being built for. The build defines FACULA_ISA (base, avx2,
// avx512) and compiles each file of kernels/cpu once per set, into a namespace of that name.
#pragma once
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
