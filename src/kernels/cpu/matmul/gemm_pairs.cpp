#include "kernels/cpu/matmul/gemm_pairs.h"

#include "kernels/cpu/matmul/gemm_amx.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)
namespace {

constexpr int64_t depth = pair_depth, pitch = pair_pitch, width = pair_width, lanes = width / 2;
constexpr int64_t strip_pairs = 16;  // that are packed of all panels in one go

// to[i * to_rs + j] = the elements (2 i, j) and (2 i + 1, j) of a matrix of k rows.
void pack_pairs(Pair* to, int64_t to_rs, const BFloat16* from, int64_t rs, int64_t cs, int64_t k,
                int64_t columns) {
  int64_t i = 0;
  if (rs == 1 && cs % 2 == 0) {  // pairs lie side by side
    i = k / 2;
    copy_matrix(to, to_rs, reinterpret_cast<const Pair*>(from), 1, cs / 2, i, columns);
  }
  for (; 2 * i + 1 < k; ++i) {
    const BFloat16 *low = from + 2 * i * rs, *high = low + rs;
    Pair* row = to + i * to_rs;
    int64_t j = 0;
    for (; cs == 1 && j + width <= columns; j += width) zip_rows(row + j, low + j, high + j);
    for (; j < columns; ++j) row[j] = pair_of(low + j * cs, high + j * cs);
  }
  if (k % 2 != 0)
    for (int64_t j = 0; j < columns; ++j)
      to[i * to_rs + j] = pair_of(from + 2 * i * rs + j * cs, nullptr);
}

// Rows of a panel of B, zeros behind its columns.
void pack_panel_rows(Pair* to, const BFloat16* from, int64_t rs, int64_t cs, int64_t k,
                     int64_t columns) {
  pack_pairs(to, width, from, rs, cs, k, columns);
  if (columns == width) return;
  for (int64_t i = 0; i < ceil_div(k, int64_t{2}); ++i)
    for (int64_t c = columns; c < width; ++c) to[i * width + c] = 0;
}

// pack_rows of a matrix whose columns are contiguous: pairs are made along them, then transposed.
void pack_columns(Pair* to, const BFloat16* from, int64_t cs, int64_t rows, int64_t k) {
  const Scratch<Pair> zipped(k / 2 * width);
  for (int64_t first = 0; first < rows; first += width) {
    const int64_t at = min_of(first, rows - width);
    for (int64_t p = 0; p < k / 2; ++p)
      zip_rows(zipped.get() + p * width, from + at + 2 * p * cs, from + at + (2 * p + 1) * cs);
    copy_matrix(to + at * pitch, pitch, zipped.get(), 1, width, width, k / 2);
  }
}

// to[i * pitch + p] = the pair p of row i, zeros from the last one to `padded`.
void pack_rows(Pair* to, const BFloat16* from, int64_t rs, int64_t cs, int64_t rows, int64_t k,
               int64_t padded) {
  const bool by_columns = rs == 1 && cs != 1 && rows >= width && k >= 2;
  if (by_columns) pack_columns(to, from, cs, rows, k);
  for (int64_t i = 0; i < rows; ++i) {
    const BFloat16* row = from + i * rs;
    Pair* packed = to + i * pitch;
    if (cs == 1)
      __builtin_memcpy(packed, row, static_cast<size_t>(k / 2) * sizeof(Pair));
    else if (!by_columns)
      for (int64_t p = 0; p < k / 2; ++p)
        packed[p] = pair_of(row + 2 * p * cs, row + (2 * p + 1) * cs);
    if (k % 2 != 0) packed[k / 2] = pair_of(row + (k - 1) * cs, nullptr);
    for (int64_t p = ceil_div(k, int64_t{2}); p < padded; ++p) packed[p] = 0;
  }
}

// sums[j] += addend[j]; behind the last column there is room for whole vectors.
void add_row(float* sums, const BFloat16* addend, int64_t columns) {
  for (int64_t j = 0; j < columns; j += lanes) {
    const auto keep = static_cast<__mmask16>((1u << min_of(columns - j, lanes)) - 1);
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(keep, addend + j));
    const auto value = _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
    _mm512_store_ps(sums + j, _mm512_add_ps(_mm512_load_ps(sums + j), value));
  }
}

