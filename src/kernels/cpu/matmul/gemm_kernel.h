// The register-tiled inner kernel: a tile of C from packed rows of A and rows of B.
#pragma once
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

// Steps along k that one kernel call takes at most: a panel of A and one of B, of elements of four
// bytes, then share the first-level cache. Of eight they come from the second one, which costs less
// than to read C once more.
template <class T>
inline constexpr int64_t gemm_depth = 256;

// Of these, how many are summed without a break.
template <class T>
inline constexpr int64_t gemm_chain = sizeof(T) == 4 ? 128 : 96;

// Distance between packed rows of A. A constant, so that every row is at a fixed displacement from
// one register; not a multiple of a page, so that rows fall into different cache sets.
template <class T>
inline constexpr int64_t packed_pitch = gemm_depth<T> + 16;

// Vectors side by side in a tile of `rows` rows.
constexpr int tile_vectors(int rows) { return min_of(6, max_accumulators / rows); }

// C[rows, vectors * lanes] = alpha * A B (+ beta * C unless beta is 0), over k <= gemm_depth steps.
// Row i of A is a[i * packed_pitch ...], row p of B b[p * b_rs ...].
template <class T>
using TileKernel = void (*)(int64_t k, const T* a, const T* b, int64_t b_rs, T* c, int64_t c_rs,
                            T alpha, T beta);

// The kernel for 1 <= rows <= max_tile_rows and 1 <= vectors <= tile_vectors(rows). T: float,
// double, uint32_t, uint64_t.
template <class T>
TileKernel<T> tile_kernel(int rows, int vectors);

// The same for rows of B far apart and not yet in a near cache: it asks for them some rows ahead.
template <class T>
TileKernel<T> distant_tile_kernel(int rows, int vectors);

// The same with vector j of row p of B at b[b_rows[p] + j * b_step].
template <class T>
using ScatteredTileKernel = void (*)(int64_t k, const T* a, const T* b, const int64_t* b_rows,
                                     int64_t b_step, T* c, int64_t c_rs, T alpha, T beta);
template <class T>
ScatteredTileKernel<T> scattered_tile_kernel(int rows, int vectors);

// And with each vector of B in two halves, the second b_step / 2 after the first: two short rows of
// an image in one vector. Null for integers and where a half would be too short to pay.
template <class T>
ScatteredTileKernel<T> paired_tile_kernel(int rows, int vectors);

// And with A by columns, for which nothing is packed: row i of A at step p is a[p * a_cs + i].
// alpha is 1. T: float.
template <class T>
using ColumnTileKernel = void (*)(int64_t k, const T* a, int64_t a_cs, const T* b, int64_t b_rs,
                                  T* c, int64_t c_rs, T beta);
template <class T>
ColumnTileKernel<T> column_tile_kernel(int rows, int vectors);

// `rows` rows cut into panels of at most `most` whose heights differ by one at most: a short last
// panel would leave the multiply units waiting for its few sums.
struct RowPanels {
  int64_t rows, count;
  explicit RowPanels(int64_t r, int64_t most = max_tile_rows) : rows(r), count(ceil_div(r, most)) {}
  static RowPanels of_count(int64_t rows, int64_t count) {
    RowPanels panels(rows);
    panels.count = count;
    return panels;
  }
  int64_t begin(int64_t i) const { return rows / count * i + min_of(i, rows % count); }
  int height(int64_t i) const { return static_cast<int>(begin(i + 1) - begin(i)); }
  int tallest() const { return static_cast<int>(ceil_div(rows, count)); }
};

}  // namespace facula::cpu::FACULA_ISA
