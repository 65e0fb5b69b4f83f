#include "kernels/cpu/conv/depthwise.h"

#include "kernels/cpu/conv/channels_last_copy.h"

namespace facula::cpu::FACULA_ISA {
namespace {

struct Tap {
  int64_t kernel, place;  // the kernel's position, and that of the element it is multiplied with
};

// For every position of one tensor along one dimension, the taps that reach elements of another.
class TapLists {
 public:
  TapLists(int64_t positions, int64_t kernel)
      : taps_(max_of(positions * kernel, int64_t{1})), ends_(positions + 1) {
    ends_.get()[0] = 0;
  }
  void add(Tap tap) { taps_.get()[count_++] = tap; }
  void finish(int64_t position) { ends_.get()[position + 1] = count_; }
  const Tap* begin(int64_t position) const { return taps_.get() + ends_.get()[position]; }
  const Tap* end(int64_t position) const { return taps_.get() + ends_.get()[position + 1]; }

 private:
  Scratch<Tap> taps_;
  Scratch<int64_t> ends_;
  int64_t count_ = 0;
};

// From positions of the result to those of the input.
void list_inputs(TapLists& to, const ConvShape& s, int d) {
  for (int64_t o = 0; o < s.output[d]; ++o) {
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const int64_t i = o * s.stride[d] + k * s.dilation[d] - s.padding[d];
      if (i >= 0 && i < s.input[d]) to.add({k, i});
    }
    to.finish(o);
  }
}

// From positions of the input to those of the result.
void list_outputs(TapLists& to, const ConvShape& s, int d) {
  for (int64_t i = 0; i < s.input[d]; ++i) {
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const int64_t o = i + s.padding[d] - k * s.dilation[d];
      if (o >= 0 && o % s.stride[d] == 0 && o / s.stride[d] < s.output[d])
        to.add({k, o / s.stride[d]});
    }
    to.finish(i);
  }
}

// Sums over taps of source * weight, position by position; weights lie as [tap, channel].
template <class T>
struct TapWalk {
  using S = Simd<T>;
  const ConvShape& s;
  const T* weights;
  const T* bias;
  ConvTensor<const T> source;
  ConvTensor<T> result;
  const TapLists &deep, &high, &wide;
  int64_t channels;

  // The elements and weights that one position takes.
  struct Reached {
    int count = 0;
    const T* from[max_depthwise_taps];
    const T* weight[max_depthwise_taps];
  };
  Reached reach(const T* image, const Tap* const* first, const Tap* const* last) const {
    Reached r;
    for (const Tap* z = first[0]; z < last[0]; ++z)
      for (const Tap* y = first[1]; y < last[1]; ++y)
        for (const Tap* x = first[2]; x < last[2]; ++x) {
          asm("" : "+r"(x));  // so few taps are slower by vectors
          r.from[r.count] = image + z->place * source.strides[2] + y->place * source.strides[3] +
                            x->place * source.strides[4];
          r.weight[r.count++] = weights + tap(z, y, x) * channels;
        }
    return r;
  }