// Finishes rows and columns from (row, col) on, whose sums lie in rows of `padded`, all of which
// are written: whole vectors.
void epilogue_part(const GemmArgs<BFloat16>& g, int64_t row, int64_t rows, int64_t col,
                   int64_t columns, float* sums, int64_t padded) {
  BFloat16* c = g.c + row * g.c_rs + col;
  const BFloat16* addend = g.row != nullptr ? g.row + col : c;
  const int64_t addend_rs = g.row != nullptr ? 0 : g.c_rs;
  for (int64_t i = 0; i < rows; ++i, addend += addend_rs) {
    if (g.alpha == 1 && g.beta == 1)
      add_row(sums + i * padded, addend, columns);
    else
      blend(g, sums + i * padded, addend, columns);
  }
  if (g.activation) activate_padded(g.activation, sums, rows * padded);
  narrow_rows(c, g.c_rs, sums, padded, rows, columns);
}

// Pairs along k that packed operands have: tiles take whole multiples of theirs.
int64_t padded_pairs(int64_t k) {
  const int64_t pairs = ceil_div(k, int64_t{2});
  return has_amx() ? round_up(pairs, amx_pairs) : pairs;
}

// Steps [step, step + k) of a product.
class Pass {
 public:
  // `add`: to what stands in C before the first pass.
  Pass(const Product<float, BFloat16>& p, Pair* packed, int64_t step, bool add = false)
      : p_(p),
        packed_(packed),
        step_(step),
        k_(min_of(p.k - step, 2 * depth)),
        add_(add || step > 0) {
    panels_ = ceil_div(p.n, width);
    pairs_ = padded_pairs(k_);
    const int64_t work = p.m * p.n * pairs_ >> (has_amx() ? 21 : 19);
    const int64_t wanted = min_of(max_of(work, int64_t{1}), int64_t{16});
    // Tiles stream B past each block of rows, from a cache further away: few tall blocks.
    const int64_t unit = has_amx() ? amx_rows : max_tile_rows, few = has_amx() ? 4 : wanted;
    const int64_t least = has_amx() ? 4 * amx_rows : 4 * max_tile_rows, panels = has_amx() ? 8 : 2;
    const int64_t most =
        has_amx() ? max_of(block_sizes().product_rows, least) : int64_t{12 * max_tile_rows};
    const int64_t row_jobs = min_of(min_of(wanted, few), ceil_div(p.m, least));
    rows_ = min_of(round_up(ceil_div(p.m, row_jobs), unit), most / unit * unit);
    row_jobs_ = ceil_div(p.m, rows_);
    const int64_t col_jobs = min_of(ceil_div(wanted, row_jobs_), ceil_div(panels_, panels));
    chunk_ = ceil_div(panels_, col_jobs);
    col_jobs_ = ceil_div(panels_, chunk_);
    panel_size_ = (pairs_ + 1) * width;
  }

  // What the sums become, instead of p.c.
  void set_epilogue(const GemmArgs<BFloat16>& result) { result_ = &result; }

  void run() {
    pack();
    multiply();
  }

