// Zero-padded copies of image channels in which every tap of a convolution is a constant offset.
//
// A channel is split by stride: element y of a dimension goes to phase (y + pad) % step, place
// (y + pad) / step. Output position o and tap t then read place o + t * dilation / step of phase
// t * dilation % step: neighbours in the output are neighbours in memory whatever the stride, and
// the inner kernel needs no bounds, no gather and no unfolded matrix.
#pragma once
#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/matmul/gemm_kernel.h"
#include "kernels/cpu/matmul/gemm_pack.h"
#include "kernels/cpu/simd/accumulate.h"

namespace facula::cpu::FACULA_ISA {

// Terms that one sum takes at most: short sums that are added up lose less than one long one.
template <class Acc>
inline constexpr int64_t tap_depth = gemm_depth<Acc> / 4;

struct PlaneLayout {
  int64_t size[3];    // of the source
  int64_t step[3];    // number of phases
  int64_t pad[3];     // zeros in front
  int64_t extent[3];  // places of a phase

  int64_t row_pitch() const { return extent[2]; }
  int64_t slice_pitch() const { return extent[1] * extent[2]; }
  int64_t phase_pitch() const { return extent[0] * slice_pitch(); }
  int64_t channel_pitch() const { return step[0] * step[1] * step[2] * phase_pitch(); }
};

// Elements past the last channel that kernels may read: the rest of a full-width panel.
inline constexpr int64_t plane_slack = 8 * vector_bytes;

// The places [first, last) of a phase that hold source elements.
struct PlaceRange {
  int64_t first, last;
  PlaceRange(const PlaneLayout& l, int d, int64_t phase) {
    const int64_t before = l.pad[d] - phase;
    first = before > 0 ? min_of(ceil_div(before, l.step[d]), l.extent[d]) : 0;
    const int64_t end = l.size[d] + before;
    last = end > 0 ? min_of(ceil_div(end, l.step[d]), l.extent[d]) : 0;
    last = max_of(first, last);
  }
};

template <class Acc>
inline void clear(Acc* to, int64_t count) {
  if (count > 0) __builtin_memset(to, 0, static_cast<size_t>(count) * sizeof(Acc));
}

// Copies `count` elements `runs` times, from places `step` apart to places `pitch` apart. The last
// vector of a run overlaps the one before it: short runs need no loop over single elements.
template <class T>
inline void copy_runs(T* to, int64_t pitch, const T* from, int64_t step, int64_t count,
                      int64_t runs) {
#if defined(__AVX512BW__)
  constexpr int64_t lanes = 64 / static_cast<int64_t>(sizeof(T));
  if (count >= lanes) {
    for (int64_t r = 0; r < runs; ++r, to += pitch, from += step) {
      for (int64_t i = 0; i + lanes < count; i += lanes)
        _mm512_storeu_si512(to + i, opaque(_mm512_loadu_si512(from + i)));
      _mm512_storeu_si512(to + count - lanes, _mm512_loadu_si512(from + count - lanes));
    }
    return;
  }
  const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  for (int64_t r = 0; r < runs; ++r, to += pitch, from += step) {
    if constexpr (sizeof(T) == 2) {
      _mm512_mask_storeu_epi16(to, mask, _mm512_maskz_loadu_epi16(mask, from));
    } else {
      const auto half = static_cast<__mmask16>(mask);
      _mm512_mask_storeu_epi32(to, half, _mm512_maskz_loadu_epi32(half, from));
    }
  }
#else
  for (int64_t r = 0; r < runs; ++r, to += pitch, from += step) copy_row(to, from, 1, count);
#endif
}

// Lets the zeros in front of a row end the row before it as well: the places between two rows are
// computed for nothing. Rows keep room for `least` places.
inline void share_padding(PlaneLayout& l, int64_t least) {
  int64_t front = l.extent[2], end = least;
  for (int64_t phase = 0; phase < l.step[2]; ++phase) {
    const PlaceRange wide(l, 2, phase);
    front = min_of(front, wide.first);
    end = max_of(end, wide.last);
  }
  l.extent[2] = max_of(end, l.extent[2] - front);
}

// Calls body(place, source, count, rows) for the rows of every slice that hold source elements,
// row_pitch() places and l.step[1] * strides[1] source elements apart (or for one long row where
// they follow one another in both), `place` counted from the channel's first and `source` in
// elements from the channel's (0, 0, 0).
template <class F>
void for_each_plane_slice(const PlaneLayout& l, const int64_t* strides, F&& body) {
  int64_t phase[3], base = 0;
  for (phase[0] = 0; phase[0] < l.step[0]; ++phase[0]) {
    for (phase[1] = 0; phase[1] < l.step[1]; ++phase[1]) {
      for (phase[2] = 0; phase[2] < l.step[2]; ++phase[2], base += l.phase_pitch()) {
        const PlaceRange deep(l, 0, phase[0]), high(l, 1, phase[1]), wide(l, 2, phase[2]);
        const auto source = [&](int d, int64_t place) {
          return (place * l.step[d] + phase[d] - l.pad[d]) * strides[d];
        };
        const int64_t count = wide.last - wide.first, rows = high.last - high.first;
        const bool one_run = count == l.row_pitch() && l.step[1] == 1 && l.step[2] == 1 &&
                             strides[1] == count * strides[2];
        for (int64_t z = deep.first; z < deep.last; ++z) {
          body(base + z * l.slice_pitch() + high.first * l.row_pitch() + wide.first,
               source(0, z) + source(1, high.first) + source(2, wide.first),
               one_run ? rows * count : count, one_run ? int64_t{1} : rows);
        }
      }
    }
  }
}

// Copies `rows` rows of `count` elements that are `cs` apart.
template <class Acc, class T>
void copy_plane_rows(Acc* to, int64_t pitch, const T* from, int64_t step, int64_t cs, int64_t count,
                     int64_t rows) {
  if constexpr (std::is_same_v<Acc, T> && sizeof(T) == 4)
    if (cs == 1) return copy_runs(to, pitch, from, step, count, rows);
  for (int64_t y = 0; y < rows; ++y) copy_row(to + y * pitch, from + y * step, cs, count);
}

// Copies `channels` channels, `src_cs` elements apart, into planes that are zero already: the
// padding is the same for every image. `strides` are those of the three dimensions.
template <class Acc, class T>
void fill_planes(Acc* dst, const T* src, int64_t src_cs, const int64_t* strides,
                 const PlaneLayout& l, int64_t channels) {
  const int64_t pitch = l.channel_pitch(), across = l.step[2] * strides[2],
                down = l.step[1] * strides[1];
  if (src_cs == 1 && across != 1) {
    for_each_plane_slice(l, strides, [&](int64_t place, int64_t from, int64_t count, int64_t rows) {
      for (int64_t y = 0; y < rows; ++y)
        copy_matrix(dst + place + y * l.row_pitch(), pitch, src + from + y * down, 1, across,
                    channels, count);
    });
    return;
  }
  for (int64_t c = 0; c < channels; ++c) {
    for_each_plane_slice(l, strides, [&](int64_t place, int64_t from, int64_t count, int64_t rows) {
      copy_plane_rows(dst + c * pitch + place, l.row_pitch(), src + c * src_cs + from, down, across,
                      count, rows);
    });
  }
}

// The same with the channels innermost: place p of channel c is at p * dst_rs + c.
template <class Acc, class T>
void fill_channels_last(Acc* dst, int64_t dst_rs, const T* src, int64_t src_cs,
                        const int64_t* strides, const PlaneLayout& l, int64_t channels) {
  const int64_t across = l.step[2] * strides[2], down = l.step[1] * strides[1];
  for_each_plane_slice(l, strides, [&](int64_t place, int64_t from, int64_t count, int64_t rows) {
    for (int64_t y = 0; y < rows; ++y)
      copy_matrix(dst + (place + y * l.row_pitch()) * dst_rs, dst_rs, src + from + y * down, across,
                  src_cs, count, channels);
  });
}

// Input element i gets its gradient from output o through tap k where i + pad = o * stride +
// k * dilation. Elements of equal phase, i % stride, share their taps, and each phase is a
// convolution of stride 1 in itself: for i = phase + stride * j, o = j + shift(k).
struct PhaseTap {
  int64_t phase, shift;
};

inline PhaseTap phase_of_tap(const ConvShape& s, int d, int64_t k) {
  const int64_t stride = s.stride[d], at = k * s.dilation[d] - s.padding[d];
  const int64_t phase = (at % stride + stride) % stride;
  return {phase, (phase - at) / stride};
}

// The layout in which a convolution reads its input.
inline PlaneLayout input_layout(const ConvShape& s) {
  PlaneLayout l;
  for (int d = 0; d < 3; ++d) {
    l.size[d] = s.input[d];
    l.step[d] = s.stride[d];
    l.pad[d] = s.padding[d];
    l.extent[d] = s.output[d] + (s.kernel[d] - 1) * s.dilation[d] / s.stride[d];
  }
  return l;
}

// Where tap (z, y, x) of the kernel reads, from the place of the output position.
inline int64_t input_offset(const ConvShape& s, const PlaneLayout& l, const int64_t* tap) {
  int64_t phase = 0, place = 0;
  for (int d = 0; d < 3; ++d) {
    phase = phase * l.step[d] + tap[d] * s.dilation[d] % s.stride[d];
    place = place * l.extent[d] + tap[d] * s.dilation[d] / s.stride[d];
  }
  return phase * l.phase_pitch() + place;
}

}  // namespace facula::cpu::FACULA_ISA