  template <int vectors>
  void sum(const Reached& r, int64_t channel, T* to) const {
    typename S::Vec sum[vectors];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      sum[j] = bias ? S::load(bias + channel + j * S::lanes) : typename S::Vec{};
    for (int t = 0; t < r.count; ++t)
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j)
        sum[j] =
            multiply_add<typename S::Vec>(S::load(r.from[t] + channel + j * S::lanes),
                                          S::load(r.weight[t] + channel + j * S::lanes), sum[j]);
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) S::store(to + channel + j * S::lanes, sum[j]);
  }
  void sum_one(const Reached& r, int64_t channel, T* to) const {
    T sum = bias ? bias[channel] : T(0);
    for (int t = 0; t < r.count; ++t) sum += r.from[t][channel] * r.weight[t][channel];
    to[channel] = sum;
  }
  int64_t tap(const Tap* z, const Tap* y, const Tap* x) const {
    return (z->kernel * s.kernel[1] + y->kernel) * s.kernel[2] + x->kernel;
  }

  // Channels from `c` on of position (z, y, x).
  void position(const T* image, int64_t z, int64_t y, int64_t x, int64_t c, T* to) const {
    if (c == channels) return;
    const Tap* begin[] = {deep.begin(z), high.begin(y), wide.begin(x)};
    const Tap* end[] = {deep.end(z), high.end(y), wide.end(x)};
    const Reached r = reach(image, begin, end);
    for (; c + 4 * S::lanes <= channels; c += 4 * S::lanes) sum<4>(r, c, to);
    for (; c + S::lanes <= channels; c += S::lanes) sum<1>(r, c, to);
    for (; c < channels; ++c) sum_one(r, c, to);
  }

  // Whether every tap of a dimension reaches the position.
  bool whole(const TapLists& lists, int64_t position, int d) const {
    return lists.end(position) - lists.begin(position) == s.kernel[d];
  }

  // Positions [first, last) of a row of a 3x3 kernel, none of which reaches the padding: weights
  // stay in registers while a block of channels is walked along.
  template <int vectors>
  void square_run(const T* image, int64_t z, int64_t y, int64_t first, int64_t last,
                  int64_t channel, T* to) const {
    using V = typename S::Vec;
    const Tap *rows = high.begin(y), *columns = wide.begin(first);
    const int64_t step =
        last - first > 1 ? wide.begin(first + 1)->place - columns->place : int64_t{0};
    V weight[9][vectors];
    const T* from[9];
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) {
      const Tap &row = rows[t / 3], &column = columns[t % 3];
      from[t] = image + deep.begin(z)->place * source.strides[2] + row.place * source.strides[3] +
                column.place * source.strides[4] + channel;
      const T* w = weights + (row.kernel * 3 + column.kernel) * channels + channel;
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) weight[t][j] = S::load(w + j * S::lanes);
    }
    // In locals: what is stored could be these numbers, for all that the compiler knows.
    const int64_t stride = step * source.strides[4], out_stride = result.strides[4];
    V start[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j)
      start[j] = bias ? S::load(bias + channel + j * S::lanes) : V{};
    T* place = to + first * out_stride + channel;
    for (int64_t x = first, at = 0; x < last; ++x, at += stride, place += out_stride) {
      V sum[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) sum[j] = start[j];
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j)
          sum[j] = multiply_add<V>(S::load(from[t] + at + j * S::lanes), weight[t][j], sum[j]);
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) S::store(place + j * S::lanes, sum[j]);
    }
  }

  // Positions of a row that reach no padding to its sides, of a kernel of 3x3.
  struct Inside {
    int64_t first = 0, last = 0;
    int64_t step = 0;  // 1 or -1 where neighbours read, by one tap, neighbours: blocks can be taken
  };
  Inside inside(int64_t count) const {
    Inside found;
    const bool square = s.kernel[0] == 1 && s.kernel[1] == 3 && s.kernel[2] == 3;
    if (!square || channels < S::lanes) return found;
    while (found.first < count && !whole(wide, found.first, 2)) ++found.first;
    found.last = found.first;
    while (found.last < count && whole(wide, found.last, 2)) ++found.last;
    const bool dense = s.stride[1] == 1 && s.stride[2] == 1 && s.dilation[1] == 1 &&
                       s.dilation[2] == 1 && found.last - found.first >= block_width;
    if (dense) found.step = wide.begin(found.first)[1].place - wide.begin(found.first)->place;
    return found;
  }

  static constexpr int block_width = 4;

  // Results side by side in one row or two: inputs and results are walked in the order of taps,
  // which for gradients falls.
  struct Block {
    const T* from;
    int64_t row, column;
    const T* weights;
    int tap_rows;
    T* to;
    int64_t to_row, to_column;
  };

  // Every input that a block reaches is loaded once and multiplied with all taps that reach it.
  template <int rows>
  void sum_block(const Block& b, int64_t count) const {
    using V = typename S::Vec;
    for (int64_t c = 0; c < count; c += S::lanes) {
      V sum[rows][block_width];
      const V start = bias ? S::load(bias + c) : V{};
#pragma GCC unroll 2
      for (int o = 0; o < rows; ++o)
#pragma GCC unroll 4
        for (int i = 0; i < block_width; ++i) sum[o][i] = start;
      V above[3] = {}, weight[3] = {};
      const int steps = rows == 1 ? b.tap_rows : 4;
#pragma GCC unroll 4
      for (int r = 0; r < steps; ++r) {
#pragma GCC unroll 3
        for (int t = 0; t < 3; ++t) {
          above[t] = weight[t];
          if (rows == 1 || r < 3) weight[t] = S::load(b.weights + (3 * r + t) * channels + c);
        }
        const T* from = b.from + r * b.row + c;
#pragma GCC unroll 6
        for (int j = 0; j < block_width + 2; ++j) {
          const V v = S::load(from + j * b.column);
#pragma GCC unroll 3
          for (int t = 0; t < 3; ++t) {
            const int i = j - t;
            if (i < 0 || i >= block_width) continue;
            if (rows == 1 || r < 3) sum[0][i] = multiply_add<V>(v, weight[t], sum[0][i]);
            if (rows == 2 && r > 0)
              sum[rows - 1][i] = multiply_add<V>(v, above[t], sum[rows - 1][i]);
          }
        }
      }
#pragma GCC unroll 2
      for (int o = 0; o < rows; ++o)
#pragma GCC unroll 4
        for (int i = 0; i < block_width; ++i)
          S::store(b.to + o * b.to_row + i * b.to_column + c, sum[o][i]);
    }
  }

  // The inside of one row or of two that all tap rows reach; returns how many channels are done.
  template <int rows>
  int64_t sum_blocks(const T* image, int64_t z, int64_t y, const Inside& in, T* to) const {
    const int64_t count = channels / S::lanes * S::lanes;
    const int64_t row = in.step > 0 ? 0 : rows - 1, side = in.step > 0 ? 0 : block_width - 1;
    const Tap* high_taps = high.begin(y + row);
    if (deep.begin(z) == deep.end(z) || high_taps == high.end(y + row)) return 0;
    const T* from =
        image + deep.begin(z)->place * source.strides[2] + high_taps->place * source.strides[3];
    Block b{nullptr,
            in.step * source.strides[3],
            in.step * source.strides[4],
            weights + high_taps->kernel * 3 * channels,
            static_cast<int>(high.end(y + row) - high_taps),
            nullptr,
            in.step * result.strides[3],
            in.step * result.strides[4]};
    for (int64_t x = in.first; x < in.last; x += block_width) {
      // The last block overlaps the one before it.
      const int64_t at = min_of(x, in.last - block_width) + side;
      b.from = from + wide.begin(at)->place * source.strides[4];
      b.to = to + row * result.strides[3] + at * result.strides[4];
      sum_block<rows>(b, count);
    }
    return count;
  }

  // The inside of a row whose positions or taps are steps apart.
  int64_t sum_runs(const T* image, int64_t z, int64_t y, const Inside& in, T* to) const {
    if (in.first == in.last || !whole(deep, z, 0) || !whole(high, y, 1)) return 0;
    int64_t channel = 0;
    for (; channel + 2 * S::lanes <= channels; channel += 2 * S::lanes)
      square_run<2>(image, z, y, in.first, in.last, channel, to);
    for (; channel + S::lanes <= channels; channel += S::lanes)
      square_run<1>(image, z, y, in.first, in.last, channel, to);
    return channel;
  }

  // What is left of a row of which some channels of the inside are done.
  void finish_row(const T* image, int64_t z, int64_t y, int64_t count, const Inside& in,
                  int64_t done, T* to) const {
    for (int64_t x = 0; x < count; ++x)
      position(image, z, y, x, in.first <= x && x < in.last ? done : 0, to + x * result.strides[4]);
  }

  // Row y, and the next one where that may be taken as well; returns how many were.
  int64_t rows(const T* image, int64_t z, int64_t y, int64_t most, int64_t count, const Inside& in,
               T* to) const {
    const bool pair = in.step != 0 && most > 1 && whole(high, y, 1) && whole(high, y + 1, 1);
    const int64_t done = pair           ? sum_blocks<2>(image, z, y, in, to)
                         : in.step != 0 ? sum_blocks<1>(image, z, y, in, to)
                                        : sum_runs(image, z, y, in, to);
    finish_row(image, z, y, count, in, done, to);
    if (pair) finish_row(image, z, y + 1, count, in, done, to + result.strides[3]);
    return pair ? 2 : 1;
  }

  void run(const int64_t* sizes) const {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t cost = max_of(sizes[2] * channels * taps, int64_t{1});
    const int64_t grain = max_of((int64_t{1} << 17) / cost, int64_t{1});
    const Inside in = inside(sizes[2]);
    parallel_for(s.batch * sizes[0] * sizes[1], grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end;) {
        const int64_t y = r % sizes[1], z = r / sizes[1] % sizes[0], n = r / sizes[1] / sizes[0];
        T* to = result.data + n * result.strides[0] + z * result.strides[2] + y * result.strides[3];
        r += rows(source.data + n * source.strides[0], z, y, min_of(end - r, sizes[1] - y),
                  sizes[2], in, to);
      }
    });
  }
};

