// Maximum pooling.
#include <limits>

#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/pool/windows.h"
#include "kernels/cpu/simd/lanes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
constexpr A lowest() {
  if constexpr (std::numeric_limits<A>::has_infinity)
    return -std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::lowest();
}

// Keeps the greater value and where it was; a NaN wins over everything before it.
template <class T, class A, class I>
[[gnu::always_inline]] inline void take_greater(const T* in, int64_t step, int64_t n, I index,
                                                I index_step, A* best, I* where) {
  for (I i = 0; i < static_cast<I>(n); ++i) {
    const A v = static_cast<A>(in[i * step]);
    const bool better = v > best[i] || v != v;
    best[i] = better ? v : best[i];
    where[i] = better ? index + i * index_step : where[i];
  }
}

template <class T>
struct MaxPool {
  using A = accumulate_t<T>;
  const PoolPlan& plan;
  Volume in, out, where;

  template <class B, class I>
  static void store(const B* best, const I* at, int64_t n, T* to, int64_t step, int64_t* index,
                    int64_t index_step) {
    if (step == 1 && index_step == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(best[i]);
      for (int64_t i = 0; i < n; ++i) index[i] = at[i];
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      to[i * step] = static_cast<T>(best[i]);
      index[i * index_step] = at[i];
    }
  }

