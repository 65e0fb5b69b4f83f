// How one product is computed: by plain loops, dot products, packed panels in place, or panels
// into a tile of scratch memory that is then written out. Included by the files that instantiate.
#pragma once
#include "core/debug.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_amx.h"
#include "kernels/cpu/matmul/gemm_axpy.h"
#include "kernels/cpu/matmul/gemm_dot.h"
#include "kernels/cpu/matmul/gemm_driver.h"
#include "kernels/cpu/matmul/gemm_pairs.h"
#include "kernels/cpu/matmul/gemm_small.h"

namespace facula::cpu::FACULA_ISA {

template <class T>
inline constexpr bool sums_in_place = std::is_same_v<tile_sum_t<T>, T>;

template <class T>
void scale_result(const GemmArgs<T>& g) {
  using Scalar = accumulate_t<T>;
  if (g.beta == Scalar(1) && !g.activation) return;
  const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 16) / g.n);
  parallel_for(g.m, grain, [&](int64_t begin, int64_t end) {
    GemmArgs<T> kept = g;
    kept.alpha = Scalar(1);
    for (int64_t i = begin; i < end; ++i) epilogue_row(kept, i, [](int64_t) { return Scalar(0); });
  });
}

inline constexpr int64_t tiny_product = 512;  // multiplications that plain loops do
static_assert(tiny_product <= epilogue_width);

template <class T>
[[gnu::always_inline]] inline accumulate_t<T> plain_sum(const GemmArgs<T>& g, int64_t i,
                                                        int64_t j) {
  using Scalar = accumulate_t<T>;
  const T* a = g.a + i * g.a_rs;
  const T* b = g.b + j * g.b_cs;
  Scalar sum = Scalar(0);
  for (int64_t p = 0; p < g.k; ++p) {
    const Scalar left = Convert<Scalar, T>::call(a[p * g.a_cs]);
    const Scalar right = Convert<Scalar, T>::call(b[p * g.b_rs]);
    if constexpr (std::is_floating_point_v<Scalar>)
      sum = multiply_add(left, right, sum);  // as vectors do
    else
      sum = sum + left * right;
  }
  return sum;
}

// Out of line: its buffer would make every product's frame larger.
template <class T>
[[gnu::noinline]] void plain_activated(const GemmArgs<T>& g) {
  alignas(vector_bytes) accumulate_t<T> sums[tiny_product];
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) sums[i * g.n + j] = plain_sum(g, i, j);
  epilogue_block(g, sums, g.n);
}

template <class T>
void gemm_loops(const GemmArgs<T>& given) {
  debug::print_route("matmul: plain loops");
  if constexpr (!is_complex_v<T>)
    if (given.activation) return plain_activated(given);
  const GemmArgs<T> g = given;  // stored results might be factors, as far as a compiler can tell
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j)
      store_sum(g.c + i * g.c_rs + j * g.c_cs, plain_sum(g, i, j), g.alpha, g.beta);
  }
}

// The rows [row, row + rows) and columns [col, col + cols) of a product as one of its own.
template <class T>
GemmArgs<T> sub_product(const GemmArgs<T>& g, int64_t row, int64_t rows, int64_t col,
                        int64_t cols) {
  GemmArgs<T> part = g;
  part.m = rows;
  part.n = cols;
  part.a += row * g.a_rs;
  part.b += col * g.b_cs;
  part.c += row * g.c_rs + col * g.c_cs;
  if (g.row != nullptr) part.row += col;
  return part;
}

template <class T, class S>
void write_tile(const GemmArgs<T>& g, const S* sums) {
  if (is_plain(g) && g.c_cs == 1)
    return parallel_for(g.m, max_of(int64_t{1}, (int64_t{1} << 17) / g.n),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i)
                            copy_row(g.c + i * g.c_rs, sums + i * g.n, 1, g.n);
                        });
  parallel_for(g.m, max_of(int64_t{1}, (int64_t{1} << 16) / g.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      epilogue_row(g, i, [row = sums + i * g.n](int64_t j) { return row[j]; });
  });
}

template <class T>
void real_tile(const GemmArgs<T>& g, tile_sum_t<T>* sums) {
  using S = tile_sum_t<T>;
  const Product<S, T> p = {g.m,    g.n,    g.k,  g.a, g.a_rs, g.a_cs, g.b,
                           g.b_rs, g.b_cs, sums, g.n, S(1),   S(0)};
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (has_pair_products) {
      pair_product(p);
      return write_tile(g, sums);
    }
  }
  packed_product<S, T>(p);
  write_tile(g, sums);
}

