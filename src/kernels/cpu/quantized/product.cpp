#include "kernels/cpu/quantized/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/debug.h"
#include "core/threads.h"
#include "kernels/cpu/matmul/gemm_pack.h"
#include "kernels/cpu/quantized/product_tile.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t block_rows = 48;      // rows that one task takes
constexpr int64_t block_columns = 128;  // columns that one task takes

// What a tile of sums needs to become values: for each column the integer that is taken off for
// the rows' zero point, a factor, and what is added before (quantized results) or after (floats).
struct Columns {
  std::vector<int32_t> offset;
  std::vector<int32_t> zero_point;  // empty where all are zero
  std::vector<float> factor, bias;
};

Columns columns_of(const ByteRows& rows, const ByteWeights& w, double out_scale, bool to_float) {
  Columns c;
  const auto n = static_cast<size_t>(w.n);
  c.offset.resize(n);
  c.factor.resize(n);
  c.bias.resize(n);
  const bool centred =
      std::all_of(w.zero_points, w.zero_points + w.parameters, [](int64_t z) { return z == 0; });
  if (!centred) c.zero_point.resize(n);
  for (size_t j = 0; j < n; ++j) {
    const size_t p = w.parameters == 1 ? 0 : j;
    const auto zero = static_cast<int32_t>(rows.zero_point);
    const auto column_zero = static_cast<int32_t>(w.zero_points[p]);
    c.offset[j] = zero * (w.sums[j] - static_cast<int32_t>(w.k) * column_zero);
    if (!centred) c.zero_point[j] = column_zero;
    const float both = static_cast<float>(rows.scale * w.scales[p]);
    c.factor[j] = to_float ? both : static_cast<float>(rows.scale * w.scales[p] / out_scale);
    const float bias = w.bias ? w.bias[j] : 0.0f;
    c.bias[j] = to_float ? bias : bias / both;
  }
  return c;
}

int32_t sum_of(const uint8_t* row, int64_t k) {
  int32_t sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += row[i];
  return sum;
}

// Sums of (a - za) (b - zb) are those of a b less what the zero points added: of this the part that
// depends on the row. Columns' offsets, the other part, are taken off as sums are finished.
void take_off_row(int32_t* sums, int64_t n, const Columns& c, int64_t first, const uint8_t* row,
                  int64_t k) {
  if (c.zero_point.empty()) return;
  const int32_t of_row = sum_of(row, k);
  for (int64_t j = 0; j < n; ++j) sums[j] -= of_row * c.zero_point[static_cast<size_t>(first + j)];
}

struct FinishBytes {
  const Columns& columns;
  const ByteResult& result;

  // What is stored could be any of these numbers, for all that the compiler knows: __restrict.
  void operator()(int64_t row, int64_t first, int64_t n, const int32_t* __restrict sums) const {
    uint8_t* __restrict to = result.data + row * result.pitch + first;
    const int32_t* __restrict offset = columns.offset.data() + first;
    const float* __restrict factor = columns.factor.data() + first;
    const float* __restrict bias = columns.bias.data() + first;
    const auto zero = static_cast<float>(result.zero_point);
    const float least = result.relu ? std::max(zero, 0.0f) : 0.0f;
    for (int64_t j = 0; j < n; ++j) {
      const auto sum = static_cast<float>(sums[j] - offset[j]);
      float v = std::nearbyint((sum + bias[j]) * factor[j]) + zero;
      v = v < 255.0f ? v : 255.0f;
      v = v > least ? v : least;
      to[j] = static_cast<uint8_t>(static_cast<int32_t>(v));
    }
  }
};

struct FinishFloats {
  const Columns& columns;
  const FloatResult& result;

  void operator()(int64_t row, int64_t first, int64_t n, const int32_t* __restrict sums) const {
    float* __restrict to = result.data + row * result.pitch + first;
    const int32_t* __restrict offset = columns.offset.data() + first;
    const float* __restrict factor = columns.factor.data() + first;
    const float* __restrict bias = columns.bias.data() + first;
    const float least = result.relu ? 0.0f : -INFINITY;
    for (int64_t j = 0; j < n; ++j) {
      const float v = static_cast<float>(sums[j] - offset[j]) * factor[j] + bias[j];
      to[j] = v < least ? least : v;
    }
  }
};