  // Window by window; a run of channels at once.
  void windows(ChannelRuns::Run r, int64_t od, int64_t oh) const {
    A best[longest_run];
    int64_t at[longest_run];
    const T* from = in.at<const T>(r.image, r.channel);
    T* to = out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3];
    int64_t* index =
        where.at<int64_t>(r.image, r.channel) + od * where.strides[2] + oh * where.strides[3];
    for (int64_t ow = 0; ow < out.sizes[4]; ++ow) {
      const PoolWindow w{plan.spans[0][od], plan.spans[1][oh], plan.spans[2][ow]};
      const int64_t start =
          (w.depth.first * in.sizes[3] + w.height.first) * in.sizes[4] + w.width.first;
      std::fill_n(best, r.length, lowest<A>());
      std::fill_n(at, r.length, start);
      each_position(plan, w, in, [&](int64_t offset, int64_t i) {
        take_greater<T, A, int64_t>(from + offset, 1, r.length, i, 0, best, at);
      });
      store(best, at, r.length, to + ow * out.strides[4], out.strides[1],
            index + ow * where.strides[4], where.strides[1]);
    }
  }

  // Whether windows are two neighbours side by side, in one row or two, that never overlap.
  bool are_pairs() const {
    return plan.kernel[0] == 1 && plan.kernel[1] <= 2 && plan.kernel[2] == 2 &&
           plan.stride[2] == 2 && plan.padding[2] == 0 && plan.step[1] == 1 && plan.step[2] == 1 &&
           in.strides[4] == 1 && out.strides[4] == 1 && where.strides[4] == 1 &&
           2 * out.sizes[4] <= in.sizes[4] &&
           in.sizes[2] * in.sizes[3] * in.sizes[4] <= std::numeric_limits<int32_t>::max();
  }
  // A row of the result whose windows are pairs.
  void pair_row(ChannelRuns::Run r, int64_t od, int64_t oh) const {
    const PoolSpan ds = plan.spans[0][od], hs = plan.spans[1][oh];
    if (ds.last - ds.first != 1 || hs.last - hs.first != plan.kernel[1]) return row(r, od, oh);
    const T* from =
        in.at<const T>(r.image, r.channel) + ds.first * in.strides[2] + hs.first * in.strides[3];
    T* to = out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3];
    int64_t* index =
        where.at<int64_t>(r.image, r.channel) + od * where.strides[2] + oh * where.strides[3];
    const auto start = static_cast<int32_t>((ds.first * in.sizes[3] + hs.first) * in.sizes[4]);
    const auto width = static_cast<int32_t>(in.sizes[4]);
    if (plan.kernel[1] == 1)
      pairs<1>(from, in.strides[3], start, width, out.sizes[4], to, index);
    else
      pairs<2>(from, in.strides[3], start, width, out.sizes[4], to, index);
  }
  static constexpr int64_t pair_run = 16;  // windows that one loop without remainder takes
  template <int rows>
  static void pairs(const T* from, int64_t row_step, int32_t start, int32_t width, int64_t n, T* to,
                    int64_t* index) {
    int64_t i = 0;
    for (; i + pair_run <= n; i += pair_run)
      pair_block<rows>(from + 2 * i, row_step, start + 2 * static_cast<int32_t>(i), width, to + i,
                       index + i);
    if (i == n) return;
    const int64_t left = n - i;
    T room[rows * 2 * pair_run] = {}, values[pair_run];
    int64_t places[pair_run];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < 2 * left; ++k)
        room[r * 2 * pair_run + k] = from[2 * i + r * row_step + k];
    pair_block<rows>(room, 2 * pair_run, start + 2 * static_cast<int32_t>(i), width, values,
                     places);
    for (int64_t k = 0; k < left; ++k) to[i + k] = values[k];
    for (int64_t k = 0; k < left; ++k) index[i + k] = places[k];
  }
  // Masks in place of choices, which the compiler would turn into branches.
  template <int rows>
  static void pair_block(const T* from, int64_t row_step, int32_t start, int32_t width,
                         T* __restrict to, int64_t* __restrict index) {
    for (int32_t i = 0; i < pair_run; ++i) {
      A best = static_cast<A>(from[2 * i]);
      int32_t at = start + 2 * i;
#pragma GCC unroll 4
      for (int t = 1; t < 2 * rows; ++t) {
        const A v = static_cast<A>(from[2 * i + t % 2 + t / 2 * row_step]);
        const bool better = (v > best) | (v != v);
        const int32_t place = start + 2 * i + t % 2 + t / 2 * width;
        const int32_t take = -static_cast<int32_t>(better);
        best = better ? v : best;
        at = (at & ~take) | (place & take);
      }
      to[i] = static_cast<T>(best);
      index[i] = at;
    }
  }

  // Note: rows by phases
  //
  // Windows of a row overlap and their taps lie `stride` apart. An input row is laid out by phases
  // (element x at x / stride of phase x % stride) with the lowest number around it, so that each
  // tap is a run of neighbours as long as whole vectors: no remainder, no edge.
  static constexpr int64_t phase_lanes = 16, most_phased = 2048;
  // Values and places of one width.
  using V = std::conditional_t<std::is_integral_v<A> && sizeof(A) < 4, int32_t, A>;
  using Place = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  struct Phases {
    int64_t padded, left, line, room;  // elements: windows, margin, one phase, all phases
  };
  Phases phases() const {
    const int64_t stride = plan.stride[2], reach = (plan.kernel[2] - 1) * plan.step[2];
    const int64_t padded = (out.sizes[4] + phase_lanes - 1) / phase_lanes * phase_lanes;
    const int64_t left = (plan.padding[2] + stride - 1) / stride;
    const int64_t line = left + padded + reach / stride + 1;
    return {padded, left, line, line * stride};
  }
  bool fits_phases() const {
    return in.strides[4] == 1 && phases().room <= most_phased && phases().padded <= longest_run &&
           in.sizes[2] * in.sizes[3] * in.sizes[4] <= std::numeric_limits<int32_t>::max();
  }
  void phased_row(ChannelRuns::Run r, int64_t od, int64_t oh) const {
    const Phases p = phases();
    const PoolSpan ds = plan.spans[0][od], hs = plan.spans[1][oh];
    const int64_t stride = plan.stride[2];
    V room[most_phased], best[longest_run];
    Place at[longest_run];
    std::fill_n(room, p.room, lowest<V>());
    std::fill_n(best, p.padded, lowest<V>());
    const int64_t start = (ds.first * in.sizes[3] + hs.first) * in.sizes[4];
    for (int64_t ow = 0; ow < out.sizes[4]; ++ow)
      at[ow] = static_cast<Place>(start + plan.spans[2][ow].first);
    const T* from = in.at<const T>(r.image, r.channel);
    for (int64_t d = ds.first; d < ds.last; d += plan.step[0])
      for (int64_t h = hs.first; h < hs.last; h += plan.step[1]) {
        lay_out(from + d * in.strides[2] + h * in.strides[3], p, room);
        const int64_t line_start = (d * in.sizes[3] + h) * in.sizes[4];
        for (int64_t k = 0; k < plan.kernel[2]; ++k) {
          const int64_t shift = k * plan.step[2] - plan.padding[2] + p.left * stride;
          const V* tap = room + shift % stride * p.line + shift / stride;
          take_lanes(tap, static_cast<Place>(line_start + shift - p.left * stride),
                     static_cast<Place>(stride), p.padded, best, at);
        }
      }
    store(best, at, out.sizes[4],
          out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3], out.strides[4],
          where.at<int64_t>(r.image, r.channel) + od * where.strides[2] + oh * where.strides[3],
          where.strides[4]);
  }
  void lay_out(const T* row, const Phases& p, V* room) const {
    const int64_t stride = plan.stride[2], most = p.line - p.left;
    if (stride == 2) {  // both phases in one pass
      const int64_t pairs = std::min(in.sizes[4] / 2, most);
      V *even = room + p.left, *odd = even + p.line;
      for (int64_t j = 0; j < pairs; ++j) {
        even[j] = static_cast<V>(row[2 * j]);
        odd[j] = static_cast<V>(row[2 * j + 1]);
      }
      if (pairs < most && 2 * pairs < in.sizes[4]) even[pairs] = static_cast<V>(row[2 * pairs]);
      return;
    }
    for (int64_t phase = 0; phase < stride; ++phase) {
      V* to = room + phase * p.line + p.left;
      const int64_t count = std::min((in.sizes[4] - phase + stride - 1) / stride, most);
      for (int64_t j = 0; j < count; ++j) to[j] = static_cast<V>(row[j * stride + phase]);
    }
  }
  // As take_greater, over whole vectors. Vectors by name: the compiler would leave the loop scalar.
  static void take_lanes(const V* tap, Place index, Place index_step, int64_t n, V* best,
                         Place* at) {
    constexpr int width = native_lanes<V>;
    using Values = LaneVector<V, width>;
    using Places = LaneVector<Place, width>;
    static constexpr Place count[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    auto place = Places::load(count) * index_step + index;
    for (int64_t i = 0; i < n; i += width) {
      const auto v = Values::load(tap + i), before = Values::load(best + i);
      const auto better = (v > before) | (v != v);
      const auto now = better ? v : before;
      const auto where_now = better ? place : Places::load(at + i);
      __builtin_memcpy(best + i, &now, sizeof now);
      __builtin_memcpy(at + i, &where_now, sizeof where_now);
      place += width * index_step;
    }
  }

  // A dense row of the result at once, tap by tap.
  void row(ChannelRuns::Run r, int64_t od, int64_t oh) const {
    T* to = out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3];
    int64_t* index =
        where.at<int64_t>(r.image, r.channel) + od * where.strides[2] + oh * where.strides[3];
    for (int64_t begin = 0; begin < out.sizes[4]; begin += longest_run) {
      const int64_t end = std::min(begin + longest_run, out.sizes[4]);
      T* to_piece = to + begin * out.strides[4];
      int64_t* index_piece = index + begin * where.strides[4];
      // Narrow indices stand beside the values, lane by lane.
      if (in.sizes[2] * in.sizes[3] * in.sizes[4] <= std::numeric_limits<int32_t>::max())
        piece<int32_t>(r, od, oh, begin, end, to_piece, index_piece);
      else
        piece<int64_t>(r, od, oh, begin, end, to_piece, index_piece);
    }
  }
  template <class I>
  void piece(ChannelRuns::Run r, int64_t od, int64_t oh, int64_t begin, int64_t end, T* to,
             int64_t* index) const {
    A best[longest_run];
    I at[longest_run];
    const PoolSpan ds = plan.spans[0][od], hs = plan.spans[1][oh];
    std::fill_n(best, end - begin, lowest<A>());
    for (int64_t ow = begin; ow < end; ++ow)
      at[ow - begin] = static_cast<I>((ds.first * in.sizes[3] + hs.first) * in.sizes[4] +
                                      plan.spans[2][ow].first);
    for (int64_t d = ds.first; d < ds.last; d += plan.step[0])
      for (int64_t h = hs.first; h < hs.last; h += plan.step[1])
        for (int64_t k = 0; k < plan.kernel[2]; ++k) tap(r, d, h, k, begin, end, best, at);
    store(best, at, end - begin, to, out.strides[4], index, where.strides[4]);
  }
  template <class I>
  void tap(ChannelRuns::Run r, int64_t d, int64_t h, int64_t k, int64_t begin, int64_t end, A* best,
           I* at) const {
    const TapRange t = tap_range(plan, k, begin, end, in.sizes[4]);
    if (t.begin >= t.end) return;
    const int64_t x = t.begin * plan.stride[2] + k * plan.step[2] - plan.padding[2];
    const T* from = in.at<const T>(r.image, r.channel) + d * in.strides[2] + h * in.strides[3] +
                    x * in.strides[4];
    const I index = static_cast<I>((d * in.sizes[3] + h) * in.sizes[4] + x);
    const I stride = static_cast<I>(plan.stride[2]);
    const int64_t n = t.end - t.begin, skip = t.begin - begin;
    const int64_t step = plan.stride[2] * in.strides[4];
    if (step == 1)
      take_greater(from, 1, n, index, stride, best + skip, at + skip);
    else if (step == 2)
      take_greater(from, 2, n, index, stride, best + skip, at + skip);
    else
      take_greater(from, step, n, index, stride, best + skip, at + skip);
  }

  void run() const {
    const ChannelRuns runs = channel_runs(in, out);
    const bool rows = runs.length == 1 && plan.sliding && out.sizes[4] >= 4;
    const bool by_pairs = rows && are_pairs(), by_phases = rows && fits_phases();
    each_row(runs, out, row_grain(plan, in, out, runs.length),
             [&](ChannelRuns::Run r, int64_t d, int64_t h) {
               if (by_pairs)
                 pair_row(r, d, h);
               else if (by_phases)
                 phased_row(r, d, h);
               else if (rows)
                 row(r, d, h);
               else
                 windows(r, d, h);
             });
  }
};

