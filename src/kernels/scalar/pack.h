// Packs of numbers: some registers of AVX-512 that scalar functions take in place of one number.
//
// A long function is a chain of dependent steps. A pack holds several chains that go side by side,
// so that a processor whose scheduler is short has work while it waits, and has the instructions
// that a compiler does not find: bounds by one instruction, powers of two without bits. Every
// operation gives each lane the bits that numeric.h gives a number.
#pragma once
#include <utility>

#include "kernels/scalar/numeric.h"

// Not for clang, which makes loops of compiled functions of one number at a time.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && !defined(__clang__)
#define FACULA_PACKS
#endif

namespace facula::scalar::math {
inline namespace FACULA_ISA {

// The type of one number of T, which is a number or a pack.
template <class T>
struct LaneOf {
  using type = T;
};
template <class T>
using lane_t = typename LaneOf<T>::type;
template <class T>
inline constexpr bool of_floats = std::is_same_v<lane_t<T>, float>;
template <class T>
inline constexpr bool is_pack = !std::is_same_v<lane_t<T>, T>;

// Selects in the words that packs have, too.
template <class T>
FACULA_SCALAR T pick(bool condition, T yes, std::type_identity_t<T> no) {
  return condition ? yes : no;
}
// f of floats in double, rounded once.
template <class F>
FACULA_SCALAR float by_doubles(float x, F f) {
  return static_cast<float>(f(static_cast<double>(x)));
}
template <class F>
FACULA_SCALAR float by_doubles(float x, float y, F f) {
  return static_cast<float>(f(static_cast<double>(x), static_cast<double>(y)));
}
// num / den to 2^-46 of it, den within the range of floats: by a float's quotient and Newton's
// step, since the quotient of doubles takes thrice as long.
FACULA_SCALAR double quotient(double num, double den) {
  const double rough = 1.0f / static_cast<float>(den);
  return num * detail::multiply_add(rough, detail::multiply_add(-den, rough, 1.0), rough);
}
// Whether bits of a mask are set.
template <class B>
FACULA_SCALAR bool has_bits(B bits, std::type_identity_t<B> mask) {
  return (bits & mask) != 0;
}
// Whether a condition holds for all numbers of a pack. For one number it is not worth a branch,
// which would keep a loop from becoming vectors.
template <class T>
FACULA_SCALAR bool all_of_pack(bool) {
  return false;
}
// x within [low, high]; NaN stays.
template <class T>
FACULA_SCALAR T between(T x, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  const T above = x < low ? low : x;
  return above > high ? high : above;
}
template <class T>
FACULA_SCALAR T at_most(T x, std::type_identity_t<T> high) {
  return x > high ? high : x;
}
template <class T>
FACULA_SCALAR T at_least(T x, std::type_identity_t<T> low) {
  return x < low ? low : x;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math

#if defined(FACULA_PACKS)
#include <immintrin.h>

namespace facula::scalar::math {
inline namespace FACULA_ISA {

template <class T>
using Register [[gnu::vector_size(64)]] = T;

// Of comparisons: a bit for each number.
template <int U>
struct PackMask {
  using M = __mmask16;
  M m[U];
  FACULA_SCALAR friend PackMask operator&(PackMask a, PackMask b) {
    for (int i = 0; i < U; ++i) a.m[i] = _kand_mask16(a.m[i], b.m[i]);
    return a;
  }
  FACULA_SCALAR friend PackMask operator|(PackMask a, PackMask b) {
    for (int i = 0; i < U; ++i) a.m[i] = _kor_mask16(a.m[i], b.m[i]);
    return a;
  }
};

template <class T, int U>
struct Pack {
  using Vector = Register<T>;
  static constexpr int lanes = U * 64 / static_cast<int>(sizeof(T));
  Vector v[U];

  Pack() = default;
  FACULA_SCALAR Pack(T x) {
    for (int i = 0; i < U; ++i) v[i] = x - Vector{};  // which keeps the sign of a zero
  }
  FACULA_SCALAR static Pack load(const T* p) {
    Pack r;
    for (int i = 0; i < U; ++i) __builtin_memcpy(&r.v[i], p + i * (lanes / U), sizeof(Vector));
    return r;
  }
  FACULA_SCALAR void store(T* p) const {
    for (int i = 0; i < U; ++i) __builtin_memcpy(p + i * (lanes / U), &v[i], sizeof(Vector));
  }

  template <class F>
  FACULA_SCALAR static Pack each(F f) {
    Pack r;
    for (int i = 0; i < U; ++i) r.v[i] = f(i);
    return r;
  }
  template <class F>
  FACULA_SCALAR static PackMask<U> test(F f) {
    PackMask<U> r;
    for (int i = 0; i < U; ++i) r.m[i] = f(i);
    return r;
  }
  FACULA_SCALAR friend Pack operator+(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator-(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator*(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator/(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator-(Pack a) {
    return each([&](int i) { return -a.v[i]; });
  }
  FACULA_SCALAR friend Pack operator&(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] & b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator|(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] | b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator^(Pack a, Pack b) {
    return each([&](int i) { return a.v[i] ^ b.v[i]; });
  }
  FACULA_SCALAR friend Pack operator<<(Pack a, int bits) {
    return each([&](int i) { return a.v[i] << bits; });
  }
  FACULA_SCALAR friend Pack operator>>(Pack a, int bits) {
    return each([&](int i) { return a.v[i] >> bits; });
  }

  template <int predicate>
  FACULA_SCALAR static PackMask<U> compare(Pack a, Pack b) {
    return test([&](int i) {
      if constexpr (std::is_same_v<T, float>)
        return _mm512_cmp_ps_mask(a.v[i], b.v[i], predicate);
      else
        return static_cast<__mmask16>(_mm512_cmp_pd_mask(a.v[i], b.v[i], predicate));
    });
  }
  FACULA_SCALAR friend PackMask<U> operator<(Pack a, Pack b) { return compare<_CMP_LT_OQ>(a, b); }
  FACULA_SCALAR friend PackMask<U> operator<=(Pack a, Pack b) { return compare<_CMP_LE_OQ>(a, b); }
  FACULA_SCALAR friend PackMask<U> operator>(Pack a, Pack b) { return compare<_CMP_GT_OQ>(a, b); }
  FACULA_SCALAR friend PackMask<U> operator>=(Pack a, Pack b) { return compare<_CMP_GE_OQ>(a, b); }
  FACULA_SCALAR friend PackMask<U> operator==(Pack a, Pack b) { return compare<_CMP_EQ_OQ>(a, b); }
  FACULA_SCALAR friend PackMask<U> operator!=(Pack a, Pack b) { return compare<_CMP_NEQ_UQ>(a, b); }
};
template <class T, int U>
struct LaneOf<Pack<T, U>> {
  using type = T;
};

template <class T, int U>
FACULA_SCALAR Pack<T, U> pick(PackMask<U> condition, Pack<T, U> yes,
                              std::type_identity_t<Pack<T, U>> no) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_mask_mov_ps(no.v[i], condition.m[i], yes.v[i]);
    else
      return _mm512_mask_mov_pd(no.v[i], static_cast<__mmask8>(condition.m[i]), yes.v[i]);
  });
}
template <class P, int U>
FACULA_SCALAR bool all_of_pack(PackMask<U> condition) {
  constexpr unsigned full = sizeof(lane_t<P>) == 4 ? 0xffff : 0xff;
  unsigned all = full;
  for (int i = 0; i < U; ++i) all &= condition.m[i];
  return all == full;
}
template <class B, int U>
FACULA_SCALAR PackMask<U> has_bits(Pack<B, U> bits, std::type_identity_t<B> mask) {
  return Pack<B, U>::test([&](int i) {
    const auto v = reinterpret_cast<__m512i>(bits.v[i]);
    if constexpr (sizeof(B) == 4)
      return _mm512_test_epi32_mask(v, _mm512_set1_epi32(static_cast<int>(mask)));
    else
      return static_cast<__mmask16>(
          _mm512_test_epi64_mask(v, _mm512_set1_epi64(static_cast<long long>(mask))));
  });
}
// The instructions give their second operand where either is NaN.
template <class T, int U>
FACULA_SCALAR Pack<T, U> at_most(Pack<T, U> x, std::type_identity_t<Pack<T, U>> high) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_min_ps(high.v[i], x.v[i]);
    else
      return _mm512_min_pd(high.v[i], x.v[i]);
  });
}
template <class T, int U>
FACULA_SCALAR Pack<T, U> at_least(Pack<T, U> x, std::type_identity_t<Pack<T, U>> low) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_max_ps(low.v[i], x.v[i]);
    else
      return _mm512_max_pd(low.v[i], x.v[i]);
  });
}
template <class T, int U>
FACULA_SCALAR Pack<T, U> between(Pack<T, U> x, std::type_identity_t<Pack<T, U>> low,
                                 std::type_identity_t<Pack<T, U>> high) {
  return at_most(at_least(x, low), high);
}
template <class T, int U>
FACULA_SCALAR Pack<T, U> sqrt(Pack<T, U> x) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_sqrt_ps(x.v[i]);
    else
      return _mm512_sqrt_pd(x.v[i]);
  });
}

