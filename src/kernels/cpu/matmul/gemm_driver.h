// The blocked product over packed panels: C[m,n] = alpha A B + beta C with C's rows contiguous, and
// an activation of that.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/matmul/gemm_epilogue.h"
#include "kernels/cpu/matmul/gemm_kernel.h"
#include "kernels/cpu/simd/block_sizes.h"

namespace facula::cpu::FACULA_ISA {

// Acc: what is summed and stored (a type of tile_kernel); In: what A and B hold.
template <class Acc, class In>
struct Product {
  int64_t m, n, k;
  const In* a;
  int64_t a_rs, a_cs;
  const In* b;
  int64_t b_rs, b_cs;
  Acc* c;
  int64_t c_rs;
  Acc alpha, beta;
  Activation activation = nullptr;
  const Acc* row = nullptr;  // stands for each row of C where beta is 1
};

// How a product is cut, from its shape, the caches and whether other threads may help. No cut goes
// through a sum, so results never depend on the threads.
template <class Acc, class In>
struct Plan {
  static constexpr int64_t lanes = Simd<Acc>::lanes;
  static constexpr int64_t rows_alone = 384 / sizeof(Acc);
  int64_t tallest;              // rows of a tile
  int64_t row_jobs;             // ranges of rows, as even as they can be
  int64_t width, panels;        // columns of a panel of B
  int64_t col_chunk, col_jobs;  // panels a job takes
  bool direct;                  // B is read in place

  explicit Plan(const Product<Acc, In>& p, int64_t cols) {
    const int64_t depth = min_of(p.k, gemm_depth<Acc>);
    const int64_t threads = in_parallel_region() ? 1 : num_threads();
    const int64_t most = max_of(int64_t{16}, 4 * threads);
    const int64_t wanted = min_of(max_of(p.m * cols * depth >> 19, int64_t{1}), most);
    tallest = tile_rows(cols);
    // Each job reads all of B. Without other threads there is nothing to share out, and rows of A
    // are packed once.
    const int64_t least_rows = threads == 1 ? rows_alone : 2 * max_tile_rows;
    const int64_t high = min_of(wanted, max_of(p.m / least_rows, int64_t{1}));
    row_jobs = even_jobs(max_of(high, ceil_div(p.m, max_row_block(tallest))), threads);
    width = tile_vectors(max_of(tallest_of(p.m / row_jobs), tallest_of(ceil_div(p.m, row_jobs)))) *
            lanes;
    panels = ceil_div(cols, width);
    const int64_t wide = min_of(ceil_div(wanted, row_jobs), ceil_div(panels, int64_t{2}));
    col_jobs = row_jobs % threads == 0 ? 1 : even_jobs(wide, threads);
    col_chunk = ceil_div(panels, col_jobs);
    col_jobs = ceil_div(panels, col_chunk);
    direct = reads_in_place(p);
  }

  // Rows of the tallest tile of a job.
  int tallest_of(int64_t rows) const { return RowPanels(rows, tallest).tallest(); }

  // As many jobs for each thread, if there is one for each.
  static int64_t even_jobs(int64_t jobs, int64_t threads) {
    return jobs <= threads ? jobs : round_up(jobs, threads);
  }

  static int64_t max_row_block(int64_t tile) {
    return max_of(block_sizes().product_rows / tile, int64_t{1}) * tile;
  }

  // Fewer rows than there are registers for make wider tiles, which read less of A: for results
  // that fill them.
  static int64_t tile_rows(int64_t cols) {
    const int64_t asked = min_of(block_sizes().tile_rows, int64_t{max_tile_rows});
    return cols >= 2 * tile_vectors(static_cast<int>(asked)) * lanes ? asked : max_tile_rows;
  }

  // Packing B pays once its rows are far apart and it is read for many panels of A.
  static bool reads_in_place(const Product<Acc, In>& p) {
    return has_rows(p) && (p.m <= block_sizes().unpacked_rows || lies_near(p));
  }

  static bool lies_near(const Product<Acc, In>& p) {
    const int64_t distance = p.b_rs < 0 ? -p.b_rs : p.b_rs;
    return has_rows(p) &&
           p.k * distance * static_cast<int64_t>(sizeof(In)) <= block_sizes().unpacked_product;
  }

  static bool has_rows(const Product<Acc, In>& p) { return std::is_same_v<Acc, In> && p.b_cs == 1; }
};

// One block of columns [col, col + cols) and steps [step, step + depth) of a product.
template <class Acc, class In>
class BlockProduct {
 public:
  BlockProduct(const Product<Acc, In>& p, const Plan<Acc, In>& plan, Acc* packed, int64_t col,
               int64_t cols, int64_t step)
      : p_(p), plan_(plan), packed_(packed), col_(col), cols_(cols), step_(step) {
    depth_ = min_of(p.k - step, gemm_depth<Acc>);
    beta_ = step == 0 ? p.beta : Acc(1);
    adds_row_ = p.row != nullptr && step == 0;
    activates_ = p.activation != nullptr && step + depth_ == p.k;
  }