template <class F>
void visit(DType d, bool integers, const char* op, F&& f) {
  const bool known = visit_floating(d, f) || (integers && visit_integral(d, f));
  if (!known) not_implemented_for(op, d);
}

void sliding(const Tensor& self, int64_t spatial, IntSpan kernel, IntSpan stride, IntSpan padding,
             IntSpan dilation, const Tensor& out, const Tensor& indices, const char* op) {
  const Volume from = volume_of(self, spatial), to = volume_of(out, spatial);
  const PoolPlan plan = sliding_windows(from.sizes + 2, to.sizes + 2, spatial, kernel, stride,
                                        padding, dilation, false);
  visit(self.dtype(), true, op,
        [&]<class T>(Type<T>) { MaxPool<T>{plan, from, to, volume_of(indices, spatial)}.run(); });
}

void adaptive(const Tensor& self, int64_t spatial, const Tensor& out, const Tensor& indices,
              const char* op) {
  const Volume from = volume_of(self, spatial), to = volume_of(out, spatial);
  const PoolPlan plan = adaptive_windows(from.sizes + 2, to.sizes + 2);
  visit(self.dtype(), false, op,
        [&]<class T>(Type<T>) { MaxPool<T>{plan, from, to, volume_of(indices, spatial)}.run(); });
}

}  // namespace

void max_pool2d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                IntSpan dilation, bool, const Tensor& out, const Tensor& indices) {
  sliding(self, 2, kernel, stride, padding, dilation, out, indices, "max_pool2d");
}
void max_pool3d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                IntSpan dilation, bool, const Tensor& out, const Tensor& indices) {
  sliding(self, 3, kernel, stride, padding, dilation, out, indices, "max_pool3d");
}
void adaptive_max_pool2d(const Tensor& self, IntSpan, const Tensor& out, const Tensor& indices) {
  adaptive(self, 2, out, indices, "adaptive_max_pool2d");
}
void adaptive_max_pool3d(const Tensor& self, IntSpan, const Tensor& out, const Tensor& indices) {
  adaptive(self, 3, out, indices, "adaptive_max_pool3d_cpu");
}

}  // namespace facula::cpu::FACULA_ISA
