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

template <class T, bool Paired>
[[gnu::always_inline]] inline auto load_right(const T* p, int64_t b_step) {
  if constexpr (Paired) {
    return load_pair(p, b_step / 2, std::make_index_sequence<Simd<T>::lanes>{});
  } else {
    return Simd<T>::load(p);
  }
}

// Every loop over accumulators is unrolled by pragma: otherwise g++ keeps them in memory.
template <class T, bool Paired, int M, int N>
void tile(int64_t k, const T* __restrict a, const T* __restrict b, const int64_t* __restrict b_rows,
          int64_t b_step, T* __restrict c, int64_t c_rs, T alpha, T beta) {
  using S = Simd<T>;
  using V = typename S::Vec;
  V sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) sum[i][j] = V{};
  }
  for (int64_t p = 0; p < k; ++p) {
    const T* row = b + b_rows[p];
    V right[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) right[j] = load_right<T, Paired>(row + j * b_step, b_step);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const V left = S::broadcast(a[i * packed_pitch<T> + p]);
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

template <class T>
struct KernelTable {
  TileKernel<T> at[max_tile_rows][6] = {};
};

template <class T, bool Paired, int M, int N>
constexpr void fill_row(KernelTable<T>& table) {
  table.at[M - 1][N - 1] = tile<T, Paired, M, N>;
  if constexpr (N < tile_vectors(M)) fill_row<T, Paired, M, N + 1>(table);
}

template <class T, bool Paired, int M>
constexpr void fill_table(KernelTable<T>& table) {
  fill_row<T, Paired, M, 1>(table);
  if constexpr (M < max_tile_rows) fill_table<T, Paired, M + 1>(table);
}

template <class T, bool Paired>
constexpr KernelTable<T> make_table() {
  KernelTable<T> table;
  fill_table<T, Paired, 1>(table);
  return table;
}

template <class T, bool Paired>
constexpr KernelTable<T> kernel_table = make_table<T, Paired>();

}  // namespace

template <class T>
TileKernel<T> tile_kernel(int rows, int vectors) {
  return kernel_table<T, false>.at[rows - 1][vectors - 1];
}

template <class T>
TileKernel<T> paired_tile_kernel(int rows, int vectors) {
  if constexpr (builds_paired && std::is_floating_point_v<T>)
    return kernel_table<T, true>.at[rows - 1][vectors - 1];
  return nullptr;
}

template TileKernel<float> tile_kernel<float>(int, int);
template TileKernel<double> tile_kernel<double>(int, int);
template TileKernel<uint32_t> tile_kernel<uint32_t>(int, int);
template TileKernel<uint64_t> tile_kernel<uint64_t>(int, int);
template TileKernel<float> paired_tile_kernel<float>(int, int);
template TileKernel<double> paired_tile_kernel<double>(int, int);
template TileKernel<uint32_t> paired_tile_kernel<uint32_t>(int, int);
template TileKernel<uint64_t> paired_tile_kernel<uint64_t>(int, int);

}  // namespace facula::cpu::FACULA_ISA
