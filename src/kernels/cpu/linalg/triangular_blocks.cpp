#include "kernels/cpu/linalg/triangular_blocks.h"

#include "core/complex.h"
#include "core/threads.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int order = 32;  // of a block of the diagonal

// A block of the diagonal, in the order in which its rows are solved: what is below its diagonal
// column by column, with zeros elsewhere.
template <class T>
class DiagonalBlock {
  static constexpr int together = 4;  // columns of X, so that one's division waits beside others'
  static constexpr int row_vectors = 4;
  static constexpr int lanes = max_of(vector_bytes / static_cast<int>(sizeof(T)), 2);

 public:
  explicit DiagonalBlock(const TriangularSystem<T>& s) : s_(s), n_(static_cast<int>(s.n)) {
    for (T& element : below_) element = T(0);
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < i; ++j) below_[j * order + i] = at(i, j);
      pivots_[i] = s.unit ? T(1) : at(i, i);
    }
  }

  void solve() const {
    if constexpr (!is_complex_v<T>)
      if (s_.x_cs == 1) return solve_by_rows();
    parallel_for(s_.k, 256, [this](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c += together)
        solve_columns(c, static_cast<int>(min_of(end - c, int64_t{together})));
    });
  }

 private:
  // Row i of those to solve stands in this row.
  int64_t row(int i) const { return s_.upper ? n_ - 1 - i : i; }
  T at(int i, int j) const { return s_.a[row(i) * s_.a_rs + row(j) * s_.a_cs]; }

  // Rows that are done take part as long as they share a vector with others, which nobody reads.
  void solve_columns(int64_t first, int count) const {
    alignas(vector_bytes) T rest[together][order] = {};
    T* const x = s_.x + first * s_.x_cs;
    for (int c = 0; c < count; ++c)
      for (int i = 0; i < n_; ++i) rest[c][i] = x[row(i) * s_.x_rs + c * s_.x_cs];
    for (int j = 0; j < n_; ++j) {
      const T* column = below_ + j * order;
      for (int c = 0; c < together; ++c) {
        const T found = s_.unit ? rest[c][j] : rest[c][j] / pivots_[j];
        if (c < count) x[row(j) * s_.x_rs + c * s_.x_cs] = found;
        for (int i = j / lanes * lanes; i < order; i += lanes)
          for (int l = i; l < i + lanes; ++l) rest[c][l] = rest[c][l] - column[l] * found;
      }
    }
  }

  // The same sums where rows of X are contiguous: a vector has an element of several columns.
  void solve_by_rows() const {
    constexpr int64_t width = row_vectors * lanes;
    parallel_for(ceil_div(s_.k, width), ceil_div(256, width), [this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        solve_vectors(i * width, static_cast<int>(min_of(s_.k - i * width, width)));
    });
  }
  void solve_vectors(int64_t first, int count) const {
    using S = Simd<T>;
    using Vec = typename S::Vec;
    alignas(vector_bytes) Vec found[order][row_vectors] = {};
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    for (int i = 0; i < n_; ++i) {
      T* const x = s_.x + row(i) * s_.x_rs + first;
      __builtin_memcpy(found[i], x, bytes);
      Vec rest[row_vectors];
      for (int v = 0; v < row_vectors; ++v) rest[v] = found[i][v];
      for (int j = 0; j < i; ++j) {
        const Vec factor = S::broadcast(below_[j * order + i]);
        for (int v = 0; v < row_vectors; ++v) rest[v] = rest[v] - factor * found[j][v];
      }
      for (int v = 0; v < row_vectors; ++v)
        found[i][v] = s_.unit ? rest[v] : rest[v] / S::broadcast(pivots_[i]);
      __builtin_memcpy(x, found[i], bytes);
    }
  }

  const TriangularSystem<T>& s_;
  int n_;
  alignas(vector_bytes) T below_[order * order];
  T pivots_[order];
};

// Rows and columns [begin, begin + n) of the matrix, and these rows of X.
template <class T>
TriangularSystem<T> part(const TriangularSystem<T>& s, int64_t begin, int64_t n) {
  TriangularSystem<T> p = s;
  p.n = n;
  p.a += begin * (s.a_rs + s.a_cs);
  p.x += begin * s.x_rs;
  return p;
}

// Takes what rows [from, from + n) of X, which are done, add to the m rows from `row` on out.
template <class T>
void take_out(const TriangularSystem<T>& s, int64_t row, int64_t m, int64_t from, int64_t n) {
  const T* a = s.a + row * s.a_rs + from * s.a_cs;
  gemm<T>({m, s.k, n, a, s.a_rs, s.a_cs, s.x + from * s.x_rs, s.x_rs, s.x_cs, s.x + row * s.x_rs,
           s.x_rs, s.x_cs, T(-1), T(1)});
}

}  // namespace

template <class T>
void solve_triangular_blocks(const TriangularSystem<T>& s) {
  if (s.n <= order) return DiagonalBlock<T>(s).solve();
  const int64_t half = round_up(s.n / 2, order);
  const TriangularSystem<T> low = part(s, 0, half), high = part(s, half, s.n - half);
  if (s.upper) {
    solve_triangular_blocks(high);
    take_out(s, 0, half, half, s.n - half);
    return solve_triangular_blocks(low);
  }
  solve_triangular_blocks(low);
  take_out(s, half, s.n - half, 0, half);
  solve_triangular_blocks(high);
}

template void solve_triangular_blocks(const TriangularSystem<float>&);
template void solve_triangular_blocks(const TriangularSystem<double>&);
template void solve_triangular_blocks(const TriangularSystem<complex64>&);
template void solve_triangular_blocks(const TriangularSystem<complex128>&);

}  // namespace facula::cpu::FACULA_ISA