// A complex product as four real ones on the parts, which are real matrices of twice the strides.
template <class R>
void complex_tile(const GemmArgs<Complex<R>>& g, R* sums) {
  const R* a = reinterpret_cast<const R*>(g.a);
  const R* b = reinterpret_cast<const R*>(g.b);
  R* imaginary = sums + g.m * g.n;
  const auto add = [&](const R* left, const R* right, R* to, R alpha, R beta) {
    packed_product<R, R>({g.m, g.n, g.k, left, 2 * g.a_rs, 2 * g.a_cs, right, 2 * g.b_rs,
                          2 * g.b_cs, to, g.n, alpha, beta});
  };
  add(a, b, sums, R(1), R(0));
  add(a + 1, b + 1, sums, R(-1), R(1));
  add(a, b + 1, imaginary, R(1), R(0));
  add(a + 1, b, imaginary, R(1), R(1));
  for (int64_t i = 0; i < g.m; ++i) {
    const R *real = sums + i * g.n, *other = imaginary + i * g.n;
    epilogue_row(g, i, [&](int64_t j) { return Complex<R>(real[j], other[j]); });
  }
}

// For results that cannot be summed in place: another type, or no contiguous rows.
template <class T>
void gemm_through_tiles(const GemmArgs<T>& g) {
  debug::print_route("matmul: packed panels, through tiles of sums");
  constexpr int64_t max_rows = 512, max_cols = 1024;
  const int64_t planes = is_complex_v<T> ? 2 : 1;
  const int64_t rows = min_of(g.m, max_rows), cols = min_of(g.n, max_cols);
  const Scratch<tile_sum_t<T>> sums(planes * rows * cols);
  for (int64_t row = 0; row < g.m; row += rows) {
    for (int64_t col = 0; col < g.n; col += cols) {
      const GemmArgs<T> part =
          sub_product(g, row, min_of(rows, g.m - row), col, min_of(cols, g.n - col));
      if constexpr (is_complex_v<T>) {
        complex_tile(part, sums.get());
      } else {
        real_tile(part, sums.get());
      }
    }
  }
}

// The same product as that of the transposes.
template <class T>
GemmArgs<T> transposed(const GemmArgs<T>& g) {
  return {g.n,    g.m, g.k,    g.b,    g.b_cs,  g.b_rs, g.a,         g.a_cs,
          g.a_rs, g.c, g.c_cs, g.c_rs, g.alpha, g.beta, g.activation};
}

// Whether B is better read where it lies than packed: for few rows of A, or where it is so small
// that packing it takes longer than the product.
inline bool reads_pairs_in_place(const GemmArgs<BFloat16>& g) {
  constexpr int64_t small_rows = 4 * max_direct_rows, small_matrix = 2048;
  if (g.b_cs != 1) return false;
  return g.m <= max_direct_rows || (g.m <= small_rows && g.k * g.n <= small_matrix);
}

// Whether each panel of B is packed where it is multiplied: packing takes longer than the product
// of few rows. Tiles have sums of their own.
inline bool packs_own_panels(const GemmArgs<BFloat16>& g) {
  return g.m <= (has_amx() ? max_direct_rows : 4 * max_direct_rows);
}

// Whether so few rows are multiplied that their time is that of reading B once.
inline bool reads_all_in_place(const GemmArgs<BFloat16>& g) {
  if (!has_pair_products || g.c_cs != 1) return false;
  return g.b_cs == 1 ? g.m <= max_wide_rows : g.b_rs == 1 && g.m <= max_column_rows;
}

// Whether products of pairs make the result in one pass, in which it is finished as it is stored.
inline bool suits_pairs(const GemmArgs<BFloat16>& g) {
  return (has_pair_products && g.k <= pair_steps && g.c_cs == 1) || reads_all_in_place(g);
}

