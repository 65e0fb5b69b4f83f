// The gradient of a convolution's weights from pairs of bfloat16, channels innermost.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/conv/im2col.h"
#include "kernels/cpu/matmul/gemm_amx.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)

// sums[out channel][element] = sum over positions of grad_output[position][out channel] *
// im2col(input)[position][element].
//
// The positions are cut into parts, of a number fixed by the shape, each with sums of its own that
// are added up in order: the same bits for any number of threads.
class PairWeightGradient {
 public:
  PairWeightGradient(const ConvShape& s, const ConvTensor<const BFloat16>& grad,
                     const ConvTensor<const BFloat16>& input)
      : s_(s), grad_(grad), taps_(s, input), im2col_(taps_.im2col()) {
    outs_ = s.out_channels / s.groups;
    length_ = im2col_.length();
    positions_ = s.batch * im2col_.places();
    pitch_ = round_up(length_, pair_width);
    columns_ = min_of(pitch_, int64_t{16 * pair_width});
    col_jobs_ = ceil_div(pitch_, columns_);
    row_jobs_ = ceil_div(outs_, row_block);
    parts_ = max_of(int64_t{1}, 8 / (col_jobs_ * row_jobs_ * s.groups));
    blocks_ = ceil_div(ceil_div(positions_, block), parts_);
    parts_ = ceil_div(positions_, blocks_ * block);
  }

