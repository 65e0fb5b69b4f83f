// The inner loops of elementwise kernels; instantiated once per instruction set.
#pragma once
#include <type_traits>
#include <utility>

#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/scalar/pack.h"

namespace facula::cpu::FACULA_ISA {

// What a loop stores for a result R computed from elements stored as S.
template <class S, class R>
struct Stored {
  using type = R;
};
template <class S>
  requires(!std::is_same_v<accumulate_t<S>, S>)
struct Stored<S, float> {
  using type = S;
};
template <class S>
  requires(!std::is_same_v<accumulate_t<S>, S>)
struct Stored<S, Complex<float>> {
  using type = Complex<S>;
};
template <class S, class R>
using stored_t = typename Stored<S, R>::type;

template <class S>
inline accumulate_t<S> load(const char* p) {
  return static_cast<accumulate_t<S>>(read_stored(reinterpret_cast<const S*>(p)));
}

template <class F, class T, size_t... I, class... X>
inline auto apply(const T* params, std::index_sequence<I...>, X... x) {
  return F::template call<T>(x..., params[I]...);
}

template <class F>
constexpr int param_count() {
  if constexpr (requires { F::params; })
    return F::params;
  else
    return 0;
}
template <class F>
using Params = std::make_index_sequence<static_cast<size_t>(param_count<F>())>;

template <class T, size_t N>
struct ParamCopy {  // by value, so that the loop keeps them in registers
  T v[N ? N : 1];
  explicit ParamCopy(const void* from) {
    for (size_t i = 0; i < N; ++i) v[i] = static_cast<const T*>(from)[i];
  }
};

// Functions that work on half types as they are stored give that as F::stored.
//
// A function whose slow path is rare has `fast_path`, the common path without the branch, and
// `in_fast_range`, which says for which arguments it holds: a loop tests a block of elements and,
// if all are in range, runs the fast path, which vectorises. Both paths give the same bits.
template <class F, class T, class... More>
constexpr bool has_fast_path = false;
template <class F, class T, class... More>
  requires std::is_floating_point_v<T> && requires(T x, More... more) {
    F::in_fast_range(x, more...);
    requires std::is_same_v<decltype(F::fast_path(x, more...)), T>;  // not a float for doubles
  }
constexpr bool has_fast_path<F, T, More...> = true;

inline constexpr int64_t block = 256;  // elements that a loop tests, or widens, at a time

// o[i] = F(x(i)...), block by block.
template <class F, class T, class O, class... X>
inline void fast_path_blocks(O* o, int64_t n, const X&... x) {
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = n - begin < block ? n : begin + block;
    int outside = 0;
    for (int64_t i = begin; i < end; ++i) outside |= !F::in_fast_range(x(i)...);
    if (outside == 0) {
      for (int64_t i = begin; i < end; ++i) o[i] = static_cast<O>(F::fast_path(x(i)...));
      continue;
    }
    for (int64_t i = begin; i < end; ++i) o[i] = static_cast<O>(F::template call<T>(x(i)...));
  }
}

// o[i] = f(a[i]), by packs of U registers as far as whole ones go. A lambda f is always_inline:
// gcc's flatten leaves calls below one that it inlines itself, and their packs go through memory.
template <int U, class T, class F>
[[gnu::always_inline]] inline void by_packs(T* o, const T* a, int64_t n, F f) {
  int64_t i = 0;
#if defined(FACULA_PACKS)
  if constexpr (U > 0) {
    using P = scalar::math::Pack<T, U>;
    for (; i + P::lanes <= n; i += P::lanes) f(P::load(a + i)).store(o + i);
  }
#endif
  for (; i < n; ++i) o[i] = f(a[i]);
}

// Elements of a row, or one number in their place, by position and by packs.
template <class T>
struct Row {
  const T* x;
  T operator[](int64_t i) const { return x[i]; }
  template <class P>
  [[gnu::always_inline]] P pack(int64_t i) const {
    return P::load(x + i);
  }
};
template <class T>
struct Same {
  T x;
  T operator[](int64_t) const { return x; }
  template <class P>
  [[gnu::always_inline]] P pack(int64_t) const {
    return P(x);
  }
};
// o[i] = f(a[i], b[i]) likewise.
template <int U, class T, class A, class B, class F>
[[gnu::always_inline]] inline void by_pairs_of_packs(T* o, A a, B b, int64_t n, F f) {
  int64_t i = 0;
#if defined(FACULA_PACKS)
  using P = scalar::math::Pack<T, U>;
  for (; i + P::lanes <= n; i += P::lanes)
    f(a.template pack<P>(i), b.template pack<P>(i)).store(o + i);
#endif
  for (; i < n; ++i) o[i] = f(a[i], b[i]);
}

