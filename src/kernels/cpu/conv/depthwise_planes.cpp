// Depthwise convolution of stride 1 on images with their rows dense in memory: a plane is copied
// into a frame of zeros, where every tap is an offset, and whole planes are walked as one row. The
// columns between rows are computed as well and left behind.
#include "core/threads.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/loop/copy_bytes.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int block_vectors = 8;

// A plane of zeros with room beyond its end for whole blocks of vectors.
template <class T>
class Frame {
 public:
  Frame(int64_t rows, int64_t pitch) : pitch_(pitch), room_(rows * pitch + slack) {
    __builtin_memset(room_.get(), 0, static_cast<size_t>(rows * pitch + slack) * sizeof(T));
  }
  void fill(const T* from, int64_t step, int64_t height, int64_t width, int64_t top,
            int64_t left) const {
    for (int64_t y = 0; y < height; ++y)
      copy_bytes(reinterpret_cast<char*>(room_.get() + (top + y) * pitch_ + left),
                 reinterpret_cast<const char*>(from + y * step),
                 static_cast<size_t>(width) * sizeof(T));
  }
  T* data() const { return room_.get(); }

 private:
  static constexpr int64_t slack = (block_vectors + 1) * Simd<T>::lanes;
  int64_t pitch_;
  Scratch<T> room_;
};

// The geometry of one plane: height and width of the source, of the result and of the frame.
struct PlaneShape {
  int64_t height, width, rows, columns, top, left, frame_rows, pitch, taps;

  int64_t length() const { return (rows - 1) * pitch + columns; }
};

PlaneShape plane_shape(const ConvShape& s, const int64_t* from, const int64_t* to, int64_t top,
                       int64_t left) {
  return {from[1],
          from[2],
          to[1],
          to[2],
          top,
          left,
          to[1] + s.dilation[1] * (s.kernel[1] - 1),
          to[2] + s.dilation[2] * (s.kernel[2] - 1),
          s.kernel[1] * s.kernel[2]};
}

// Where the taps lie in the frame; from the last to the first for the gradient by the input.
void list_offsets(const ConvShape& s, const PlaneShape& p, bool flip, int64_t* to) {
  for (int64_t t = 0; t < p.taps; ++t) {
    const int64_t y = t / s.kernel[2], x = t % s.kernel[2];
    to[flip ? p.taps - 1 - t : t] = y * s.dilation[1] * p.pitch + x * s.dilation[2];
  }
}

template <class T>
void correlate(const T* from, const int64_t* offsets, const T* weights, int64_t taps, T bias,
               int64_t n, T* to) {
  using S = Simd<T>;
  using V = typename S::Vec;
  for (int64_t i = 0; i < n; i += block_vectors * S::lanes) {
    V sum[block_vectors];
#pragma GCC unroll 8
    for (int j = 0; j < block_vectors; ++j) sum[j] = S::broadcast(bias);
    for (int64_t t = 0; t < taps; ++t) {
      const T* at = from + i + offsets[t];
      const V weight = S::broadcast(weights[t]);
#pragma GCC unroll 8
      for (int j = 0; j < block_vectors; ++j)
        sum[j] = multiply_add<V>(S::load(at + j * S::lanes), weight, sum[j]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < block_vectors; ++j) S::store(to + i + j * S::lanes, sum[j]);
  }
}

template <class T>
void correlate_planes(const ConvShape& s, const PlaneShape& p, bool flip,
                      const ConvTensor<const T>& source, const ConvTensor<const T>& weight,
                      const T* bias, const ConvTensor<T>& result) {
  const Scratch<int64_t> offsets(p.taps);
  list_offsets(s, p, flip, offsets.get());
  const int64_t grain = max_of((int64_t{1} << 17) / (p.taps * p.length()), int64_t{1});
  parallel_for(s.batch * s.groups, grain, [&](int64_t begin, int64_t end) {
    const Frame<T> frame(p.frame_rows, p.pitch), sums(p.rows, p.pitch);
    const Scratch<T> weights(p.taps);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / s.groups, c = i % s.groups;
      frame.fill(source.data + n * source.strides[0] + c * source.strides[1], source.strides[3],
                 p.height, p.width, p.top, p.left);
      for (int64_t t = 0; t < p.taps; ++t)
        weights.get()[t] = weight.data[c * weight.strides[0] + t / s.kernel[2] * weight.strides[3] +
                                       t % s.kernel[2] * weight.strides[4]];
      correlate(frame.data(), offsets.get(), weights.get(), p.taps, bias ? bias[c] : T(0),
                p.length(), sums.data());
      T* to = result.data + n * result.strides[0] + c * result.strides[1];
      for (int64_t y = 0; y < p.rows; ++y)
        copy_bytes(reinterpret_cast<char*>(to + y * result.strides[3]),
                   reinterpret_cast<const char*>(sums.data() + y * p.pitch),
                   static_cast<size_t>(p.columns) * sizeof(T));
    }
  });
}

