// Copies of images with their channels innermost, for convolutions that want them so.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/loop/transpose.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

// A tensor of [batch, channels, sizes] with the channels innermost: itself, or memory for a copy.
template <class T>
class ChannelsLastCopy {
 public:
  using Element = std::remove_const_t<T>;

  ChannelsLastCopy(const ConvTensor<T>& t, int64_t batch, int64_t channels, const int64_t* sizes)
      : outer_(t),
        batch_(batch),
        channels_(channels),
        sizes_(sizes),
        copied_(t.strides[1] != 1 && channels > 1),
        room_(copied_ ? batch * channels * sizes[0] * sizes[1] * sizes[2] : 0),
        inner_(t) {
    if (!copied_) return;
    const int64_t wide = sizes[2] * channels, high = sizes[1] * wide;
    inner_ = {room_.get(), {sizes[0] * high, 1, high, wide, channels}};
  }

  void fill() const {
    if (!copied_) return;
    for_planes([&](Element* room, T* own, int64_t) { copy_in(room, own); });
  }
  void write_back() const {
    if (!copied_) return;
    for_planes([&](Element* room, T* own, int64_t) { copy_out(room, own); });
  }
  const ConvTensor<T>& view() const { return inner_; }

 private:
  // One plane for each image, or for each of its slices and rows where those lie apart.
  template <class F>
  void for_planes(F&& body) const {
    const int64_t grain = max_of(
        (int64_t{1} << 16) / max_of(channels_ * sizes_[0] * sizes_[1] * sizes_[2], int64_t{1}),
        int64_t{1});
    parallel_for(batch_ * sizes_[0], grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t z = i % sizes_[0], n = i / sizes_[0];
        body(room_.get() + i * sizes_[1] * sizes_[2] * channels_,
             outer_.data + n * outer_.strides[0] + z * outer_.strides[2], i);
      }
    });
  }

  bool dense() const {
    return outer_.strides[4] == 1 && (sizes_[1] == 1 || outer_.strides[3] == sizes_[2]);
  }
  void copy_in(Element* room, T* own) const {
    const int64_t plane = sizes_[1] * sizes_[2];
    if (dense()) return transpose(room, channels_, own, outer_.strides[1], plane, channels_);
    for_elements([&](int64_t at, int64_t place) { room[place] = own[at]; });
  }
  void copy_out(const Element* room, Element* own) const {
    const int64_t plane = sizes_[1] * sizes_[2];
    if (dense()) return transpose(own, outer_.strides[1], room, channels_, channels_, plane);
    for_elements([&](int64_t at, int64_t place) { own[at] = room[place]; });
  }
  static void transpose(Element* to, int64_t to_pitch, const Element* from, int64_t from_pitch,
                        int64_t rows, int64_t columns) {
    if constexpr (sizeof(T) >= 4) {
      copy_transposed(to, to_pitch, from, from_pitch, rows, columns);
    } else {
      constexpr int64_t size = sizeof(T);
      transpose_plane(reinterpret_cast<char*>(to), to_pitch * size,
                      reinterpret_cast<const char*>(from), from_pitch * size, rows, columns, size);
    }
  }
  void copy_out(const Element*, const Element*) const {}

  template <class F>
  void for_elements(F&& body) const {
    int64_t place = 0;
    for (int64_t y = 0; y < sizes_[1]; ++y)
      for (int64_t x = 0; x < sizes_[2]; ++x)
        for (int64_t c = 0; c < channels_; ++c, ++place)
          body(y * outer_.strides[3] + x * outer_.strides[4] + c * outer_.strides[1], place);
  }

  const ConvTensor<T>& outer_;
  int64_t batch_, channels_;
  const int64_t* sizes_;
  bool copied_;
  Scratch<Element> room_;
  ConvTensor<T> inner_;
};

}  // namespace facula::cpu::FACULA_ISA
