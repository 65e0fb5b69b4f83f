// Convolutions of one tap on planes: a matrix product for each image, read and written where it
// lies, since positions of a channel follow one another already.
#pragma once
#include <algorithm>

#include "core/threads.h"
#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/matmul/gemm.h"

namespace facula::cpu::FACULA_ISA {

// Whether the positions of each channel follow one another without a gap.
template <class T>
bool has_dense_planes(const ConvTensor<T>& t, const int64_t* sizes) {
  const int64_t* st = t.strides;
  return st[4] == 1 && (sizes[1] == 1 || st[3] == sizes[2]) &&
         (sizes[0] == 1 || st[2] == sizes[1] * sizes[2]);
}

// Whether each result is made of the channels at its own position.
inline bool is_pointwise(const ConvShape& s) {
  bool one = s.groups == 1;
  for (int d = 0; d < 3; ++d)
    one = one && s.kernel[d] == 1 && s.stride[d] == 1 && s.padding[d] == 0;
  return one;
}

// result[image][row] = bias[row] + sum over channels of weight[row][channel] *
// source[image][channel], with `positions` numbers to a row and a channel.
struct PointwiseProduct {
  int64_t batch, rows, channels, positions;
  const float* weight;
  int64_t row_stride, channel_stride;
  const float* bias;  // null for none

  void run(const ConvTensor<const float>& source, const ConvTensor<float>& result) const {
    const int64_t *from = source.strides, *to = result.strides;
    GemmArgs<float> g{rows,        positions, channels, weight,      row_stride, channel_stride,
                      source.data, from[1],   1,        result.data, to[1],      1};
    if (bias != nullptr) {
      store_bias(result);
      g.beta = 1.0f;
    }
    gemm_batched(g, batch, 0, from[0], to[0]);
  }

 private:
  void store_bias(const ConvTensor<float>& result) const {
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / positions);
    parallel_for(batch * rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / rows, row = i % rows;
        float* at = result.data + image * result.strides[0] + row * result.strides[1];
        for (int64_t x = 0; x < positions; ++x) at[x] = bias[row];
      }
    });
  }
};

}  // namespace facula::cpu::FACULA_ISA
