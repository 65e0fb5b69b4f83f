// What every scalar function is declared with, and the namespace that keeps builds apart.
//
// The scalar functions are compiled once per instruction set. They live in an inline namespace of
// that name, so that a copy emitted for AVX-512 can never be linked into baseline code, and they
// are always inlined, since g++ vectorises a loop only when nothing is called in it.
#pragma once
#include "kernels/cpu/simd/isa.h"

#if defined(__CUDACC__)
#define FACULA_SCALAR __host__ __device__ __forceinline__
#else
#define FACULA_SCALAR inline __attribute__((always_inline))
#endif

// For slow paths: kept out of line, still one copy per instruction set.
#if defined(__CUDACC__)
#define FACULA_SCALAR_SLOW __host__ __device__ inline
#else
#define FACULA_SCALAR_SLOW inline __attribute__((noinline))
#endif