  void run() {
    pack();
    parallel_for(plan_.row_jobs * plan_.col_jobs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job)
        run_job(job / plan_.col_jobs, job % plan_.col_jobs);
    });
  }

 private:
  static constexpr int64_t strip_rows = 16, near_elements = (128 << 10) / sizeof(Acc);

  int64_t panel_cols(int64_t j) const { return min_of(plan_.width, cols_ - j * plan_.width); }

  const In* right(int64_t col) const { return p_.b + step_ * p_.b_rs + (col_ + col) * p_.b_cs; }

  bool read_in_place(int64_t j) const { return plan_.direct && panel_cols(j) % plan_.lanes == 0; }

  // Rows of B that lie dense are packed a strip of them at a time: far fewer pages than a panel
  // has at once.
  void pack() {
    const int64_t first = plan_.direct ? cols_ / plan_.lanes * plan_.lanes / plan_.width : 0;
    const int64_t panels = plan_.panels - first;
    if (panels == 0) return;
    const int64_t strip = p_.b_cs == 1 ? min_of(depth_, strip_rows) : depth_;
    const int64_t wide = p_.b_cs == 1 ? panels : 1;  // panels of one job
    const int64_t strips = ceil_div(depth_, strip), jobs = strips * (panels / wide);
    const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 16) / (strip * wide * plan_.width));
    const int64_t parts = plan_.even_jobs(ceil_div(jobs, grain), num_threads());
    parallel_for(jobs, ceil_div(jobs, parts), [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const int64_t row = job % strips * strip, panel = first + job / strips * wide;
        for (int64_t j = panel; j < panel + wide; ++j)
          pack_panel(j, row, min_of(strip, depth_ - row));
      }
    });
  }

  void pack_panel(int64_t j, int64_t row, int64_t count) {
    if (read_in_place(j)) return;
    copy_padded(packed_ + packed_offset(j) + row * plan_.width, plan_.width,
                right(j * plan_.width) + row * p_.b_rs, p_.b_rs, p_.b_cs, count, panel_cols(j),
                round_up(panel_cols(j), plan_.lanes));
  }

  // When B is read in place, only a ragged last panel is packed.
  int64_t packed_offset(int64_t j) const { return plan_.direct ? 0 : j * depth_ * plan_.width; }

  void run_job(int64_t row_job, int64_t col_job) {
    const RowPanels jobs = RowPanels::of_count(p_.m, plan_.row_jobs);
    const int64_t row = jobs.begin(row_job);
    const RowPanels panels(jobs.height(row_job), plan_.tallest);
    const Scratch<Acc> left(panels.rows * packed_pitch<Acc>);
    copy_matrix(left.get(), packed_pitch<Acc>, p_.a + row * p_.a_rs + step_ * p_.a_cs, p_.a_rs,
                p_.a_cs, panels.rows, depth_);
    const int64_t first = col_job * plan_.col_chunk;
    const int64_t count = min_of(plan_.panels, first + plan_.col_chunk) - first;
    // Memory takes results best in its own order, where B stays in a near cache meanwhile.
    const bool by_rows = count * plan_.width * depth_ <= near_elements;
    for (int64_t x = 0; x < count * panels.count; ++x) {
      const int64_t i = by_rows ? x / count : x % panels.count;
      const int64_t j = first + (by_rows ? x % count : x / panels.count);
      const int64_t begin = panels.begin(i);
      const Acc* a = left.get() + begin * packed_pitch<Acc>;
      Acc* c = p_.c + (row + begin) * p_.c_rs + col_ + j * plan_.width;
      const Tile tile{a, panels.height(i), j, i == 0};
      if (activates_) {
        run_activated(tile, c);
      } else {
        run_tile(tile, c, p_.c_rs, addend(j, c));
      }
    }
  }

  // Packed rows of A, panel j of columns, and whether this job has read none of the panel yet.
  struct Tile {
    const Acc* left;
    int height;
    int64_t j;
    bool new_panel;
  };

  // What beta times is added to a tile at c.
  struct Addend {
    const Acc* at;
    int64_t rs;
  };
  Addend addend(int64_t j, const Acc* c) const {
    if (adds_row_) return {p_.row + col_ + j * plan_.width, 0};
    return {c, p_.c_rs};
  }

  // The results of a tile do not wait for memory to take them before they are activated; their
  // lines come while sums are made, since the activation leaves no time to wait for them.
  void run_activated(const Tile& tile, Acc* c) {
    alignas(vector_bytes) Acc block[max_accumulators * plan_.lanes];
    const int64_t cols = panel_cols(tile.j);
    for (int i = 0; i < tile.height; ++i)
      for (int64_t x = 0; x < cols; x += plan_.lanes) __builtin_prefetch(c + i * p_.c_rs + x, 1);
    run_tile(tile, block, cols, addend(tile.j, c));
    activate_padded(p_.activation, block, tile.height * cols);
    copy_tile(c, p_.c_rs, block, cols, tile.height, cols);
  }

  void copy_tile(Acc* to, int64_t to_rs, const Acc* from, int64_t from_rs, int height,
                 int64_t cols) {
    for (int i = 0; i < height; ++i, to += to_rs, from += from_rs) {
      int64_t x = 0;
      for (; x + plan_.lanes <= cols; x += plan_.lanes)
        Simd<Acc>::store(to + x, Simd<Acc>::load(from + x));
      for (; x < cols; ++x) to[x] = from[x];
    }
  }

  void run_tile(const Tile& tile, Acc* c, int64_t c_rs, Addend add) {
    const auto [left, height, j, new_panel] = tile;
    const int64_t cols = panel_cols(j);
    const bool in_place = read_in_place(j);
    const Acc* b = packed_ + packed_offset(j);
    if constexpr (std::is_same_v<Acc, In>) {
      if (in_place) b = right(j * plan_.width);
    }
    const int64_t b_rs = in_place ? p_.b_rs : plan_.width;
    const bool distant = in_place && new_panel;
    const auto kernel =
        (distant ? distant_tile_kernel<Acc>
                 : tile_kernel<Acc>)(height, static_cast<int>(ceil_div(cols, plan_.lanes)));
    // Short sums that are added up lose less than one long one.
    const int64_t chain = ceil_div(depth_, ceil_div(depth_, gemm_chain<Acc>));
    const auto multiply = [&](Acc* to, int64_t pitch, Acc beta) {
      for (int64_t k = 0; k < depth_; k += chain, beta = Acc(1))
        kernel(min_of(chain, depth_ - k), left + k, b + k * b_rs, b_rs, to, pitch, p_.alpha, beta);
    };
    if (cols % plan_.lanes == 0) {
      if (beta_ != Acc(0) && add.at != c) copy_tile(c, c_rs, add.at, add.rs, height, cols);
      return multiply(c, c_rs, beta_);
    }
    // A ragged tile is added to in the order of whole ones: where panels end must not show.
    alignas(vector_bytes) Acc edge[max_accumulators * plan_.lanes];
    const int64_t pitch = round_up(cols, plan_.lanes);
    if (beta_ != Acc(0)) {
      for (int64_t i = 0; i < height * pitch; ++i) edge[i] = Acc(0);
      copy_tile(edge, pitch, add.at, add.rs, height, cols);
    }
    multiply(edge, pitch, beta_);
    copy_tile(c, c_rs, edge, pitch, height, cols);
  }

  const Product<Acc, In>& p_;
  const Plan<Acc, In>& plan_;
  Acc* packed_;
  int64_t col_, cols_, step_, depth_;
  Acc beta_;
  bool adds_row_, activates_;
};

