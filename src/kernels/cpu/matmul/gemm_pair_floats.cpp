#include "kernels/cpu/matmul/gemm_pair_kernel.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
namespace {

constexpr int64_t pitch = pair_pitch, width = pair_width, lanes = width / 2;
constexpr int64_t chunk = 32;  // pairs of A that are floats at a time

template <int M, int N>
[[gnu::always_inline]] inline void clear(__m512 (&sum)[M][N]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sum[i][j] = _mm512_setzero_ps();
  }
}

// As text, for g++ mixes the forms of the instruction, which moves sums about.
template <int M, int N>
[[gnu::always_inline]] inline void add_term(__m512 (&sum)[M][N], const float (&left)[M][2 * chunk],
                                            int64_t at, const __m512 (&right)[N]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    const __m512 factor = _mm512_set1_ps(left[i][at]);
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j)
      asm("vfmadd231ps %1, %2, %0" : "+v"(sum[i][j]) : "v"(right[j]), "v"(factor));
  }
}

// The second elements of each row's pairs, and from `chunk` on the first ones.
template <int M>
[[gnu::always_inline]] inline void widen_rows(float (&left)[M][2 * chunk], const Pair* a,
                                              int64_t count) {
  for (int64_t p = 0; p < count; p += lanes) {
    const int64_t here = min_of(count - p, lanes);
    const auto keep = static_cast<__mmask16>((1u << here) - 1);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const PairTerms terms = split_pairs(_mm512_maskz_loadu_epi32(keep, a + i * pitch + p));
      _mm512_store_ps(left[i] + p, terms.second);
      _mm512_store_ps(left[i] + chunk + p, terms.first);
    }
  }
}

template <int M, int N>
[[gnu::always_inline]] inline void write_sums(const PairTile& t, const __m512 (&sum)[M][N]) {
  if (t.narrow != nullptr) {
    alignas(vector_bytes) float room[M][N * lanes];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) _mm512_store_ps(room[i] + j * lanes, sum[i][j]);
    }
    return narrow_rows(t.narrow, t.c_rs, room[0], N * lanes, M, t.columns);
  }
  const auto last = static_cast<__mmask16>((1u << (t.columns - (N - 1) * lanes)) - 1);
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) {
      const __mmask16 keep = j == N - 1 ? last : static_cast<__mmask16>(0xffff);
      float* to = t.c + i * t.c_rs + j * lanes;
      const __m512 total =
          t.add ? _mm512_add_ps(sum[i][j], _mm512_maskz_loadu_ps(keep, to)) : sum[i][j];
      _mm512_mask_storeu_ps(to, keep, total);
    }
  }
}

struct ByFloats {
  template <int M, int N>
  static void tile(const PairTile& t) {
    alignas(vector_bytes) float left[M][2 * chunk];
    __m512 sum[M][N];
    clear(sum);
    const Pair* b = t.b;
    for (int64_t first = 0; first < t.pairs; first += chunk) {
      const int64_t count = min_of(chunk, t.pairs - first);
      widen_rows(left, t.a + first, count);
      for (int64_t p = 0; p < count; ++p, b += width) {
        __m512 right[N];
#pragma GCC unroll 2
        for (int j = 0; j < N; ++j)
          right[j] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xaaaaaaaa, b + j * lanes));
        add_term(sum, left, p, right);
#pragma GCC unroll 2
        for (int j = 0; j < N; ++j)
          right[j] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(b + j * lanes), 16));
        add_term(sum, left, chunk + p, right);
      }
    }
    write_sums(t, sum);
  }

  template <int M>
  static void direct(const DirectTile& t) {
    constexpr int64_t ahead = 16;  // distance of the prefetch in rows of B
    const auto mask = static_cast<__mmask32>((uint64_t{1} << t.columns) - 1);
    alignas(vector_bytes) float left[M][2 * chunk];
    __m512 sum[M][2];
    clear(sum);
    const auto add_row = [&](const BFloat16* row, int64_t at) __attribute__((always_inline)) {
      __builtin_prefetch(row + ahead * t.b_rs);
      __builtin_prefetch(row + ahead * t.b_rs + width - 1);
      add_term(sum, left, at, widen_elements(_mm512_maskz_loadu_epi16(mask, row)).halves);
    };
    const int64_t pairs = ceil_div(t.k, int64_t{2});
    for (int64_t first = 0; first < pairs; first += chunk) {
      const int64_t count = min_of(chunk, pairs - first);
      widen_rows(left, t.a + first, count);
      const BFloat16* row = t.b + 2 * first * t.b_rs;
      for (int64_t p = 0; p < count; ++p, row += 2 * t.b_rs) {
        if (2 * (first + p) + 1 < t.k) add_row(row + t.b_rs, p);
        add_row(row, chunk + p);
      }
    }
    const bool plain = t.sums == nullptr;
    write_sums({pairs, nullptr, nullptr, t.sums, plain ? t.c_rs : width, plain ? t.columns : width,
                false, plain ? t.c : nullptr},
               sum);
  }
};

constexpr PairKernels kernels = make_pair_kernels<ByFloats>();

}  // namespace

const PairKernels& float_pair_kernels() { return kernels; }

#endif

}  // namespace facula::cpu::FACULA_ISA
