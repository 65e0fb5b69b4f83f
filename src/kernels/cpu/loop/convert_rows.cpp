#include "kernels/cpu/loop/convert_rows.h"

#include "core/scalar.h"
#include "kernels/cpu/loop/copy_bytes.h"
#include "kernels/cpu/loop/float_to_int.h"
#include "kernels/cpu/loop/stored.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace facula::cpu::FACULA_ISA {
namespace {

// Converts eight at a time where the processor has an instruction; how many are done.
template <class S, class D>
[[gnu::always_inline]] inline int64_t convert_eights([[maybe_unused]] const S* from,
                                                     [[maybe_unused]] D* to,
                                                     [[maybe_unused]] int64_t n) {
  int64_t i = 0;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<S, float> && std::is_same_v<D, int32_t>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_cvttps_epi32(_mm256_loadu_ps(from + i)));
#endif
#if defined(__F16C__)
  if constexpr (std::is_same_v<S, float> && std::is_same_v<D, Half>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  if constexpr (std::is_same_v<S, Half> && std::is_same_v<D, float>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(
          to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  return i;
}

template <class D, class S>
[[gnu::always_inline]] inline D converted(S v) {
  constexpr bool to_integer = std::is_integral_v<D> && !std::is_same_v<D, bool>;
  if constexpr (to_integer && is_complex_v<S>)
    return float_to_int<D>(static_cast<double>(v.re));
  else if constexpr (to_integer && !std::is_integral_v<S>)
    return float_to_int<D>(static_cast<double>(v));
  else
    return convert<D>(v);
}

// An unsigned integer as wide as D; D itself if there is none.
template <class D>
auto bits_of_element() {
  if constexpr (sizeof(D) == 1) return uint8_t();
  if constexpr (sizeof(D) == 2) return uint16_t();
  if constexpr (sizeof(D) == 4) return uint32_t();
  if constexpr (sizeof(D) == 8) return uint64_t();
  if constexpr (sizeof(D) > 8) return D();
}

// Chooses the bits of one of two numbers, which is done by vectors; bools are converted one by one.
template <class D>
void convert_bools(const bool* from, D* to, int64_t n) {
  using Bits = decltype(bits_of_element<D>());
  const D no = converted<D>(false), yes = converted<D>(true);
  Bits zero, one;
  __builtin_memcpy(&zero, &no, sizeof(D));
  __builtin_memcpy(&one, &yes, sizeof(D));
  Bits* out = reinterpret_cast<Bits*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = read_stored(from + i) ? one : zero;
}

template <class S, class D>
void convert_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  if (steps[0] == sizeof(D) && steps[1] == sizeof(S)) {
    D* to = reinterpret_cast<D*>(data[0]);
    const S* from = reinterpret_cast<const S*>(data[1]);
    if constexpr (std::is_same_v<S, bool>) return convert_bools(from, to, n);
    for (int64_t i = convert_eights(from, to, n); i < n; ++i)
      to[i] = converted<D>(read_stored(from + i));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<D*>(data[0] + i * steps[0]) =
        converted<D>(read_stored(reinterpret_cast<const S*>(data[1] + i * steps[1])));
}

// Whether all bytes are the same, as those of zeros.
template <class T>
bool is_one_byte(T value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  return std::memcmp(bytes, bytes + 1, sizeof(T) - 1) == 0;
}

template <class T>
void store_all(char* to, int64_t n, T value) {
  // The library knows where the processor fills memory without reading it first.
  constexpr size_t library_from = 4096;
  const size_t bytes = static_cast<size_t>(n) * sizeof(T);
  if (bytes >= library_from && is_one_byte(value)) {
    std::memset(to, *reinterpret_cast<const char*>(&value), bytes);
    return;
  }
  T* at = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) at[i] = value;
}

template <class T>
void move_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  constexpr int64_t size = sizeof(T);
  if (steps[0] == size && steps[1] == size) {
    move_bytes(data[0], data[1], static_cast<size_t>(n) * sizeof(T));
    return;
  }
  if (steps[0] == size && steps[1] == 0)
    return store_all(data[0], n, *reinterpret_cast<const T*>(data[1]));
  if (steps[0] == size && steps[1] == -size) {
    T* to = reinterpret_cast<T*>(data[0]);
    const T* from = reinterpret_cast<const T*>(data[1]);
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(data[0] + i * steps[0]) =
        *reinterpret_cast<const T*>(data[1] + i * steps[1]);
}

template <class T>
void fill_row(const void* value, char* const* data, const int64_t* steps, int64_t n) {
  const T v = *static_cast<const T*>(value);
  if (steps[0] == sizeof(T)) return store_all(data[0], n, v);
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(data[0] + i * steps[0]) = v;
}

template <class S>
RowFn converter_from(DType to) {
  RowFn f = nullptr;
  dispatch_elements(to, "copy_", [&]<class D>(Type<D>) { f = &convert_row<S, D>; });
  return f;
}

}  // namespace

RowFn mover(size_t bytes) {
  RowFn f = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { f = &move_row<T>; });
  return f;
}

RowFn converter(DType from, DType to) {
  RowFn f = nullptr;
  dispatch_elements(from, "copy_", [&]<class S>(Type<S>) { f = converter_from<S>(to); });
  return f;
}

RowFn filler(size_t bytes) {
  RowFn f = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { f = &fill_row<T>; });
  return f;
}

}  // namespace facula::cpu::FACULA_ISA