template <class T, int U>
FACULA_SCALAR Pack<T, U> round(Pack<T, U> x) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_roundscale_ps(x.v[i], nearest);
    else
      return _mm512_roundscale_pd(x.v[i], nearest);
  });
}

namespace detail {
template <class T, int U>
struct Ieee<Pack<T, U>> : Ieee<T> {
  using Bits = Pack<typename Ieee<T>::Bits, U>;
};
}  // namespace detail

// Found by their arguments from numeric.h, which stands before them.
template <class T, int U>
FACULA_SCALAR detail::Bits<Pack<T, U>> to_bits(Pack<T, U> x) {
  using B = detail::Bits<Pack<T, U>>;
  return B::each([&](int i) { return reinterpret_cast<typename B::Vector>(x.v[i]); });
}
template <class P, class B, int U>
FACULA_SCALAR P from_bits(Pack<B, U> x) {
  return P::each([&](int i) { return reinterpret_cast<typename P::Vector>(x.v[i]); });
}
template <class T, int U>
FACULA_SCALAR Pack<T, U> multiply_add(Pack<T, U> a, std::type_identity_t<Pack<T, U>> b,
                                      std::type_identity_t<Pack<T, U>> c) {
  return Pack<T, U>::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_fmadd_ps(a.v[i], b.v[i], c.v[i]);
    else
      return _mm512_fmadd_pd(a.v[i], b.v[i], c.v[i]);
  });
}
template <class T, int U>
FACULA_SCALAR Pack<T, U> fma(Pack<T, U> a, std::type_identity_t<Pack<T, U>> b,
                             std::type_identity_t<Pack<T, U>> c) {
  return multiply_add(a, b, c);
}
namespace detail {
using math::fma;
using math::from_bits;
using math::multiply_add;
using math::to_bits;
}  // namespace detail

