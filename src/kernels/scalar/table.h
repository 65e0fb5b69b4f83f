// Look-ups in small tables, by one instruction where packs are: a function of shorter polynomials.
#pragma once
#include <cstddef>

#include "kernels/scalar/pack.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {

// The entry that the lowest four bits of an index name; whatever the others are, none lies outside.
template <class L, class B>
FACULA_SCALAR L entry_of(const L (&table)[16], B index) {
  return table[index & B(15)];
}
#if defined(FACULA_PACKS)
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
#endif

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
