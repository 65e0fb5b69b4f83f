// Sums over taps of padded planes: the one loop behind convolution and its gradient by the input.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/conv/padded_planes.h"
#include "kernels/cpu/matmul/gemm_kernel.h"

namespace facula::cpu::FACULA_ISA {

// result[row, position] = sum over t of weight[row, t] * planes[position + offset[t]].
template <class Acc>
struct TapSum {
  int64_t rows, taps;
  const Acc* weights;      // [group][block of tap_depth taps][row][packed_pitch]
  const int64_t* offsets;  // [taps]
  int64_t places[3];       // result positions of each dimension

  int64_t group_pitch() const { return ceil_div(taps, tap_depth<Acc>) * rows * packed_pitch<Acc>; }
};

// Where results go: out = scale * sum + bias[row], added to what is there when `add`.
template <class T>
struct TapResult {
  T* data;             // position (0, 0, 0) of row 0, image 0
  int64_t strides[5];  // image, row, and the three dimensions
  const T* bias;       // null for none
  int64_t bias_stride;
  bool subtract, add;
};

// Consecutive results of one output row within a panel.
struct Segment {
  int64_t column, y, x, count;
};

// Up to six vectors of positions `step` apart, all in one slice.
struct Panel {
  int64_t start, step;
  int vectors;
  bool paired = false;  // each vector holds two rows
  Segment segments[6 * vector_bytes / 4];
  int64_t segment_count = 0;
};

// How the positions of a slice become panels. Rows that fill their vectors better than their padded
// pitch does are taken one by one (or, when a vector or its half holds a row, several to a panel);
// otherwise the slice is one long row and results that fall into the padding are dropped.
class PanelCutter {
 public:
  PanelCutter(const int64_t* places, int64_t pitch, int lanes, int widest, bool pairs)
      : rows_(places[1]), cols_(places[2]), pitch_(pitch), lanes_(lanes), widest_(widest) {
    row_vectors_ = ceil_div(cols_, lanes);
    // A half read past the last row must stay within the slack behind the planes.
    const bool near = lanes <= 2 * pitch && pitch <= 8 * lanes;
    paired_ = pairs && near && rows_ > 1 && 2 * cols_ <= lanes;
    flat_ = !paired_ && row_vectors_ * lanes > pitch;
    if (flat_) {
      span_ = (rows_ - 1) * pitch_ + cols_;
      count_ = ceil_div(span_, lanes_ * widest_);
    } else if (row_vectors_ == 1) {
      count_ = ceil_div(rows_, rows_per_panel());
    } else {
      per_row_ = ceil_div(row_vectors_, widest_);
      count_ = rows_ * per_row_;
    }
  }

  int64_t count() const { return count_; }

  void cut(int64_t index, Panel& p) const {
    p.segment_count = 0;
    p.step = lanes_;
    if (flat_) return cut_flat(index, p);
    if (row_vectors_ == 1) return cut_rows(index, p);
    const int64_t y = index / per_row_, first = index % per_row_ * widest_;
    p.vectors = static_cast<int>(min_of(widest_, row_vectors_ - first));
    const int64_t x = first * lanes_;
    p.start = y * pitch_ + x;
    add(p, {0, y, x, min_of(p.vectors * lanes_, cols_ - x)});
  }

 private:
  static void add(Panel& p, Segment s) { p.segments[p.segment_count++] = s; }

  int64_t rows_per_panel() const { return paired_ ? 2 * widest_ : widest_; }

  void cut_rows(int64_t index, Panel& p) const {
    const int64_t per_vector = paired_ ? 2 : 1, y = index * rows_per_panel();
    const int64_t count = min_of(rows_per_panel(), rows_ - y);
    p.vectors = static_cast<int>(ceil_div(count, per_vector));
    p.paired = paired_;
    p.start = y * pitch_;
    p.step = pitch_ * per_vector;
    for (int64_t i = 0; i < count; ++i) add(p, {i * lanes_ / per_vector, y + i, 0, cols_});
  }

  void cut_flat(int64_t index, Panel& p) const {
    p.start = index * widest_ * lanes_;
    const int64_t end = min_of(span_, p.start + widest_ * lanes_);
    p.vectors = static_cast<int>(ceil_div(end - p.start, lanes_));
    for (int64_t y = p.start / pitch_; y * pitch_ < end; ++y) {
      const int64_t from = max_of(p.start, y * pitch_);
      const int64_t to = min_of(end, y * pitch_ + cols_);
      if (from < to) add(p, {from - p.start, y, from - y * pitch_, to - from});
    }
  }

  int64_t rows_, cols_, pitch_, lanes_, widest_;
  int64_t row_vectors_ = 0, per_row_ = 0, span_ = 0, count_ = 0;
  bool flat_ = false, paired_ = false;
};

template <class T, class Acc>
class DirectConvolution {
 public:
  static constexpr int lanes = Simd<Acc>::lanes;
  // Rows summed in one go, so that their tile stays in the first-level cache.
  static constexpr int64_t row_block = 8 * max_tile_rows;

