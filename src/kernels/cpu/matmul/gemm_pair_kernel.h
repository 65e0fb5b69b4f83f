// The inner kernels of products of bfloat16: pairs along k, both of whose products go to a float.
//
// A processor with AVX-512 BF16 has an instruction for it (gemm_pair_kernel.cpp); two multiply-adds
// of floats give the same bits everywhere (gemm_pair_floats.cpp): first the odd term, then the even
// one, each rounded to nearest even, with subnormal numbers as zeros.
#pragma once
#include "core/half.h"
#include "kernels/cpu/matmul/gemm_kernel.h"

namespace facula::cpu::FACULA_ISA {

// Rows of A that kernels take which read B where it lies, by rows and by columns.
inline constexpr int64_t max_direct_rows = 8, max_wide_rows = 3, max_column_rows = 4;
inline constexpr int64_t pair_steps = 1024;  // along k that one pass takes at most

#if defined(__AVX512F__)

// Two neighbours along k, as the processor wants them.
using Pair = uint32_t;

inline constexpr int64_t pair_depth = pair_steps / 2;   // pairs that one kernel call takes at most
inline constexpr int64_t pair_pitch = pair_depth + 16;  // between packed rows of A
inline constexpr int64_t pair_width = 32;               // columns of a panel of B

// c[rows, columns] = A B, or that added to what is there; rows of A are pair_pitch apart, those of
// B pair_width.
struct PairTile {
  int64_t pairs;
  const Pair *a, *b;
  float* c;
  int64_t c_rs;
  int64_t columns;  // at most pair_width; what lies beyond is left alone
  bool add;
  BFloat16* narrow = nullptr;    // where A B goes instead, rows c_rs apart
  int64_t a_pitch = pair_pitch;  // between rows of A; another one for tiles only
};
using PairKernel = void (*)(const PairTile&);
// Needs a PairScope on this thread, as the direct kernel does.
PairKernel pair_kernel(int rows, int64_t columns);

// Rounds to nearest even and takes subnormal numbers for zeros on this thread while it lives, as
// the instruction does by itself: then what is done to sums beside it is the same without it.
class PairScope {
 public:
  PairScope() : before_(_mm_getcsr()) { _mm_setcsr(no_exceptions | flush_to_zero | zeros_in); }
  ~PairScope() { _mm_setcsr(before_); }
  PairScope(const PairScope&) = delete;

 private:
  static constexpr unsigned no_exceptions = 0x1f80, flush_to_zero = 0x8000, zeros_in = 0x40;
  unsigned before_;
};

[[gnu::always_inline]] inline Pair pair_of(const BFloat16* low, const BFloat16* high) {
  return low->bits | (high ? static_cast<Pair>(high->bits) << 16 : 0);
}

// The elements of pairs as floats.
struct PairTerms {
  __m512 first, second;
};
[[gnu::always_inline]] inline PairTerms split_pairs(__m512i pairs) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, pairs, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(pairs, high))};
}

// 32 elements as floats, in order.
struct WideElements {
  __m512 halves[2];
};
[[gnu::always_inline]] inline WideElements widen_elements(__m512i elements) {
  const auto widen = [](__m256i half) __attribute__((always_inline)) {
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, half);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, wide, 16));
  };
  return {{widen(_mm512_castsi512_si256(elements)),
           widen(_mm512_maskz_extracti64x4_epi64(0xff, elements, 1))}};
}

// Two vectors interleaved element by element, as two vectors of pairs.
struct ZippedPairs {
  __m512i first, second;
};
[[gnu::always_inline]] inline ZippedPairs zip_vectors(__m512i low, __m512i high) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  return {_mm512_permutex2var_epi16(low, first, high),
          _mm512_permutex2var_epi16(low, second, high)};
}

// Two rows of a panel interleaved element by element.
[[gnu::always_inline]] inline void zip_rows(Pair* to, const BFloat16* low, const BFloat16* high) {
  const ZippedPairs pairs = zip_vectors(_mm512_loadu_si512(low), _mm512_loadu_si512(high));
  _mm512_storeu_si512(to, pairs.first);
  _mm512_storeu_si512(to + pair_width / 2, pairs.second);
}

// C = A B of bfloat16 for a panel of columns of B, which lies in dense rows.
struct DirectTile {
  int64_t k;
  const Pair* a;  // rows pair_pitch apart
  const BFloat16* b;
  int64_t b_rs;
  BFloat16* c;
  int64_t c_rs;
  int64_t columns;  // at most pair_width
  float* sums;      // where A B goes instead, rows pair_width apart, all of each; or null
};
using DirectKernel = void (*)(const DirectTile&);
DirectKernel direct_kernel(int64_t rows);

// A B of few rows of A, for columns of B that are read where they lie.
struct InPlaceTile {
  int64_t k;
  const Pair* a;  // rows pair_pitch apart
  const BFloat16* b;
  int64_t b_step;  // between rows or columns of B, which are dense
  int64_t columns;
  float* sums;  // rows of as many columns as the kernel takes at most, all are written
};
using InPlaceKernel = void (*)(const InPlaceTile&);
// For up to pair_width columns, which lie along k, and max_column_rows rows; needs a PairScope.
InPlaceKernel column_kernel(int64_t rows);
// For up to wide_panels * pair_width columns of dense rows, and max_wide_rows rows of A; the same.
inline constexpr int64_t wide_panels = 4;
InPlaceKernel wide_kernel(int64_t rows);

// to[i, j] = from[i, j], to nearest even and subnormal numbers as zeros; rows of `from` begin with
// a line and have room up to whole vectors, columns are at most pair_width.
void narrow_rows(BFloat16* to, int64_t to_rs, const float* from, int64_t from_rs, int64_t rows,
                 int64_t columns);

// The kernels by height, and for tiles by vectors of columns.
struct PairKernels {
  PairKernel tile[max_tile_rows][2] = {};
  DirectKernel direct[max_direct_rows] = {};
};
template <class Ways, int M = 1>
constexpr void fill_pair_kernels(PairKernels& kernels) {
  kernels.tile[M - 1][0] = &Ways::template tile<M, 1>;
  kernels.tile[M - 1][1] = &Ways::template tile<M, 2>;
  if constexpr (M <= max_direct_rows) kernels.direct[M - 1] = &Ways::template direct<M>;
  if constexpr (M < max_tile_rows) fill_pair_kernels<Ways, M + 1>(kernels);
}
template <class Ways>
constexpr PairKernels make_pair_kernels() {
  PairKernels kernels;
  fill_pair_kernels<Ways>(kernels);
  return kernels;
}
const PairKernels& float_pair_kernels();

#endif

}  // namespace facula::cpu::FACULA_ISA
