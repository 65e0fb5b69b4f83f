// Wraps typed C++ functions as kernels and meta rules, by templates that unpack the Values of a
// call.
//
//   void fill(const Tensor& self, int64_t dim, const Tensor& result);   kernel with a meta rule
//   Tensor view(const Tensor& self, IntSpan size);                      sets its result
//   std::tuple<Tensor, Tensor> f(...);  std::vector<Tensor> f(...);
//
// Parameters are the schema's arguments. A function that returns void has further `const Tensor&`
// parameters: the results that the call path allocated, undefined if the meta rule left them out.
#pragma once
#include <optional>
#include <tuple>

#include "dispatch/meta.h"

namespace facula {

// A 0-dim tensor for a Python number given as a Tensor argument; it is weak in type promotion.
Tensor number_tensor(const Value& v, Device device = {});

namespace typed {

template <class T>
struct Read;

template <>
struct Read<const Tensor&> {
  Tensor made;
  const Tensor& operator()(const Value& v) {
    // The union of a None is a null pointer, which reads as an undefined tensor.
    if (v.is_tensor() || v.is_none()) return v.as_tensor();
    return made = number_tensor(v);
  }
};
template <>
struct Read<const Value&> {
  const Value& operator()(const Value& v) { return v; }
};
template <>
struct Read<int64_t> {
  int64_t operator()(const Value& v) {
    return v.tag == Tag::Int ? v.i : v.as_scalar().to<int64_t>();
  }
};
template <>
struct Read<double> {
  double operator()(const Value& v) {
    return v.tag == Tag::Float ? v.d : v.as_scalar().to<double>();
  }
};
template <>
struct Read<bool> {
  bool operator()(const Value& v) { return v.b; }
};
template <>
struct Read<Scalar> {
  Scalar operator()(const Value& v) { return v.as_scalar(); }
};
template <>
struct Read<const Scalar&> {
  Scalar kept;
  const Scalar& operator()(const Value& v) { return kept = v.as_scalar(); }
};
template <>
struct Read<DType> {
  DType operator()(const Value& v) { return v.dtype; }
};
template <>
struct Read<Layout> {
  Layout operator()(const Value& v) { return v.layout; }
};
template <>
struct Read<MemoryFormat> {
  MemoryFormat operator()(const Value& v) { return v.memory_format; }
};
template <>
struct Read<Device> {
  Device operator()(const Value& v) { return v.device; }
};
template <>
struct Read<Generator*> {
  Generator* operator()(const Value& v) { return v.is_none() ? nullptr : v.generator; }
};
template <>
struct Read<Storage*> {
  Storage* operator()(const Value& v) { return v.is_none() ? nullptr : v.storage; }
};
template <>
struct Read<std::string_view> {
  std::string_view operator()(const Value& v) { return v.as_str(); }
};
template <>
struct Read<IntSpan> {
  IntSpan operator()(const Value& v) { return v.is_none() ? IntSpan() : v.as_ints(); }
};
template <>
struct Read<std::span<const Tensor>> {
  std::span<const Tensor> operator()(const Value& v) { return v.as_tensors(); }
};
template <>
struct Read<std::span<const Value>> {
  std::span<const Value> operator()(const Value& v) { return {v.values, v.length}; }
};
template <>
struct Read<std::span<const double>> {
  std::span<const double> operator()(const Value& v) { return {v.doubles, v.length}; }
};
template <>
struct Read<std::span<const bool>> {
  std::span<const bool> operator()(const Value& v) { return {v.bools, v.length}; }
};
template <class T>
struct Read<std::optional<T>> {
  Read<T> inner;
  std::optional<T> operator()(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return inner(v);
  }
};
template <class T>
struct Read<const std::optional<T>&> {
  Read<T> inner;
  std::optional<T> kept;
  const std::optional<T>& operator()(const Value& v) {
    if (!v.is_none()) kept = inner(v);
    return kept;
  }
};

template <class R>
void store(OpCall& c, R&& r) {
  using T = std::decay_t<R>;
  if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply(
        [&](auto&&... x) {
          int i = 0;
          (set_result(c.results[i++], std::move(x)), ...);
        },
        std::move(r));
  } else {
    set_result(c.results[0], std::forward<R>(r));
  }
}

template <class R, class... Args, size_t... I>
void invoke(R (*f)(Args...), OpCall& c, std::index_sequence<I...>) {
  std::tuple<Read<Args>...> read;
  // A void function takes the results after the arguments of the base form.
  const int n = c.info->base_args;
  auto value = [&](size_t i) -> const Value& {
    return static_cast<int>(i) < n ? c.args[i] : c.results[i - n];
  };
  if constexpr (std::is_void_v<R>)
    f(std::get<I>(read)(value(I))...);
  else
    store(c, f(std::get<I>(read)(value(I))...));
}
template <class R, class... Args>
void invoke(R (*f)(Args...), OpCall& c) {
  invoke(f, c, std::index_sequence_for<Args...>());
}

template <class... Args, size_t... I>
void invoke_meta(void (*f)(Meta&, Args...), Meta& m, std::index_sequence<I...>) {
  std::tuple<Read<Args>...> read;
  f(m, std::get<I>(read)(m.arg(static_cast<int>(I)))...);
}
template <class... Args>
void invoke_meta(void (*f)(Meta&, Args...), Meta& m) {
  invoke_meta(f, m, std::index_sequence_for<Args...>());
}

template <auto F>
void kernel(void*, OpCall& c) {
  invoke(F, c);
}
template <auto F>
void meta(Meta& m) {
  invoke_meta(F, m);
}

}  // namespace typed

// A typed function as a kernel (the same for every instruction set) or as a meta rule.
template <auto F>
inline constexpr KernelRef typed_kernel = {{&typed::kernel<F>}, {}};
template <auto F>
inline constexpr MetaRule typed_meta = &typed::meta<F>;
// Kernels built once per instruction set: by_isa<&base::f, &avx2::f, &avx512::f>.
template <auto Base, auto Avx2, auto Avx512>
inline constexpr KernelRef by_isa = {
    {&typed::kernel<Base>, &typed::kernel<Avx2>, &typed::kernel<Avx512>}, {}};

}  // namespace facula