  DirectConvolution(const TapSum<Acc>& sum, const PlaneLayout& layout, const TapResult<T>& result)
      : sum_(sum),
        layout_(layout),
        result_(result),
        cutter_(sum.places, layout.row_pitch(), lanes,
                tile_vectors(RowPanels(min_of(sum.rows, row_block)).tallest()),
                paired_tile_kernel<Acc>(1, 1) != nullptr) {}

  int64_t panels() const { return sum_.places[0] * cutter_.count(); }

  // Panels [begin, end) of one image and group, whose channels lie at `planes`.
  void run(const Acc* planes, int64_t image, int64_t group, int64_t begin, int64_t end) const {
    Panel panel;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t z = i / cutter_.count();
      cutter_.cut(i % cutter_.count(), panel);
      panel.start += z * layout_.slice_pitch();
      for (int64_t row = 0; row < sum_.rows; row += row_block)
        run_rows(planes, image, group, z, row, panel);
    }
  }

 private:
  void run_rows(const Acc* planes, int64_t image, int64_t group, int64_t z, int64_t first,
                const Panel& panel) const {
    alignas(vector_bytes) Acc tile[8 * max_accumulators * lanes];
    const RowPanels rows(min_of(row_block, sum_.rows - first));
    const int64_t width = panel.vectors * lanes;
    const Acc* weights = sum_.weights + group * sum_.group_pitch() + first * packed_pitch<Acc>;
    for (int64_t tap = 0; tap < sum_.taps; tap += tap_depth<Acc>) {
      const int64_t depth = min_of(tap_depth<Acc>, sum_.taps - tap);
      for (int64_t i = 0; i < rows.count; ++i) {
        const auto kernel = panel.paired ? paired_tile_kernel<Acc> : scattered_tile_kernel<Acc>;
        kernel(rows.height(i), panel.vectors)(depth, weights + rows.begin(i) * packed_pitch<Acc>,
                                              planes + panel.start, sum_.offsets + tap, panel.step,
                                              tile + rows.begin(i) * width, width, Acc(1),
                                              Acc(tap == 0 ? 0 : 1));
      }
      weights += sum_.rows * packed_pitch<Acc>;
    }
    if (sum_.taps == 0) clear(tile, rows.rows * width);
    const int64_t row = group * sum_.rows + first;
    const int64_t* st = result_.strides;
    T* to = result_.data + image * st[0] + row * st[1] + z * st[2];
    if (result_.subtract || result_.add) return combine(to, tile, row, rows.rows, width, panel);
    if (result_.bias != nullptr) add_bias(tile, row, rows.rows, width);
    if constexpr (std::is_same_v<T, Acc>) {
      if (st[1] == 1 && st[4] != 1) return write_columns(to, tile, rows.rows, width, panel);
    }
    write_rows(to, tile, rows.rows, width, panel);
  }

  Acc bias_of(int64_t row) const {
    if (result_.bias == nullptr) return Acc(0);
    return Convert<Acc, T>::call(result_.bias[row * result_.bias_stride]);
  }

  void add_bias(Acc* tile, int64_t row, int64_t rows, int64_t width) const {
    for (int64_t i = 0; i < rows; ++i) {
      const Acc bias = bias_of(row + i);
      for (int64_t x = 0; x < width; ++x) tile[i * width + x] += bias;
    }
  }

  void write_rows(T* to, const Acc* tile, int64_t rows, int64_t width, const Panel& panel) const {
    const int64_t* st = result_.strides;
    for (int64_t s = 0; s < panel.segment_count; ++s) {
      const Segment& at = panel.segments[s];
      T* out = to + at.y * st[3] + at.x * st[4];
      const Acc* from = tile + at.column;
      if (st[4] == 1) {
        copy_plane_rows(out, st[1], from, width, 1, at.count, rows);
        continue;
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < at.count; ++i)
          out[r * st[1] + i * st[4]] = Convert<T, Acc>::call(from[r * width + i]);
    }
  }

  // For results with the channels innermost.
  void write_columns(Acc* to, const Acc* tile, int64_t rows, int64_t width,
                     const Panel& panel) const {
    const int64_t* st = result_.strides;
    for (int64_t s = 0; s < panel.segment_count; ++s) {
      const Segment& at = panel.segments[s];
      copy_matrix(to + at.y * st[3] + at.x * st[4], st[4], tile + at.column, 1, width, at.count,
                  rows);
    }
  }

  void combine(T* to, const Acc* tile, int64_t row, int64_t rows, int64_t width,
               const Panel& panel) const {
    const int64_t* st = result_.strides;
    for (int64_t i = 0; i < rows; ++i) {
      const Acc bias = bias_of(row + i);
      for (int64_t s = 0; s < panel.segment_count; ++s) {
        const Segment& at = panel.segments[s];
        T* out = to + i * st[1] + at.y * st[3] + at.x * st[4];
        const Acc* from = tile + i * width + at.column;
        for (int64_t x = 0; x < at.count; ++x, out += st[4]) {
          const Acc value = result_.subtract ? -from[x] : from[x];
          const Acc old = result_.add ? Convert<Acc, T>::call(*out) : bias;
          *out = Convert<T, Acc>::call(old + value);
        }
      }
    }
  }

  const TapSum<Acc>& sum_;
  const PlaneLayout& layout_;
  const TapResult<T>& result_;
  PanelCutter cutter_;
};

}  // namespace facula::cpu::FACULA_ISA