// sqrt(x) of positive finite numbers, of which a step leaves nothing subnormal, by Newton's steps
// from the processor's estimate.
template <class T, int U>
FACULA_SCALAR Pack<T, U> newton_sqrt(Pack<T, U> x) {
  using P = Pack<T, U>;
  const P estimate = P::each([&](int i) -> Register<T> {
    if constexpr (std::is_same_v<T, float>)
      return _mm512_rsqrt14_ps(x.v[i]);
    else
      return _mm512_rsqrt14_pd(x.v[i]);
  });
  P root = x * estimate, half_inverse = estimate * P(T(0.5));
  constexpr int steps = std::is_same_v<T, float> ? 1 : 2;  // each doubles the estimate's 14 bits
  for (int i = 0; i < steps; ++i) {
    const P rest = multiply_add(-root, half_inverse, T(0.5));
    root = multiply_add(root, rest, root);
    half_inverse = multiply_add(half_inverse, rest, half_inverse);
  }
  return multiply_add(multiply_add(-root, root, x), half_inverse, root);
}
// sqrt(x) as the instruction rounds it. Intel's takes 12 to 18 cycles a register, steps half of
// that; the last one rounds as it should wherever the root is not all but halfway between two
// numbers, and there it was tried: for all floats, and for the doubles next to such squares
// (test_roots.py). Other makers' estimates may have other bits, and their instruction's time is not
// measured.
template <class T, int U>
FACULA_SCALAR Pack<T, U> sqrt_by_steps(Pack<T, U> x) {
  constexpr T least = std::is_same_v<T, float> ? T(0x1p-76) : T(0x1p-916);
  const auto fit = (x >= least) & (x <= std::numeric_limits<T>::max());
  const bool all_fit = all_of_pack<Pack<T, U>>(fit) && __builtin_cpu_is("intel");
  return all_fit ? newton_sqrt(x) : sqrt(x);
}