  void run(const ConvTensor<BFloat16>& out) const {
    const Scratch<float> sums(parts_ * part_pitch());
    const int64_t work = blocks_ * block * min_of(outs_, row_block) * columns_;
    const int64_t grain = max_of((int64_t{1} << 18) / work, int64_t{1});
    const int64_t jobs = parts_ * s_.groups * row_jobs_ * col_jobs_;
    parallel_for(jobs, grain, [&](int64_t begin, int64_t end) {
      const Workspace room(columns_);
      for (int64_t job = begin; job < end; ++job) run_job(job, room, sums.get());
    });
    const int64_t row_grain = max_of((int64_t{1} << 15) / (length_ * parts_), int64_t{1});
    parallel_for(s_.groups * outs_, row_grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) write_row(out, sums.get(), row);
    });
  }

 private:
  static constexpr int64_t row_block = 8 * max_tile_rows;
  static constexpr int64_t pairs = 128, block = 2 * pairs;  // positions between two passes
  static constexpr int64_t strip = 16;                      // pairs that are packed in one go

  // Scratch memory of a thread.
  struct Workspace {
    explicit Workspace(int64_t columns)
        : left(round_up(row_block, amx_rows) * pair_pitch),
          right(pairs * columns),
          zipped(strip * row_block),
          rows(2 * strip * columns) {}
    Scratch<Pair> left, right, zipped;
    Scratch<BFloat16> rows;
  };

  int64_t part_pitch() const { return s_.groups * outs_ * pitch_; }

  // One part of the positions, one group, a block of output channels, a block of elements.
  void run_job(int64_t job, const Workspace& room, float* sums) const {
    const int64_t column = job % col_jobs_ * columns_,
                  row = job / col_jobs_ % row_jobs_ * row_block;
    const int64_t group = job / col_jobs_ / row_jobs_ % s_.groups;
    const int64_t part = job / col_jobs_ / row_jobs_ / s_.groups;
    const int64_t columns = min_of(columns_, length_ - column);
    const int64_t rows = min_of(row_block, outs_ - row);
    const Scratch<Im2colPiece> pieces(columns / im2col_.channels + 2);
    const int64_t piece_count = im2col_.cut(column, column + columns, pieces.get());
    sums += part * part_pitch() + (group * outs_ + row) * pitch_ + column;
    const int64_t first = part * blocks_ * block, end = min_of(positions_, first + blocks_ * block);
    for (int64_t begin = first; begin < end; begin += block) {
      const int64_t count = min_of(block, end - begin);
      pack_left(room, group * outs_ + row, rows, begin, count);
      pack_right(room, group, {pieces.get(), piece_count, columns}, begin, count);
      multiply(room, rows, columns, ceil_div(count, int64_t{2}), sums, begin > first);
    }
  }

  struct Columns {
    const Im2colPiece* pieces;
    int64_t piece_count, count;
  };

  const BFloat16* gradient(int64_t position, int64_t channel) const {
    const int64_t* o = s_.output;
    const int64_t* st = grad_.strides;
    const int64_t x = position % o[2], y = position / o[2] % o[1];
    const int64_t z = position / o[2] / o[1] % o[0], n = position / o[2] / o[1] / o[0];
    return grad_.data + n * st[0] + z * st[2] + y * st[3] + x * st[4] + channel;
  }

  // A[channel][pair of positions]: rows of channels are zipped, then transposed.
  void pack_left(const Workspace& room, int64_t channel, int64_t rows, int64_t begin,
                 int64_t count) const {
    for (int64_t i = 0; i < count; i += 2 * strip) {
      const int64_t here = ceil_div(min_of(2 * strip, count - i), int64_t{2});
      for (int64_t p = 0; p < here; ++p) {
        const int64_t at = i + 2 * p;
        const BFloat16* low = gradient(begin + at, channel);
        const BFloat16* high = at + 1 < count ? gradient(begin + at + 1, channel) : nullptr;
        Pair* to = room.zipped.get() + p * row_block;
        int64_t c = 0;
        if (high != nullptr)
          for (; c + pair_width <= rows; c += pair_width) zip_rows(to + c, low + c, high + c);
        for (; c < rows; ++c) to[c] = pair_of(low + c, high != nullptr ? high + c : nullptr);
      }
      copy_matrix(room.left.get() + i / 2, pair_pitch, room.zipped.get(), 1, row_block, rows, here);
    }
  }

  // B in panels: [panel][pair of positions][element].
  void pack_right(const Workspace& room, int64_t group, const Columns& columns, int64_t begin,
                  int64_t count) const {
    BFloat16* rows = room.rows.get();
    const int64_t padded = round_up(columns.count, pair_width);
    for (int64_t i = 0; i < count; i += 2 * strip) {
      const int64_t here = min_of(2 * strip, count - i);
      im2col_.copy_rows(rows, columns_, group * im2col_.channels, begin + i, here, columns.pieces,
                        columns.piece_count);
      for (int64_t r = 0; r < here; ++r)
        clear(rows + r * columns_ + columns.count, padded - columns.count);
      if (here % 2 != 0) clear(rows + here * columns_, padded);
      for (int64_t c = 0; c < padded; c += pair_width) {
        Pair* to = room.right.get() + (c / pair_width * pairs + i / 2) * pair_width;
        for (int64_t r = 0; r < here; r += 2, to += pair_width)
          zip_rows(to, rows + r * columns_ + c, rows + (r + 1) * columns_ + c);
      }
    }
  }

  void multiply(const Workspace& room, int64_t rows, int64_t columns, int64_t depth, float* sums,
                bool add) const {
    const PairScope scope;
    const AmxScope tiles;
    if (tiles) depth = fill_up(room, rows, columns, depth);
    const RowPanels panels(rows);
    for (int64_t c = 0; c < columns; c += pair_width) {
      PairTile t{depth,    room.left.get(), room.right.get() + c * pairs,
                 sums + c, pitch_,          min_of(pair_width, columns - c),
                 add};
      if (tiles) {
        amx_tile(t, rows);
        continue;
      }
      for (int64_t i = 0; i < panels.count; ++i) {
        PairTile part = t;
        part.a += panels.begin(i) * pair_pitch;
        part.c += panels.begin(i) * pitch_;
        pair_kernel(panels.height(i), t.columns)(part);
      }
    }
  }

  // Zeros from `depth` pairs on to what tiles take at once, which is returned.
  static int64_t fill_up(const Workspace& room, int64_t rows, int64_t columns, int64_t depth) {
    const int64_t padded = round_up(depth, amx_pairs), more = padded - depth;
    if (more == 0) return depth;
    for (int64_t i = 0; i < rows; ++i) clear(room.left.get() + i * pair_pitch + depth, more);
    for (int64_t c = 0; c < columns; c += pair_width)
      clear(room.right.get() + c * pairs + depth * pair_width, more * pair_width);
    return padded;
  }

  void write_row(const ConvTensor<BFloat16>& out, float* sums, int64_t row) const {
    float* total = sums + row * pitch_;
    for (int64_t part = 1; part < parts_; ++part) {
      const float* more = total + part * part_pitch();
      for (int64_t i = 0; i < length_; ++i) total[i] += more[i];
    }
    const int64_t *st = out.strides, *k = s_.kernel;
    const int64_t channels = im2col_.channels;
    for (int64_t z = 0; z < k[0]; ++z) {
      for (int64_t y = 0; y < k[1]; ++y) {
        for (int64_t x = 0; x < k[2]; ++x, total += channels) {
          BFloat16* to = out.data + row * st[0] + z * st[2] + y * st[3] + x * st[4];
          for (int64_t c = 0; c < channels; ++c)
            to[c * st[1]] = Convert<BFloat16, float>::call(total[c]);
        }
      }
    }
  }

  const ConvShape& s_;
  const ConvTensor<const BFloat16>& grad_;
  InputTaps<BFloat16> taps_;
  const Im2col<BFloat16>& im2col_;
  int64_t outs_, length_, positions_, pitch_, columns_, col_jobs_, row_jobs_, parts_, blocks_;
};

#endif

}  // namespace facula::cpu::FACULA_ISA
