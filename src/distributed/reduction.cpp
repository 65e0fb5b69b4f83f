#include "distributed/reduction.h"

#include <algorithm>
#include <type_traits>

#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

constexpr int64_t block = 1024;  // elements that are added up at a time: they stay in the L1 cache

template <class T>
struct Compute {
  using type = T;
};
template <>
struct Compute<Half> {
  using type = float;
};
template <>
struct Compute<BFloat16> {
  using type = float;
};
template <>
struct Compute<Float8E4M3> {
  using type = float;
};
template <>
struct Compute<Float8E5M2> {
  using type = float;
};
template <>
struct Compute<Complex<Half>> {
  using type = complex64;
};

template <class T, class A>
A load(T v) {
  if constexpr (std::is_same_v<T, Complex<Half>>)
    return A(static_cast<float>(v.real()), static_cast<float>(v.imag()));
  else
    return static_cast<A>(v);
}

template <class T, class A>
T store(A v) {
  if constexpr (std::is_same_v<T, Complex<Half>>)
    return T(Half(v.real()), Half(v.imag()));
  else
    return static_cast<T>(v);
}

template <class T, class Combine>
void fold(std::span<const void* const> inputs, T* output, int64_t count, Combine combine,
          double scale_before, double divide_after) {
  using A = typename Compute<T>::type;
  A sum[block];
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t n = std::min(block, count - begin);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const T* in = static_cast<const T*>(inputs[k]) + begin;
      if (scale_before != 1) {
        for (int64_t i = 0; i < n; ++i) {
          const A v = load<T, A>(in[i]) * static_cast<A>(scale_before);
          sum[i] = k == 0 ? v : combine(sum[i], v);
        }
      } else if (k == 0) {
        for (int64_t i = 0; i < n; ++i) sum[i] = load<T, A>(in[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) sum[i] = combine(sum[i], load<T, A>(in[i]));
      }
    }
    if (divide_after != 1)
      for (int64_t i = 0; i < n; ++i) sum[i] = sum[i] / static_cast<A>(divide_after);
    for (int64_t i = 0; i < n; ++i) output[begin + i] = store<T, A>(sum[i]);
  }
}

template <class T>
void reduce_numbers(Reduction reduction, double factor, std::span<const void* const> inputs,
                    T* output, int64_t count) {
  using A = typename Compute<T>::type;
  const auto run = [&](auto combine, double before = 1, double after = 1) {
    fold<T>(inputs, output, count, combine, before, after);
  };
  switch (reduction) {
    case Reduction::Sum:
      return run([](A a, A b) { return static_cast<A>(a + b); });
    case Reduction::Avg:
      return run([](A a, A b) { return static_cast<A>(a + b); }, 1,
                 static_cast<double>(inputs.size()));
    case Reduction::PremulSum:
      return run([](A a, A b) { return static_cast<A>(a + b); }, factor);
    case Reduction::Product:
      return run([](A a, A b) { return static_cast<A>(a * b); });
    default:
      break;
  }
  if constexpr (std::is_arithmetic_v<A>) {
    if (reduction == Reduction::Min) return run([](A a, A b) { return b < a ? b : a; });
    if (reduction == Reduction::Max) return run([](A a, A b) { return a < b ? b : a; });
  }
  if constexpr (std::is_integral_v<A>) {
    if (reduction == Reduction::BitAnd) return run([](A a, A b) { return static_cast<A>(a & b); });
    if (reduction == Reduction::BitOr) return run([](A a, A b) { return static_cast<A>(a | b); });
    if (reduction == Reduction::BitXor) return run([](A a, A b) { return static_cast<A>(a ^ b); });
  }
}

// Sums of bools are "or", products "and".
void reduce_bools(Reduction reduction, std::span<const void* const> inputs, uint8_t* output,
                  int64_t count) {
  const auto run = [&](auto combine) { fold<uint8_t>(inputs, output, count, combine, 1, 1); };
  using B = uint8_t;
  switch (reduction) {
    case Reduction::Product:
    case Reduction::Min:
    case Reduction::BitAnd:
      return run([](B a, B b) { return static_cast<B>(a & b); });
    case Reduction::BitXor:
      return run([](B a, B b) { return static_cast<B>(a ^ b); });
    default:
      return run([](B a, B b) { return static_cast<B>(a | b); });
  }
}

}  // namespace

void check_reduction(const char* call, Reduction reduction, DType dtype) {
  const bool bits = reduction == Reduction::BitAnd || reduction == Reduction::BitOr ||
                    reduction == Reduction::BitXor;
  check(!bits || is_integral(dtype, true), call, "(): expected integers for a reduction by ",
        name_of(reduction), "; got ", facula::name(dtype));
  const bool ordered = reduction == Reduction::Min || reduction == Reduction::Max;
  check_value(!ordered || !is_complex(dtype), call, "(): expected real numbers for a reduction by ",
              name_of(reduction), "; got ", facula::name(dtype));
  const bool scaled = reduction == Reduction::PremulSum;
  check(!scaled || is_floating(dtype), call, "(): expected floats for a reduction by ",
        name_of(reduction), "; got ", facula::name(dtype));
  check(static_cast<int>(reduction) <= static_cast<int>(Reduction::PremulSum), call,
        "(): expected a ReduceOp; got number ", static_cast<int>(reduction));
}

void reduce(Reduction reduction, DType dtype, double factor, std::span<const void* const> inputs,
            void* output, int64_t count) {
  if (dtype == DType::Bool)
    return reduce_bools(reduction, inputs, static_cast<uint8_t*>(output), count);
  const bool known = visit_types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t,
                                 uint64_t, Half, BFloat16, float, double, Complex<Half>, complex64,
                                 complex128, Float8E4M3, Float8E5M2>(dtype, [&]<class T>(Type<T>) {
    reduce_numbers(reduction, factor, inputs, static_cast<T*>(output), count);
  });
  check_type(known, "reduce(): expected a dtype of numbers; got number ", static_cast<int>(dtype));
}

}  // namespace facula::distributed
