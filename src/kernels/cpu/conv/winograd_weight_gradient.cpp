// The gradient of a 3x3 convolution by its weights, by Winograd's method.
#include <cmath>

#include "kernels/cpu/conv/channels_last_copy.h"
#include "kernels/cpu/conv/padded_planes.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/conv/winograd_tiles.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// sums[part][row][channel] = sum over tiles of gradients[part][row][tile] *
// inputs[part][tile][channel].
//
// Tiles are taken in steps of a size that only the shape decides, and every sum adds up its steps
// in order: the same bits for any number of threads.
class WinogradGradient {
 public:
  WinogradGradient(const ConvShape& s, const ConvTensor<const float>& grad,
                   const ConvTensor<const float>& input)
      : channels_(s.in_channels),
        rows_(s.out_channels),
        pad_{s.padding[1], s.padding[2]},
        grad_data_(grad.data),
        input_data_(input.data),
        grad_(plane_of(s.output, grad.strides)),
        input_(plane_of(s.input, input.strides)),
        grid_(s.batch, s.output[1], s.output[2]),
        channel_pitch_(channels_ + float_lanes),
        input_pitch_(depth * channel_pitch_),
        grad_pitch_(rows_ * packed_pitch<float>),
        sum_pitch_(rows_ * channels_ + float_lanes),
        inputs_(winograd_parts * input_pitch_),
        gradients_(winograd_parts * grad_pitch_),
        sums_(winograd_parts * sum_pitch_) {}

  // False where an element is not finite.
  bool run(const ConvTensor<float>& grad_weight) const {
    for (int64_t first = 0; first < grid_.count(); first += depth) {
      const int64_t count = min_of(depth, grid_.count() - first);
      parallel_for(ceil_div(count, block), 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          transform(first, b * block, min_of(block, count - b * block));
      });
      const int64_t blocks = ceil_div(rows_, row_block);
      parallel_for(winograd_parts * blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          add_products(static_cast<int>(i / blocks), i % blocks * row_block, count, first > 0);
      });
    }
    return write(grad_weight);
  }

 private:
  static constexpr int64_t depth = 128, block = 16, row_block = 8 * max_tile_rows;

  static TiledPlane plane_of(const int64_t* sizes, const int64_t* strides) {
    return {sizes[1], sizes[2], strides[0], strides[3], strides[4]};
  }

  // Tiles [at, at + count) of the step that begins at tile `first`.
  void transform(int64_t first, int64_t at, int64_t count) const {
    int64_t input_parts[winograd_parts], grad_parts[winograd_parts];
    for (int p = 0; p < winograd_parts; ++p) {
      input_parts[p] = p * input_pitch_ + at * channel_pitch_;
      grad_parts[p] = p * (block * rows_ + float_lanes);
    }
    const Scratch<float> transposed(winograd_parts * (block * rows_ + float_lanes));
    grid_.for_runs(first + at, count, [&](const TileRun& run) {
      transform_inputs(input_data_ + run.image * input_.image_stride, input_, 2 * run.row - pad_[0],
                       2 * run.column - pad_[1], run.count, channels_,
                       {inputs_.get() + run.done * channel_pitch_, input_parts, channel_pitch_});
      transform_gradients(grad_data_ + run.image * grad_.image_stride, grad_, 2 * run.row,
                          2 * run.column, run.count, rows_,
                          {transposed.get() + run.done * rows_, grad_parts, rows_});
    });
    for (int p = 0; p < winograd_parts; ++p)
      copy_matrix(gradients_.get() + p * grad_pitch_ + at, packed_pitch<float>,
                  transposed.get() + grad_parts[p], 1, rows_, rows_, count);
  }

  // Rows from `row` on, at most row_block of them. The tiles of a step have sums of their own,
  // which keeps both them and the sums over steps short.
  void add_products(int part, int64_t row, int64_t count, bool add) const {
    const RowPanels panels(min_of(row_block, rows_ - row));
    const Scratch<float> room(panels.rows * channels_);
    float* total = sums_.get() + part * sum_pitch_ + row * channels_;
    float* sums = add ? room.get() : total;
    for (int64_t tile = 0; tile < count; tile += winograd_depth)
      multiply(part, row, panels, tile, min_of(winograd_depth, count - tile), sums);
    for (int64_t i = 0; add && i < panels.rows * channels_; ++i) total[i] += sums[i];
  }

  void multiply(int part, int64_t row, const RowPanels& panels, int64_t tile, int64_t length,
                float* sums) const {
    const float* left = gradients_.get() + part * grad_pitch_ + row * packed_pitch<float> + tile;
    const float* right = inputs_.get() + part * input_pitch_ + tile * channel_pitch_;
    const int64_t width = tile_vectors(panels.tallest()) * float_lanes;
    for (int64_t c = 0; c < channels_; c += width) {
      const int vectors = static_cast<int>(min_of(width, channels_ - c) / float_lanes);
      for (int64_t i = 0; i < panels.count; ++i)
        tile_kernel<float>(panels.height(i), vectors)(
            length, left + panels.begin(i) * packed_pitch<float>, right + c, channel_pitch_,
            sums + panels.begin(i) * channels_ + c, channels_, 1.0f, tile > 0 ? 1.0f : 0.0f);
    }
  }

  bool write(const ConvTensor<float>& grad_weight) const {
    const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 12) / channels_);
    const Scratch<uint8_t> finite(rows_);
    parallel_for(rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) finite.get()[r] = write_row(grad_weight, r);
    });
    for (int64_t r = 0; r < rows_; ++r)
      if (finite.get()[r] == 0) return false;
    return true;
  }

  bool write_row(const ConvTensor<float>& grad_weight, int64_t row) const {
    const int64_t* st = grad_weight.strides;
    bool finite = true;
    for (int64_t c = 0; c < channels_; c += float_lanes) {
      FloatVec taps[9];
      transform_back(sums_.get() + row * channels_ + c, sum_pitch_, taps);
      float* to = grad_weight.data + row * st[0] + c * st[1];
      for (int t = 0; t < 9; ++t) {
        finite &= all_finite(taps[t]);
        alignas(vector_bytes) float lanes[float_lanes];
        Simd<float>::store(lanes, taps[t]);
        float* at = to + t / 3 * st[3] + t % 3 * st[4];
        for (int64_t i = 0; i < float_lanes; ++i) at[i * st[1]] = lanes[i];
      }
    }
    return finite;
  }

  int64_t channels_, rows_;
  int64_t pad_[2];
  const float* grad_data_;
  const float* input_data_;
  TiledPlane grad_, input_;
  TileGrid grid_;
  int64_t channel_pitch_, input_pitch_, grad_pitch_, sum_pitch_;
  Scratch<float> inputs_, gradients_, sums_;
};

}  // namespace

bool winograd_backward_weight(const ConvShape& s, const ConvTensor<const float>& grad_output,
                              const ConvTensor<const float>& input,
                              const ConvTensor<float>& grad_weight) {
  const ChannelsLastCopy<const float> grad(grad_output, s.batch, s.out_channels, s.output);
  const ChannelsLastCopy<const float> source(input, s.batch, s.in_channels, s.input);
  grad.fill();
  source.fill();
  return WinogradGradient(s, grad.view(), source.view()).run(grad_weight);
}

}  // namespace facula::cpu::FACULA_ISA
