// The types that arithmetic is done and sums are held in, for each type of element.
#pragma once
#include <concepts>

#include "core/complex.h"
#include "core/half.h"

namespace facula::cpu {

// Half types are computed in float, every other type in itself.
template <class T>
using accumulate_t =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// The type in which the tile kernels of matrix products and convolutions sum products of T: short
// unsigned integers in 32 bits, complex numbers part by part.
template <class T>
struct TileSum {
  using type =
      std::conditional_t<std::unsigned_integral<T> && sizeof(T) < 4, uint32_t, accumulate_t<T>>;
};
template <class R>
struct TileSum<Complex<R>> {
  using type = R;
};
template <class T>
using tile_sum_t = typename TileSum<T>::type;

}  // namespace facula::cpu
