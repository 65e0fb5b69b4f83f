#include "kernels/cpu/matmul/gemm_small.h"

#include "kernels/cpu/matmul/gemm_epilogue.h"
#include "kernels/cpu/matmul/gemm_kernel.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__) || defined(__AVX2__)
namespace {

#if defined(__AVX512F__)
constexpr int most_vectors = 4, small_sums = 24;
#else
constexpr int most_vectors = 3, small_sums = 12;
#endif
constexpr int most_rows = 8;  // each has a pointer of its own

constexpr int rows_of(int vectors) { return min_of(most_rows, small_sums / vectors); }

// Of B: it stays in the first-level cache.
template <class T>
constexpr int64_t most_elements = (32 << 10) / sizeof(T);

// The first `count` lanes of a vector: what others would read or write is not touched.
template <class T>
struct Lanes;
#if defined(__AVX512F__)
template <>
struct Lanes<float> {
  __mmask16 mask;
  explicit Lanes(int64_t count) : mask(static_cast<__mmask16>((uint32_t{1} << count) - 1)) {}
  [[gnu::always_inline]] __m512 load(const float* p) const {
    return _mm512_maskz_loadu_ps(mask, p);
  }
  [[gnu::always_inline]] void store(float* p, __m512 v) const { _mm512_mask_storeu_ps(p, mask, v); }
};
template <>
struct Lanes<double> {
  __mmask8 mask;
  explicit Lanes(int64_t count) : mask(static_cast<__mmask8>((uint32_t{1} << count) - 1)) {}
  [[gnu::always_inline]] __m512d load(const double* p) const {
    return _mm512_maskz_loadu_pd(mask, p);
  }
  [[gnu::always_inline]] void store(double* p, __m512d v) const {
    _mm512_mask_storeu_pd(p, mask, v);
  }
};
#else
template <>
struct Lanes<float> {
  __m256i mask;
  explicit Lanes(int64_t count)
      : mask(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  [[gnu::always_inline]] __m256 load(const float* p) const { return _mm256_maskload_ps(p, mask); }
  [[gnu::always_inline]] void store(float* p, __m256 v) const { _mm256_maskstore_ps(p, mask, v); }
};
template <>
struct Lanes<double> {
  __m256i mask;
  explicit Lanes(int64_t count)
      : mask(_mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3))) {}
  [[gnu::always_inline]] __m256d load(const double* p) const { return _mm256_maskload_pd(p, mask); }
  [[gnu::always_inline]] void store(double* p, __m256d v) const { _mm256_maskstore_pd(p, mask, v); }
};
#endif

// Some columns of a product, at most most_vectors vectors of them.
template <class T>
struct Columns {
  int64_t k;
  const T* a;
  int64_t a_rs, a_cs;
  const T* b;  // rows dense
  int64_t b_rs;
  T* c;
  int64_t c_rs;
  bool adds;  // beta times the addend
  const T* addend;
  int64_t addend_rs;
  T alpha, beta;
  int64_t last;  // columns of the last vector
};

// `panels` times M rows of N vectors.
template <class T, int M, int N, bool Ragged>
void rows_kernel(const Columns<T>& given, int64_t panels) {
  using S = Simd<T>;
  using V = typename S::Vec;
  const Columns<T> t = given;
  const Lanes<T> last(t.last);
  const auto load = [&](const T* p, int j) {
    return Ragged && j == N - 1 ? last.load(p) : S::load(p);
  };
  const auto store = [&](T* p, int j, V v) {
    Ragged&& j == N - 1 ? last.store(p, v) : S::store(p, v);
  };
  const T* a = t.a;
  const T* addend = t.addend;
  T* c = t.c;
  for (; panels > 0; --panels, a += M * t.a_rs) {
    const T* left[M];
    V sum[M][N];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      left[i] = a + i * t.a_rs;
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sum[i][j] = V{};
    }
    const T* b = t.b;
    int64_t x = 0;
    for (int64_t p = 0; p < t.k; ++p, b += t.b_rs, x += t.a_cs) {
      V right[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) right[j] = load(b + j * S::lanes, j);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        const V factor = S::broadcast(left[i][x]);
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) sum[i][j] = multiply_add<V>(factor, right[j], sum[i][j]);
      }
    }
    const V scale = S::broadcast(t.alpha), keep = S::broadcast(t.beta);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i, c += t.c_rs, addend += t.addend_rs) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        V value = scale * sum[i][j];
        if (t.adds)
          value = multiply_add<V>(scale, sum[i][j], keep * load(addend + j * S::lanes, j));
        store(c + j * S::lanes, j, value);
      }
    }
  }
}

template <class T>
using RowsKernel = void (*)(const Columns<T>&, int64_t panels);

template <class T>
struct RowsKernels {
  RowsKernel<T> at[most_vectors][most_rows][2] = {};
};
template <class T, int M, int N>
constexpr void fill_kernels(RowsKernels<T>& k) {
  k.at[N - 1][M - 1][0] = &rows_kernel<T, M, N, false>;
  k.at[N - 1][M - 1][1] = &rows_kernel<T, M, N, true>;
  if constexpr (M < rows_of(N))
    fill_kernels<T, M + 1, N>(k);
  else if constexpr (N < most_vectors)
    fill_kernels<T, 1, N + 1>(k);
}
template <class T>
constexpr RowsKernels<T> make_kernels() {
  RowsKernels<T> k;
  fill_kernels<T, 1, 1>(k);
  return k;
}
template <class T>
constexpr RowsKernels<T> rows_kernels = make_kernels<T>();