// Rows of a multiple of four bytes, the last ones zero.
struct PaddedRows {
  std::vector<uint8_t> memory;
  const uint8_t* data;
  int64_t pitch;
};
PaddedRows padded(const uint8_t* data, int64_t pitch, int64_t rows, int64_t k) {
  if (k % 4 == 0) return {{}, data, pitch};
  PaddedRows p;
  p.pitch = byte_steps(k) * 4;
  p.memory.resize(static_cast<size_t>(rows * p.pitch));
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(p.memory.data() + i * p.pitch, data + i * pitch, static_cast<size_t>(k));
  p.data = p.memory.data();
  return p;
}

// All columns of some rows in [begin, end) x [from, to); finish(row, first column, n, sums).
template <class Finish>
void run_block(const uint8_t* data, int64_t pitch, const ByteWeights& w, const Columns& c,
               int64_t begin, int64_t end, int64_t from, int64_t to, const Finish& finish) {
  const PaddedRows a = padded(data + begin * pitch, pitch, end - begin, w.k);
  const int64_t steps = byte_steps(w.k);
  alignas(64) int32_t sums[tile_rows * tile_columns];
  ByteTiles tiles(steps);
  for (int64_t column = from; column < to; column += tile_columns) {
    const int64_t n = std::min(to - column, tile_columns);
    for (int64_t row = begin; row < end; row += tiles.rows()) {
      const int64_t m = std::min(end - row, tiles.rows());
      tiles.multiply({steps, m, n, a.data + (row - begin) * a.pitch, a.pitch,
                      w.packed + column * steps * 4, sums});
      for (int64_t i = 0; i < m; ++i) {
        int32_t* of_row = sums + i * tile_columns;
        take_off_row(of_row, n, c, column, data + (row + i) * pitch, w.k);
        finish(row + i, column, n, of_row);
      }
    }
  }
}

template <class Finish>
void run(const ByteRows& rows, const ByteWeights& w, const Columns& c, const Finish& finish) {
  debug::print_route(tile_ways().bytes == TileWay::none ? "bytes: vectors" : "bytes: tiles");
  const int64_t down = (rows.m + block_rows - 1) / block_rows,
                across = (w.n + block_columns - 1) / block_columns;
  // Few rows are little work for a thread.
  const int64_t work = std::min(rows.m, block_rows) * block_columns * std::max<int64_t>(w.k, 1);
  const int64_t grain = std::max<int64_t>((int64_t{1} << 18) / std::max<int64_t>(work, 1), 1);
  parallel_for(down * across, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / across * block_rows, column = t % across * block_columns;
      run_block(rows.data, rows.pitch, w, c, row, std::min(row + block_rows, rows.m), column,
                std::min(column + block_columns, w.n), finish);
    }
  });
}

}  // namespace

void pack_bytes(const int8_t* weights, int64_t n, int64_t k, int8_t* packed, int32_t* sums) {
  const int64_t steps = byte_steps(k), panels = (n + byte_columns - 1) / byte_columns;
  parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      for (int64_t step = 0; step < steps; ++step)
        for (int64_t at = 0; at < byte_columns * 4; ++at) {
          const int64_t column = panel * byte_columns + at / 4, i = step * 4 + at % 4;
          packed[(panel * steps + step) * byte_columns * 4 + at] =
              column < n && i < k ? weights[column * k + i] : int8_t{0};
        }
  });
  for (int64_t column = 0; column < n; ++column) {
    int32_t sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += weights[column * k + i];
    sums[column] = sum;
  }
}

void multiply_bytes(const ByteRows& rows, const ByteWeights& w, const ByteResult& result) {
  const Columns c = columns_of(rows, w, result.scale, false);
  run(rows, w, c, FinishBytes{c, result});
}

void multiply_bytes_to_float(const ByteRows& rows, const ByteWeights& w,
                             const FloatResult& result) {
  const Columns c = columns_of(rows, w, 1, true);
  run(rows, w, c, FinishFloats{c, result});
}

void multiply_integers(const ByteRows& rows, const ByteWeights& w, int32_t* result) {
  const Columns c = columns_of(rows, w, 1, true);
  run(rows, w, c, [&](int64_t row, int64_t first, int64_t n, const int32_t* sums) {
    for (int64_t j = 0; j < n; ++j)
      result[row * w.n + first + j] = sums[j] - c.offset[static_cast<size_t>(first + j)];
  });
}

