// Look-ups in small tables, by one instruction where packs are: a function of shorter polynomials.
#pragma once
#include <cstddef>

#include "kernels/scalar/pack.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {

// The entry that the lowest bits of an index name; whatever the others are, none lies outside.
template <class L, class B>
FACULA_SCALAR L entry_of(const L (&table)[16], B index) {
  return table[index & B(15)];
}
template <class B>
FACULA_SCALAR float entry_of(const float (&table)[32], B index) {
  return table[index & B(31)];
}
// An index within [low, high]. Of integers, since a bound of floats is a branch to GCC, which then
// looks up the entry of each bound beforehand and makes no vectors.
template <class B>
FACULA_SCALAR B index_between(B i, std::type_identity_t<B> low, std::type_identity_t<B> high) {
  const B above = i < low ? low : i;
  return above > high ? high : above;
}
#if defined(FACULA_PACKS)
template <class B, int U>
FACULA_SCALAR Pack<B, U> index_between(Pack<B, U> index, std::type_identity_t<B> low,
                                       std::type_identity_t<B> high) {
  return Pack<B, U>::each([&](int i) {
    const auto v = reinterpret_cast<__m512i>(index.v[i]);
    if constexpr (sizeof(B) == 4)
      return reinterpret_cast<Register<B>>(
          _mm512_min_epu32(_mm512_max_epu32(v, _mm512_set1_epi32(static_cast<int>(low))),
                           _mm512_set1_epi32(static_cast<int>(high))));
    else
      return reinterpret_cast<Register<B>>(
          _mm512_min_epu64(_mm512_max_epu64(v, _mm512_set1_epi64(static_cast<long long>(low))),
                           _mm512_set1_epi64(static_cast<long long>(high))));
  });
}
template <class L, class B, int U>
FACULA_SCALAR Pack<L, U> entry_of(const L (&table)[16], Pack<B, U> index) {
  return Pack<L, U>::each([&](int i) -> Register<L> {
    const auto v = reinterpret_cast<__m512i>(index.v[i]);
    if constexpr (std::is_same_v<L, float>)
      return _mm512_permutexvar_ps(v, _mm512_load_ps(table));
    else
      return _mm512_permutex2var_pd(_mm512_load_pd(table), v, _mm512_load_pd(table + 8));
  });
}
template <class B, int U>
FACULA_SCALAR Pack<float, U> entry_of(const float (&table)[32], Pack<B, U> index) {
  return Pack<float, U>::each([&](int i) -> Register<float> {
    const auto v = reinterpret_cast<__m512i>(index.v[i]);
    return _mm512_permutex2var_ps(_mm512_load_ps(table), v, _mm512_load_ps(table + 16));
  });
}
#endif

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