template <class Acc, class In>
void product_by_blocks(const Product<Acc, In>& p) {
  using Cut = Plan<Acc, In>;
  const int64_t max_cols = min_of(p.n, block_sizes().product_columns);
  // The last columns may be cut into panels of another width.
  constexpr int64_t widest = tile_vectors(1) * Cut::lanes;
  const int64_t depth = min_of(p.k, gemm_depth<Acc>);
  const Scratch<Acc> packed(depth * (Cut::reads_in_place(p) ? widest : max_cols + widest));
  for (int64_t col = 0; col < p.n; col += max_cols) {
    const int64_t cols = min_of(max_cols, p.n - col);
    const Cut plan(p, cols);
    for (int64_t step = 0; step < p.k; step += gemm_depth<Acc>)
      BlockProduct<Acc, In>(p, plan, packed.get(), col, cols, step).run();
  }
}

// How many columns of B a job has for itself and multiplies by all of A, or 0 where all jobs share
// one copy of B. What another core has just written is slow to read, but jobs of columns pack
// A once more each: they take few rows, or enough columns for that to be little of the work.
template <class Acc, class In>
int64_t own_columns(const Product<Acc, In>& p) {
  const BlockSizes& sizes = block_sizes();
  const int64_t threads = in_parallel_region() ? 1 : num_threads();
  if (threads == 1 || p.m > p.n || Plan<Acc, In>::lies_near(p)) return 0;
  constexpr int64_t small_product = 1 << 20;
  if (p.m * p.n * min_of(p.k, gemm_depth<Acc>) < small_product) return 0;
  const int64_t jobs = threads * ceil_div(p.n, threads * sizes.product_columns / 8);
  const int64_t cols = round_up(ceil_div(p.n, jobs), Simd<Acc>::lanes);
  const int64_t least = p.m <= sizes.product_rows ? 128 : 2048 / sizeof(Acc);
  return cols < least ? 0 : cols;
}

// Needs m, n, k >= 1. Reads C unless beta is 0.
template <class Acc, class In>
void packed_product(const Product<Acc, In>& p) {
  const int64_t own = own_columns(p);
  if (own == 0) return product_by_blocks(p);
  parallel_for(p.n, own, [&](int64_t col, int64_t end) {
    Product<Acc, In> part = p;
    part.n = end - col;
    part.b += col * p.b_cs;
    part.c += col;
    if (p.row != nullptr) part.row += col;
    product_by_blocks(part);
  });
}

}  // namespace facula::cpu::FACULA_ISA