template <class T>
void walk(const ConvShape& s, ConvTensor<const T> source, ConvTensor<const T> weight, const T* bias,
          ConvTensor<T> result, const int64_t* sizes,
          void (*list)(TapLists&, const ConvShape&, int)) {
  const int64_t channels = s.groups, *st = weight.strides;
  const Scratch<T> packed(s.kernel[0] * s.kernel[1] * s.kernel[2] * channels);
  T* to = packed.get();
  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      for (int64_t x = 0; x < s.kernel[2]; ++x)
        for (int64_t c = 0; c < channels; ++c)
          *to++ = weight.data[c * st[0] + z * st[2] + y * st[3] + x * st[4]];
  TapLists deep(sizes[0], s.kernel[0]), high(sizes[1], s.kernel[1]), wide(sizes[2], s.kernel[2]);
  list(deep, s, 0);
  list(high, s, 1);
  list(wide, s, 2);
  TapWalk<T>{s, packed.get(), bias, source, result, deep, high, wide, channels}.run(sizes);
}

// The gradient of the weights from images, summed into [tap, channel].
template <class T>
class WeightSums {
 public:
  using S = Simd<T>;
  WeightSums(const ConvShape& s, const ConvTensor<const T>& grad, const ConvTensor<const T>& input,
             const TapLists* lists)
      : s_(s), grad_(grad), input_(input), lists_(lists), channels_(s.groups) {
    const bool square = s.kernel[0] == 1 && s.kernel[1] == 3 && s.kernel[2] == 3;
    if (!square) return;
    for (first_ = 0; first_ < s.output[2] && !whole(2, first_);) ++first_;
    for (last_ = first_; last_ < s.output[2] && whole(2, last_);) ++last_;
    if (first_ < last_) fast_ = channels_ / S::lanes * S::lanes;
  }