namespace {

// Whole vectors, the last of which overlaps the one before it.
void copy_bytes(uint8_t* to, const uint8_t* from, int64_t n) {
  using S = Simd<float>;
  if (n < vector_bytes) {
    std::memcpy(to, from, static_cast<size_t>(n));
    return;
  }
  const auto copy = [&](int64_t i) {
    S::store(reinterpret_cast<float*>(to + i),
             opaque(S::load(reinterpret_cast<const float*>(from + i))));
  };
  for (int64_t i = 0; i + vector_bytes < n; i += vector_bytes) copy(i);
  copy(n - vector_bytes);
}

// What the kernel's taps reach from one position, for one group of channels.
class Gatherer {
 public:
  Gatherer(const ByteConvolution& s, int64_t group)
      : s_(s),
        width_(s.channels / s.groups),
        first_(group * width_),
        dense_(s.groups == 1 && s.dilation[2] == 1) {}

  // Rows for `count` positions from `first` on.
  void operator()(int64_t first, int64_t count, uint8_t* to) const {
    int64_t at[3], rest = first;
    for (int d = 2; d >= 0; --d) {
      at[d] = rest % s_.out[d];
      rest /= s_.out[d];
    }
    const int64_t length = s_.kernel[0] * s_.kernel[1] * s_.kernel[2] * width_;
    for (int64_t i = 0; i < count; ++i, to += length) {
      gather(rest, at, to);
      int d = 2;
      while (d >= 0 && ++at[d] == s_.out[d]) at[d--] = 0;
      rest += d < 0;
    }
  }

 private:
  void gather(int64_t image, const int64_t* position, uint8_t* to) const {
    int64_t first[3];  // what the first tap reads
    for (int d = 0; d < 3; ++d) first[d] = position[d] * s_.stride[d] - s_.padding[d];
    for (int64_t z = 0; z < s_.kernel[0]; ++z)
      for (int64_t y = 0; y < s_.kernel[1]; ++y, to += s_.kernel[2] * width_) {
        const int64_t deep = first[0] + z * s_.dilation[0], high = first[1] + y * s_.dilation[1];
        if (inside(deep, 0) && inside(high, 1))
          gather_row(((image * s_.in[0] + deep) * s_.in[1] + high) * s_.in[2], first[2], to);
        else
          clear(to, s_.kernel[2]);
      }
  }

  bool inside(int64_t i, int d) const { return i >= 0 && i < s_.in[d]; }

  // The taps of one row, of which elements from `row` on are counted, the first one at x.
  void gather_row(int64_t row, int64_t x, uint8_t* to) const {
    const int64_t taps = s_.kernel[2];
    if (dense_ && x >= 0 && x + taps <= s_.in[2])
      return copy_bytes(to, s_.data + (row + x) * s_.channels, taps * width_);
    for (int64_t t = 0; t < taps; ++t, to += width_, x += s_.dilation[2]) {
      if (inside(x, 2))
        copy_bytes(to, s_.data + (row + x) * s_.channels + first_, width_);
      else
        clear(to, 1);
    }
  }

  // The value zero.
  void clear(uint8_t* to, int64_t taps) const {
    std::memset(to, static_cast<int>(s_.zero_point), static_cast<size_t>(taps * width_));
  }

  const ByteConvolution& s_;
  int64_t width_, first_;
  bool dense_;
};

void convolve_group(const ByteConvolution& s, int64_t group, const ByteWeights& w,
                    const ByteResult& result) {
  const int64_t positions = s.batch * s.out[0] * s.out[1] * s.out[2];
  const Columns c =
      columns_of({positions, nullptr, 0, s.scale, s.zero_point}, w, result.scale, false);
  ByteResult of_group = result;
  of_group.data += group * w.n;
  const bool as_it_lies = s.groups == 1 && s.kernel[0] * s.kernel[1] * s.kernel[2] == 1 &&
                          s.stride[0] * s.stride[1] * s.stride[2] == 1 &&
                          s.padding[0] + s.padding[1] + s.padding[2] == 0;
  if (as_it_lies)
    return run({positions, s.data, s.channels, s.scale, s.zero_point}, w, c,
               FinishBytes{c, of_group});
  const Gatherer gather(s, group);
  parallel_for((positions + block_rows - 1) / block_rows, 1, [&](int64_t begin, int64_t end) {
    const Scratch<uint8_t> rows(block_rows * w.k);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * block_rows, n = std::min(block_rows, positions - first);
      gather(first, n, rows.get());
      ByteResult of_block = of_group;
      of_block.data += first * result.pitch;
      run_block(rows.get(), w.k, w, c, 0, n, 0, w.n, FinishBytes{c, of_block});
    }
  });
}

}  // namespace

void convolve_bytes(const ByteConvolution& shape, const ByteWeights* groups,
                    const ByteResult& result) {
  for (int64_t g = 0; g < shape.groups; ++g) convolve_group(shape, g, groups[g], result);
}

}  // namespace facula::cpu::FACULA_ISA
