// Reductions as records name them: cpu::reduction<scalar::sum>.
//
// A functor F says what is computed:
//   using Elements = TypeSet<FloatingTypes, bool>;  the input's types, and sets of them
//   static constexpr const char* kernel = "sum_cpu";  PyTorch's name of the kernel, for errors
//   template <class T> static auto op(const ReductionParams&);  what the engine runs (engine.h)
// and, where it is so,
//   static constexpr bool converts = true;  inputs of other dtypes are converted to the result's
//   static constexpr const char* number = "ord";  the argument of the call that op needs
//   static constexpr bool no_dims_for_empty = true;  an empty list of dimensions reduces nothing
//   template <class T> static constexpr DType result;  the result's dtype, if it is not that of Out
//
// The engine's loops for each instruction set are instantiated by a generated file, one for each
// type that op returns: functors that return the same type share them.
#pragma once
#include <optional>

#include "dispatch/call.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loop/lines.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/reduce/plan.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/scalar/config.h"

namespace facula::cpu {

struct ReductionParams {
  int64_t count = 1;             // elements that go into one result
  std::optional<double> number;  // the call's argument that the functor names
  bool root = false;             // of a variance
};

// Contiguous results `out` of `in`; `centers` has a number for each, where the operation has them.
using ReductionFn = void (*)(const ReducePlan& plan, const ReductionParams& params, const void* in,
                             void* out, const void* centers);

// One long row in pieces. Each part of its plan has accumulators of `room` bytes and gives a result
// of `result` bytes; pieces hold a multiple of `multiple` elements, but for a part's last one.
struct PieceReduction {
  static constexpr int64_t multiple = 1024;
  size_t room = 0, result = 0;
  void (*begin)(void* room, const ReductionParams& params) = nullptr;
  void (*add)(void* room, const void* x, int64_t n) = nullptr;
  void (*end)(void* room, void* result) = nullptr;
  // Merges the results of all parts and stores what they give.
  void (*finish)(const ReducePlan& plan, const ReductionParams& params, void* results,
                 void* out) = nullptr;
};

struct ReductionTable {
  const char* kernel = nullptr;
  const char* number = nullptr;
  bool converts = false, no_dims_for_empty = false;
  bool tests_elements = false;  // and so takes what has no arithmetic, in comparison_of() that
  ReductionFn by_dtype[loop_slots] = {};          // of the input
  const PieceReduction* pieces[loop_slots] = {};  // of the common dtypes
  DType result[loop_slots] = {};                  // of each of these
};
// Where the largest or smallest elements of contiguous lines are (arg_reduction_loops.h).
struct ArgReductionTable {
  using Fn = void (*)(const void* in, const Lines& lines, void* values, int64_t* indices);
  const char* kernel = nullptr;
  Fn by_dtype[loop_slots] = {};
};

FACULA_PER_ISA(
    template <class F> struct ReductionLoops { static const ReductionTable table; };
    template <class... F>
    inline constexpr const ReductionTable* reduction_tables[] = {&ReductionLoops<F>::table...};
    template <class F> struct ArgReductionLoops { static const ArgReductionTable table; };)

// What kernels have for a context: as many tables as their record names functors.
using ReductionTables = const ReductionTable* const*;

// Each result by the table of its position, over the dimensions of the argument "dim", or all.
void run_reduction(void* tables, OpCall& c);
// One result, whose input may be of any dtype; params but for `number`.
void reduce_tensor(const ReductionTable& table, const Tensor& self, const IntVec& dims,
                   ReductionParams params, const Tensor& out);
// The loop of `table` around a number for each result, which that of `center_table` gives before,
// in the type that the first accumulates; `centers` is room for doubles.
void reduce_around(const ReductionTable& center_table, const ReductionTable& table,
                   const Tensor& self, const IntVec& dims, ReductionParams params,
                   const Tensor& out, void* centers);
// A variance: the first table gives the means as doubles, the second sums the squares of the
// deviations from them; a second result gets the means.
void run_variance(ReductionTables tables, OpCall& c, bool root);
// results: values and indices, or indices alone
void run_arg_reduction(void* table, OpCall& c);

// `Describes`: whether the kernel can describe itself (described_reduction.h).
template <KernelFn Run, bool Describes, class... F>
consteval KernelRef make_reduction() {
  KernelRef k{{Run}, {base::reduction_tables<F...>}, Describes};
#ifdef FACULA_HAS_AVX2
  k.context[1] = avx2::reduction_tables<F...>;
#endif
#ifdef FACULA_HAS_AVX512
  k.context[2] = avx512::reduction_tables<F...>;
#endif
  return k;
}
template <class F>
consteval KernelRef make_arg_reduction() {
  KernelRef k{{&run_arg_reduction}, {&base::ArgReductionLoops<F>::table}};
#ifdef FACULA_HAS_AVX2
  k.context[1] = &avx2::ArgReductionLoops<F>::table;
#endif
#ifdef FACULA_HAS_AVX512
  k.context[2] = &avx512::ArgReductionLoops<F>::table;
#endif
  return k;
}

// One functor for each result.
template <class... F>
inline constexpr KernelRef reduction = make_reduction<&run_reduction, true, F...>();

// Of several functors each call takes one: the rule gives its position.
using ReductionChoice = int (*)(const OpCall& c);
template <ReductionChoice Choice>
void run_chosen_reduction(void* tables, OpCall& c) {
  const auto* all = static_cast<const ReductionTable* const*>(tables);
  run_reduction(const_cast<const ReductionTable**>(all + Choice(c)), c);
}
template <ReductionChoice Choice, class... F>
inline constexpr KernelRef chosen_reduction =
    make_reduction<&run_chosen_reduction<Choice>, true, F...>();

template <bool Root>
void run_variance_kernel(void* tables, OpCall& c) {
  run_variance(static_cast<ReductionTables>(tables), c, Root);
}
template <bool Root, class Mean, class Squares>
inline constexpr KernelRef variance_reduction =
    make_reduction<&run_variance_kernel<Root>, false, Mean, Squares>();

// The position of an extreme element: F states Elements, kernel and `most` (else the least).
template <class F>
inline constexpr KernelRef arg_reduction = make_arg_reduction<F>();

// The table of the instruction set in force.
const ReductionTable& table_in_force(const KernelRef& reduction);

}  // namespace facula::cpu

namespace facula::scalar {

// What most operations of the engine are: elements T, accumulators A, results R.
template <class T, class A, class R>
struct Accumulator {
  using In = cpu::stored<T>;
  using Acc = A;
  using Out = R;
  static constexpr bool centered = false;
  static constexpr bool costly = false;
};

}  // namespace facula::scalar
