#include "kernels/cpu/sort/few.h"

#include <algorithm>

#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Each item is compared with all others: more comparisons than sorting takes, but many at a time
// and without a branch.
template <class K>
void sort_by_ranks(const Item<K>* items, Item<K>* to, int64_t n) {
  using S = std::make_signed_t<K>;  // vectors compare signed numbers
  constexpr int64_t lanes = max_of<int64_t>(16, 32 / static_cast<int64_t>(sizeof(K)));
  constexpr K top = static_cast<K>(K(1) << (8 * sizeof(K) - 1));
  S keys[most_ranked] = {}, ranks[most_ranked];
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<S>(items[i].key ^ top);
  for (int64_t first = 0; first < n; first += lanes) {
    S key[lanes], place[lanes], rank[lanes] = {};
    for (int64_t l = 0; l < lanes; ++l) key[l] = keys[first + l];
    for (int64_t l = 0; l < lanes; ++l) place[l] = static_cast<S>(first + l);
    for (int64_t j = 0; j < n; ++j) {
      const S other = keys[j], at = static_cast<S>(j);
      for (int64_t l = 0; l < lanes; ++l) {
        const bool before = (other < key[l]) | ((other == key[l]) & (at < place[l]));
        rank[l] = static_cast<S>(rank[l] + before);
      }
    }
    for (int64_t l = 0; l < lanes; ++l) ranks[first + l] = rank[l];
  }
  for (int64_t i = 0; i < n; ++i) to[ranks[i]] = items[i];
}

}  // namespace

template <class K>
Item<K>* sort_few(Item<K>* items, Item<K>* other, int64_t n) {
  constexpr int64_t least = 6;
  if (vector_bytes >= 32 && n >= least) {
    sort_by_ranks(items, other, n);
    return other;
  }
  std::sort(items, items + n);
  return items;
}

template Item<uint8_t>* sort_few(Item<uint8_t>*, Item<uint8_t>*, int64_t);
template Item<uint16_t>* sort_few(Item<uint16_t>*, Item<uint16_t>*, int64_t);
template Item<uint32_t>* sort_few(Item<uint32_t>*, Item<uint32_t>*, int64_t);
template Item<uint64_t>* sort_few(Item<uint64_t>*, Item<uint64_t>*, int64_t);

}  // namespace facula::cpu::FACULA_ISA
