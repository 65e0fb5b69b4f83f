// The gradient of a 3x3 convolution by its weights, by Winograd's method.
#include <cmath>

#include "kernels/cpu/conv/channels_last_copy.h"
#include "kernels/cpu/conv/padded_planes.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/conv/winograd_tiles.h"
#include "kernels/cpu/simd/block_sizes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// sums[part][row][channel] = sum over tiles of gradients[part][tile][row] *
// inputs[part][tile][channel].
//
// Small sums are taken by ranges of tiles, each copied with the channels innermost, transformed,
// multiplied and added up by one thread in its own caches. Large ones are taken once, and a step's
// transforms and products shared out. Shape and caches alone decide on ranges and steps: the same
// bits for any number of threads.
class WinogradGradient {
 public:
  WinogradGradient(const ConvShape& s, const ConvTensor<const float>& grad,
                   const ConvTensor<const float>& input)
      : s_(s),
        given_grad_(grad),
        given_input_(input),
        channels_(s.in_channels),
        rows_(s.out_channels),
        grid_(s.batch, s.output[1], s.output[2]),
        shared_(winograd_parts * rows_ * channels_ * static_cast<int64_t>(sizeof(float)) >
                block_sizes().own_tiles),
        step_(shared_ ? shared_step : own_step),
        ranges_(shared_ ? 1 : max_of(int64_t{1}, min_of(grid_.count() / shared_step, most_ranges))),
        channel_pitch_(channels_ + float_lanes),
        row_pitch_(rows_ + float_lanes),
        input_pitch_(step_ * channel_pitch_),
        grad_pitch_(step_ * row_pitch_),
        sum_pitch_(rows_ * channels_ + float_lanes),
        sums_(ranges_ * range_pitch()) {}

