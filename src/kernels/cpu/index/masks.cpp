#include "kernels/cpu/index/masks.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "core/dtype.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Elements one after the other, without a branch that nobody could predict.
template <class T>
void compress_rest(const uint8_t* mask, int64_t n, const T* from, T* to, int64_t found) {
  for (int64_t i = 0, k = 0; i < n && k < found; ++i) {
    to[k] = from[i];
    k += mask[i] != 0;
  }
}
template <class T>
void spread_rest(const uint8_t* mask, int64_t n, const T* from, T* to, int64_t found) {
  constexpr int64_t run = 256;
  int32_t places[run];
  for (int64_t i = 0; i < n && found > 0; i += run) {
    const int64_t set = places_of_set(mask + i, min_of(run, n - i), places);
    const int64_t taken = min_of(set, found);
    for (int64_t k = 0; k < taken; ++k) to[i + places[k]] = from[k];
    from += taken;
    found -= taken;
  }
}

#if defined(__AVX512F__)
// A vector's worth of elements of a size, and a mask for them.
template <class T>
struct Group {
  static constexpr int64_t count = sizeof(T) == 8 ? 8 : 16;

  static __mmask16 set(const uint8_t* mask) {
    const __m128i bytes = sizeof(T) == 8 ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask))
                                         : _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask));
    return _mm_test_epi8_mask(bytes, bytes);
  }
  // Short elements become 32 bits on their way.
  static __m512i load(const T* from) {
    if constexpr (sizeof(T) == 1)
      return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    else if constexpr (sizeof(T) == 2)
      return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    else
      return _mm512_loadu_si512(from);
  }
  static void store(T* to, __m512i v) {
    if constexpr (sizeof(T) == 1)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(v));
    else if constexpr (sizeof(T) == 2)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(v));
    else
      _mm512_storeu_si512(to, v);
  }
  static void store_set(T* to, __mmask16 set, __m512i v) {
    if constexpr (sizeof(T) == 1)
      _mm_mask_storeu_epi8(to, set, _mm512_cvtepi32_epi8(v));
    else if constexpr (sizeof(T) == 2)
      _mm256_mask_storeu_epi16(to, set, _mm512_cvtepi32_epi16(v));
    else if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_epi32(to, set, v);
    else
      _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(set), v);
  }
  static __m512i compress(__mmask16 set, __m512i v) {
    if constexpr (sizeof(T) == 8)
      return _mm512_maskz_compress_epi64(static_cast<__mmask8>(set), v);
    else
      return _mm512_maskz_compress_epi32(set, v);
  }
  static __m512i expand(__mmask16 set, __m512i v) {
    if constexpr (sizeof(T) == 8)
      return _mm512_maskz_expand_epi64(static_cast<__mmask8>(set), v);
    else
      return _mm512_maskz_expand_epi32(set, v);
  }
};

template <class T>
void compress(const uint8_t* mask, int64_t n, const void* source, void* target, int64_t found) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  int64_t i = 0, k = 0;
  if constexpr (sizeof(T) <= 8) {
    using G = Group<T>;
    // Whole vectors are written as long as what is found fills them.
    for (; i + G::count <= n && k + G::count <= found; i += G::count) {
      const __mmask16 set = G::set(mask + i);
      G::store(to + k, G::compress(set, G::load(from + i)));
      k += __builtin_popcount(set);
    }
  }
  compress_rest(mask + i, n - i, from + i, to + k, found - k);
}

template <class T>
void spread(const uint8_t* mask, int64_t n, const void* source, void* target, int64_t found) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  int64_t i = 0, k = 0;
  if constexpr (sizeof(T) <= 8) {
    using G = Group<T>;
    for (; i + G::count <= n && k + G::count <= found; i += G::count) {
      const __mmask16 set = G::set(mask + i);
      G::store_set(to + i, set, G::expand(set, G::load(from + k)));
      k += __builtin_popcount(set);
    }
  }
  spread_rest(mask + i, n - i, from + k, to + i, found - k);
}
#else
template <class T>
void compress(const uint8_t* mask, int64_t n, const void* from, void* to, int64_t found) {
  compress_rest(mask, n, static_cast<const T*>(from), static_cast<T*>(to), found);
}
template <class T>
void spread(const uint8_t* mask, int64_t n, const void* from, void* to, int64_t found) {
  spread_rest(mask, n, static_cast<const T*>(from), static_cast<T*>(to), found);
}
#endif

}  // namespace

int64_t count_set(const uint8_t* mask, int64_t n) {
  constexpr int64_t width = vector_bytes, most = 255 * width;  // what counters of a byte can hold
  using S = Simd<uint8_t>;
  int64_t count = 0, i = 0;
  while (i + width <= n) {
    S::Vec counts = {};
    const int64_t end = n - i < most ? n : i + most;
    for (; i + width <= end; i += width) counts -= (S::Vec)(S::load(mask + i) != 0);
    uint8_t each[width];
    S::store(each, counts);
    for (int64_t l = 0; l < width; ++l) count += each[l];
  }
  for (; i < n; ++i) count += mask[i] != 0;
  return count;
}

int64_t places_of_set(const uint8_t* mask, int64_t n, int32_t* places) {
  int64_t i = 0, found = 0;
#if defined(__AVX512F__)
  using G = Group<int32_t>;
  __m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; i + G::count <= n; i += G::count) {
    const __mmask16 set = G::set(mask + i);
    _mm512_storeu_si512(places + found, G::compress(set, at));
    found += __builtin_popcount(set);
    at = _mm512_add_epi32(at, _mm512_set1_epi32(G::count));
  }
#endif
  for (; i < n; ++i) {
    places[found] = static_cast<int32_t>(i);
    found += mask[i] != 0;
  }
  return found;
}

void write_places(const int32_t* places, int64_t n, int64_t add, int64_t* to) {
  for (int64_t k = 0; k < n; ++k) to[k] = places[k] + add;
}

MaskedRowFn compress_row(size_t bytes) {
  MaskedRowFn row = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { row = &compress<T>; });
  return row;
}
MaskedRowFn spread_row(size_t bytes) {
  MaskedRowFn row = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { row = &spread<T>; });
  return row;
}

}  // namespace facula::cpu::FACULA_ISA