inline void run_pairs(const GemmArgs<BFloat16>& g) {
  constexpr int64_t most_columns = 1024;
  const bool direct = reads_pairs_in_place(g), own = packs_own_panels(g);
  const bool in_place = reads_all_in_place(g), few = in_place || direct || own;
  debug::print_route(has_amx() && !few ? "matmul: tiles of bfloat16" : "matmul: pairs of bfloat16");
  for (int64_t col = 0; col < g.n; col += most_columns) {
    const int64_t cols = few ? g.n : min_of(most_columns, g.n - col);
    const GemmArgs<BFloat16> part = sub_product(g, 0, g.m, col, cols);
    const Product<float, BFloat16> p = {part.m,    part.n, part.k,    part.a,    part.a_rs,
                                        part.a_cs, part.b, part.b_rs, part.b_cs, nullptr,
                                        0,         1,      0};
    if (in_place) return in_place_product(p, part);
    if (direct) return direct_pair_product(p, part);
    if (own) return own_panel_product(p, part);
    pair_product(p, part);
  }
}

// Few rows, and a matrix that is read once and lies along k.
template <class T>
bool suits_dot(const GemmArgs<T>& g) {
  return g.m <= 2 * dot_tile_rows && g.b_rs == 1 && g.k >= 4 * Simd<T>::lanes;
}

template <class T>
void run_dot(const GemmArgs<T>& g) {
  debug::print_route("matmul: dot products");
  if (g.a_cs == 1) {
    dot_product<T>({g.m, g.n, g.k, g.a, g.a_rs, g.b, g.b_cs, g.c, g.c_rs, g.c_cs, g.alpha, g.beta,
                    g.activation});
    return;
  }
  const Scratch<T> rows(g.m * g.k);
  copy_matrix(rows.get(), g.k, g.a, g.a_rs, g.a_cs, g.m, g.k);
  dot_product<T>({g.m, g.n, g.k, rows.get(), g.k, g.b, g.b_cs, g.c, g.c_rs, g.c_cs, g.alpha, g.beta,
                  g.activation});
}

template <class T>
bool suits_row(const GemmArgs<T>& g) {
  return g.m == 1 && g.b_cs == 1 && g.k >= 16 && g.n >= 4 * Simd<T>::lanes;
}

template <class T>
void run_row(const GemmArgs<T>& g) {
  debug::print_route("matmul: one row");
  row_product<T>({g.n, g.k, g.a, g.a_cs, g.b, g.b_rs, g.c, g.c_cs, g.alpha, g.beta, g.activation});
}

template <class T>
void run_in_place(const GemmArgs<T>& g) {
  debug::print_route("matmul: packed panels, summed in place");
  packed_product<T, T>({g.m, g.n, g.k, g.a, g.a_rs, g.a_cs, g.b, g.b_rs, g.b_cs, g.c, g.c_rs,
                        g.alpha, g.beta, g.activation, g.row});
}

template <class T>
bool is_tiny(const GemmArgs<T>& g) {
  return g.m <= tiny_product && g.n <= tiny_product && g.k <= tiny_product &&
         g.m * g.n * g.k <= tiny_product;
}

// The same product, its addend in each row of C.
template <class T>
GemmArgs<T> with_rows_stored(const GemmArgs<T>& g) {
  parallel_for(g.m, max_of(int64_t{1}, (int64_t{1} << 16) / g.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* c = g.c + i * g.c_rs;
      if (g.c_cs == 1)
        __builtin_memcpy(c, g.row, static_cast<size_t>(g.n) * sizeof(T));
      else
        for (int64_t j = 0; j < g.n; ++j) c[j * g.c_cs] = g.row[j];
    }
  });
  GemmArgs<T> stored = g;
  stored.row = nullptr;
  return stored;
}

// Whether results have their own sums in order, in registers, rather than dot products in parts:
// those add up their lanes at the end, which short ones lose more by than by lanes that stay empty.
template <class T>
bool suits_small(const GemmArgs<T>& g) {
  if constexpr (!std::is_same_v<T, float> && !std::is_same_v<T, double>)
    return false;
  else {
    constexpr int64_t lanes = Simd<T>::lanes, folding = 10;
    if (!fits_small(g) || suits_dot(g)) return false;
    if (g.m == 1 || g.n == 1) return g.n > 1 && is_tiny(g);
    return g.n >= lanes || g.k * (lanes - g.n) < folding * g.n * lanes;
  }
}