// All rows of `t` in panels whose heights differ by one at most.
template <class T>
void run_columns(Columns<T> t, int vectors, int64_t rows) {
  const RowPanels panels(rows, rows_of(vectors));
  const int64_t low = rows / panels.count, taller = rows % panels.count;
  const auto& kernels = rows_kernels<T>.at[vectors - 1];
  const int ragged = t.last < Simd<T>::lanes ? 1 : 0;
  if (taller > 0) {
    kernels[low][ragged](t, taller);
    const int64_t done = taller * (low + 1);
    t.a += done * t.a_rs;
    t.c += done * t.c_rs;
    t.addend += done * t.addend_rs;
  }
  kernels[low - 1][ragged](t, panels.count - taller);
}

// Where results of a product go, from its row `begin` on.
template <class T>
struct Target {
  T* at;
  int64_t rs;
};

// Rows that are wider than a tile are finished some at a time, so that memory takes whole rows.
template <class T>
void multiply_rows(const GemmArgs<T>& g, int64_t begin, int64_t end, const Target<T>& to) {
  constexpr int64_t lanes = Simd<T>::lanes;
  const RowPanels columns(ceil_div(g.n, lanes), most_vectors);
  const bool has_row = g.row != nullptr, adds = has_row || g.beta != T(0);
  const int64_t block = columns.count > 1 ? small_sums : end - begin;
  for (int64_t row = begin; row < end; row += block) {
    for (int64_t j = 0; j < columns.count; ++j) {
      const int64_t col = columns.begin(j) * lanes;
      const int vectors = columns.height(j);
      run_columns<T>({g.k, g.a + row * g.a_rs, g.a_rs, g.a_cs, g.b + col, g.b_rs,
                      to.at + (row - begin) * to.rs + col, to.rs, adds,
                      has_row ? g.row + col : g.c + row * g.c_rs + col, has_row ? 0 : g.c_rs,
                      g.alpha, g.beta, min_of(lanes, g.n - col - (vectors - 1) * lanes)},
                     vectors, min_of(block, end - row));
    }
  }
}

// Through a buffer in which many results are activated at a time.
template <class T>
[[gnu::noinline]] void activated_rows(const GemmArgs<T>& g, int64_t begin, int64_t end) {
  alignas(vector_bytes) T buffer[most_elements<T> + Simd<T>::lanes];
  const int64_t block = max_of(most_elements<T> / 4 / g.n, int64_t{1});
  for (int64_t row = begin; row < end; row += block) {
    const int64_t rows = min_of(block, end - row);
    multiply_rows(g, row, row + rows, {buffer, g.n});
    activate_padded(g.activation, buffer, rows * g.n);
    for (int64_t i = 0; i < rows; ++i) copy_row(g.c + (row + i) * g.c_rs, buffer + i * g.n, 1, g.n);
  }
}

template <class T>
void finished_rows(const GemmArgs<T>& g, int64_t begin, int64_t end) {
  if (g.activation) return activated_rows(g, begin, end);
  multiply_rows(g, begin, end, {g.c + begin * g.c_rs, g.c_rs});
}

template <class T>
[[gnu::noinline]] void packed_rows(const GemmArgs<T>& g, int64_t begin, int64_t end) {
  alignas(vector_bytes) T packed[most_elements<T>];
  const int64_t pitch = round_up(g.n, Simd<T>::lanes);
  copy_padded(packed, pitch, g.b, g.b_rs, g.b_cs, g.k, g.n, pitch);
  GemmArgs<T> dense = g;
  dense.b = packed;
  dense.b_rs = pitch;
  dense.b_cs = 1;
  finished_rows(dense, begin, end);
}

}  // namespace

template <class T>
bool fits_small(const GemmArgs<T>& g) {
  constexpr int64_t most = most_elements<T>;
  if (g.k > gemm_chain<T> || g.n > most || g.c_cs != 1) return false;
  const int64_t distance = g.b_rs < 0 ? -g.b_rs : g.b_rs;
  if (g.b_cs == 1) return distance <= most && g.k * distance <= most;
  return g.k * round_up(g.n, Simd<T>::lanes) <= most;
}

template <class T>
void small_rows(const GemmArgs<T>& g, int64_t begin, int64_t end) {
  if (g.b_cs != 1) return packed_rows(g, begin, end);
  finished_rows(g, begin, end);
}

#else

template <class T>
bool fits_small(const GemmArgs<T>&) {
  return false;
}
template <class T>
void small_rows(const GemmArgs<T>&, int64_t, int64_t) {}

#endif

template bool fits_small(const GemmArgs<float>&);
template bool fits_small(const GemmArgs<double>&);
template void small_rows(const GemmArgs<float>&, int64_t, int64_t);
template void small_rows(const GemmArgs<double>&, int64_t, int64_t);

}  // namespace facula::cpu::FACULA_ISA
