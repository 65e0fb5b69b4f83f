// The transforms of F(2x2, 3x3), sixteen values to a tile, with channels across the lanes; and the
// product of one of the sixteen. See winograd.h for the method.
//
// With d a tile of 4x4 inputs, g a kernel and y the 2x2 results,
//   y = A' [(G g G') * (B' d B)] A,   A' = 1  1  1  0    B' = 1  0 -1  0    G = 1    0    0
//                                          0  1 -1 -1         0  1  1  0        1/2  1/2  1/2
//                                                             0 -1  1  0        1/2 -1/2  1/2
//                                                             0  1  0 -1        0    0    1
#pragma once
#include "kernels/cpu/conv/core.h"
#include "kernels/cpu/matmul/gemm_kernel.h"

namespace facula::cpu::FACULA_ISA {

inline constexpr int winograd_parts = 16;

// Terms that one sum takes at most, before sums are added up.
inline constexpr int64_t winograd_depth = 16;

using FloatVec = Simd<float>::Vec;
inline constexpr int64_t float_lanes = Simd<float>::lanes;

// One plane of each image with its channels innermost, cut into tiles.
struct TiledPlane {
  int64_t height, width;
  int64_t image_stride, row_stride, column_stride;  // in elements; channels are 1 apart
};

// A run of adjacent tiles in one row; `done` tiles of the requested range come before it.
struct TileRun {
  int64_t image, row, column, count, done;
};

// The tiles of all images, in the order image, row, column.
struct TileGrid {
  int64_t batch, rows, columns;
  TileGrid(int64_t images, int64_t height, int64_t width)
      : batch(images), rows(ceil_div(height, int64_t{2})), columns(ceil_div(width, int64_t{2})) {}
  int64_t count() const { return batch * rows * columns; }

  // Calls body(run) for the runs that [begin, begin + count) consists of.
  template <class F>
  void for_runs(int64_t begin, int64_t count, F&& body) const {
    for (int64_t done = 0; done < count;) {
      const int64_t at = begin + done, column = at % columns, row = at / columns % rows;
      const int64_t run = min_of(count - done, columns - column);
      body(TileRun{at / columns / rows, row, column, run, done});
      done += run;
    }
  }
};

// Whether the method can do this convolution, or its gradients, with results at `places`: vectors
// are filled by channels, and thin images would leave most of their tiles empty.
inline bool winograd_applies(const ConvShape& s, const int64_t* places) {
  const bool plane = s.kernel[0] == 1 && s.input[0] == 1 && s.output[0] == 1 && s.groups == 1;
  if (!plane || s.in_channels % float_lanes != 0 || s.out_channels % float_lanes != 0) return false;
  for (int d = 1; d < 3; ++d)
    if (s.kernel[d] != 3 || s.stride[d] != 1 || s.dilation[d] != 1 || s.padding[d] > 2)
      return false;
  return 3 * TileGrid(s.batch, places[1], places[2]).count() <= s.batch * places[1] * places[2];
}

inline bool all_finite(FloatVec v) {
  const FloatVec zero_or_nan = v - v;
  bool finite = true;
  for (int64_t i = 0; i < float_lanes; ++i) finite &= zero_or_nan[i] == 0;
  return finite;
}

// Where the sixteen parts of a tile lie: part p of tile t at data + parts[p] + t * tile_pitch.
template <class T>
struct TileParts {
  T* data;
  const int64_t* parts;
  int64_t tile_pitch;
};

// B' d B for `run` tiles of a row, the first of which begins at (y, x) of the plane; elements
// outside of it are zero. `channels` is a multiple of the lanes.
inline void transform_inputs(const float* image, const TiledPlane& plane, int64_t y, int64_t x,
                             int64_t run, int64_t channels, const TileParts<float>& to) {
  alignas(vector_bytes) static constexpr float zeros[float_lanes] = {};
  using S = Simd<float>;
  for (int64_t c = 0; c < channels; c += float_lanes) {
    const float* rows[4];
    int64_t steps[4];
    for (int i = 0; i < 4; ++i) {
      const bool inside = y + i >= 0 && y + i < plane.height;
      rows[i] = inside ? image + (y + i) * plane.row_stride + c : zeros;
      steps[i] = inside ? plane.column_stride : 0;
    }
    // The four vertical sums of column `at`.
    const auto column = [&](int64_t at, FloatVec* sums) __attribute__((always_inline)) {
      if (at < 0 || at >= plane.width) {
        for (int i = 0; i < 4; ++i) sums[i] = FloatVec{};
        return;
      }
      const FloatVec d0 = S::load(rows[0] + at * steps[0]), d1 = S::load(rows[1] + at * steps[1]);
      const FloatVec d2 = S::load(rows[2] + at * steps[2]), d3 = S::load(rows[3] + at * steps[3]);
      sums[0] = d0 - d2;
      sums[1] = d1 + d2;
      sums[2] = d2 - d1;
      sums[3] = d1 - d3;
    };
    FloatVec c0[4], c1[4], c2[4], c3[4];
    column(x, c0);
    column(x + 1, c1);
    float* out = to.data + c;
    for (int64_t t = 0; t < run; ++t, out += to.tile_pitch) {
      column(x + 2 * t + 2, c2);
      column(x + 2 * t + 3, c3);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        S::store(out + to.parts[4 * i], c0[i] - c2[i]);
        S::store(out + to.parts[4 * i + 1], c1[i] + c2[i]);
        S::store(out + to.parts[4 * i + 2], c2[i] - c1[i]);
        S::store(out + to.parts[4 * i + 3], c1[i] - c3[i]);
        c0[i] = c2[i];
        c1[i] = c3[i];
      }
    }
  }
}

