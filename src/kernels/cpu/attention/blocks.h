// What attention's passes share: packed operands of its small products, masks, and rows of scores.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "kernels/cpu/matmul/gemm_pairs.h"

namespace facula::cpu::FACULA_ISA {

// The left operand of a product lies in rows `pitch` apart, the right one in panels of `width`
// columns, each of `depth` rows; both are packed from rows of a tensor, whose elements are `In`.
template <class In_, class Acc_>
struct RealBlocks {
  using In = In_;
  using Acc = Acc_;
  using Packed = Acc;
  static constexpr int64_t per_packed = 1, pitch = packed_pitch<Acc>;
  static constexpr int64_t width = tile_vectors(max_tile_rows) * Simd<Acc>::lanes;
  // Scores along one side of a block.
  static constexpr int64_t block = gemm_depth<Acc> / width * width;

  static void pack_left(Packed* to, const In* from, int64_t rs, int64_t rows, int64_t length) {
    copy_matrix(to, pitch, from, rs, 1, rows, length);
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
  // to[column][row] of `columns` left-operand columns.
  static void transpose(Packed* to, const Acc* from, int64_t rows, int64_t columns) {
    copy_matrix(to, pitch, from, 1, pitch, columns, rows);
  }

  static void multiply(int rows, int64_t depth, const Packed* a, const Packed* b,
                       const int64_t* b_rows, int64_t columns, Acc* c, int64_t c_rs, bool add) {
    constexpr int64_t lanes = Simd<Acc>::lanes;
    tile_kernel<Acc>(rows, static_cast<int>(ceil_div(columns, lanes)))(depth, a, b, b_rows, lanes,
                                                                       c, c_rs, 1, add ? 1 : 0);
  }
};

#if defined(__AVX512F__)
struct PairBlocks {
  using In = BFloat16;
  using Acc = float;
  using Packed = Pair;
  static constexpr int64_t per_packed = 2, pitch = pair_pitch, width = pair_width, block = 256;

  static void pack_left(Packed* to, const In* from, int64_t rs, int64_t rows, int64_t length) {
    for (int64_t i = 0; i < rows; ++i, from += rs, to += pitch) {
      __builtin_memcpy(to, from, static_cast<size_t>(length / 2) * sizeof(Pair));
      if (length % 2 != 0) to[length / 2] = pair_of(from + length - 1, nullptr);
    }
  }
  static void pack_columns(Packed* to, const In* from, int64_t rs, int64_t count, int64_t length) {
    const int64_t depth = ceil_div(length, int64_t{2});
    for (int64_t c = 0; c < count; c += width, to += depth * width, from += width * rs) {
      const int64_t here = min_of(width, count - c);
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
    for (int64_t c = 0; c < length; c += width) {
      const int64_t here = min_of(width, length - c);
      for (int64_t r = 0; r < count; r += 2, to += width) {
        const In *low = from + r * rs + c, *high = r + 1 < count ? low + rs : nullptr;
        if (here == width && high != nullptr) {
          zip_rows(to, low, high);
          continue;
        }
        for (int64_t i = 0; i < width; ++i)
          to[i] = i < here ? pair_of(low + i, high != nullptr ? high + i : nullptr) : 0;
      }
    }
  }
  static const Packed* as_left(const Acc* scores, Packed* room, int64_t rows, int64_t columns) {
    const int64_t padded = round_up(columns, int64_t{2});
    for (int64_t i = 0; i < rows; ++i) {
      auto* to = reinterpret_cast<BFloat16*>(room + i * pitch);
      copy_row(to, scores + i * packed_pitch<Acc>, 1, columns);
      if (padded != columns) to[columns].bits = 0;
    }
    return room;
  }
  // Rows become halves of pairs: an odd row would have none, so the caller has an even number.
  static void transpose(Packed* to, const Acc* from, int64_t rows, int64_t columns) {
    Pair zipped[max_tile_rows / 2][block];
    const int64_t pairs = ceil_div(rows, int64_t{2});
    for (int64_t p = 0; p < pairs; ++p) {
      const Acc *low = from + 2 * p * packed_pitch<Acc>, *high = low + packed_pitch<Acc>;
      const bool both = 2 * p + 1 < rows;
      for (int64_t i = 0; i < columns; ++i) {
        const Pair first = Convert<BFloat16, Acc>::call(low[i]).bits;
        const Pair second = both ? Convert<BFloat16, Acc>::call(high[i]).bits : 0;
        zipped[p][i] = first | second << 16;
      }
    }
    copy_matrix(to, pitch, &zipped[0][0], 1, block, columns, pairs);
  }

  static void multiply(int rows, int64_t depth, const Packed* a, const Packed* b, const int64_t*,
                       int64_t columns, Acc* c, int64_t c_rs, bool add) {
    pair_kernel(rows, columns)({depth, a, b, c, c_rs, columns, add});
  }
};
#endif

// Products of at most max_tile_rows rows with columns packed in panels of `depth` packed rows each.
template <class B>
class BlockProducts {
 public:
  using Acc = typename B::Acc;
  using Packed = typename B::Packed;
  BlockProducts() {
    for (int64_t i = 0; i < B::block; ++i) rows_[i] = i * B::width;
  }
  // Columns [first, last) of c = a b, `first` a multiple of a panel; from packed row `skip` of b
  // on.
  void run(int64_t rows, int64_t depth, const Packed* a, const Packed* b, int64_t panel_depth,
           int64_t skip, int64_t first, int64_t last, Acc* c, int64_t c_rs, bool add) const {
    for (int64_t at = first; at < last; at += B::width)
      B::multiply(static_cast<int>(rows), depth - skip, a + skip,
                  b + at * panel_depth + skip * B::width, rows_, min_of(B::width, last - at),
                  c + at, c_rs, add);
  }

 private:
  int64_t rows_[B::block];
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
  if (d == DType::BFloat16 && has_pair_products()) return body(Type<PairBlocks>{});
#endif
  dispatch<FloatingTypes>(d, "flash_attention",
                          [&]<class T>(Type<T>) { body(Type<typename BlocksOf<T>::type>{}); });
}

inline double attention_scale(const Tensor& query, std::optional<double> scale) {
  if (scale) return *scale;
  return 1 / __builtin_sqrt(static_cast<double>(query.sizes()[3]));
}

}  // namespace facula::cpu::FACULA_ISA
