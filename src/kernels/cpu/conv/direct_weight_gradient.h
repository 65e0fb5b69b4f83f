// The weight gradient with the input channels across the lanes: nothing is unfolded or copied by
// tap, and no position in the padding is multiplied.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/conv/padded_planes.h"
#include "kernels/cpu/matmul/gemm_kernel.h"

namespace facula::cpu::FACULA_ISA {

// Positions whose products are added up one after the other: the rounding error of a gradient by
// the weights grows with their number.
inline constexpr int64_t weight_sum_depth = 64;

// sums[tap][out channel][channel] = sum over images and positions of
// grad_output[out channel][position] * planes[position + offset(tap)][channel].
//
// The batch is cut into parts, of a number fixed by the shape, each with sums of its own that are
// added up in order: the same bits for any number of threads.
template <class T>
class DirectWeightGradient {
 public:
  using Acc = tile_sum_t<T>;
  static constexpr int64_t lanes = Simd<Acc>::lanes;

  DirectWeightGradient(const ConvShape& s, const ConvTensor<const T>& grad,
                       const ConvTensor<const T>& input)
      : s_(s), grad_(grad), input_(input), layout_(input_layout(s)) {
    channels_ = s.in_channels / s.groups;
    outs_ = s.out_channels / s.groups;
    taps_ = s.kernel[0] * s.kernel[1] * s.kernel[2];
    positions_ = s.output[0] * s.output[1] * s.output[2];
    pitch_ = round_up(channels_, lanes);
    blocks_ = ceil_div(outs_, row_block);
    parts_ = min_of(s.batch, max_of(int64_t{1}, 8 / (blocks_ * s.groups)));
  }

