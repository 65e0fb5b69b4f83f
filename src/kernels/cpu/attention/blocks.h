// What attention's passes share: packed operands of its small products, masks, and rows of scores.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/attention/tile_rows.h"
#include "kernels/cpu/matmul/gemm_amx.h"

namespace facula::cpu::FACULA_ISA {

// Rows of scores that become weights and slopes where they lie, and are packed as left operands
// afterwards.
template <class Acc>
struct RowsInPlace {
  // Scores less `most` become weights, zeros from `visible` to n; their sum.
  template <class Packed>
  static Acc exp_row(Packed*, Acc* x, Acc most, int64_t visible, int64_t n) {
    return cpu::FACULA_ISA::exp_row(x, most, visible, n);
  }
  // A row of the result from its sums.
  template <class In>
  static void write_row(In* to, Acc* sums, Acc total, int64_t n) {
    for (int64_t c = 0; c < n; ++c) sums[c] = sums[c] / total;
    copy_row(to, sums, 1, n);
  }
  // Of the backward pass: e^(scale * x (+ mask) - sums), zeros where hidden.
  template <class Packed>
  static void weigh_row(Packed*, Acc* __restrict x, const Acc* mask, const Acc* sums, Acc scale,
                        RowSpan span) {
    if (mask != nullptr) {
      exp_columns(x, span.first, span.n,
                  [&](auto at) { return at(x) * scale + at(mask) - at(sums); });
    } else {
      exp_columns(x, span.first, span.n, [&](auto at) { return at(x) * scale - at(sums); });
    }
    for (int64_t q = span.first; q < span.hidden; ++q) x[q] = 0;
  }
  // weights * (x - delta) * scale.
  template <class Packed>
  static void slope_row(Packed*, Acc* __restrict x, const Acc* __restrict weights, const Acc* delta,
                        Acc scale, RowSpan span) {
    for (int64_t q = span.first; q < span.n; ++q) x[q] = weights[q] * (x[q] - delta[q]) * scale;
  }
};

// The left operand of a product lies in rows `pitch` apart, `rows` of them at a time; the right one
// in panels of `width` columns. Both are packed from rows of a tensor, whose elements are `In`, and
// as deep as depth_of says.
template <class In_, class Acc_>
struct RealBlocks : RowsInPlace<Acc_> {
  using In = In_;
  using Acc = Acc_;
  using Packed = Acc;
  struct Scope {};
  struct RunScope {};
  static constexpr int64_t per_packed = 1, pitch = packed_pitch<Acc>, rows = max_tile_rows;
  // Sums over queries are made in short runs: one long sum would carry a rounding error for each.
  static constexpr int64_t run_depth = 64;
  static constexpr int64_t width = tile_vectors(max_tile_rows) * Simd<Acc>::lanes;
  // Scores along one side of a block.
  static constexpr int64_t block = gemm_depth<Acc> / width * width;

  static constexpr int64_t depth_of(int64_t length) { return length; }

  static void pack_left(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    copy_matrix(to, pitch, from, rs, 1, count, length);
  }
  // Columns from rows of the tensor.
  static void pack_columns(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    for (int64_t c = 0; c < count; c += width, to += length * width)
      copy_padded(to, width, from + c * rs, 1, rs, length, min_of(width, count - c), width);
  }
  // Rows from rows of the tensor; `length` columns.
  static void pack_rows(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    for (int64_t c = 0; c < length; c += width, to += count * width)
      copy_padded(to, width, from + c, rs, 1, count, min_of(width, length - c), width);
  }
  // Scores that were computed in place of a left operand.
  static const Packed* as_left(const Acc* scores, Packed*, int64_t, int64_t) { return scores; }
  // The left operand whose rows are columns of another one.
  static void transpose(Packed* to, const Packed* from, int64_t count, int64_t columns) {
    copy_matrix(to, pitch, from, 1, pitch, columns, count);
  }

  static void multiply(int count, int64_t depth, const Packed* a, const Packed* b, int64_t columns,
                       Acc* c, int64_t c_rs, bool add) {
    constexpr int64_t lanes = Simd<Acc>::lanes;
    tile_kernel<Acc>(count, static_cast<int>(ceil_div(columns, lanes)))(depth, a, b, width, c, c_rs,
                                                                        1, add ? 1 : 0);
  }
};

#if defined(__AVX512F__)
// Operands of bfloat16 as pairs along the depth, which is filled up with zeros to a multiple of
// `step` pairs.
template <int64_t step, int64_t pitch_>
struct PairPacking {
  using In = BFloat16;
  using Acc = float;
  using Packed = Pair;
  static constexpr int64_t per_packed = 2, pitch = pitch_, width = pair_width, block = 256;

  static constexpr int64_t depth_of(int64_t length) {
    return round_up(ceil_div(length, int64_t{2}), step);
  }

