// The product behind unfolded convolutions: result[position, row] = sum over the elements of the
// position's unfolded row, times weights.
#pragma once
#include "core/threads.h"
#include "kernels/cpu/conv/im2col.h"
#include "kernels/cpu/matmul/gemm_amx.h"

namespace facula::cpu::FACULA_ISA {

// Weight of (group, row, tap, channel): data[group * group_stride + row * row_stride +
// channel * channel_stride + taps[tap]].
template <class T>
struct TapWeights {
  const T* data;
  int64_t group_stride, row_stride, channel_stride;
  const int64_t* taps;
};

template <class T>
struct ChannelsLastResult {
  T* data;
  int64_t strides[5];  // image, row, and the three dimensions
  const T* bias;       // by row, null for none
};

// How elements are multiplied: packed by ones.
struct FloatProducts {
  using Element = float;
  using Packed = float;
  static constexpr int64_t per_packed = 1, block_rows = 1;
  static constexpr int64_t depth = tap_depth<float>, pitch = packed_pitch<float>;
  static constexpr int64_t width = tile_vectors(max_tile_rows) * Simd<float>::lanes;

  // Packed places along k come in multiples of this.
  static int64_t granule() { return 1; }

  // c[rows, columns] = A B, or that added to what is there.
  static void run(const RowPanels& rows, int64_t columns, int64_t k, const float* a, const float* b,
                  float* c, int64_t c_rs, bool add) {
    const int vectors = static_cast<int>(ceil_div(columns, int64_t{Simd<float>::lanes}));
    for (int64_t i = 0; i < rows.count; ++i)
      tile_kernel<float>(rows.height(i), vectors)(k, a + rows.begin(i) * pitch, b, width,
                                                  c + rows.begin(i) * c_rs, c_rs, 1, add ? 1 : 0);
  }
  static float pack(const float* low, int64_t, bool) { return *low; }
};

#if defined(__AVX512F__)
// Packed by pairs, which one instruction multiplies and adds.
struct PairProducts {
  using Element = BFloat16;
  using Packed = Pair;
  static constexpr int64_t per_packed = 2, block_rows = amx_rows;  // rows come in such blocks
  static constexpr int64_t depth = pair_depth, pitch = pair_pitch, width = pair_width;

  static int64_t granule() { return has_amx() ? amx_pairs : 1; }

  static void run(const RowPanels& rows, int64_t columns, int64_t k, const Pair* a, const Pair* b,
                  float* c, int64_t c_rs, bool add) {
    const AmxScope tiles;
    if (tiles) return amx_tile({k, a, b, c, c_rs, columns, add}, rows.rows);
    const PairScope pairs;
    for (int64_t i = 0; i < rows.count; ++i)
      pair_kernel(rows.height(i), columns)(
          {k, a + rows.begin(i) * pitch, b, c + rows.begin(i) * c_rs, c_rs, columns, add});
  }
  static Pair pack(const BFloat16* low, int64_t high, bool both) {
    return pair_of(low, both ? low + high : nullptr);
  }
};
#endif

// One convolution. Cut by its shape alone: the same bits for any number of threads.
template <class M>
class ChannelsLastGemm {
 public:
  using T = typename M::Element;
  using Packed = typename M::Packed;

  ChannelsLastGemm(const Im2col<T>& im2col, const TapWeights<T>& weights,
                   const ChannelsLastResult<T>& result, int64_t batch, int64_t groups, int64_t rows)
      : im2col_(im2col), weights_(weights), result_(result), groups_(groups), rows_(rows) {
    length_ = im2col.length();
    positions_ = batch * im2col.places();
    const int64_t whole = M::depth * M::per_packed;
    chunks_ = max_of(ceil_div(length_, whole), int64_t{1});
    step_ = step_of(whole);
    panels_ = ceil_div(rows, M::width);
    // Few columns leave room for unfolded rows in the first-level cache, unless those are long.
    const bool few = panels_ <= 2 && step_ > 64 * M::per_packed;
    const int64_t most = (few ? 2 : 8) * max_tile_rows;
    const int64_t blocks = ceil_div(positions_, most);
    block_ = round_up(ceil_div(positions_, blocks), max_tile_rows);
    blocks_ = ceil_div(positions_, block_);
    // Few blocks of positions share their columns out as well.
    const int64_t wanted =
        min_of(ceil_div(int64_t{8}, blocks_ * groups), ceil_div(panels_, int64_t{2}));
    columns_ = ceil_div(panels_, wanted);
    cuts_ = ceil_div(panels_, columns_);
  }

