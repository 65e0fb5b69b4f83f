// Which kinds of dtype a scalar function is defined for; each functor states `dtypes`.
#pragma once
#include <type_traits>

namespace facula::scalar {

enum Kinds : unsigned {
  boolean = 1,
  integral = 2,        // u8, i8, i16, i32, i64
  floating = 4,        // f32, f64 and, through float, f16 and bf16
  complex = 8,         // complex64, complex128
  wide_unsigned = 16,  // u16, u32, u64
  wide_floating = 32   // f32 and f64 alone
};
inline constexpr unsigned real_numbers = integral | floating;
inline constexpr unsigned numbers = integral | floating | complex;
inline constexpr unsigned all_kinds = boolean | integral | floating | complex;

// Picoseconds that one float costs a core where this is more than the memory it takes: from it
// follows from which size on several threads share a loop. A functor states it as `cost`.
template <class F>
constexpr int cost_of() {
  if constexpr (requires { F::cost; })
    return F::cost;
  else
    return 0;
}

// Registers in a pack (pack.h) that the function takes in place of a number, 0 for none. A functor
// that takes packs states them as `packs`.
struct Packs {
  int of_floats, of_doubles;
};
template <class F, class T>
constexpr int packs_of() {
  if constexpr (requires { F::packs; } && std::is_floating_point_v<T>)
    return sizeof(T) == sizeof(float) ? F::packs.of_floats : F::packs.of_doubles;
  else
    return 0;
}

}  // namespace facula::scalar