// Needs k >= 1, and no factor of zero.
template <class T>
void run_small(const GemmArgs<T>& g) {
  debug::print_route("matmul: small, read in place");
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    const int64_t rows = round_up(max_of(int64_t{1}, (int64_t{1} << 17) / (g.n * g.k)), 24);
    parallel_for(g.m, rows, [&](int64_t begin, int64_t end) { small_rows(g, begin, end); });
  }
}

template <class T>
bool suits_vectors(const GemmArgs<T>& g) {
  if constexpr (std::is_floating_point_v<T>) return suits_dot(g) || suits_row(g);
  return false;
}

// Whether C is summed in place by packed panels, which add rows by themselves.
template <class T>
bool suits_panels(const GemmArgs<T>& g) {
  return sums_in_place<T> && g.n > 1 && g.c_cs == 1 && !is_tiny(g) && !suits_vectors(g) &&
         !suits_vectors(transposed(g));
}

// T: any element type but signed integers, which are done as unsigned ones.
template <class T>
void gemm_dispatch(const GemmArgs<T>& g) {
  if (g.m <= 0 || g.n <= 0) return;
  if constexpr (std::is_same_v<T, BFloat16>) {
    const bool some = g.k > 0 && g.alpha != 0 && !is_tiny(g);
    if (some && g.n == 1 && g.row == nullptr)  // a matrix times a vector
      if (const GemmArgs<T> flipped = transposed(g); reads_all_in_place(flipped))
        return run_pairs(flipped);
    if (some && suits_pairs(g)) return run_pairs(g);
  }
  const bool empty = g.k <= 0 || g.alpha == accumulate_t<T>(0);
  if (!empty && suits_small(g)) return run_small(g);
  if constexpr (sums_in_place<T>)
    if (!empty && suits_panels(g)) return run_in_place(g);
  if (g.row != nullptr) return gemm_dispatch(with_rows_stored(g));
  if (empty) return scale_result(g);
  if (const GemmArgs<T> flipped = transposed(g); suits_small(flipped)) return run_small(flipped);
  if (is_tiny(g)) return gemm_loops(g);
  if constexpr (std::is_floating_point_v<T>) {
    if (suits_dot(g)) return run_dot(g);
    const GemmArgs<T> flipped = transposed(g);
    if (suits_dot(flipped)) return run_dot(flipped);
    if (suits_row(g)) return run_row(g);
    if (suits_row(flipped)) return run_row(flipped);
  }
  if constexpr (std::is_same_v<T, BFloat16>) {
    const GemmArgs<T> flipped = transposed(g);
    if (suits_pairs(flipped)) return run_pairs(flipped);
  }
  if constexpr (sums_in_place<T>) {
    const GemmArgs<T> flipped = transposed(g);
    if (flipped.c_cs == 1) return run_in_place(flipped);
  }
  gemm_through_tiles(g);
}

// Several products: side by side when each is small, one after the other, each on all threads,
// when it is large. An operand A that lies evenly makes one tall product of them.
template <class T>
void gemm_dispatch_batched(const GemmArgs<T>& g, int64_t batch, int64_t a_bs, int64_t b_bs,
                           int64_t c_bs) {
  if (batch <= 0 || g.m <= 0 || g.n <= 0) return;
  if (b_bs == 0 && a_bs == g.m * g.a_rs && c_bs == g.m * g.c_rs) {
    GemmArgs<T> tall = g;
    tall.m = batch * g.m;
    return gemm_dispatch(tall);
  }
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) *
                      static_cast<double>(max_of(g.k, int64_t{1}));
  // Starting a small product costs as much time as this many multiplications.
  const double large = 1 << 24, chunk = 1 << 17, begin_cost = 512;
  const auto grain = max_of(int64_t{1}, static_cast<int64_t>(chunk / (work + begin_cost)));
  const bool small = g.k > 0 && g.alpha != accumulate_t<T>(0) && suits_small(g);
  const auto run = [&](int64_t begin, int64_t end) {
    GemmArgs<T> one = g;
    one.a += begin * a_bs;
    one.b += begin * b_bs;
    one.c += begin * c_bs;
    for (int64_t i = begin; i < end; ++i, one.a += a_bs, one.b += b_bs, one.c += c_bs) {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        if (small && work < large) {
          small_rows(one, 0, g.m);
          continue;
        }
      }
      gemm_dispatch(one);
    }
  };
  if (batch < 16 && work >= large) return run(0, batch);
  parallel_for(batch, grain, run);
}

}  // namespace facula::cpu::FACULA_ISA