  // Writes each element of `out` as the sum, or adds the sum to it or takes it away.
  void run(const ConvTensor<T>& out, bool subtract, bool add) const {
    const Scratch<int64_t> table(taps_ + positions_);
    list_offsets(table.get());
    const Scratch<Acc> sums(parts_ * part_pitch());
    const int64_t work = ceil_div(s_.batch, parts_) * taps_ * positions_ * pitch_ *
                         min_of(outs_, int64_t{row_block});
    const int64_t grain = max_of((int64_t{1} << 18) / work, int64_t{1});
    parallel_for(parts_ * s_.groups * blocks_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) run_job(job, table.get(), sums.get());
    });
    const int64_t rows = s_.groups * outs_;
    const int64_t row_grain = max_of((int64_t{1} << 16) / (channels_ * taps_), int64_t{1});
    parallel_for(rows, row_grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) write_row(out, sums.get(), row, subtract, add);
    });
  }

 private:
  static constexpr int64_t row_block = 8 * max_tile_rows;

  int64_t group_pitch() const { return taps_ * outs_ * pitch_; }
  int64_t part_pitch() const { return s_.groups * group_pitch(); }

  // First where each tap reads, then the place of each position; both in planes' elements.
  void list_offsets(int64_t* table) const {
    int64_t at[3];
    for (at[0] = 0; at[0] < s_.kernel[0]; ++at[0]) {
      for (at[1] = 0; at[1] < s_.kernel[1]; ++at[1]) {
        for (at[2] = 0; at[2] < s_.kernel[2]; ++at[2])
          *table++ = input_offset(s_, layout_, at) * pitch_;
      }
    }
    for (at[0] = 0; at[0] < s_.output[0]; ++at[0]) {
      for (at[1] = 0; at[1] < s_.output[1]; ++at[1]) {
        for (at[2] = 0; at[2] < s_.output[2]; ++at[2])
          *table++ = (at[0] * layout_.slice_pitch() + at[1] * layout_.row_pitch() + at[2]) * pitch_;
      }
    }
  }

  // One part of the batch, one group, one block of output channels.
  void run_job(int64_t job, const int64_t* table, Acc* sums) const {
    const int64_t block = job % blocks_, group = job / blocks_ % s_.groups;
    const int64_t part = job / blocks_ / s_.groups;
    const int64_t first = block * row_block, count = min_of(row_block, outs_ - first);
    sums += part * part_pitch() + group * group_pitch() + first * pitch_;
    for (int64_t tap = 0; tap < taps_; ++tap) clear(sums + tap * outs_ * pitch_, count * pitch_);
    const int64_t plane = layout_.channel_pitch() * pitch_;
    const Scratch<Acc> planes(plane);
    clear(planes.get(), plane);
    const Scratch<Acc> left(count * packed_pitch<Acc>);
    const int64_t last = (part + 1) * s_.batch / parts_;
    for (int64_t image = part * s_.batch / parts_; image < last; ++image) {
      const int64_t* st = input_.strides;
      fill_channels_last(planes.get(), pitch_,
                         input_.data + image * st[0] + group * channels_ * st[1], st[1], st + 2,
                         layout_, channels_);
      const T* grad =
          grad_.data + image * grad_.strides[0] + (group * outs_ + first) * grad_.strides[1];
      for (int64_t step = 0; step < positions_; step += weight_sum_depth) {
        const int64_t depth = min_of(weight_sum_depth, positions_ - step);
        pack_gradient(left.get(), grad, count, step, depth);
        add_tiles(planes.get(), left.get(), table, count, step, depth, sums);
      }
    }
  }

  // Positions [step, step + depth) of `count` channels; in one piece when rows follow one another.
  void pack_gradient(Acc* to, const T* grad, int64_t count, int64_t step, int64_t depth) const {
    const int64_t* st = grad_.strides;
    const int64_t* o = s_.output;
    if ((o[1] == 1 || st[3] == o[2] * st[4]) && (o[0] == 1 || st[2] == o[1] * o[2] * st[4])) {
      copy_matrix(to, packed_pitch<Acc>, grad + step * st[4], st[1], st[4], count, depth);
      return;
    }
    for (int64_t at = step; at < step + depth;) {
      const int64_t x = at % o[2], y = at / o[2] % o[1], z = at / o[2] / o[1];
      const int64_t run = min_of(o[2] - x, step + depth - at);
      copy_matrix(to + at - step, packed_pitch<Acc>, grad + z * st[2] + y * st[3] + x * st[4],
                  st[1], st[4], count, run);
      at += run;
    }
  }

  void add_tiles(const Acc* planes, const Acc* left, const int64_t* table, int64_t count,
                 int64_t step, int64_t depth, Acc* sums) const {
    const RowPanels rows(count);
    const int64_t width = tile_vectors(rows.tallest()) * lanes;
    for (int64_t tap = 0; tap < taps_; ++tap) {
      for (int64_t col = 0; col < pitch_; col += width) {
        const int vectors = static_cast<int>(min_of(width, pitch_ - col) / lanes);
        for (int64_t i = 0; i < rows.count; ++i) {
          const int64_t row = rows.begin(i);
          scattered_tile_kernel<Acc>(rows.height(i), vectors)(
              depth, left + row * packed_pitch<Acc>, planes + table[tap] + col,
              table + taps_ + step, lanes, sums + (tap * outs_ + row) * pitch_ + col, pitch_,
              Acc(1), Acc(1));
        }
      }
    }
  }

  void write_row(const ConvTensor<T>& out, Acc* sums, int64_t row, bool subtract, bool add) const {
    const int64_t* st = out.strides;
    const int64_t* k = s_.kernel;
    Acc* total = sums + row / outs_ * group_pitch() + row % outs_ * pitch_;
    for (int64_t tap = 0; tap < taps_; ++tap, total += outs_ * pitch_) {
      for (int64_t part = 1; part < parts_; ++part) {
        const Acc* more = total + part * part_pitch();
        for (int64_t c = 0; c < channels_; ++c) total[c] += more[c];
      }
      T* to = out.data + row * st[0] + tap / (k[1] * k[2]) * st[2] + tap / k[2] % k[1] * st[3] +
              tap % k[2] * st[4];
      for (int64_t c = 0; c < channels_; ++c, to += st[1]) {
        const Acc value = subtract ? -total[c] : total[c];
        *to = Convert<T, Acc>::call(add ? Convert<Acc, T>::call(*to) + value : value);
      }
    }
  }

  const ConvShape& s_;
  const ConvTensor<const T>& grad_;
  const ConvTensor<const T>& input_;
  PlaneLayout layout_;
  int64_t channels_, outs_, taps_, positions_, pitch_, blocks_, parts_;
};

}  // namespace facula::cpu::FACULA_ISA
