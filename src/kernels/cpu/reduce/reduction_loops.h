// The tables of reductions: instantiated once per instruction set, by generated files.
#pragma once
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

template <class F, class T>
constexpr void put(ReductionTable& t, Type<T>) {
  constexpr int slot = static_cast<int>(dtype_of<T>);
  t.by_dtype[slot] = &run_engine<F, T>;
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
  if constexpr (requires { F::no_dims_for_empty; }) t.no_dims_for_empty = F::no_dims_for_empty;
  for (DType& d : t.result) d = DType::Undefined;
  put<F>(t, Type<typename F::Elements>());
  return t;
}

template <class F>
constinit const ReductionTable ReductionLoops<F>::table = make_reduction_table<F>();

}  // namespace facula::cpu::FACULA_ISA