template <int U>
FACULA_SCALAR Pack<double, 2 * U> to_doubles(Pack<float, U> x) {
  Pack<double, 2 * U> wide;
  for (int i = 0; i < U; ++i) {
    wide.v[2 * i] = _mm512_cvtps_pd(_mm512_castps512_ps256(x.v[i]));
    wide.v[2 * i + 1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v[i], 1));
  }
  return wide;
}
template <int U>
FACULA_SCALAR Pack<float, U / 2> to_floats(Pack<double, U> y) {
  return Pack<float, U / 2>::each([&](int i) -> Register<float> {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(y.v[2 * i])),
                              _mm512_cvtpd_ps(y.v[2 * i + 1]), 1);
  });
}
template <int U, class F>
FACULA_SCALAR Pack<float, U> by_doubles(Pack<float, U> x, F f) {
  return to_floats(f(to_doubles(x)));
}
template <int U, class F>
FACULA_SCALAR Pack<float, U> by_doubles(Pack<float, U> x, Pack<float, U> y, F f) {
  return to_floats(f(to_doubles(x), to_doubles(y)));
}
template <int U>
FACULA_SCALAR Pack<double, U> quotient(Pack<double, U> num,
                                       std::type_identity_t<Pack<double, U>> den) {
  const auto rough = Pack<double, U>::each([&](int i) -> Register<double> {
    return _mm512_cvtps_pd(_mm256_set1_ps(1.0f) / _mm512_cvtpd_ps(den.v[i]));
  });
  return num * multiply_add(rough, multiply_add(-den, rough, 1.0), rough);
}

template <class T, int U>
FACULA_SCALAR Pack<T, U> abs(Pack<T, U> x) {
  using B = detail::Bits<T>;
  return detail::from_bits<Pack<T, U>>(detail::to_bits(x) & Pack<B, U>(static_cast<B>(~B{0} >> 1)));
}
template <class T, int U>
FACULA_SCALAR Pack<T, U> copysign(Pack<T, U> magnitude, Pack<T, U> sign) {
  return Pack<T, U>::each([&](int i) {
    constexpr int by_mask = 0xac;  // where the first has a bit the third's, else the second's
    return reinterpret_cast<Register<T>>(_mm512_ternarylogic_epi64(
        reinterpret_cast<__m512i>(Pack<T, 1>(-T(0)).v[0]),
        reinterpret_cast<__m512i>(magnitude.v[i]), reinterpret_cast<__m512i>(sign.v[i]), by_mask));
  });
}
template <class T, int U>
FACULA_SCALAR PackMask<U> is_nan(Pack<T, U> x) {
  return x != x;
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
#endif