  // Rows of B that lie dense are packed a strip of them at a time: far fewer pages than a panel
  // has at once.
  void pack() {
    const bool dense = p_.b_cs == 1;
    const int64_t strip = dense ? 2 * strip_pairs : k_, strips = ceil_div(k_, strip);
    const int64_t jobs = dense ? strips : panels_;
    const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 17) * jobs / (k_ * panels_ * width));
    parallel_for(jobs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        if (!dense) {
          pack_panel(job, 0, k_);
          continue;
        }
        const int64_t first = job * strip, count = min_of(strip, k_ - first);
        for (int64_t j = 0; j < panels_; ++j) pack_panel(j, first, count);
      }
    });
  }

  void multiply() {
    parallel_for(row_jobs_ * col_jobs_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) run_job(job / col_jobs_, job % col_jobs_);
    });
  }

 private:
  // Not a power of two apart: the caches have few places for those.
  Pair* panel(int64_t j) const { return packed_ + j * panel_size_; }
  int64_t columns(int64_t j) const { return min_of(width, p_.n - j * width); }

  // Steps [first, first + count) of a panel, and zeros behind the last one.
  void pack_panel(int64_t j, int64_t first, int64_t count) {
    const BFloat16* from = p_.b + (step_ + first) * p_.b_rs + j * width * p_.b_cs;
    Pair* to = panel(j) + first / 2 * width;
    pack_panel_rows(to, from, p_.b_rs, p_.b_cs, count, columns(j));
    if (first + count < k_) return;
    for (int64_t i = ceil_div(k_, int64_t{2}) * width; i < pairs_ * width; ++i) panel(j)[i] = 0;
  }

  void run_job(int64_t row_job, int64_t col_job) {
    const int64_t row = row_job * rows_;
    const RowPanels panels(min_of(rows_, p_.m - row));
    const PairScope pairs;
    const AmxScope tiles;
    const BFloat16* a = p_.a + row * p_.a_rs + step_ * p_.a_cs;
    const bool in_place = tiles && tiles_read(a, panels.rows);
    const Scratch<Pair> packed(in_place ? 1 : round_up(panels.rows, amx_rows) * pitch);
    const Pair* left = in_place ? reinterpret_cast<const Pair*>(a) : packed.get();
    const int64_t left_pitch = in_place ? p_.a_rs / 2 : pitch;
    if (!in_place) pack_rows(packed.get(), a, p_.a_rs, p_.a_cs, panels.rows, k_, pairs_);
    const int64_t last = min_of(panels_, (col_job + 1) * chunk_);
    const bool has_epilogue = result_ != nullptr && !is_plain(*result_);
    const Scratch<float> sums(has_epilogue ? panels.rows * width : 1);
    for (int64_t j = col_job * chunk_; j < last; ++j) {
      const int64_t padded = columns(j) > lanes ? width : lanes;
      const auto tile_from = [&](int64_t begin) {
        PairTile t = tile_at(row + begin, j);
        t.a = left + begin * left_pitch;
        t.a_pitch = left_pitch;
        if (has_epilogue) {
          t.c = sums.get() + begin * padded;
          t.c_rs = t.columns = padded;
        }
        return t;
      };
      if (tiles) {
        amx_tile(tile_from(0), panels.rows);
      } else {
        for (int64_t i = 0; i < panels.count; ++i) {
          const PairTile t = tile_from(panels.begin(i));
          pair_kernel(panels.height(i), t.columns)(t);
        }
      }
      if (has_epilogue)
        epilogue_part(*result_, row, panels.rows, j * width, columns(j), sums.get(), padded);
    }
  }

  // Whether tiles can take rows of A from where they lie: whole tiles of whole pairs.
  bool tiles_read(const BFloat16* a, int64_t rows) const {
    const bool pairs =
        p_.a_cs == 1 && p_.a_rs % 2 == 0 && reinterpret_cast<uintptr_t>(a) % sizeof(Pair) == 0;
    return pairs && k_ == 2 * pairs_ && rows % lanes == 0;
  }

  // Where sums go as they are.
  PairTile tile_at(int64_t row, int64_t j) const {
    PairTile t{pairs_, nullptr, panel(j), nullptr, p_.c_rs, columns(j), add_};
    if (result_ == nullptr) {
      t.c = p_.c + row * p_.c_rs + j * width;
    } else if (is_plain(*result_)) {
      t.c_rs = result_->c_rs;
      t.narrow = result_->c + row * t.c_rs + j * width;
    }
    return t;
  }

  const Product<float, BFloat16>& p_;
  Pair* packed_;
  int64_t step_, k_, pairs_, panels_, rows_, row_jobs_, chunk_, col_jobs_, panel_size_;
  bool add_;
  const GemmArgs<BFloat16>* result_ = nullptr;
};

int64_t packed_pairs(int64_t n, int64_t k) {
  return ceil_div(n, width) * (min_of(depth, padded_pairs(k)) + 1) * width;
}

}  // namespace

void pair_product(const Product<float, BFloat16>& p) {
  const Scratch<Pair> packed(packed_pairs(p.n, p.k));
  for (int64_t step = 0; step < p.k; step += 2 * depth) Pass(p, packed.get(), step).run();
}

void pair_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result) {
  const Scratch<Pair> packed(packed_pairs(p.n, p.k));
  Pass pass(p, packed.get(), 0);
  pass.set_epilogue(result);
  pass.run();
}

void direct_pair_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result) {
  const Scratch<Pair> left(p.m * pitch);
  pack_rows(left.get(), p.a, p.a_rs, p.a_cs, p.m, p.k, 0);
  const bool plain = is_plain(result);
  const int64_t panels = ceil_div(p.n, width);
  const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 17) / (p.k * width));
  parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
    const PairScope pairs;
    alignas(vector_bytes) float sums[max_direct_rows * width];
    for (int64_t j = begin * width; j < min_of(end * width, p.n); j += width) {
      const int64_t columns = min_of(width, p.n - j);
      for (int64_t i = 0; i < p.m; i += max_direct_rows) {
        const int64_t rows = min_of(max_direct_rows, p.m - i);
        direct_kernel(rows)({p.k, left.get() + i * pitch, p.b + j, p.b_rs,
                             result.c + i * result.c_rs + j, result.c_rs, columns,
                             plain ? nullptr : sums});
        if (!plain) epilogue_part(result, i, rows, j, columns, sums, width);
      }
    }
  });
}

