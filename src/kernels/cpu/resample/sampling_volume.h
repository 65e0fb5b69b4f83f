// Tensors of lines, planes or volumes, seen alike: (batch, channels, depth, height, width), where
// dimensions that a tensor lacks have size one.
#pragma once
#include <algorithm>
#include <type_traits>

#include "core/tensor.h"
#include "core/threads.h"
#include "kernels/cpu/simd/accumulate.h"

namespace facula::cpu {

struct Volume {
  void* data = nullptr;
  int64_t sizes[5] = {1, 1, 1, 1, 1};
  int64_t strides[5] = {0, 0, 0, 0, 0};

  template <class T>
  T* at(int64_t n, int64_t c) const {
    return static_cast<T*>(data) + n * strides[0] + c * strides[1];
  }
};

// `spatial` counts the trailing dimensions that are space; the batch may be missing.
inline Volume volume_of(const Tensor& t, int64_t spatial) {
  Volume v;
  v.data = t.data();
  const int64_t leading = t.dim() - spatial;
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t to = d < leading ? 2 - leading + d : 5 - spatial + d - leading;
    v.sizes[to] = t.sizes()[d];
    v.strides[to] = t.strides()[d];
  }
  return v;
}

// How channels are taken: one at a time where rows are dense, in runs where channels lie side by
// side (channels-last). A run fits into buffers of fixed size.
inline constexpr int64_t longest_run = 128;
struct ChannelRuns {
  int64_t length, channels, per_image, count;

  struct Run {
    int64_t image, channel, length;
  };
  Run operator[](int64_t i) const {
    const int64_t c = i % per_image * length;
    return {i / per_image, c, std::min(length, channels - c)};
  }
};
inline ChannelRuns channel_runs(const Volume& a, const Volume& b) {
  const bool side_by_side = a.sizes[1] > 1 && a.strides[1] == 1 && b.strides[1] == 1;
  ChannelRuns r{};
  r.channels = a.sizes[1];
  r.length = side_by_side ? std::min(r.channels, longest_run) : 1;
  r.per_image = std::max<int64_t>((r.channels + r.length - 1) / r.length, 1);
  r.count = r.channels == 0 ? 0 : a.sizes[0] * r.per_image;
  return r;
}

}  // namespace facula::cpu