  void run() const {
    const Scratch<Packed> packed(groups_ * panels_ * packed_depth() * M::width);
    const int64_t grain =
        max_of((int64_t{1} << 15) / max_of(packed_depth() * M::width, int64_t{1}), int64_t{1});
    parallel_for(groups_ * panels_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) pack_panel(packed.get(), p / panels_, p % panels_);
    });
    const Scratch<Im2colPiece> pieces(chunks_ * most_pieces());
    const Scratch<int64_t> counts(chunks_);
    for (int64_t c = 0; c < chunks_; ++c)
      counts.get()[c] = im2col_.cut(c * step_, min_of(length_, (c + 1) * step_),
                                    pieces.get() + c * most_pieces());
    const Plan plan{packed.get(), pieces.get(), counts.get()};
    const int64_t work = block_ * length_ * min_of(columns_ * M::width, rows_);
    const int64_t job_grain = max_of((int64_t{1} << 18) / max_of(work, int64_t{1}), int64_t{1});
    parallel_for(groups_ * blocks_ * cuts_, job_grain, [&](int64_t begin, int64_t end) {
      const Scratch<Packed> left(round_up(block_, M::block_rows) * M::pitch);
      const Scratch<float> sums(block_ * columns_ * M::width);
      for (int64_t job = begin; job < end; ++job)
        run_job(plan, job / blocks_ / cuts_, job / cuts_ % blocks_, job % cuts_, left.get(),
                sums.get());
    });
  }

 private:
  struct Plan {
    const Packed* packed;
    const Im2colPiece* pieces;
    const int64_t* counts;
  };

  // Elements of a chunk: whole runs of neighbouring elements where that makes no chunk more, since
  // runs that are cut are copied in more pieces. A phase of an input gradient may have no taps.
  int64_t step_of(int64_t most) const {
    const int64_t unit = M::per_packed * M::granule(), run = max_of(im2col_.run(), int64_t{1});
    const int64_t runs = most / run * run;
    const bool fits = runs > 0 && runs % unit == 0 && ceil_div(length_, runs) == chunks_;
    return fits ? runs : round_up(ceil_div(length_, chunks_), unit);
  }

  // Packed places that so many elements take.
  static int64_t places_of(int64_t length) {
    return round_up(ceil_div(length, M::per_packed), M::granule());
  }
  // Places of the packed weights of a panel; a chunk takes `step_` elements of them.
  int64_t packed_depth() const { return chunks_ * step_ / M::per_packed; }
  int64_t most_pieces() const { return step_ / im2col_.channels + 2; }

  // Elements in the order of unfolded rows; those past the end, and past the last row, are zeros.
  void pack_panel(Packed* packed, int64_t group, int64_t panel) const {
    packed += (group * panels_ + panel) * packed_depth() * M::width;
    const int64_t first = panel * M::width, count = min_of(M::width, rows_ - first);
    const T* from = weights_.data + group * weights_.group_stride + first * weights_.row_stride;
    if (im2col_.channels % M::per_packed == 0) {
      pack_channels(packed, from, count);
    } else {
      pack_elements(packed, from, count);
    }
    const int64_t done = ceil_div(length_, M::per_packed) * M::width;
    clear(packed + done, packed_depth() * M::width - done);
  }

  static void clear_rest(Packed* to, int64_t count) {
    for (int64_t r = count; r < M::width; ++r) to[r] = Packed(0);
  }

  void pack_channels(Packed* packed, const T* from, int64_t count) const {
    const int64_t channels = im2col_.channels, taps = im2col_.taps();
    const bool aligned = reinterpret_cast<uintptr_t>(from) % sizeof(Packed) == 0;
    if (weights_.channel_stride == 1 && weights_.row_stride % M::per_packed == 0 && aligned) {
      for (int64_t t = 0; t < taps; ++t) pack_columns(packed, from + weights_.taps[t], t, count);
      return;
    }
    // The taps of a channel often share the weights' cache lines.
    const int64_t rs = weights_.row_stride;
    for (int64_t c = 0; c < channels; c += M::per_packed) {
      for (int64_t t = 0; t < taps; ++t) {
        const T* at = from + c * weights_.channel_stride + weights_.taps[t];
        Packed* to = packed + (t * channels + c) / M::per_packed * M::width;
        for (int64_t r = 0; r < count; ++r)
          to[r] = M::pack(at + r * rs, weights_.channel_stride, true);
        clear_rest(to, count);
      }
    }
  }

  // One tap whose channels lie side by side.
  void pack_columns(Packed* packed, const T* from, int64_t tap, int64_t count) const {
    const int64_t depth = im2col_.channels / M::per_packed;
    packed += tap * depth * M::width;
    copy_matrix(packed, M::width, reinterpret_cast<const Packed*>(from), 1,
                weights_.row_stride / M::per_packed, depth, count);
    for (int64_t i = 0; count < M::width && i < depth; ++i)
      clear_rest(packed + i * M::width, count);
  }

  // Pairs whose halves may belong to two taps.
  void pack_elements(Packed* packed, const T* from, int64_t count) const {
    const auto place = [&](int64_t k) {
      const int64_t tap = k / im2col_.channels, channel = k % im2col_.channels;
      return channel * weights_.channel_stride + weights_.taps[tap];
    };
    for (int64_t k = 0; k < length_; k += M::per_packed, packed += M::width) {
      const bool both = k + 1 < length_;
      const int64_t low = place(k), high = both ? place(k + 1) - low : 0;
      for (int64_t r = 0; r < count; ++r)
        packed[r] = M::pack(from + r * weights_.row_stride + low, high, both);
      clear_rest(packed, count);
    }
  }

  // Whether positions of the result follow one another at one distance, so that sums can be taken
  // in place: whole vectors of them.
  bool in_place() const {
    if constexpr (!std::is_same_v<T, float>) return false;
    const int64_t* st = result_.strides;
    const TapLine* lines = im2col_.lines;
    const bool slices = lines[0].places == 1 || st[2] == lines[1].places * st[3];
    return st[1] == 1 && rows_ % Simd<float>::lanes == 0 && slices &&
           st[3] == lines[2].places * st[4] && st[0] == im2col_.places() * st[4];
  }

  void run_job(const Plan& plan, int64_t group, int64_t block, int64_t cut, Packed* left,
               float* sums) const {
    const int64_t begin = block * block_, count = min_of(block_, positions_ - begin);
    const int64_t first = cut * columns_, last = min_of(panels_, first + columns_);
    const int64_t row = group * rows_ + first * M::width;
    const int64_t row_count = min_of(last * M::width, rows_) - first * M::width;
    if constexpr (std::is_same_v<T, float>) {
      if (in_place()) {
        const int64_t pitch = result_.strides[4];
        float* to = result_.data + begin * pitch + row;
        multiply(plan, group, begin, count, first, last, left, to, pitch);
        if (result_.bias != nullptr) add_bias(to, pitch, row, count, row_count);
        return;
      }
    }
    const int64_t pitch = columns_ * M::width;
    multiply(plan, group, begin, count, first, last, left, sums, pitch);
    write(sums, pitch, begin, count, row, row_count);
  }

  // Positions [begin, begin + count) times the panels [first, last).
  void multiply(const Plan& plan, int64_t group, int64_t begin, int64_t count, int64_t first,
                int64_t last, Packed* left, float* sums, int64_t pitch) const {
    const RowPanels rows(count);
    for (int64_t c = 0; c < chunks_; ++c) {
      const int64_t length = min_of(step_, length_ - c * step_);
      im2col_rows(plan, left, group, begin, count, c, length);
      for (int64_t p = first; p < last; ++p) {
        const Packed* right =
            plan.packed +
            ((group * panels_ + p) * packed_depth() + c * step_ / M::per_packed) * M::width;
        M::run(rows, min_of(M::width, rows_ - p * M::width), places_of(length), left, right,
               sums + (p - first) * M::width, pitch, c > 0);
      }
    }
  }

  void im2col_rows(const Plan& plan, Packed* left, int64_t group, int64_t begin, int64_t count,
                   int64_t chunk, int64_t length) const {
    T* to = reinterpret_cast<T*>(left);
    const int64_t pitch = M::pitch * M::per_packed;
    im2col_.copy_rows(to, pitch, group * im2col_.channels, begin, count,
                      plan.pieces + chunk * most_pieces(), plan.counts[chunk]);
    const int64_t padded = places_of(length) * M::per_packed;
    for (int64_t i = 0; length < padded && i < count; ++i)
      clear(to + i * pitch + length, padded - length);
  }

  // Sums of positions [begin, begin + count) and `rows` rows, a run of an image's row at a time.
  void write(float* sums, int64_t pitch, int64_t begin, int64_t count, int64_t row,
             int64_t rows) const {
    const int64_t* st = result_.strides;
    PositionCursor at(im2col_.lines, begin);
    while (count > 0) {
      const int64_t run = at.run(count);
      T* to = result_.data + at.image * st[0] + row * st[1] + at.z * st[2] + at.y * st[3] +
              at.x * st[4];
      if (result_.bias != nullptr) add_bias(sums, pitch, row, run, rows);
      if (st[1] == 1) {
        for (int64_t i = 0; i < run; ++i) copy_row(to + i * st[4], sums + i * pitch, 1, rows);
      } else if (st[4] == 1) {
        copy_matrix(to, st[1], sums, 1, pitch, rows, run);
      } else {
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < run; ++i)
            to[r * st[1] + i * st[4]] = Convert<T, float>::call(sums[i * pitch + r]);
      }
      sums += run * pitch;
      at.advance(run);
      count -= run;
    }
  }

  void add_bias(float* sums, int64_t pitch, int64_t row, int64_t count, int64_t rows) const {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t r = 0; r < rows; ++r)
        sums[i * pitch + r] += Convert<float, T>::call(result_.bias[row + r]);
  }

  const Im2col<T>& im2col_;
  const TapWeights<T>& weights_;
  const ChannelsLastResult<T>& result_;
  int64_t groups_, rows_, length_, positions_, chunks_, step_, panels_, block_, blocks_, columns_,
      cuts_;
};

}  // namespace facula::cpu::FACULA_ISA
