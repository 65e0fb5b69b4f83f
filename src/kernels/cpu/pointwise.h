// Elementwise kernels as records name them: cpu::unary<scalar::log1p>, cpu::binary<scalar::add>.
//
// A functor F is a scalar function: `template <class T> static R call(T a, ..., T parameter...)`,
// with `dtypes` (kinds.h) and, where the operator has number arguments, `params`, their count:
// they stand behind the tensors in the schema and are passed as T. Loops for each instruction set
// are instantiated by a generated file; half types are computed in float.
#pragma once
#include "dispatch/call.h"
#include "dispatch/typed.h"
#include "kernels/cpu/isa.h"
#include "kernels/scalar/kinds.h"

namespace facula::cpu {

// n elements: data[0] the result, then the inputs; steps in bytes; params of the compute type.
using LoopFn = void (*)(char* const* data, const int64_t* steps, int64_t n, const void* params);

struct LoopTable {
  int inputs = 0, params = 0;
  LoopFn by_dtype[dtype_slots] = {};  // by compute dtype
};

FACULA_PER_ISA(
  template <class F> struct UnaryLoops { static const LoopTable table; };
  template <class F> struct BinaryLoops { static const LoopTable table; };
  template <class F> struct TernaryLoops { static const LoopTable table; };
)

// Runs a table's loop over a call: results[0] and the first inputs + params arguments.
void run_pointwise(void* table, OpCall& c);
// The same for explicit operands, all of dtype `compute` but the result: used by other kernels.
void run_loop(const LoopTable& table, DType compute, const Tensor& result,
              std::span<const Tensor> inputs, const void* params, const char* op);
// A parameter or number in the form that loops read: float for half types.
void store_number(const Scalar& s, DType compute, void* room);

#if defined(FACULA_HAS_AVX512) && defined(FACULA_HAS_AVX2)
#define FACULA_LOOPS(Kind, F)                                                             \
  ::facula::KernelRef {                                                                   \
    {&run_pointwise}, {&base::Kind<F>::table, &avx2::Kind<F>::table, &avx512::Kind<F>::table} \
  }
#elif defined(FACULA_HAS_AVX2)
#define FACULA_LOOPS(Kind, F) \
  ::facula::KernelRef { {&run_pointwise}, {&base::Kind<F>::table, &avx2::Kind<F>::table} }
#else
#define FACULA_LOOPS(Kind, F) ::facula::KernelRef { {&run_pointwise}, {&base::Kind<F>::table} }
#endif

template <class F>
inline constexpr KernelRef unary = FACULA_LOOPS(UnaryLoops, F);
template <class F>
inline constexpr KernelRef binary = FACULA_LOOPS(BinaryLoops, F);
template <class F>
inline constexpr KernelRef ternary = FACULA_LOOPS(TernaryLoops, F);

}  // namespace facula::cpu
