#include "kernels/cpu/conv/winograd.h"

#include "kernels/cpu/conv/channels_last_copy.h"
#include "kernels/cpu/conv/padded_planes.h"
#include "kernels/cpu/conv/winograd_tiles.h"
#include "kernels/cpu/simd/block_sizes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Columns of packed weights that lie side by side.
inline constexpr int64_t winograd_panel = tile_vectors(max_tile_rows) * float_lanes;

// Weight of (row, channel, tap): data[row * row_stride + channel * channel_stride + taps[tap]].
struct KernelView {
  const float* data;
  int64_t row_stride, channel_stride;
  int64_t taps[9];
};

// A convolution of stride 1 as Winograd's method does it: `channels` of the source to `rows` of the
// result.
struct WinogradSum {
  int64_t batch, channels, rows;
  int64_t pad[2];
  TiledPlane source, result;
};

// The transformed weights: [part][panel][channel][winograd_panel].
class WinogradWeights {
 public:
  WinogradWeights(const KernelView& view, int64_t channels, int64_t rows)
      : view_(view),
        channels_(channels),
        rows_(rows),
        panels_(ceil_div(rows, winograd_panel)),
        // A distance that is no power of two: sixteen streams would meet in one set of the cache.
        part_pitch_(panels_ * channels * winograd_panel + float_lanes),
        packed_(winograd_parts * part_pitch_) {
    const int64_t blocks = ceil_div(channels, block);
    parallel_for(panels_ * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * block;
        pack(i / blocks, first, min_of(block, channels_ - first));
      }
    });
  }

  int64_t panels() const { return panels_; }
  const float* at(int part, int64_t panel, int64_t channel) const {
    return packed_.get() + part * part_pitch_ + (panel * channels_ + channel) * winograd_panel;
  }

 private:
  static constexpr int64_t block = 16;  // channels that are packed at a time

  void pack(int64_t panel, int64_t first, int64_t count) const {
    alignas(vector_bytes) float taps[block * 9 * winograd_panel];
    const int64_t width = min_of(winograd_panel, rows_ - panel * winograd_panel);
    gather(taps, panel * winograd_panel, width, first, count);
    float* to = packed_.get() + (panel * channels_ + first) * winograd_panel;
    for (int64_t c = 0; c < count; ++c) {
      for (int64_t r = 0; r < width; r += float_lanes) {
        FloatVec kernel[9];
        for (int t = 0; t < 9; ++t)
          kernel[t] = Simd<float>::load(taps + (c * 9 + t) * winograd_panel + r);
        transform_kernel(kernel, to + c * winograd_panel + r, part_pitch_);
      }
    }
  }

  // to[channel][tap][row] for a block, read along whichever dimension is contiguous.
  void gather(float* to, int64_t row, int64_t width, int64_t first, int64_t count) const {
    const int64_t rs = view_.row_stride, cs = view_.channel_stride;
    const float* from = view_.data + row * rs + first * cs;
    if (cs == 1) {
      for (int t = 0; t < 9; ++t)
        copy_matrix(to + t * winograd_panel, 9 * winograd_panel, from + view_.taps[t], 1, rs, count,
                    width);
      return;
    }
    const bool rising = steps_by(1), falling = steps_by(-1);
    for (int64_t c = 0; c < count; ++c, from += cs, to += 9 * winograd_panel) {
      if (rs != 1 && rising) {
        copy_matrix(to, winograd_panel, from + view_.taps[0], 1, rs, 9, width);
      } else if (rs != 1 && falling) {
        copy_matrix(to + 8 * winograd_panel, -winograd_panel, from + view_.taps[8], 1, rs, 9,
                    width);
      } else {
        copy_taps(to, from, width);
      }
    }
  }

  void copy_taps(float* to, const float* from, int64_t width) const {
    for (int t = 0; t < 9; ++t)
      copy_row(to + t * winograd_panel, from + view_.taps[t], view_.row_stride, width);
  }

  bool steps_by(int64_t step) const {
    for (int t = 1; t < 9; ++t)
      if (view_.taps[t] != view_.taps[t - 1] + step) return false;
    return true;
  }

  const KernelView& view_;
  int64_t channels_, rows_, panels_, part_pitch_;
  Scratch<float> packed_;
};

