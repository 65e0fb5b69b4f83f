// The order of a few items, built once per instruction set.
#pragma once
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/sort/keys.h"

namespace facula::cpu {

inline constexpr int64_t most_ranked = 64;

FACULA_PER_ISA(
    // Orders n <= most_ranked items, whose indices rise, by key and then by index. Returns where
    // they end up: `items` or `other`, room of the same size.
    template <class K> Item<K>* sort_few(Item<K>* items, Item<K>* other, int64_t n);)

}  // namespace facula::cpu
