// Unfolding: the elements that the taps of one result position reach, as a row, from memory whose
// channels are innermost. A convolution is then a product of such rows and its weights.
#pragma once
#include "kernels/cpu/conv/padded_planes.h"

namespace facula::cpu::FACULA_ISA {

// Along one dimension, tap t of position i reads the source at i * step + shifts[t].
struct TapLine {
  int64_t places, size, step, count;
  const int64_t* shifts;
};

// Where a position lies, counted over images; it moves along runs of a row.
struct PositionCursor {
  const TapLine* lines;
  int64_t image, z, y, x;
  PositionCursor(const TapLine* l, int64_t position) : lines(l) {
    x = position % l[2].places;
    position /= l[2].places;
    y = position % l[1].places;
    position /= l[1].places;
    z = position % l[0].places;
    image = position / l[0].places;
  }
  // Positions left in the row, `most` at most.
  int64_t run(int64_t most) const { return min_of(most, lines[2].places - x); }
  void advance(int64_t run) {
    x += run;
    if (x < lines[2].places) return;
    x = 0;
    if (++y < lines[1].places) return;
    y = 0;
    if (++z < lines[0].places) return;
    z = 0;
    ++image;
  }
};

// Elements [begin, begin + count) of one tap, or of neighbouring taps that neighbour in memory too;
// `begin` counts from where tap x = 0 of a position would read.
struct Im2colPiece {
  int64_t z, y, x;  // shifts
  int64_t begin, count, to;
};

// The source of a convolution with `channels` to a group, and how its positions read it. Elements
// of a row count (tap z, tap y, tap x, channel), the last one fastest.
template <class T>
struct Im2col {
  const T* data;
  int64_t strides[5];  // that of the channels is 1
  int64_t channels;
  TapLine lines[3];

  int64_t taps() const { return lines[0].count * lines[1].count * lines[2].count; }
  int64_t length() const { return taps() * channels; }
  int64_t places() const { return lines[0].places * lines[1].places * lines[2].places; }

  // Whether taps of one row that follow one another lie one after the other in memory.
  bool merges() const {
    const TapLine& line = lines[2];
    bool unit = strides[4] == channels;
    for (int64_t t = 1; t < line.count; ++t) unit &= line.shifts[t] == line.shifts[0] + t;
    return unit;
  }

  // Elements of a row that follow one another in memory.
  int64_t run() const { return merges() ? channels * lines[2].count : channels; }

  // Writes the pieces that elements [first, last) consist of; returns how many there are.
  int64_t cut(int64_t first, int64_t last, Im2colPiece* pieces) const {
    const int64_t run = this->run();
    int64_t n = 0;
    for (int64_t at = first; at < last;) {
      const int64_t begin = at % run, tap = at / run * run / channels;
      const int64_t count = min_of(run - begin, last - at);
      const int64_t x = tap % lines[2].count, y = tap / lines[2].count % lines[1].count;
      const int64_t z = tap / lines[2].count / lines[1].count;
      pieces[n++] = {lines[0].shifts[z], lines[1].shifts[y], lines[2].shifts[x], begin, count,
                     at - first};
      at += count;
    }
    return n;
  }

  // Rows of positions [begin, begin + count), counted over all images, from channel `channel` on;
  // rows of `to` are `pitch` apart.
  void copy_rows(T* to, int64_t pitch, int64_t channel, int64_t begin, int64_t count,
                 const Im2colPiece* pieces, int64_t piece_count) const {
    PositionCursor at(lines, begin);
    while (count > 0) {
      const int64_t run = at.run(count);
      const T* from = data + at.image * strides[0] + channel;
      for (int64_t p = 0; p < piece_count; ++p)
        copy_piece(to, pitch, from, pieces[p], at.z, at.y, at.x, run);
      to += run * pitch;
      at.advance(run);
      count -= run;
    }
  }

 private:
  // `run` positions that follow one another within a row.
  void copy_piece(T* to, int64_t pitch, const T* from, const Im2colPiece& piece, int64_t z,
                  int64_t y, int64_t x, int64_t run) const {
    const int64_t at_z = z * lines[0].step + piece.z, at_y = y * lines[1].step + piece.y;
    const bool outside = at_z < 0 || at_z >= lines[0].size || at_y < 0 || at_y >= lines[1].size;
    to += piece.to;
    if (outside) return clear_runs(to, pitch, piece.count, run);
    from += at_z * strides[2] + at_y * strides[3];
    // Positions [inside, past) read nothing but elements of the source.
    const int64_t first = x * lines[2].step + piece.x, step = lines[2].step;
    const int64_t taps = piece.begin / channels, end = piece.begin + piece.count;
    const int64_t last = lines[2].size - ceil_div(end, channels) - first;
    const int64_t inside =
        min_of(run, max_of(int64_t{0}, ceil_div(max_of(-first - taps, int64_t{0}), step)));
    const int64_t past = max_of(inside, min_of(run, last < 0 ? int64_t{0} : last / step + 1));
    for (int64_t i = 0; i < inside; ++i)
      copy_clipped(to + i * pitch, from, piece, first + i * step);
    copy_runs(to + inside * pitch, pitch, from + (first + inside * step) * strides[4] + piece.begin,
              step * strides[4], piece.count, past - inside);
    for (int64_t i = past; i < run; ++i)
      copy_clipped(to + i * pitch, from, piece, first + i * step);
  }

  static void clear_runs(T* to, int64_t pitch, int64_t count, int64_t runs) {
    for (int64_t r = 0; r < runs; ++r) clear(to + r * pitch, count);
  }

  // The piece of the position whose tap 0 reads place `at`, zeros where that is outside.
  void copy_clipped(T* to, const T* from, const Im2colPiece& piece, int64_t at) const {
    const int64_t begin = piece.begin, end = begin + piece.count;
    const int64_t first = max_of(begin, -at * channels);
    const int64_t last = min_of(end, (lines[2].size - at) * channels);
    if (first >= last) return clear(to, piece.count);
    clear(to, first - begin);
    copy_runs(to + first - begin, 0, from + at * strides[4] + first, 0, last - first, 1);
    clear(to + last - begin, end - last);
  }
};

// The taps of a convolution as they read its input.
template <class T>
class InputTaps {
 public:
  explicit InputTaps(const ConvShape& s, const ConvTensor<const T>& input)
      : shifts_(s.kernel[0] + s.kernel[1] + s.kernel[2]) {
    im2col_ = {input.data, {}, s.in_channels / s.groups, {}};
    __builtin_memcpy(im2col_.strides, input.strides, sizeof im2col_.strides);
    int64_t* at = shifts_.get();
    for (int d = 0; d < 3; ++d) {
      im2col_.lines[d] = {s.output[d], s.input[d], s.stride[d], s.kernel[d], at};
      for (int64_t k = 0; k < s.kernel[d]; ++k) *at++ = k * s.dilation[d] - s.padding[d];
    }
  }
  const Im2col<T>& im2col() const { return im2col_; }

 private:
  Scratch<int64_t> shifts_;
  Im2col<T> im2col_;
};

}  // namespace facula::cpu::FACULA_ISA