void in_place_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result) {
  const bool by_rows = p.b_cs == 1;
  const InPlaceKernel kernel = by_rows ? wide_kernel(p.m) : column_kernel(p.m);
  const int64_t width_at_once = by_rows ? wide_panels * width : width;
  const int64_t tiles = ceil_div(p.n, width_at_once), left_size = p.m * pitch;
  const Scratch<Pair> left(ceil_div(p.k, pair_steps) * left_size);
  for (int64_t step = 0; step < p.k; step += pair_steps)
    pack_rows(left.get() + step / pair_steps * left_size, p.a + step * p.a_cs, p.a_rs, p.a_cs, p.m,
              min_of(p.k - step, pair_steps), 0);
  const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 17) / (p.k * width_at_once));
  parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    const PairScope scope;
    constexpr int64_t most = max_column_rows * wide_panels * width;
    alignas(vector_bytes) float sums[most], more[most];
    for (int64_t col = begin * width_at_once; col < min_of(end * width_at_once, p.n);
         col += width_at_once) {
      const int64_t columns = min_of(width_at_once, p.n - col);
      for (int64_t step = 0; step < p.k; step += pair_steps) {
        kernel({min_of(p.k - step, pair_steps), left.get() + step / pair_steps * left_size,
                p.b + step * p.b_rs + col * p.b_cs, by_rows ? p.b_rs : p.b_cs, columns,
                step == 0 ? sums : more});
        for (int64_t i = 0; step > 0 && i < p.m * width_at_once; ++i) sums[i] += more[i];
      }
      if (is_plain(result))
        narrow_rows(result.c + col, result.c_rs, sums, width_at_once, p.m, columns);
      else
        epilogue_part(result, 0, p.m, col, columns, sums, width_at_once);
    }
  });
}

void own_panel_product(const Product<float, BFloat16>& p, const GemmArgs<BFloat16>& result) {
  const Scratch<Pair> left(p.m * pitch);
  const int64_t pairs = ceil_div(p.k, int64_t{2}), panels = ceil_div(p.n, width);
  pack_rows(left.get(), p.a, p.a_rs, p.a_cs, p.m, p.k, pairs);
  const bool plain = is_plain(result);
  const RowPanels rows(p.m);
  const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 16) / (p.k * width));
  parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
    const PairScope scope;
    const Scratch<Pair> panel(pairs * width);
    const Scratch<float> sums(plain ? 1 : p.m * width);
    for (int64_t col = begin * width; col < min_of(end * width, p.n); col += width) {
      const int64_t columns = min_of(width, p.n - col);
      pack_panel_rows(panel.get(), p.b + col * p.b_cs, p.b_rs, p.b_cs, p.k, columns);
      for (int64_t i = 0; i < rows.count; ++i) {
        const int64_t row = rows.begin(i);
        PairTile t{pairs, left.get() + row * pitch, panel.get(), nullptr, result.c_rs, columns};
        if (plain) {
          t.narrow = result.c + row * result.c_rs + col;
        } else {
          t.c = sums.get() + row * width;
          t.c_rs = t.columns = width;
        }
        pair_kernel(rows.height(i), t.columns)(t);
      }
      if (!plain) epilogue_part(result, 0, p.m, col, columns, sums.get(), width);
    }
  });
}

PairPanels::PairPanels(const BFloat16* b, int64_t b_rs, int64_t b_cs, int64_t k, int64_t n)
    : shape_{1, n, k, nullptr, 0, 1, b, b_rs, b_cs, nullptr, 0, 1, 0},
      packed_(packed_pairs(n, k) * ceil_div(k, 2 * depth)) {
  for (int64_t step = 0; step < k; step += 2 * depth)
    Pass(shape_, packed_.get() + step / (2 * depth) * packed_pairs(n, k), step).pack();
}

void PairPanels::multiply(int64_t m, const BFloat16* a, int64_t a_rs, float* c, int64_t c_rs,
                          bool add) const {
  Product<float, BFloat16> p = shape_;
  p.m = m;
  p.a = a;
  p.a_rs = a_rs;
  p.c = c;
  p.c_rs = c_rs;
  for (int64_t step = 0; step < p.k; step += 2 * depth)
    Pass(p, packed_.get() + step / (2 * depth) * packed_pairs(p.n, p.k), step, add).multiply();
}

#else

void pair_product(const Product<float, BFloat16>&) {}
void pair_product(const Product<float, BFloat16>&, const GemmArgs<BFloat16>&) {}
void direct_pair_product(const Product<float, BFloat16>&, const GemmArgs<BFloat16>&) {}
void in_place_product(const Product<float, BFloat16>&, const GemmArgs<BFloat16>&) {}
void own_panel_product(const Product<float, BFloat16>&, const GemmArgs<BFloat16>&) {}
PairPanels::PairPanels(const BFloat16*, int64_t, int64_t, int64_t, int64_t) : packed_(1) {}
void PairPanels::multiply(int64_t, const BFloat16*, int64_t, float*, int64_t, bool) const {}

#endif

}  // namespace facula::cpu::FACULA_ISA
