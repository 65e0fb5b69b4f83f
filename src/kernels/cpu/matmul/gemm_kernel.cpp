#include "kernels/cpu/matmul/gemm_kernel.h"

#include <utility>

namespace facula::cpu::FACULA_ISA {
namespace {

inline constexpr bool builds_paired = vector_bytes >= 32;

// Two halves, `step` elements apart.
template <class T, size_t... I>
[[gnu::always_inline]] inline auto load_pair(const T* p, int64_t step, std::index_sequence<I...>) {
  typedef T H __attribute__((vector_size(vector_bytes / 2), aligned(sizeof(T)), may_alias));
  typedef T Aligned __attribute__((vector_size(vector_bytes / 2)));
  const Aligned low = *reinterpret_cast<const H*>(p);
  const Aligned high = *reinterpret_cast<const H*>(p + step);
  return __builtin_shufflevector(low, high, I...);
}

// Where a kernel finds the elements of A: in packed rows, or in columns of rows side by side.
template <class T>
struct PackedLeft {
  const T* at;
  T get(int64_t row, int64_t p) const { return at[row * packed_pitch<T> + p]; }
};

template <class T>
struct ColumnLeft {
  const T* at;
  int64_t stride;
  T get(int64_t row, int64_t p) const { return at[p * stride + row]; }
};

// Where a kernel finds the vectors of a row of B.
template <class T, bool Distant>
struct DenseRows {
  const T* at;
  int64_t stride;
  const T* row(int64_t p) const { return at + p * stride; }
  auto load(const T* row, int j) const {
    constexpr int64_t ahead = 16;  // rows
    const T* from = row + j * Simd<T>::lanes;
    if constexpr (Distant) __builtin_prefetch(from + ahead * stride);
    return Simd<T>::load(from);
  }
};

template <class T, bool Paired>
struct ScatteredRows {
  const T* at;
  const int64_t* offsets;
  int64_t step;
  const T* row(int64_t p) const { return at + offsets[p]; }
  auto load(const T* row, int j) const {
    if constexpr (Paired) {
      return load_pair(row + j * step, step / 2, std::make_index_sequence<Simd<T>::lanes>{});
    } else {
      return Simd<T>::load(row + j * step);
    }
  }
};

// Every loop over accumulators is unrolled by pragma: otherwise g++ keeps them in memory.
template <class T, int M, int N, class Left, class Rows>
[[gnu::always_inline]] inline void run_tile(int64_t k, const Left& a, const Rows& b,
                                            T* __restrict c, int64_t c_rs, T alpha, T beta) {
  using S = Simd<T>;
  using V = typename S::Vec;
  V sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) sum[i][j] = V{};
  }
  for (int64_t p = 0; p < k; ++p) {
    const T* row = b.row(p);
    V right[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) right[j] = b.load(row, j);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const V left = S::broadcast(a.get(i, p));
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) sum[i][j] = multiply_add<V>(left, right[j], sum[i][j]);
    }
  }
  const V scale = S::broadcast(alpha), keep = S::broadcast(beta);
  if (beta == T(0)) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) S::store(c + i * c_rs + j * S::lanes, scale * sum[i][j]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      T* to = c + i * c_rs + j * S::lanes;
      S::store(to, multiply_add<V>(scale, sum[i][j], keep * S::load(to)));
    }
  }
}

template <class T, bool Distant>
struct DenseTiles {
  using Kernel = TileKernel<T>;
  template <int M, int N>
  static void run(int64_t k, const T* a, const T* b, int64_t b_rs, T* c, int64_t c_rs, T alpha,
                  T beta) {
    run_tile<T, M, N>(k, PackedLeft<T>{a}, DenseRows<T, Distant>{b, b_rs}, c, c_rs, alpha, beta);
  }
};

template <class T, bool Paired>
struct ScatteredTiles {
  using Kernel = ScatteredTileKernel<T>;
  template <int M, int N>
  static void run(int64_t k, const T* a, const T* b, const int64_t* b_rows, int64_t b_step, T* c,
                  int64_t c_rs, T alpha, T beta) {
    run_tile<T, M, N>(k, PackedLeft<T>{a}, ScatteredRows<T, Paired>{b, b_rows, b_step}, c, c_rs,
                      alpha, beta);
  }
};

template <class T>
struct ColumnTiles {
  using Kernel = ColumnTileKernel<T>;
  template <int M, int N>
  static void run(int64_t k, const T* a, int64_t a_cs, const T* b, int64_t b_rs, T* c, int64_t c_rs,
                  T beta) {
    run_tile<T, M, N>(k, ColumnLeft<T>{a, a_cs}, DenseRows<T, false>{b, b_rs}, c, c_rs, T(1), beta);
  }
};

template <class Tiles>
struct KernelTable {
  typename Tiles::Kernel at[max_tile_rows][6] = {};
};

template <class Tiles, int M, int N>
constexpr void fill_row(KernelTable<Tiles>& table) {
  table.at[M - 1][N - 1] = &Tiles::template run<M, N>;
  if constexpr (N < tile_vectors(M)) fill_row<Tiles, M, N + 1>(table);
}

template <class Tiles, int M>
constexpr void fill_table(KernelTable<Tiles>& table) {
  fill_row<Tiles, M, 1>(table);
  if constexpr (M < max_tile_rows) fill_table<Tiles, M + 1>(table);
}

template <class Tiles>
constexpr KernelTable<Tiles> make_table() {
  KernelTable<Tiles> table;
  fill_table<Tiles, 1>(table);
  return table;
}

template <class Tiles>
constexpr KernelTable<Tiles> kernel_table = make_table<Tiles>();

}  // namespace

template <class T>
TileKernel<T> tile_kernel(int rows, int vectors) {
  return kernel_table<DenseTiles<T, false>>.at[rows - 1][vectors - 1];
}

template <class T>
TileKernel<T> distant_tile_kernel(int rows, int vectors) {
  return kernel_table<DenseTiles<T, true>>.at[rows - 1][vectors - 1];
}

template <class T>
ScatteredTileKernel<T> scattered_tile_kernel(int rows, int vectors) {
  return kernel_table<ScatteredTiles<T, false>>.at[rows - 1][vectors - 1];
}

template <class T>
ScatteredTileKernel<T> paired_tile_kernel(int rows, int vectors) {
  if constexpr (builds_paired && std::is_floating_point_v<T>)
    return kernel_table<ScatteredTiles<T, true>>.at[rows - 1][vectors - 1];
  return nullptr;
}

template <class T>
ColumnTileKernel<T> column_tile_kernel(int rows, int vectors) {
  return kernel_table<ColumnTiles<T>>.at[rows - 1][vectors - 1];
}
template ColumnTileKernel<float> column_tile_kernel<float>(int, int);

template <class T>
struct TileInstance {
  static constexpr auto dense = &tile_kernel<T>;
  static constexpr auto distant = &distant_tile_kernel<T>;
  static constexpr auto scattered = &scattered_tile_kernel<T>;
  static constexpr auto paired = &paired_tile_kernel<T>;
};
template struct TileInstance<float>;
template struct TileInstance<double>;
template struct TileInstance<uint32_t>;
template struct TileInstance<uint64_t>;

}  // namespace facula::cpu::FACULA_ISA