  void add_image(int64_t n, T* sums) const {
    for (int64_t z = 0; z < s_.output[0]; ++z) {
      for (int64_t y = 0; y < s_.output[1]; ++y) {
        const T* g =
            grad_.data + n * grad_.strides[0] + z * grad_.strides[2] + y * grad_.strides[3];
        const T* image = input_.data + n * input_.strides[0];
        const bool square = fast_ > 0 && whole(0, z) && whole(1, y);
        for (int64_t c = 0; square && c < fast_; c += S::lanes) add_run(g, image, z, y, c, sums);
        for (int64_t x = 0; x < s_.output[2]; ++x) {
          const bool done = square && first_ <= x && x < last_;
          add_position(g + x * grad_.strides[4], image, z, y, x, done ? fast_ : 0, sums);
        }
      }
    }
  }

 private:
  bool whole(int d, int64_t position) const {
    return lists_[d].end(position) - lists_[d].begin(position) == s_.kernel[d];
  }

  // Positions of a row that reach no padding, of a 3x3 kernel: a vector of channels at a time.
  void add_run(const T* g, const T* image, int64_t z, int64_t y, int64_t c, T* sums) const {
    using V = typename S::Vec;
    const Tap *rows = lists_[1].begin(y), *columns = lists_[2].begin(first_);
    const T* from[9];
    V sum[9];
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) {
      from[t] = image + lists_[0].begin(z)->place * input_.strides[2] +
                rows[t / 3].place * input_.strides[3] + columns[t % 3].place * input_.strides[4] +
                c;
      sum[t] = S::load(sums + t * channels_ + c);
    }
    const int64_t step = s_.stride[2] * input_.strides[4];
    for (int64_t x = first_, at = 0; x < last_; ++x, at += step) {
      const V left = S::load(g + x * grad_.strides[4] + c);
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) sum[t] = multiply_add<V>(left, S::load(from[t] + at), sum[t]);
    }
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) S::store(sums + t * channels_ + c, sum[t]);
  }

  // Channels from `first` on of one position.
  void add_position(const T* g, const T* image, int64_t z, int64_t y, int64_t x, int64_t first,
                    T* sums) const {
    if (first == channels_) return;
    for (const Tap* i = lists_[0].begin(z); i < lists_[0].end(z); ++i)
      for (const Tap* j = lists_[1].begin(y); j < lists_[1].end(y); ++j)
        for (const Tap* k = lists_[2].begin(x); k < lists_[2].end(x); ++k) {
          const T* from = image + i->place * input_.strides[2] + j->place * input_.strides[3] +
                          k->place * input_.strides[4];
          const int64_t tap = (i->kernel * s_.kernel[1] + j->kernel) * s_.kernel[2] + k->kernel;
          T* __restrict to = sums + tap * channels_;
          for (int64_t c = first; c < channels_; ++c) to[c] += g[c] * from[c];
        }
  }

  const ConvShape& s_;
  const ConvTensor<const T>& grad_;
  const ConvTensor<const T>& input_;
  const TapLists* lists_;
  int64_t channels_, first_ = 0, last_ = 0, fast_ = 0;
};

}  // namespace

