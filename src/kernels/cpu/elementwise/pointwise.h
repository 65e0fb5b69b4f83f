// Elementwise kernels as records name them: cpu::unary<scalar::log1p>, cpu::binary<scalar::add>.
//
// A functor F is a scalar function: `template <class T> static R call(T a, ..., T parameter...)`,
// with `dtypes` (kinds.h) and, where the operator has number arguments, `params`, their count:
// they stand behind the tensors in the schema and are passed as T. `cost` (kinds.h) is for
// functions dearer than arithmetic. Loops for each instruction set are instantiated by a generated
// file; half types are computed in float, by `F::Narrow` where there is one.
//
// A number among the operands of half types is rounded to them first, as PyTorch does, but for
// functions that state `exact_number`: they take a second operand that is one as a float. Params
// are floats, but for functions that state `narrow_params`.
#pragma once
#include "dispatch/call.h"
#include "dispatch/typed.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/scalar/kinds.h"

namespace facula::cpu {

// n elements: data[0] the result, then the inputs; steps in bytes; params of the compute type.
using LoopFn = void (*)(char* const* data, const int64_t* steps, int64_t n, const void* params);

struct LoopTable {
  const char* function = nullptr;  // a text that ends in the name of the scalar function
  int inputs = 0, params = 0, cost = 0;
  bool narrow_params = false;
  LoopFn by_dtype[loop_slots] = {};  // by compute dtype
  // Of half types by one number, a float behind data[2]; none: it is of the compute dtype.
  LoopFn half_by_number = nullptr, bfloat16_by_number = nullptr;
};

FACULA_PER_ISA(
    template <class F> struct UnaryLoops { static const LoopTable table; };
    template <class F> struct BinaryLoops { static const LoopTable table; };
    template <class F> struct TernaryLoops { static const LoopTable table; };)

// Elements that one task handles.
int64_t pointwise_grain(const LoopTable& table, DType compute);

// Runs a table's loop over a call: results[0] and the first inputs + params arguments.
void run_pointwise(void* table, OpCall& c);
// The same with numbers that a rule of the record gives in place of the call's number arguments.
using ParamRule = void (*)(const OpCall& c, DType compute, Scalar* params);
// `tensors` are the positions of the tensor arguments; none: the first ones.
void run_with_params(const LoopTable& table, OpCall& c, ParamRule rule,
                     std::span<const int> tensors);
// The same for explicit operands, all of dtype `compute` but the result: used by other kernels.
void run_loop(const LoopTable& table, DType compute, const Tensor& result,
              std::span<const Tensor> inputs, const void* params, const char* op);
// RuntimeError where a number lies outside the range of a dtype; negative ones wrap into unsigned.
void check_fits(const Scalar& s, DType d);
// An integer dtype's nearest number; of other dtypes the number itself.
Scalar saturated(const Scalar& s, DType d);
// A pointwise call as its loop and what that reads. While a LoopOfCall is asked for on this thread
// (DescribeLoop), kernels that describe_loop() fill it in and do not run; `loop` stays null where
// there is no such loop, as for operands that must be converted first.
struct LoopOfCall {
  static constexpr int most_inputs = 3, most_params = 4;
  struct Input {
    int arg = -1;  // the position of a tensor of the compute dtype; -1: the number in `cell`
    alignas(16) char cell[16];
  };
  LoopFn loop = nullptr;
  // What names the loop for a compiler: LoopTable::function, or a name of its own; null: nothing.
  const char* function = nullptr;
  DType compute = DType::Undefined;
  bool by_number = false;
  int inputs = 0;
  Input in[most_inputs];
  alignas(16) char params[most_params * 16];
  int64_t grain = 0;  // elements that one task handles
};
class DescribeLoop {
 public:
  explicit DescribeLoop(LoopOfCall& into);
  ~DescribeLoop();
  DescribeLoop(const DescribeLoop&) = delete;
};

// A parameter or number in the form that loops read: float for half types.
void store_number(const Scalar& s, DType compute, void* room);

#if defined(FACULA_HAS_AVX512) && defined(FACULA_HAS_AVX2)
#define FACULA_LOOPS(Kind, F)                                                                  \
  ::facula::KernelRef {                                                                        \
    {&run_pointwise}, {&base::Kind<F>::table, &avx2::Kind<F>::table, &avx512::Kind<F>::table}, \
        true                                                                                   \
  }
#elif defined(FACULA_HAS_AVX2)
#define FACULA_LOOPS(Kind, F) \
  ::facula::KernelRef { {&run_pointwise}, {&base::Kind<F>::table, &avx2::Kind<F>::table}, true }
#else
#define FACULA_LOOPS(Kind, F) \
  ::facula::KernelRef { {&run_pointwise}, {&base::Kind<F>::table}, true }
#endif

template <class F>
inline constexpr KernelRef unary = FACULA_LOOPS(UnaryLoops, F);
template <class F>
inline constexpr KernelRef binary = FACULA_LOOPS(BinaryLoops, F);
template <class F>
inline constexpr KernelRef ternary = FACULA_LOOPS(TernaryLoops, F);

template <ParamRule Rule, int... Tensors>
void run_ruled(void* table, OpCall& c) {
  static constexpr int at[] = {Tensors..., -1};
  run_with_params(*static_cast<const LoopTable*>(table), c, Rule, {at, sizeof...(Tensors)});
}
// Loops whose parameters come from a rule: with_params<clamp_bounds>(unary<scalar::clamp>).
template <ParamRule Rule, int... Tensors>
constexpr KernelRef with_params(KernelRef loops) {
  loops.function[0] = &run_ruled<Rule, Tensors...>;
  return loops;
}

// Several loops of which each call takes one: the rule gives its position (and may raise).
using ChoiceRule = int (*)(const OpCall& c);
template <int I, const KernelRef&... Loops>
inline constexpr const void* tables_of[] = {Loops.context[I]...};
template <ChoiceRule Choice>
void run_chosen(void* tables, OpCall& c) {
  run_pointwise(const_cast<void*>(static_cast<const void* const*>(tables)[Choice(c)]), c);
}
template <ChoiceRule Choice, const KernelRef& First, const KernelRef&... Rest>
consteval KernelRef make_choice() {
  KernelRef k{{&run_chosen<Choice>}, {tables_of<0, First, Rest...>}, true};
  // By what is built, not by what First has: sanitizers allow no address in a constant condition.
#ifdef FACULA_HAS_AVX2
  k.context[1] = tables_of<1, First, Rest...>;
#endif
#ifdef FACULA_HAS_AVX512
  k.context[2] = tables_of<2, First, Rest...>;
#endif
  return k;
}
template <ChoiceRule Choice, const KernelRef&... Loops>
inline constexpr KernelRef chosen = make_choice<Choice, Loops...>();

}  // namespace facula::cpu
