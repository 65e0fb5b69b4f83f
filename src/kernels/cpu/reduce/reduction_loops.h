// The tables of reductions: instantiated once per instruction set, by generated files.
#pragma once
#include <new>

#include "kernels/cpu/reduce/engine.h"
#include "kernels/cpu/reduce/reduction.h"

namespace facula::cpu::FACULA_ISA {

template <class F, class T>
using ReductionOp = decltype(F::template op<T>(ReductionParams()));

template <class F, class T>
void run_engine(const ReducePlan& plan, const ReductionParams& params, const void* in, void* out,
                const void* centers) {
  using Op = ReductionOp<F, T>;
  const Op op = F::template op<T>(params);
  reduce(op, plan, static_cast<const typename Op::In*>(in), static_cast<typename Op::Out*>(out),
         static_cast<const typename Op::Acc*>(centers));
}

// One row in pieces, as run_task() walks it.
template <class F, class T>
struct Pieces {
  using Op = ReductionOp<F, T>;
  using In = typename Op::In;
  using Acc = typename Op::Acc;
  static constexpr int lanes = reduce_lanes<Acc>;
  static_assert(PieceReduction::multiple % (lanes * block_rows) == 0);
  static constexpr int64_t most_levels = 40;

  const Op op;
  alignas(64) Acc room[(2 + most_levels) * lanes];
  Cascade<Op> sums;

  explicit Pieces(const ReductionParams& params)
      : op(F::template op<T>(params)), sums(op, room, lanes) {}
  static void begin(void* at, const ReductionParams& params) { new (at) Pieces(params); }
  static void add(void* at, const void* x, int64_t n) {
    Pieces& p = *static_cast<Pieces*>(at);
    const auto* from = static_cast<const In*>(x);
    const int64_t full = n / lanes;
    p.sums.template add_dense<lanes>(from, full, 0, Acc());
    const Acc none[lanes] = {};
    if (n % lanes) p.sums.add_rest(from + full * lanes, static_cast<int>(n % lanes), 1, none);
  }
  static void end(void* at, void* result) {
    *static_cast<Acc*>(result) = static_cast<Pieces*>(at)->sums.finish_lanes();
  }
  static void finish(const ReducePlan& plan, const ReductionParams& params, void* results,
                     void* out) {
    const Op op = F::template op<T>(params);
    auto* acc = static_cast<Acc*>(results);
    merge_parts(op, plan, acc);
    finish_task(op, plan, 0, acc, nullptr, static_cast<typename Op::Out*>(out));
  }
  static constexpr PieceReduction functions{sizeof(Pieces), sizeof(Acc), begin, add, end, finish};
};

template <class F, class T>
constexpr void put(ReductionTable& t, Type<T>) {
  constexpr int slot = loop_slot(dtype_of<T>);
  static_assert(slot < loop_slots - 1, "the last slot is that of dtypes without loops");
  t.by_dtype[slot] = &run_engine<F, T>;
  if constexpr (std::is_floating_point_v<typename ReductionOp<F, T>::Acc> &&
                !ReductionOp<F, T>::centered)
    t.pieces[slot] = &Pieces<F, T>::functions;
  if constexpr (requires { F::template result<T>; })
    t.result[slot] = F::template result<T>;
  else
    t.result[slot] = dtype_of<typename ReductionOp<F, T>::Out>;
}
template <class F, class... T>
constexpr void put(ReductionTable& t, Type<TypeSet<T...>>) {
  (put<F>(t, Type<T>()), ...);
}

template <class F>
constexpr ReductionTable make_reduction_table() {
  ReductionTable t;
  t.kernel = F::kernel;
  if constexpr (requires { F::number; }) t.number = F::number;
  if constexpr (requires { F::converts; }) t.converts = F::converts;
  if constexpr (requires { F::tests_elements; }) t.tests_elements = F::tests_elements;
  if constexpr (requires { F::no_dims_for_empty; }) t.no_dims_for_empty = F::no_dims_for_empty;
  for (DType& d : t.result) d = DType::Undefined;
  put<F>(t, Type<typename F::Elements>());
  return t;
}

template <class F>
constinit const ReductionTable ReductionLoops<F>::table = make_reduction_table<F>();

}  // namespace facula::cpu::FACULA_ISA