template <class F, class S>
struct Loop {
  using T = accumulate_t<S>;
  static constexpr size_t P = static_cast<size_t>(param_count<F>());

  [[gnu::flatten]] static void unary(char* const* data, const int64_t* steps, int64_t n,
                                     const void* params) {
    const ParamCopy<T, P> p(params);
    using R = decltype(apply<F, T>(p.v, Params<F>(), T()));
    using O = stored_t<S, R>;
    char* out = data[0];
    const char* a = data[1];
    if (steps[0] == sizeof(O) && steps[1] == sizeof(S)) {
      contiguous(reinterpret_cast<O*>(out), reinterpret_cast<const S*>(a), n, p);
      return;
    }
    if constexpr (scalar::packs_of<F, T>() > 0 && std::is_same_v<O, T> && std::is_same_v<S, T>)
      return strided_packs(out, a, steps, n, p);
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<O*>(out + i * steps[0]) =
          static_cast<O>(apply<F, T>(p.v, Params<F>(), load<S>(a + i * steps[1])));
  }

  // By way of rows that packs can load: look-ups in tables would be gathers otherwise.
  [[gnu::always_inline]] static void strided_packs(char* out, const char* a, const int64_t* steps,
                                                   int64_t n, const ParamCopy<T, P>& p) {
    alignas(64) T row[block];
    for (int64_t begin = 0; begin < n; begin += block) {
      const int64_t count = n - begin < block ? n - begin : block;
      for (int64_t i = 0; i < count; ++i) row[i] = load<S>(a + (begin + i) * steps[1]);
      char* to = out + begin * steps[0];
      if (steps[0] == sizeof(T)) {
        same_width(reinterpret_cast<T*>(to), row, count, p);
        continue;
      }
      same_width(row, row, count, p);
      for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(to + i * steps[0]) = row[i];
    }
  }

  template <class O>
  [[gnu::always_inline]] static void contiguous(O* o, const S* a, int64_t n,
                                                const ParamCopy<T, P>& p) {
    if constexpr (!std::is_same_v<S, T> && requires(S s) { F::stored(s); }) {
      for (int64_t i = 0; i < n; ++i) o[i] = F::stored(a[i]);
    } else if constexpr (!std::is_same_v<S, T> && std::is_same_v<O, S>) {
      // Loops of one width vectorise better than loops that convert as they go.
      alignas(64) T wide[block];
      for (int64_t begin = 0; begin < n; begin += block) {
        const int64_t count = n - begin < block ? n - begin : block;
        for (int64_t i = 0; i < count; ++i) wide[i] = static_cast<T>(a[begin + i]);
        same_width(wide, wide, count, p);
        for (int64_t i = 0; i < count; ++i) o[begin + i] = static_cast<O>(wide[i]);
      }
    } else {
      same_width(o, a, n, p);
    }
  }

  template <class O, class I>
  [[gnu::always_inline]] static void same_width(O* o, const I* a, int64_t n,
                                                const ParamCopy<T, P>& p) {
    constexpr int registers = scalar::packs_of<F, T>();
    if constexpr (registers > 0 && std::is_same_v<O, T> && std::is_same_v<I, T>) {
      in_packs<registers>(o, a, n, p, Params<F>());
    } else if constexpr (P == 0 && has_fast_path<F, T>) {
      fast_path_blocks<F, T>(o, n, [a](int64_t i) { return static_cast<T>(read_stored(a + i)); });
    } else {
      for (int64_t i = 0; i < n; ++i)
        o[i] = static_cast<O>(apply<F, T>(p.v, Params<F>(), static_cast<T>(read_stored(a + i))));
    }
  }