  // False where an element is not finite.
  bool run(const ConvTensor<float>& grad_weight) const {
    if (shared_ || ranges_ > s_.batch) {
      with_copies(0, s_.batch, [&](const Images& images) {
        parallel_for(ranges_, 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r)
            run_range(images, r, cut(grid_.count(), r), cut(grid_.count(), r + 1));
        });
      });
    } else {
      parallel_for(ranges_, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) run_own_images(r);
      });
    }
    return write(grad_weight);
  }

 private:
  static constexpr int64_t shared_step = 128, own_step = 64, most_ranges = 8;
  static constexpr int64_t block = 16, row_block = 8 * max_tile_rows;

  // Images whose channels are innermost.
  struct Images {
    const float *grad_data, *input_data;
    TiledPlane grad, input;
  };
  // The transforms of a step, and the sums of a range.
  struct Work {
    const Images& images;
    float *inputs, *gradients, *sums;
  };

  static TiledPlane plane_of(const int64_t* sizes, const int64_t* strides) {
    return {sizes[1], sizes[2], strides[0], strides[3], strides[4]};
  }

  int64_t range_pitch() const { return winograd_parts * sum_pitch_; }
  int64_t cut(int64_t count, int64_t range) const { return range * count / ranges_; }

  // Calls body(images) for copies of the images [first, first + count).
  template <class F>
  void with_copies(int64_t first, int64_t count, F&& body) const {
    ConvTensor<const float> own_grad = given_grad_, own_input = given_input_;
    own_grad.data += first * own_grad.strides[0];
    own_input.data += first * own_input.strides[0];
    const ChannelsLastCopy<const float> grad(own_grad, count, rows_, s_.output);
    const ChannelsLastCopy<const float> input(own_input, count, channels_, s_.input);
    grad.fill();
    input.fill();
    body(Images{grad.view().data, input.view().data, plane_of(s_.output, grad.view().strides),
                plane_of(s_.input, input.view().strides)});
  }

  void run_own_images(int64_t range) const {
    const int64_t first = cut(s_.batch, range), count = cut(s_.batch, range + 1) - first;
    with_copies(first, count, [&](const Images& images) {
      run_range(images, range, 0, count * grid_.rows * grid_.columns);
    });
  }

  // Tiles [begin, end) of `images`. The loops within a range of its own run serially.
  void run_range(const Images& images, int64_t range, int64_t begin, int64_t end) const {
    const Scratch<float> inputs(winograd_parts * input_pitch_);
    const Scratch<float> gradients(winograd_parts * grad_pitch_);
    const Work work{images, inputs.get(), gradients.get(), sums_.get() + range * range_pitch()};
    const int64_t row_blocks = ceil_div(rows_, row_block), jobs = winograd_parts * row_blocks;
    for (int64_t first = begin; first < end; first += step_) {
      const int64_t count = min_of(step_, end - first), pieces = ceil_div(count, block);
      parallel_for(pieces, shared_ ? 1 : pieces, [&](int64_t from, int64_t to) {
        transform(work, first, from * block, min_of(to * block, count) - from * block);
      });
      parallel_for(jobs, shared_ ? 1 : jobs, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i)
          add_products(work, i / row_blocks, i % row_blocks * row_block, count, first > begin);
      });
    }
  }

  // Tiles [at, at + count) of the step that begins at tile `first`.
  void transform(const Work& work, int64_t first, int64_t at, int64_t count) const {
    int64_t input_parts[winograd_parts], grad_parts[winograd_parts];
    for (int p = 0; p < winograd_parts; ++p) {
      input_parts[p] = p * input_pitch_;
      grad_parts[p] = p * grad_pitch_;
    }
    grid_.for_runs(first + at, count, [&](const TileRun& run) {
      const int64_t tile = at + run.done;
      const Images& from = work.images;
      transform_inputs(from.input_data + run.image * from.input.image_stride, from.input,
                       2 * run.row - s_.padding[1], 2 * run.column - s_.padding[2], run.count,
                       channels_,
                       {work.inputs + tile * channel_pitch_, input_parts, channel_pitch_});
      transform_gradients(from.grad_data + run.image * from.grad.image_stride, from.grad,
                          2 * run.row, 2 * run.column, run.count, rows_,
                          {work.gradients + tile * row_pitch_, grad_parts, row_pitch_});
    });
  }

  // Rows from `row` on, at most row_block of them. Where there is but one range, its steps have
  // sums of their own, which keeps both them and the sums over steps short.
  void add_products(const Work& work, int64_t part, int64_t row, int64_t count, bool add) const {
    const RowPanels panels(min_of(row_block, rows_ - row));
    float* total = work.sums + part * sum_pitch_ + row * channels_;
    if (!add || !shared_) return multiply(work, part, row, panels, count, total, add);
    const Scratch<float> sums(panels.rows * channels_);
    multiply(work, part, row, panels, count, sums.get(), false);
    for (int64_t i = 0; i < panels.rows * channels_; ++i) total[i] += sums.get()[i];
  }

  void multiply(const Work& work, int64_t part, int64_t row, const RowPanels& panels, int64_t count,
                float* sums, bool add) const {
    const float* left = work.gradients + part * grad_pitch_ + row;
    const float* right = work.inputs + part * input_pitch_;
    const int64_t width = tile_vectors(panels.tallest()) * float_lanes;
    for (int64_t c = 0; c < channels_; c += width) {
      const int vectors = static_cast<int>(min_of(width, channels_ - c) / float_lanes);
      for (int64_t i = 0; i < panels.count; ++i) {
        const auto kernel = column_tile_kernel<float>(panels.height(i), vectors);
        float* to = sums + panels.begin(i) * channels_ + c;
        for (int64_t tile = 0; tile < count; tile += winograd_depth)
          kernel(min_of(winograd_depth, count - tile), left + tile * row_pitch_ + panels.begin(i),
                 row_pitch_, right + tile * channel_pitch_ + c, channel_pitch_, to, channels_,
                 add || tile > 0 ? 1.0f : 0.0f);
      }
    }
  }

  bool write(const ConvTensor<float>& grad_weight) const {
    const int64_t grain = max_of(int64_t{1}, (int64_t{1} << 12) / channels_);
    const Scratch<uint8_t> finite(rows_);
    parallel_for(rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        add_ranges(r);
        finite.get()[r] = write_row(grad_weight, r);
      }
    });
    for (int64_t r = 0; r < rows_; ++r)
      if (finite.get()[r] == 0) return false;
    return true;
  }

  // Adds up one row's sums into those of the first range.
  void add_ranges(int64_t row) const {
    for (int p = 0; p < winograd_parts; ++p) {
      float* total = sums_.get() + p * sum_pitch_ + row * channels_;
      for (int64_t r = 1; r < ranges_; ++r) {
        const float* more = total + r * range_pitch();
        for (int64_t c = 0; c < channels_; ++c) total[c] += more[c];
      }
    }
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

  const ConvShape& s_;
  const ConvTensor<const float>& given_grad_;
  const ConvTensor<const float>& given_input_;
  int64_t channels_, rows_;
  TileGrid grid_;
  bool shared_;
  int64_t step_, ranges_, channel_pitch_, row_pitch_, input_pitch_, grad_pitch_, sum_pitch_;
  Scratch<float> sums_;
};

}  // namespace

bool winograd_backward_weight(const ConvShape& s, const ConvTensor<const float>& grad_output,
                              const ConvTensor<const float>& input,
                              const ConvTensor<float>& grad_weight) {
  return WinogradGradient(s, grad_output, input).run(grad_weight);
}

}  // namespace facula::cpu::FACULA_ISA