// Sums of products of two rows, the second `offsets` further on.
template <int count, class T>
void add_products(const T* grad, const T* from, const int64_t* offsets, int64_t n, T* to) {
  using S = Simd<T>;
  using V = typename S::Vec;
  V sum[count] = {};
  for (int64_t i = 0; i < n; i += S::lanes) {
    const V g = S::load(grad + i);
#pragma GCC unroll 9
    for (int t = 0; t < count; ++t)
      sum[t] = multiply_add<V>(g, S::load(from + i + offsets[t]), sum[t]);
  }
  for (int t = 0; t < count; ++t) {
    T lane[S::lanes];
    S::store(lane, sum[t]);
    for (int w = S::lanes / 2; w > 0; w /= 2)
      for (int l = 0; l < w; ++l) lane[l] += lane[l + w];
    to[t] += lane[0];
  }
}

}  // namespace

template <class T>
void depthwise_planes_forward(const ConvShape& s, ConvTensor<const T> input,
                              ConvTensor<const T> weight, const T* bias, ConvTensor<T> output) {
  const PlaneShape p = plane_shape(s, s.input, s.output, s.padding[1], s.padding[2]);
  correlate_planes(s, p, false, input, weight, bias, output);
}

template <class T>
void depthwise_planes_backward_input(const ConvShape& s, ConvTensor<const T> grad_output,
                                     ConvTensor<const T> weight, const T* bias,
                                     ConvTensor<T> grad_input) {
  const int64_t top = s.dilation[1] * (s.kernel[1] - 1) - s.padding[1],
                left = s.dilation[2] * (s.kernel[2] - 1) - s.padding[2];
  const PlaneShape p = plane_shape(s, s.output, s.input, top, left);
  correlate_planes(s, p, true, grad_output, weight, bias, grad_input);
}

template <class T>
void depthwise_planes_backward_weight(const ConvShape& s, ConvTensor<const T> grad_output,
                                      ConvTensor<const T> input, ConvTensor<T> grad_weight) {
  const PlaneShape p = plane_shape(s, s.input, s.output, s.padding[1], s.padding[2]);
  const Scratch<int64_t> list(p.taps);
  list_offsets(s, p, false, list.get());
  const int64_t* offsets = list.get();
  // A channel's images are summed one after the other, and each by the lanes of its vectors.
  parallel_for(s.groups, 1, [&](int64_t begin, int64_t end) {
    const Frame<T> frame(p.frame_rows, p.pitch), grad(p.rows, p.pitch);
    const Scratch<T> sums(p.taps);
    for (int64_t c = begin; c < end; ++c) {
      T* sum = sums.get();
      for (int64_t t = 0; t < p.taps; ++t) sum[t] = T(0);
      for (int64_t n = 0; n < s.batch; ++n) {
        frame.fill(input.data + n * input.strides[0] + c * input.strides[1], input.strides[3],
                   p.height, p.width, p.top, p.left);
        grad.fill(grad_output.data + n * grad_output.strides[0] + c * grad_output.strides[1],
                  grad_output.strides[3], p.rows, p.columns, 0, 0);
        int64_t t = 0;
        for (; t + 9 <= p.taps; t += 9)
          add_products<9>(grad.data(), frame.data(), offsets + t, p.length(), sum + t);
        for (; t + 3 <= p.taps; t += 3)
          add_products<3>(grad.data(), frame.data(), offsets + t, p.length(), sum + t);
        for (; t < p.taps; ++t)
          add_products<1>(grad.data(), frame.data(), offsets + t, p.length(), sum + t);
      }
      for (int64_t t = 0; t < p.taps; ++t)
        grad_weight.data[c * grad_weight.strides[0] + t / s.kernel[2] * grad_weight.strides[3] +
                         t % s.kernel[2] * grad_weight.strides[4]] = sum[t];
    }
  });
}

// An explicit instantiation names every type by hand; this is one of each function.
template <class T>
struct DepthwisePlanesInstance {
  static constexpr auto forward_function = &depthwise_planes_forward<T>;
  static constexpr auto input_function = &depthwise_planes_backward_input<T>;
  static constexpr auto weight_function = &depthwise_planes_backward_weight<T>;
};
template struct DepthwisePlanesInstance<float>;
template struct DepthwisePlanesInstance<double>;

}  // namespace facula::cpu::FACULA_ISA