  static void pack_left(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    for (int64_t i = 0; i < count; ++i, from += rs, to += pitch) {
      __builtin_memcpy(to, from, static_cast<size_t>(length / 2) * sizeof(Pair));
      if (length % 2 != 0) to[length / 2] = pair_of(from + length - 1, nullptr);
      fill_up(to, length, 1);
    }
  }
  static void pack_columns(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    const int64_t depth = depth_of(length);
    for (int64_t c = 0; c < count; c += width, to += depth * width, from += width * rs) {
      const int64_t here = min_of(width, count - c);
      fill_up(to, length, width);
      const bool aligned = reinterpret_cast<uintptr_t>(from) % sizeof(Pair) == 0;
      if (rs % 2 == 0 && aligned) {
        copy_padded(to, width, reinterpret_cast<const Pair*>(from), 1, rs / 2, length / 2, here,
                    width);
      } else {
        for (int64_t k = 0; k < length / 2; ++k)
          for (int64_t i = 0; i < width; ++i)
            to[k * width + i] =
                i < here ? pair_of(from + i * rs + 2 * k, from + i * rs + 2 * k + 1) : 0;
      }
      if (length % 2 == 0) continue;
      for (int64_t i = 0; i < width; ++i)
        to[length / 2 * width + i] = i < here ? pair_of(from + i * rs + length - 1, nullptr) : 0;
    }
  }
  static void pack_rows(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    for (int64_t c = 0; c < length; c += width, to += depth_of(count) * width) {
      const int64_t here = min_of(width, length - c);
      for (int64_t r = 0; r < count; r += 2) {
        const In *low = from + r * rs + c, *high = r + 1 < count ? low + rs : nullptr;
        Packed* row = to + r / 2 * width;
        if (here == width && high != nullptr) {
          zip_rows(row, low, high);
          continue;
        }
        for (int64_t i = 0; i < width; ++i)
          row[i] = i < here ? pair_of(low + i, high != nullptr ? high + i : nullptr) : 0;
      }
      fill_up(to, count, width);
    }
  }
  // Rows become halves of pairs.
  static void transpose(Packed* to, const Packed* from, int64_t count, int64_t columns) {
    constexpr int64_t most = ceil_div(max_of(int64_t{max_tile_rows}, amx_rows), int64_t{2});
    alignas(vector_bytes) Pair zipped[most][block];
    const int64_t pairs = ceil_div(count, int64_t{2});
    for (int64_t p = 0; p < pairs; ++p) {
      const Packed *low = from + 2 * p * pitch, *high = low + pitch;
      for (int64_t i = 0; i < columns; i += width) {
        const __m512i other = 2 * p + 1 < count ? _mm512_loadu_si512(high + i / 2) : __m512i{};
        const ZippedPairs two = zip_vectors(_mm512_loadu_si512(low + i / 2), other);
        _mm512_store_si512(&zipped[p][i], two.first);
        _mm512_store_si512(&zipped[p][i + width / 2], two.second);
      }
    }
    for (int64_t p = pairs; p < depth_of(count); ++p)
      for (int64_t i = 0; i < columns; ++i) zipped[p][i] = 0;
    copy_matrix(to, pitch, &zipped[0][0], 1, block, columns, depth_of(count));
  }

 private:
  // Zeros in rows of `row` pairs from where `length` elements end to the depth.
  static void fill_up(Packed* to, int64_t length, int64_t row) {
    for (int64_t i = ceil_div(length, int64_t{2}) * row; i < depth_of(length) * row; ++i) to[i] = 0;
  }
};

// Products of pairs by vectors.
struct PairBlocks : PairPacking<1, pair_pitch>, RowsInPlace<float> {
  struct Scope {};
  using RunScope = PairScope;
  static constexpr int64_t rows = max_tile_rows, run_depth = 32;

  static const Packed* as_left(const Acc* scores, Packed* room, int64_t count, int64_t columns) {
    const int64_t padded = round_up(columns, int64_t{2});
    for (int64_t i = 0; i < count; ++i) {
      auto* to = reinterpret_cast<BFloat16*>(room + i * pitch);
      copy_row(to, scores + i * packed_pitch<Acc>, 1, columns);
      if (padded != columns) to[columns].bits = 0;
    }
    return room;
  }
  static void multiply(int count, int64_t depth, const Packed* a, const Packed* b, int64_t columns,
                       Acc* c, int64_t c_rs, bool add) {
    pair_kernel(count, columns)({depth, a, b, c, c_rs, columns, add});
  }
};

// Products by tiles. Rows become left operands on the way (tile_rows.h).
struct TileBlocks : PairPacking<amx_pairs, 256 / 2 + 16> {
  using Scope = AmxScope;
  // Sums of tiles are short runs by themselves.
  static constexpr int64_t rows = amx_rows, run_depth = block;