// Few weights stay in the second-level cache while blocks of tiles pass by, each block read,
// multiplied and written by one thread. Many weights are read once for a large block, whose three
// steps are shared out each. Shape and caches alone decide on blocks, and these change no sum.
class WinogradEngine {
 public:
  // `least` blocks, where tiles suffice for so many of them.
  WinogradEngine(const WinogradSum& sum, const WinogradWeights& weights, const float* bias,
                 int64_t least)
      : sum_(sum),
        weights_(weights),
        bias_(bias),
        grid_(sum.batch, sum.result.height, sum.result.width) {
    per_row_ = max_of(int64_t{1}, gemm_depth<float> / winograd_depth);
    chunks_ = ceil_div(sum.channels, winograd_depth);
    slots_ = ceil_div(chunks_ * winograd_parts, per_row_);
    sum_pitch_ = sum.rows + float_lanes;
    const int64_t tile = slots_ * packed_pitch<float> + winograd_parts * sum_pitch_;
    const auto floats = static_cast<int64_t>(sizeof(float));
    const int64_t own = block_sizes().own_tiles / floats;
    shared_ = winograd_parts * sum.channels * sum.rows > own;
    const int64_t block = shared_ ? block_sizes().shared_tiles / floats : own;
    const int64_t most = max_of(block / tile, int64_t{2 * max_tile_rows});
    const int64_t wanted = shared_ ? 1 : min_of(grid_.count() / max_tile_rows, least);
    const int64_t blocks = max_of(ceil_div(grid_.count(), most), wanted);
    block_ = ceil_div(grid_.count(), blocks);
    slot_pitch_ = (block_ + 1) * packed_pitch<float>;
    part_pitch_ = block_ * sum_pitch_ + float_lanes;
  }

  // Images that fill a block, 0 for blocks that all threads share.
  int64_t images_of_a_block() const {
    return shared_ ? 0 : ceil_div(block_, grid_.rows * grid_.columns);
  }

  // `broken[image]` is set where a result is not finite.
  void run(const float* source, float* result, uint8_t* broken) const {
    const int64_t jobs = ceil_div(grid_.count(), block_);
    parallel_for(jobs, shared_ ? jobs : 1, [&](int64_t begin, int64_t end) {
      const Scratch<float> inputs(slots_ * slot_pitch_), sums(winograd_parts * part_pitch_);
      for (int64_t job = begin; job < end; ++job) {
        const int64_t first = job * block_, count = min_of(block_, grid_.count() - first);
        in_pieces(count, [&](int64_t at, int64_t n) { read(source, inputs.get(), first, at, n); });
        multiply_all(inputs.get(), sums.get(), count);
        in_pieces(count,
                  [&](int64_t at, int64_t n) { write(result, sums.get(), first, at, n, broken); });
      }
    });
  }

 private:
  static constexpr int64_t piece = 16;

  // Within a thread's own block these loops run serially.
  template <class F>
  void in_pieces(int64_t count, F&& body) const {
    parallel_for(ceil_div(count, piece), shared_ ? 1 : count, [&](int64_t begin, int64_t end) {
      body(begin * piece, min_of(end * piece, count) - begin * piece);
    });
  }

  int64_t slot(int part, int64_t chunk) const {
    const int64_t s = chunk * winograd_parts + part;
    return s / per_row_ * slot_pitch_ + s % per_row_ * winograd_depth;
  }