// A' m A for one tile of one vector of channels.
struct TileResult {
  FloatVec y[2][2];
  [[gnu::always_inline]] TileResult(const float* tile, const int64_t* parts) {
    FloatVec top[4], bottom[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const FloatVec m0 = Simd<float>::load(tile + parts[j]);
      const FloatVec m1 = Simd<float>::load(tile + parts[4 + j]);
      const FloatVec m2 = Simd<float>::load(tile + parts[8 + j]);
      const FloatVec m3 = Simd<float>::load(tile + parts[12 + j]);
      top[j] = m0 + m1 + m2;
      bottom[j] = m1 - m2 - m3;
    }
    y[0][0] = top[0] + top[1] + top[2];
    y[0][1] = top[1] - top[2] - top[3];
    y[1][0] = bottom[0] + bottom[1] + bottom[2];
    y[1][1] = bottom[1] - bottom[2] - bottom[3];
  }
};

// A y A' for `run` tiles of a row, the first of which begins at (y, x) of the plane of results; the
// transpose of the transform above, as gradients need it.
inline void transform_gradients(const float* image, const TiledPlane& plane, int64_t y, int64_t x,
                                int64_t run, int64_t channels, const TileParts<float>& to) {
  using S = Simd<float>;
  for (int64_t c = 0; c < channels; c += float_lanes) {
    const auto element = [&](int64_t i, int64_t j) -> FloatVec {
      if (y + i >= plane.height || j >= plane.width) return FloatVec{};
      return S::load(image + (y + i) * plane.row_stride + j * plane.column_stride + c);
    };
    float* out = to.data + c;
    for (int64_t t = 0; t < run; ++t, out += to.tile_pitch) {
      const int64_t j = x + 2 * t;
      const FloatVec y00 = element(0, j), y01 = element(0, j + 1);
      const FloatVec y10 = element(1, j), y11 = element(1, j + 1);
      const FloatVec left[4] = {y00, y00 + y10, y00 - y10, -y10};
      const FloatVec right[4] = {y01, y01 + y11, y01 - y11, -y11};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        S::store(out + to.parts[4 * i], left[i]);
        S::store(out + to.parts[4 * i + 1], left[i] + right[i]);
        S::store(out + to.parts[4 * i + 2], left[i] - right[i]);
        S::store(out + to.parts[4 * i + 3], -right[i]);
      }
    }
  }
}

// G g G' of one vector of kernels: taps[3 * row + column] to part p at to + p * part_pitch.
[[gnu::always_inline]] inline void transform_kernel(const FloatVec* taps, float* to,
                                                    int64_t part_pitch) {
  using S = Simd<float>;
  const FloatVec half = S::broadcast(0.5f);
  FloatVec rows[4][3];
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    const FloatVec outer = taps[j] + taps[6 + j];
    rows[0][j] = taps[j];
    rows[1][j] = half * (outer + taps[3 + j]);
    rows[2][j] = half * (outer - taps[3 + j]);
    rows[3][j] = taps[6 + j];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const FloatVec outer = rows[i][0] + rows[i][2];
    S::store(to + 4 * i * part_pitch, rows[i][0]);
    S::store(to + (4 * i + 1) * part_pitch, half * (outer + rows[i][1]));
    S::store(to + (4 * i + 2) * part_pitch, half * (outer - rows[i][1]));
    S::store(to + (4 * i + 3) * part_pitch, rows[i][2]);
  }
}

// G' u G of one vector of kernels: the transpose of the above, for gradients.
[[gnu::always_inline]] inline void transform_back(const float* from, int64_t part_pitch,
                                                  FloatVec* taps) {
  const FloatVec half = Simd<float>::broadcast(0.5f);
  FloatVec rows[3][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    FloatVec u[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) u[i] = Simd<float>::load(from + (4 * i + j) * part_pitch);
    const FloatVec sum = half * (u[1] + u[2]);
    rows[0][j] = u[0] + sum;
    rows[1][j] = half * (u[1] - u[2]);
    rows[2][j] = sum + u[3];
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const FloatVec sum = half * (rows[i][1] + rows[i][2]);
    taps[3 * i] = rows[i][0] + sum;
    taps[3 * i + 1] = half * (rows[i][1] - rows[i][2]);
    taps[3 * i + 2] = sum + rows[i][3];
  }
}

}  // namespace facula::cpu::FACULA_ISA