  static Acc exp_row(Packed* to, const Acc* x, Acc most, int64_t visible, int64_t n) {
    return exp_tile_row(elements(to), x, most, visible, 2 * depth_of(n));
  }
  static void write_row(In* to, const Acc* sums, Acc total, int64_t n) {
    write_tile_row(to, sums, 1 / total, n);
  }
  static void weigh_row(Packed* to, Acc* x, const Acc* mask, const Acc* sums, Acc scale,
                        RowSpan span) {
    weigh_tile_row(elements(to), x, mask, sums, scale, span);
  }
  static void slope_row(Packed* to, const Acc* x, const Acc* weights, const Acc* delta, Acc scale,
                        RowSpan span) {
    slope_tile_row(elements(to), x, weights, delta, scale, span);
  }
  static const Packed* as_left(const Acc*, const Packed* room, int64_t, int64_t) { return room; }

 private:
  static In* elements(Packed* row) { return reinterpret_cast<In*>(row); }
};
#endif

// Products of at most B::rows rows with columns packed in panels.
template <class B>
class BlockProducts {
 public:
  using Acc = typename B::Acc;
  using Packed = typename B::Packed;
  // Columns [first, last) of c = a b, `first` a multiple of a panel; from packed row `skip` of b
  // on. Panels are of `panel_depth` packed rows.
  void run(int64_t rows, int64_t depth, const Packed* a, const Packed* b, int64_t panel_depth,
           int64_t skip, int64_t first, int64_t last, Acc* c, int64_t c_rs, bool add) const {
    b += first * panel_depth + skip * B::width;
    if constexpr (std::is_empty_v<typename B::Scope>) {
      [[maybe_unused]] const typename B::RunScope run;
      for (int64_t at = first; at < last; at += B::width, b += B::width * panel_depth)
        B::multiply(static_cast<int>(rows), depth - skip, a + skip, b, min_of(B::width, last - at),
                    c + at, c_rs, add);
    } else {
      amx_product(
          {depth - skip, a + skip, B::pitch, b, B::width * panel_depth, c + first, c_rs, add}, rows,
          last - first);
    }
  }

 private:
  [[no_unique_address]] typename B::Scope scope_;
};

// One head of a tensor of [batch, heads, length, width].
template <class T>
struct HeadRows {
  T* data;
  int64_t step;
  T* row(int64_t i) const { return data + i * step; }
};
template <class T>
HeadRows<T> head_rows(const Tensor& t, int64_t batch, int64_t head) {
  const IntSpan st = t.strides();
  return {t.data<std::remove_const_t<T>>() + batch * st[0] + head * st[1], st[2]};
}

// What is added to the scores of one head; null data for nothing.
struct HeadMask {
  const char* data = nullptr;
  DType dtype = DType::Float32;
  int64_t row = 0, column = 0;  // strides in elements

  HeadMask(const Tensor& mask, int64_t batch, int64_t head) {
    if (!mask.defined()) return;
    const int64_t outer = mask.dim() == 4 ? 2 : 0;
    const IntSpan s = mask.sizes(), st = mask.strides();
    const auto step = [&](int64_t d) { return s[d] == 1 ? 0 : st[d]; };
    dtype = mask.dtype();
    row = step(outer);
    column = step(outer + 1);
    const int64_t at = outer == 0 ? 0 : batch * step(0) + head * step(1);
    data = mask.data<const char>() + at * static_cast<int64_t>(mask.itemsize());
  }

  // Rows [i, i + rows) and columns [j, j + columns), or with rows and columns exchanged.
  template <class In, class Acc>
  void copy(Acc* to, int64_t pitch, int64_t i, int64_t j, int64_t rows, int64_t columns,
            bool transposed) const {
    const auto run = [&]<class M>(const M* from) {
      from += i * row + j * column;
      if (transposed) {
        copy_matrix(to, pitch, from, column, row, columns, rows);
      } else {
        copy_matrix(to, pitch, from, row, column, rows, columns);
      }
    };
    if (dtype == DType::Float32) return run(reinterpret_cast<const float*>(data));
    run(reinterpret_cast<const In*>(data));
  }
};

// Calls body(Type<blocks>) for the blocks of a dtype.
template <class T>
struct BlocksOf {
  using type = RealBlocks<T, float>;
};
template <>
struct BlocksOf<double> {
  using type = RealBlocks<double, double>;
};

template <class F>
void visit_blocks(DType d, F&& body) {
#if defined(__AVX512F__)
  if (d == DType::BFloat16) return has_amx() ? body(Type<TileBlocks>{}) : body(Type<PairBlocks>{});
#endif
  dispatch<FloatingTypes>(d, "flash_attention",
                          [&]<class T>(Type<T>) { body(Type<typename BlocksOf<T>::type>{}); });
}

inline double attention_scale(const Tensor& query, std::optional<double> scale) {
  if (scale) return *scale;
  return 1 / __builtin_sqrt(static_cast<double>(query.sizes()[3]));
}

}  // namespace facula::cpu::FACULA_ISA