  // Tiles [at, at + count) of the block that begins at tile `first`.
  void read(const float* source, float* inputs, int64_t first, int64_t at, int64_t count) const {
    int64_t parts[winograd_parts];
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const int64_t channel = chunk * winograd_depth;
      const int64_t channels = min_of(winograd_depth, sum_.channels - channel);
      for (int p = 0; p < winograd_parts; ++p) parts[p] = slot(p, chunk);
      grid_.for_runs(first + at, count, [&](const TileRun& run) {
        transform_inputs(
            source + run.image * sum_.source.image_stride + channel, sum_.source,
            2 * run.row - sum_.pad[0], 2 * run.column - sum_.pad[1], run.count, channels,
            {inputs + (at + run.done) * packed_pitch<float>, parts, packed_pitch<float>});
      });
    }
  }

  void multiply_all(const float* inputs, float* sums, int64_t count) const {
    const int64_t jobs = winograd_parts * weights_.panels();
    parallel_for(jobs, shared_ ? 1 : jobs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        multiply(inputs, sums, count, static_cast<int>(i / weights_.panels()),
                 i % weights_.panels());
    });
  }

  void multiply(const float* inputs, float* sums, int64_t count, int part, int64_t panel) const {
    const RowPanels tiles(count);
    const int64_t width = min_of(winograd_panel, sum_.rows - panel * winograd_panel);
    const int vectors = static_cast<int>(width / float_lanes);
    for (int64_t i = 0; i < tiles.count; ++i) {
      const auto kernel = tile_kernel<float>(tiles.height(i), vectors);
      float* to = sums + part * part_pitch_ + tiles.begin(i) * sum_pitch_ + panel * winograd_panel;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        const float* left = inputs + slot(part, chunk) + tiles.begin(i) * packed_pitch<float>;
        const int64_t channel = chunk * winograd_depth;
        kernel(min_of(winograd_depth, sum_.channels - channel), left,
               weights_.at(part, panel, channel), winograd_panel, to, sum_pitch_, 1.0f,
               chunk == 0 ? 0.0f : 1.0f);
      }
    }
  }

  void write(float* result, const float* sums, int64_t first, int64_t at, int64_t count,
             uint8_t* broken) const {
    int64_t parts[winograd_parts];
    for (int p = 0; p < winograd_parts; ++p) parts[p] = p * part_pitch_;
    grid_.for_runs(first + at, count, [&](const TileRun& run) {
      const float* from = sums + (at + run.done) * sum_pitch_;
      float* to = result + run.image * sum_.result.image_stride;
      if (!write_run(to, from, parts, 2 * run.row, 2 * run.column, run.count))
        __atomic_store_n(broken + run.image, uint8_t{1}, __ATOMIC_RELAXED);
    });
  }

  // Whether all results of the run are finite.
  bool write_run(float* to, const float* sums, const int64_t* parts, int64_t y, int64_t x,
                 int64_t run) const {
    using S = Simd<float>;
    const TiledPlane& plane = sum_.result;
    const bool low = y + 1 < plane.height;
    FloatVec wrong{};
    for (int64_t t = 0; t < run; ++t, x += 2, sums += sum_pitch_) {
      const bool right = x + 1 < plane.width;
      float* at = to + y * plane.row_stride + x * plane.column_stride;
      for (int64_t r = 0; r < sum_.rows; r += float_lanes) {
        const FloatVec bias = bias_ == nullptr ? FloatVec{} : S::load(bias_ + r);
        const TileResult tile(sums + r, parts);
        const auto put = [&](int i, int j) __attribute__((always_inline)) {
          // 0 for a finite number, NaN for any other.
          wrong += tile.y[i][j] - tile.y[i][j];
          S::store(at + i * plane.row_stride + j * plane.column_stride + r, tile.y[i][j] + bias);
        };
        put(0, 0);
        if (right) put(0, 1);
        if (low) put(1, 0);
        if (low && right) put(1, 1);
      }
    }
    return all_finite(wrong);
  }

  const WinogradSum& sum_;
  const WinogradWeights& weights_;
  const float* bias_;
  TileGrid grid_;
  int64_t chunks_, per_row_, slots_, block_, slot_pitch_, sum_pitch_, part_pitch_;
  bool shared_;
};

