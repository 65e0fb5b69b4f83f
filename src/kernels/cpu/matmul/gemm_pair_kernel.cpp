#include "kernels/cpu/matmul/gemm_pair_kernel.h"

#include <string_view>

#include "core/environment.h"
#include "core/error.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
namespace {

#define FACULA_PAIRS __attribute__((target("avx512bf16")))

constexpr int64_t pitch = pair_pitch, width = pair_width, lanes = width / 2;

struct ByInstruction {
  template <int M, int N>
  static void tile(const PairTile& t);
  template <int M>
  static void direct(const DirectTile& t);
};

template <int M, int N>
FACULA_PAIRS void ByInstruction::tile(const PairTile& t) {
  __m512 sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sum[i][j] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < t.pairs; ++p) {
    __m512i right[N];
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) right[j] = _mm512_loadu_si512(t.b + p * width + j * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const __m512i left = _mm512_set1_epi32(static_cast<int>(t.a[i * pitch + p]));
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j)
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], reinterpret_cast<__m512bh>(left),
                                     reinterpret_cast<__m512bh>(right[j]));
    }
  }
  const int64_t last = t.columns - (N - 1) * lanes;
  const auto mask = static_cast<__mmask16>((1u << last) - 1);
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) {
      const __mmask16 keep = j == N - 1 ? mask : static_cast<__mmask16>(0xffff);
      if (t.narrow != nullptr) {
        const __m256bh halves = _mm512_cvtneps_pbh(sum[i][j]);
        _mm256_mask_storeu_epi16(t.narrow + i * t.c_rs + j * lanes, keep,
                                 reinterpret_cast<__m256i>(halves));
        continue;
      }
      float* to = t.c + i * t.c_rs + j * lanes;
      if (t.add) sum[i][j] = _mm512_add_ps(sum[i][j], _mm512_maskz_loadu_ps(keep, to));
      _mm512_mask_storeu_ps(to, keep, sum[i][j]);
    }
  }
}

template <int M>
FACULA_PAIRS void ByInstruction::direct(const DirectTile& t) {
  constexpr int64_t ahead = 16;  // distance of the prefetch in rows of B
  const auto mask = static_cast<__mmask32>((uint64_t{1} << t.columns) - 1);
  __m512 sum[M][2];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  const BFloat16* low = t.b;
  for (int64_t p = 0; 2 * p < t.k; ++p, low += 2 * t.b_rs) {
    const BFloat16* high = low + t.b_rs;
    const __mmask32 second = 2 * p + 1 < t.k ? mask : __mmask32{0};
    for (const BFloat16* row : {low, high}) {
      __builtin_prefetch(row + ahead * t.b_rs);
      __builtin_prefetch(row + ahead * t.b_rs + width - 1);
    }
    const ZippedPairs right =
        zip_vectors(_mm512_maskz_loadu_epi16(mask, low), _mm512_maskz_loadu_epi16(second, high));
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const auto left =
          reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(t.a[i * pitch + p])));
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], left, reinterpret_cast<__m512bh>(right.first));
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], left, reinterpret_cast<__m512bh>(right.second));
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    if (t.sums != nullptr) {
      _mm512_storeu_ps(t.sums + i * width, sum[i][0]);
      _mm512_storeu_ps(t.sums + i * width + lanes, sum[i][1]);
      continue;
    }
    const auto halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(sum[i][1], sum[i][0]));
    _mm512_mask_storeu_epi16(t.c + i * t.c_rs, mask, halves);
  }
}

// One store fills a whole line of memory where rows begin with one.
FACULA_PAIRS void narrow_by_instruction(BFloat16* to, int64_t to_rs, const float* from,
                                        int64_t from_rs, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, to += to_rs, from += from_rs)
    for (int64_t j = 0; j < columns; j += width) {
      const int64_t here = min_of(columns - j, width);
      const auto keep = static_cast<__mmask32>((uint64_t{1} << here) - 1);
      const __m512 low = _mm512_load_ps(from + j);
      const __m512 high = here > lanes ? _mm512_load_ps(from + j + lanes) : _mm512_setzero_ps();
      const auto halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
      _mm512_mask_storeu_epi16(to + j, keep, halves);
    }
}

// Nan keeps its first bits and becomes quiet.
__m512i narrowed(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
  const __m512i size = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __mmask16 subnormal = _mm512_cmplt_epi32_mask(size, _mm512_set1_epi32(0x00800000));
  rounded = _mm512_mask_and_epi32(rounded, subnormal, high, _mm512_set1_epi32(0x8000));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(size, _mm512_set1_epi32(0x7f800000));
  return _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
}

void narrow_by_integers(BFloat16* to, int64_t to_rs, const float* from, int64_t from_rs,
                        int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, to += to_rs, from += from_rs)
    for (int64_t j = 0; j < columns; j += lanes) {
      const int64_t here = min_of(columns - j, lanes);
      const auto keep = static_cast<__mmask16>((1u << here) - 1);
      const __m256i halves = _mm512_cvtepi32_epi16(narrowed(_mm512_load_ps(from + j)));
      _mm256_mask_storeu_epi16(to + j, keep, halves);
    }
}

enum class Pairs : uint8_t { by_processor, by_floats, by_instruction };

Pairs asked_pairs() {
  const char* asked = environment_value("FACULA_PAIRS");
  if (asked == nullptr) return Pairs::by_processor;
  const std::string_view wish = asked;
  check_value(wish == "1" || wish == "0", "FACULA_PAIRS: expected 1 or 0; got ", wish);
  return wish == "1" ? Pairs::by_instruction : Pairs::by_floats;
}

bool has_instructions() {
  return __builtin_cpu_supports("avx512bf16") && asked_pairs() != Pairs::by_floats;
}

// An Intel core begins the instruction every other cycle, and in that time does twice its work in
// multiply-adds.
bool multiplies_fast() {
  return has_instructions() &&
         (asked_pairs() == Pairs::by_instruction || !__builtin_cpu_is("intel"));
}

constexpr PairKernels instruction_kernels = make_pair_kernels<ByInstruction>();

const PairKernels& kernels() {
  static const PairKernels& chosen = multiplies_fast() ? instruction_kernels : float_pair_kernels();
  return chosen;
}

}  // namespace

PairKernel pair_kernel(int rows, int64_t columns) {
  return kernels().tile[rows - 1][columns > lanes ? 1 : 0];
}

DirectKernel direct_kernel(int64_t rows) { return kernels().direct[rows - 1]; }

void narrow_rows(BFloat16* to, int64_t to_rs, const float* from, int64_t from_rs, int64_t rows,
                 int64_t columns) {
  static const auto narrow = has_instructions() ? &narrow_by_instruction : &narrow_by_integers;
  narrow(to, to_rs, from, from_rs, rows, columns);
}

#endif

}  // namespace facula::cpu::FACULA_ISA
