// Copies whose source has its columns contiguous, not its rows: squares of vectors are transposed
// in registers.
#pragma once
#include <utility>

#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

// N vectors of N elements.
template <class T, int N>
struct Square {
  typedef T Vec __attribute__((vector_size(N * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
  Vec rows[N];

  // Exchanges rows and columns: round by round a bit of the row's number with that of the lane's.
  template <int Step = 1>
  [[gnu::always_inline]] void transpose() {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      if ((i & Step) != 0) continue;
      const Vec low = rows[i], high = rows[i + Step];
      rows[i] = mix<Step, 0>(low, high, std::make_index_sequence<N>{});
      rows[i + Step] = mix<Step, Step>(low, high, std::make_index_sequence<N>{});
    }
    if constexpr (2 * Step < N) transpose<2 * Step>();
  }

  // The even lanes of one and then of the other.
  template <size_t... I>
  [[gnu::always_inline]] static Vec even(Vec low, Vec high, std::index_sequence<I...>) {
    return __builtin_shufflevector(low, high, static_cast<int>(2 * I)...);
  }

  // Lanes without the bit `Step` from `low`, the others from `high`, `Shift` lanes on.
  template <int Step, int Shift, size_t... I>
  [[gnu::always_inline]] static Vec mix(Vec low, Vec high, std::index_sequence<I...>) {
    return __builtin_shufflevector(low, high,
                                   ((I & Step) == 0 ? static_cast<int>(I) + Shift
                                                    : N + static_cast<int>(I) - Step + Shift)...);
  }
};

// dst[i * dst_rs + j] = src[i + j * cs] for i, j < N.
template <class T, int N>
[[gnu::always_inline]] inline void turn_square(T* dst, int64_t dst_rs, const T* src, int64_t cs) {
  using S = Square<T, N>;
  S square;
#pragma GCC unroll 16
  for (int j = 0; j < N; ++j)
    square.rows[j] = *reinterpret_cast<const typename S::Unaligned*>(src + j * cs);
  square.transpose();
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    *reinterpret_cast<typename S::Unaligned*>(dst + i * dst_rs) = square.rows[i];
}

template <class T>
inline void transpose_elements(T* dst, int64_t dst_rs, const T* src, int64_t cs, int64_t rows,
                               int64_t cols) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) dst[i * dst_rs + j] = src[i + j * cs];
}

#if defined(__AVX512F__)
// A square at the edge of the matrix: `rows` by `cols` of it exist.
template <class T>
inline void transpose_part(T* dst, int64_t dst_rs, const T* src, int64_t cs, int64_t rows,
                           int64_t cols) {
  constexpr int lanes = Simd<T>::lanes;
  using S = Square<T, lanes>;
  const auto first = [](int64_t n) { return static_cast<__mmask16>((1u << n) - 1); };
  const __mmask16 in = first(rows), out = first(cols);
  S square;
  for (int j = 0; j < lanes; ++j) {
    const T* from = src + min_of(int64_t{j}, cols - 1) * cs;
    if constexpr (sizeof(T) == 4) {
      square.rows[j] = (typename S::Vec)_mm512_maskz_loadu_epi32(in, from);
    } else {
      square.rows[j] = (typename S::Vec)_mm512_maskz_loadu_epi64(static_cast<__mmask8>(in), from);
    }
  }
  square.transpose();
  for (int64_t i = 0; i < rows; ++i) {
    if constexpr (sizeof(T) == 4) {
      _mm512_mask_storeu_epi32(dst + i * dst_rs, out, (__m512i)square.rows[i]);
    } else {
      _mm512_mask_storeu_epi64(dst + i * dst_rs, static_cast<__mmask8>(out),
                               (__m512i)square.rows[i]);
    }
  }
}
#else
// The same by squares of half the side.
template <class T, int N = Simd<T>::lanes / 2>
inline void transpose_part(T* dst, int64_t dst_rs, const T* src, int64_t cs, int64_t rows,
                           int64_t cols) {
  if constexpr (N * sizeof(T) < 16) {
    transpose_elements(dst, dst_rs, src, cs, rows, cols);
  } else {
    for (int64_t i = 0; i < rows; i += N) {
      for (int64_t j = 0; j < cols; j += N) {
        T* to = dst + i * dst_rs + j;
        const T* from = src + i + j * cs;
        if (i + N <= rows && j + N <= cols) {
          turn_square<T, N>(to, dst_rs, from, cs);
        } else {
          transpose_part<T, N / 2>(to, dst_rs, from, cs, min_of<int64_t>(N, rows - i),
                                   min_of<int64_t>(N, cols - j));
        }
      }
    }
  }
}
#endif

// Memory that stays in the second cache while it is written, whatever the order.
inline constexpr int64_t near_bytes = 256 << 10;

// dst[i * dst_rs + j] = src[i + j * cs] for i < rows, j < cols, of elements of 4 or 8 bytes. Goes
// along the columns of `src`, of which the processor then fetches few at a time and ahead of use;
// into a distant `dst` along its rows, so that each of its cache lines is written at once.
template <class T>
inline void copy_transposed(T* dst, int64_t dst_rs, const T* src, int64_t cs, int64_t rows,
                            int64_t cols) {
  constexpr int64_t side = Simd<T>::lanes, near = near_bytes / sizeof(T);
  const bool along_src = rows * (dst_rs < 0 ? -dst_rs : dst_rs) <= near;
  const int64_t outer = along_src ? cols : rows, inner = along_src ? rows : cols;
  for (int64_t o = 0; o < outer; o += side) {
    for (int64_t n = 0; n < inner; n += side) {
      const int64_t i = along_src ? n : o, j = along_src ? o : n;
      T* to = dst + i * dst_rs + j;
      const T* from = src + i + j * cs;
      const int64_t high = min_of(side, rows - i), wide = min_of(side, cols - j);
      if (high == side && wide == side) {
        turn_square<T, side>(to, dst_rs, from, cs);
      } else if (high < 4 || wide < 4) {
        transpose_elements(to, dst_rs, from, cs, high, wide);
      } else {
        transpose_part(to, dst_rs, from, cs, high, wide);
      }
    }
  }
}

}  // namespace facula::cpu::FACULA_ISA
