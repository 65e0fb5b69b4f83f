#include "kernels/cpu/conv_depthwise.h"

#include "core/threads.h"
#include "kernels/cpu/gemm_simd.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t most_taps = 4096;

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

template <class T>
bool suits(const ConvShape& s, int64_t first_stride, int64_t second_stride) {
  if (!std::is_same_v<T, float> && !std::is_same_v<T, double>) return false;
  const bool depthwise = s.groups == s.in_channels && s.groups == s.out_channels && s.groups > 1;
  return depthwise && first_stride == 1 && second_stride == 1 &&
         s.kernel[0] * s.kernel[1] * s.kernel[2] <= most_taps;
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

  template <int vectors>
  void sum(const T* image, const Tap* const* first, const Tap* const* last, int64_t channel,
           T* to) const {
    typename S::Vec sum[vectors];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      sum[j] = bias ? S::load(bias + channel + j * S::lanes) : typename S::Vec{};
    for (const Tap* z = first[0]; z < last[0]; ++z)
      for (const Tap* y = first[1]; y < last[1]; ++y)
        for (const Tap* x = first[2]; x < last[2]; ++x) {
          const T* from = image + z->place * source.strides[2] + y->place * source.strides[3] +
                          x->place * source.strides[4] + channel;
          const T* w = weights + tap(z, y, x) * channels + channel;
#pragma GCC unroll 4
          for (int j = 0; j < vectors; ++j)
            sum[j] = multiply_add<typename S::Vec>(S::load(from + j * S::lanes),
                                                   S::load(w + j * S::lanes), sum[j]);
        }
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) S::store(to + channel + j * S::lanes, sum[j]);
  }
  void sum_one(const T* image, const Tap* const* first, const Tap* const* last, int64_t channel,
               T* to) const {
    T sum = bias ? bias[channel] : T(0);
    for (const Tap* z = first[0]; z < last[0]; ++z)
      for (const Tap* y = first[1]; y < last[1]; ++y)
        for (const Tap* x = first[2]; x < last[2]; ++x)
          sum += image[z->place * source.strides[2] + y->place * source.strides[3] +
                       x->place * source.strides[4] + channel] *
                 weights[tap(z, y, x) * channels + channel];
    to[channel] = sum;
  }
  int64_t tap(const Tap* z, const Tap* y, const Tap* x) const {
    return (z->kernel * s.kernel[1] + y->kernel) * s.kernel[2] + x->kernel;
  }

  void position(const T* image, const Tap* const* first, const Tap* const* last, T* to) const {
    int64_t c = 0;
    for (; c + 4 * S::lanes <= channels; c += 4 * S::lanes) sum<4>(image, first, last, c, to);
    for (; c + S::lanes <= channels; c += S::lanes) sum<1>(image, first, last, c, to);
    for (; c < channels; ++c) sum_one(image, first, last, c, to);
  }

  void run(const int64_t* sizes) const {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t cost = max_of(sizes[2] * channels * taps, int64_t{1});
    const int64_t grain = max_of((int64_t{1} << 17) / cost, int64_t{1});
    parallel_for(s.batch * sizes[0] * sizes[1], grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t y = r % sizes[1], z = r / sizes[1] % sizes[0], n = r / sizes[1] / sizes[0];
        T* row =
            result.data + n * result.strides[0] + z * result.strides[2] + y * result.strides[3];
        for (int64_t x = 0; x < sizes[2]; ++x) {
          const Tap* first[] = {deep.begin(z), high.begin(y), wide.begin(x)};
          const Tap* last[] = {deep.end(z), high.end(y), wide.end(x)};
          position(source.data + n * source.strides[0], first, last, row + x * result.strides[4]);
        }
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

// The gradient of the weights from one image, summed into [tap, channel].
template <class T>
void add_image(const ConvShape& s, const ConvTensor<const T>& grad,
               const ConvTensor<const T>& input, const TapLists* lists, int64_t n, T* sums) {
  const int64_t channels = s.groups;
  for (int64_t z = 0; z < s.output[0]; ++z)
    for (int64_t y = 0; y < s.output[1]; ++y)
      for (int64_t x = 0; x < s.output[2]; ++x) {
        const T* g = grad.data + n * grad.strides[0] + z * grad.strides[2] + y * grad.strides[3] +
                     x * grad.strides[4];
        for (const Tap* i = lists[0].begin(z); i < lists[0].end(z); ++i)
          for (const Tap* j = lists[1].begin(y); j < lists[1].end(y); ++j)
            for (const Tap* k = lists[2].begin(x); k < lists[2].end(x); ++k) {
              const T* from = input.data + n * input.strides[0] + i->place * input.strides[2] +
                              j->place * input.strides[3] + k->place * input.strides[4];
              const int64_t tap = (i->kernel * s.kernel[1] + j->kernel) * s.kernel[2] + k->kernel;
              T* __restrict to = sums + tap * channels;
              for (int64_t c = 0; c < channels; ++c) to[c] += g[c] * from[c];
            }
      }
}

}  // namespace

template <class T>
bool depthwise_forward(const ConvShape& shape, ConvTensor<const T> input,
                       ConvTensor<const T> weight, const T* bias, ConvTensor<T> output) {
  if (!suits<T>(shape, input.strides[1], output.strides[1])) return false;
  if constexpr (std::is_floating_point_v<T>)
    walk(shape, input, weight, bias, output, shape.output, &list_inputs);
  return true;
}

template <class T>
bool depthwise_backward_input(const ConvShape& shape, ConvTensor<const T> grad_output,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> grad_input) {
  if (!suits<T>(shape, grad_output.strides[1], grad_input.strides[1])) return false;
  if constexpr (std::is_floating_point_v<T>)
    walk(shape, grad_output, weight, bias, grad_input, shape.input, &list_outputs);
  return true;
}

template <class T>
bool depthwise_backward_weight(const ConvShape& s, ConvTensor<const T> grad_output,
                               ConvTensor<const T> input, ConvTensor<T> grad_weight) {
  if (!suits<T>(s, grad_output.strides[1], input.strides[1])) return false;
  if constexpr (std::is_floating_point_v<T>) {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], size = taps * s.groups;
    // Images are summed in so many parts, by their number alone, and the parts in their order.
    const int64_t parts = min_of(max_of(s.batch, int64_t{1}), int64_t{16});
    const int64_t per_part = ceil_div(max_of(s.batch, int64_t{1}), parts);
    const Scratch<T> sums(parts * size);
    __builtin_memset(sums.get(), 0, static_cast<size_t>(parts * size) * sizeof(T));
    TapLists lists[] = {
        {s.output[0], s.kernel[0]}, {s.output[1], s.kernel[1]}, {s.output[2], s.kernel[2]}};
    for (int d = 0; d < 3; ++d) list_inputs(lists[d], s, d);
    parallel_for(s.batch, per_part, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        add_image(s, grad_output, input, lists, n, sums.get() + begin / per_part * size);
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
  return true;
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