  template <int registers, size_t... I>
  [[gnu::always_inline]] static void in_packs(T* o, const T* a, int64_t n, const ParamCopy<T, P>& p,
                                              std::index_sequence<I...>) {
    if constexpr (!has_fast_path<F, T>) {
      by_packs<registers>(
          o, a, n, [&p](auto x) __attribute__((always_inline)) { return F::call(x, p.v[I]...); });
    } else {
      for (int64_t begin = 0; begin < n; begin += block) {
        const int64_t end = n - begin < block ? n : begin + block;
        int outside = 0;
        for (int64_t i = begin; i < end; ++i) outside |= !F::in_fast_range(a[i]);
        if (outside != 0)
          by_packs<0>(o + begin, a + begin, end - begin, [](T x) { return F::call(x); });
        else
          by_packs<registers>(o + begin, a + begin, end - begin,
                              [](auto x)
                                  __attribute__((always_inline)) { return F::fast_path(x); });
      }
    }
  }

  [[gnu::flatten]] static void binary(char* const* data, const int64_t* steps, int64_t n,
                                      const void* params) {
    const ParamCopy<T, P> p(params);
    using R = decltype(apply<F, T>(p.v, Params<F>(), T(), T()));
    using O = stored_t<S, R>;
    O* o = reinterpret_cast<O*>(data[0]);
    const char *a = data[1], *b = data[2];
    constexpr int64_t in = sizeof(S);
    if constexpr (has_fast_path<F, T, T>) {
      const auto left = [a](int64_t i) { return load<S>(a + i * in); };
      if (steps[0] == sizeof(O) && steps[1] == in && steps[2] == in)
        return fast_path_blocks<F, T>(o, n, left, [b](int64_t i) { return load<S>(b + i * in); });
      if (steps[0] == sizeof(O) && steps[1] == in && steps[2] == 0)
        return fast_path_blocks<F, T>(o, n, left, [y = load<S>(b)](int64_t) { return y; });
    }
    constexpr int registers = scalar::packs_of<F, T>();
    if constexpr (registers > 0 && std::is_same_v<S, T> && std::is_same_v<O, T>) {
      const auto run = [o, n](auto left, auto right) {
        by_pairs_of_packs<registers>(o, left, right, n,
                                     [](auto x, auto y)
                                         __attribute__((always_inline)) { return F::call(x, y); });
      };
      const auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
      if (steps[0] == in && steps[1] == in && steps[2] == in) return run(Row{x}, Row{y});
      if (steps[0] == in && steps[1] == in && steps[2] == 0) return run(Row{x}, Same{*y});
      if (steps[0] == in && steps[1] == 0 && steps[2] == in) return run(Same{*x}, Row{y});
    }
    if (steps[0] == sizeof(O) && steps[1] == in && steps[2] == in) {
      for (int64_t i = 0; i < n; ++i)
        o[i] =
            static_cast<O>(apply<F, T>(p.v, Params<F>(), load<S>(a + i * in), load<S>(b + i * in)));
      return;
    }
    if (steps[0] == sizeof(O) && steps[1] == in && steps[2] == 0) {
      const T y = load<S>(b);
      for (int64_t i = 0; i < n; ++i)
        o[i] = static_cast<O>(apply<F, T>(p.v, Params<F>(), load<S>(a + i * in), y));
      return;
    }
    if (steps[0] == sizeof(O) && steps[1] == 0 && steps[2] == in) {
      const T x = load<S>(a);
      for (int64_t i = 0; i < n; ++i)
        o[i] = static_cast<O>(apply<F, T>(p.v, Params<F>(), x, load<S>(b + i * in)));
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<O*>(data[0] + i * steps[0]) = static_cast<O>(
          apply<F, T>(p.v, Params<F>(), load<S>(a + i * steps[1]), load<S>(b + i * steps[2])));
  }

  // By a number that has not been rounded to S.
  [[gnu::flatten]] static void by_number(char* const* data, const int64_t* steps, int64_t n,
                                         const void*) {
    const T b = *reinterpret_cast<const T*>(data[2]);
    const char* a = data[1];
    S* o = reinterpret_cast<S*>(data[0]);
    constexpr int64_t in = sizeof(S);
    if (steps[0] == in && steps[1] == in) {
      for (int64_t i = 0; i < n; ++i)
        o[i] = static_cast<S>(F::template call<T>(load<S>(a + i * in), b));
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<S*>(data[0] + i * steps[0]) =
          static_cast<S>(F::template call<T>(load<S>(a + i * steps[1]), b));
  }

  [[gnu::flatten]] static void ternary(char* const* data, const int64_t* steps, int64_t n,
                                       const void* params) {
    const ParamCopy<T, P> p(params);
    using R = decltype(apply<F, T>(p.v, Params<F>(), T(), T(), T()));
    using O = stored_t<S, R>;
    O* o = reinterpret_cast<O*>(data[0]);
    const char *a = data[1], *b = data[2], *c = data[3];
    constexpr int64_t in = sizeof(S);
    if (steps[0] == sizeof(O) && steps[1] == in && steps[2] == in && steps[3] == in) {
      for (int64_t i = 0; i < n; ++i)
        o[i] = static_cast<O>(apply<F, T>(p.v, Params<F>(), load<S>(a + i * in),
                                          load<S>(b + i * in), load<S>(c + i * in)));
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<O*>(data[0] + i * steps[0]) =
          static_cast<O>(apply<F, T>(p.v, Params<F>(), load<S>(a + i * steps[1]),
                                     load<S>(b + i * steps[2]), load<S>(c + i * steps[3])));
  }
};

// What computes elements that are stored as S.
template <class F, class S>
struct FunctorFor {
  using type = F;
};
template <class F, class S>
  requires(!std::is_same_v<accumulate_t<S>, S> && requires { typename F::Narrow; })
struct FunctorFor<F, S> {
  using type = typename F::Narrow;
};

// The name of F, in the words of the compiler: what follows "F = ".
template <class F>
constexpr const char* function_text() {
  return __PRETTY_FUNCTION__;
}

// Fills a table with Get<S>() for every stored type of the functor's kinds.
template <class F, template <class> class Pick>
constexpr LoopTable make_table(int inputs) {
  LoopTable t;
  t.function = function_text<F>();
  t.inputs = inputs;
  t.params = param_count<F>();
  t.cost = scalar::cost_of<F>();
  if constexpr (requires { F::narrow_params; }) t.narrow_params = F::narrow_params;
  if constexpr (requires { F::exact_number; }) {
    t.half_by_number = &Loop<F, Half>::by_number;
    t.bfloat16_by_number = &Loop<F, BFloat16>::by_number;
  }
  auto put = [&]<class... S>(Type<S>...) {
    ((t.by_dtype[loop_slot(dtype_of<S>)] =
          Pick<Loop<typename FunctorFor<F, S>::type, S>>::function),
     ...);
  };
  if constexpr ((F::dtypes & scalar::boolean) != 0) put(Type<bool>());
  if constexpr ((F::dtypes & scalar::integral) != 0)
    put(Type<uint8_t>(), Type<int8_t>(), Type<int16_t>(), Type<int32_t>(), Type<int64_t>());
  if constexpr ((F::dtypes & scalar::wide_unsigned) != 0)
    put(Type<uint16_t>(), Type<uint32_t>(), Type<uint64_t>());
  if constexpr ((F::dtypes & scalar::floating) != 0)
    put(Type<float>(), Type<double>(), Type<Half>(), Type<BFloat16>());
  if constexpr ((F::dtypes & scalar::wide_floating) != 0) put(Type<float>(), Type<double>());
  if constexpr ((F::dtypes & scalar::complex) != 0) put(Type<complex64>(), Type<complex128>());
  return t;
}

template <class L>
struct PickUnary {
  static constexpr LoopFn function = &L::unary;
};
template <class L>
struct PickBinary {
  static constexpr LoopFn function = &L::binary;
};
template <class L>
struct PickTernary {
  static constexpr LoopFn function = &L::ternary;
};

template <class F>
constinit const LoopTable UnaryLoops<F>::table = make_table<F, PickUnary>(1);
template <class F>
constinit const LoopTable BinaryLoops<F>::table = make_table<F, PickBinary>(2);
template <class F>
constinit const LoopTable TernaryLoops<F>::table = make_table<F, PickTernary>(3);

}  // namespace facula::cpu::FACULA_ISA