template <class T>
void depthwise_forward(const ConvShape& shape, ConvTensor<const T> input,
                       ConvTensor<const T> weight, const T* bias, ConvTensor<T> output) {
  const ChannelsLastCopy<const T> source(input, shape.batch, shape.groups, shape.input);
  const ChannelsLastCopy<T> result(output, shape.batch, shape.groups, shape.output);
  source.fill();
  walk(shape, source.view(), weight, bias, result.view(), shape.output, &list_inputs);
  result.write_back();
}

template <class T>
void depthwise_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> grad_input) {
  const ChannelsLastCopy<const T> source(grad_output, shape.batch, shape.groups, shape.output);
  const ChannelsLastCopy<T> result(grad_input, shape.batch, shape.groups, shape.input);
  source.fill();
  walk(shape, source.view(), weight, bias, result.view(), shape.input, &list_outputs);
  result.write_back();
}

template <class T>
void depthwise_backward_weight(const ConvShape& s, ConvTensor<const T> grad_output,
                               ConvTensor<const T> input, ConvTensor<T> grad_weight) {
  const ChannelsLastCopy<const T> grad(grad_output, s.batch, s.groups, s.output);
  const ChannelsLastCopy<const T> source(input, s.batch, s.groups, s.input);
  grad.fill();
  source.fill();
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], size = taps * s.groups;
  // Images are summed in parts, whose number depends on that of the images alone, and the parts in
  // order: the same bits for any number of threads.
  const int64_t parts = min_of(max_of(s.batch, int64_t{1}), int64_t{16});
  const int64_t per_part = ceil_div(max_of(s.batch, int64_t{1}), parts);
  const Scratch<T> sums(parts * size);
  __builtin_memset(sums.get(), 0, static_cast<size_t>(parts * size) * sizeof(T));
  TapLists lists[] = {
      {s.output[0], s.kernel[0]}, {s.output[1], s.kernel[1]}, {s.output[2], s.kernel[2]}};
  for (int d = 0; d < 3; ++d) list_inputs(lists[d], s, d);
  const WeightSums<T> adder(s, grad.view(), source.view(), lists);
  parallel_for(s.batch, per_part, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) adder.add_image(n, sums.get() + begin / per_part * size);
  });
  const int64_t* st = grad_weight.strides;
  for (int64_t i = 0; i < size; ++i) {
    T sum = 0;
    for (int64_t p = 0; p < parts; ++p) sum += sums.get()[p * size + i];
    const int64_t tap = i / s.groups, c = i % s.groups;
    const int64_t x = tap % s.kernel[2], y = tap / s.kernel[2] % s.kernel[1],
                  z = tap / s.kernel[2] / s.kernel[1];
    grad_weight.data[c * st[0] + z * st[2] + y * st[3] + x * st[4]] = sum;
  }
}

// An explicit instantiation names every type by hand; this is one of each function.
template <class T>
struct DepthwiseInstance {
  static constexpr auto forward_function = &depthwise_forward<T>;
  static constexpr auto input_function = &depthwise_backward_input<T>;
  static constexpr auto weight_function = &depthwise_backward_weight<T>;
};
template struct DepthwiseInstance<float>;
template struct DepthwiseInstance<double>;

}  // namespace facula::cpu::FACULA_ISA