TiledPlane plane_of(const int64_t* sizes, const int64_t* strides) {
  return {sizes[1], sizes[2], strides[0], strides[3], strides[4]};
}

// What a sum reads and writes, as it lies in memory.
struct WinogradOperands {
  ConvTensor<const float> source;
  const int64_t* source_sizes;
  ConvTensor<float> result;
  const int64_t* result_sizes;

  bool copied() const { return source.strides[1] != 1 || result.strides[1] != 1; }
  WinogradOperands from_image(int64_t image) const {
    WinogradOperands o = *this;
    o.source.data += image * source.strides[0];
    o.result.data += image * result.strides[0];
    return o;
  }
};

inline constexpr int64_t least_jobs = 8;

// All images of `sum` at once, in copies with their channels innermost.
void run_images(WinogradSum sum, const WinogradWeights& weights, const float* bias,
                const WinogradOperands& o, int64_t least, uint8_t* broken) {
  const ChannelsLastCopy<const float> from(o.source, sum.batch, sum.channels, o.source_sizes);
  const ChannelsLastCopy<float> to(o.result, sum.batch, sum.rows, o.result_sizes);
  from.fill();
  sum.source = plane_of(o.source_sizes, from.view().strides);
  sum.result = plane_of(o.result_sizes, to.view().strides);
  WinogradEngine(sum, weights, bias, least).run(from.view().data, to.view().data, broken);
  to.write_back();
}

// Copies of few images stay in the caches of the thread that makes and reads them.
void run_sum(WinogradSum sum, const KernelView& view, const float* bias, const WinogradOperands& o,
             uint8_t* broken) {
  sum.result = plane_of(o.result_sizes, o.result.strides);
  const WinogradWeights weights(view, sum.channels, sum.rows);
  const int64_t images = WinogradEngine(sum, weights, bias, least_jobs).images_of_a_block();
  if (!o.copied() || images == 0 || sum.batch < least_jobs * images)
    return run_images(sum, weights, bias, o, least_jobs, broken);
  parallel_for(ceil_div(sum.batch, images), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * images; i < min_of(end * images, sum.batch); i += images) {
      WinogradSum part = sum;
      part.batch = min_of(images, sum.batch - i);
      run_images(part, weights, bias, o.from_image(i), 1, broken + i);
    }
  });
}

}  // namespace

void winograd_forward(const ConvShape& s, const ConvTensor<const float>& input,
                      const ConvTensor<const float>& weight, const float* bias,
                      const ConvTensor<float>& output, uint8_t* broken) {
  KernelView view{weight.data, weight.strides[0], weight.strides[1], {}};
  for (int t = 0; t < 9; ++t) view.taps[t] = t / 3 * weight.strides[3] + t % 3 * weight.strides[4];
  run_sum({s.batch, s.in_channels, s.out_channels, {s.padding[1], s.padding[2]}, {}, {}}, view,
          bias, {input, s.input, output, s.output}, broken);
}

// The convolution of the gradient with the kernel turned round.
void winograd_backward_input(const ConvShape& s, const ConvTensor<const float>& grad_output,
                             const ConvTensor<const float>& weight, const float* bias,
                             const ConvTensor<float>& grad_input, uint8_t* broken) {
  KernelView view{weight.data, weight.strides[1], weight.strides[0], {}};
  for (int t = 0; t < 9; ++t)
    view.taps[8 - t] = t / 3 * weight.strides[3] + t % 3 * weight.strides[4];
  run_sum({s.batch, s.out_channels, s.in_channels, {2 - s.padding[1], 2 - s.padding[2]}, {}, {}},
          view, bias, {grad_output, s.output, grad_input, s.input}, broken);
}

}  // namespace facula::cpu::FACULA_ISA
