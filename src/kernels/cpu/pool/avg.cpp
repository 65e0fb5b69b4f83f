// Average pooling and its gradients.
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/copy_transposed.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/pool/windows.h"
#include "kernels/cpu/simd/lanes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class T, class A>
[[gnu::always_inline]] inline void add_run(const T* in, int64_t step, int64_t n, A* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += static_cast<A>(in[i * step]);
}

// What the sum over a window is divided by.
struct Divisor {
  std::optional<int64_t> given;
  int64_t operator()(const PoolWindow& w) const {
    return given ? *given : w.depth.extent * w.height.extent * w.width.extent;
  }
};

template <class T>
struct AvgPool {
  using A = accumulate_t<T>;
  const PoolPlan& plan;
  Divisor divisor;
  Volume in, out;

  PoolWindow window(int64_t d, int64_t h, int64_t w) const {
    return {plan.spans[0][d], plan.spans[1][h], plan.spans[2][w]};
  }

  void windows(ChannelRuns::Run r, int64_t od, int64_t oh) const {
    alignas(64) A sum[longest_run];
    const T* from = in.at<const T>(r.image, r.channel);
    T* to = out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3];
    for (int64_t ow = 0; ow < out.sizes[4]; ++ow) {
      const PoolWindow w = window(od, oh, ow);
      std::fill_n(sum, r.length, A(0));
      each_position(plan, w, in,
                    [&](int64_t offset, int64_t) { add_run(from + offset, 1, r.length, sum); });
      store(sum, r.length, w, to + ow * out.strides[4]);
    }
  }
  void store(const A* sum, int64_t n, const PoolWindow& w, T* to) const {
    const bool empty = w.depth.first >= w.depth.last || w.height.first >= w.height.last ||
                       w.width.first >= w.width.last;
    const A by = static_cast<A>(empty ? 1 : divisor(w));
    if (out.strides[1] == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sum[i] / by);
    else
      for (int64_t i = 0; i < n; ++i) to[i * out.strides[1]] = static_cast<T>(sum[i] / by);
  }

  // Note: sums of columns
  //
  // The input rows that a row of windows covers are added first, between zeros in place of padding.
  // Windows are then sums of neighbours, as long as whole vectors: no edge, no remainder.
  static constexpr int64_t lanes = native_lanes<A>, most_columns = 2048;
  int64_t padded() const { return (out.sizes[4] + lanes - 1) / lanes * lanes; }
  // Vectors of every second column are read in pairs.
  int64_t columns() const {
    const int64_t reach = (padded() + 1) * plan.stride[2] + plan.kernel[2];
    return std::max(reach, plan.padding[2] + in.sizes[4]);
  }
  bool fits_columns() const {
    return plan.sliding && in.strides[4] == 1 && padded() <= longest_run &&
           plan.kernel[2] <= most_columns && plan.stride[2] <= most_columns &&
           columns() <= most_columns;
  }
  // What the extents of windows along a row are, but for a divisor that is given: ones then.
  void set_widths(A* widths) const {
    std::fill_n(widths, padded(), A(1));
    for (int64_t ow = 0; ow < out.sizes[4] && !divisor.given; ++ow) {
      const PoolSpan s = plan.spans[2][ow];
      if (s.first < s.last) widths[ow] = static_cast<A>(s.extent);
    }
  }
  void column_row(ChannelRuns::Run r, int64_t od, int64_t oh, const A* widths) const {
    alignas(64) A column[most_columns], sum[longest_run];
    std::fill_n(column, columns(), A(0));
    const PoolSpan ds = plan.spans[0][od], hs = plan.spans[1][oh];
    const T* from = in.at<const T>(r.image, r.channel);
    for (int64_t d = ds.first; d < ds.last; ++d)
      for (int64_t h = hs.first; h < hs.last; ++h)
        add_run(from + d * in.strides[2] + h * in.strides[3], 1, in.sizes[4],
                column + plan.padding[2]);
    add_neighbours(column, sum);
    const bool empty = ds.first >= ds.last || hs.first >= hs.last;
    const A rows = static_cast<A>(empty ? 1 : divisor.given.value_or(ds.extent * hs.extent));
    const int64_t end = padded();
    for (int64_t ow = 0; ow < end; ++ow) sum[ow] /= rows * widths[ow];
    T* to = out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3];
    const int64_t n = out.sizes[4], step = out.strides[4];
    if (step == 1)
      for (int64_t ow = 0; ow < n; ++ow) to[ow] = static_cast<T>(sum[ow]);
    else
      for (int64_t ow = 0; ow < n; ++ow) to[ow * step] = static_cast<T>(sum[ow]);
  }
  void add_neighbours(const A* column, A* sum) const {
    using Vector = LaneVector<A, lanes>;
    constexpr auto all = std::make_index_sequence<lanes>();
    const int64_t stride = plan.stride[2];
    for (int64_t i = 0; i < padded(); i += lanes) {
      typename Vector::type total = {};
      for (int64_t k = 0; k < plan.kernel[2]; ++k) {
        const A* tap = column + i * stride + k;
        if (stride == 1) {
          total += Vector::load(tap);
        } else if (stride == 2) {
          total += Square<A, lanes>::even(Vector::load(tap), Vector::load(tap + lanes), all);
        } else {
          for (int64_t l = 0; l < lanes; ++l) total[l] += tap[l * stride];
        }
      }
      __builtin_memcpy(sum + i, &total, sizeof total);
    }
  }

  void row(ChannelRuns::Run r, int64_t od, int64_t oh) const {
    for (int64_t begin = 0; begin < out.sizes[4]; begin += longest_run)
      piece(r, od, oh, begin, std::min(begin + longest_run, out.sizes[4]));
  }
  void piece(ChannelRuns::Run r, int64_t od, int64_t oh, int64_t begin, int64_t end) const {
    A sum[longest_run];
    std::fill_n(sum, end - begin, A(0));
    const PoolSpan ds = plan.spans[0][od], hs = plan.spans[1][oh];
    for (int64_t d = ds.first; d < ds.last; ++d)
      for (int64_t h = hs.first; h < hs.last; ++h)
        for (int64_t k = 0; k < plan.kernel[2]; ++k) tap(r, d, h, k, begin, end, sum);
    T* to = out.at<T>(r.image, r.channel) + od * out.strides[2] + oh * out.strides[3];
    for (int64_t ow = begin; ow < end; ++ow)
      store(sum + ow - begin, 1, window(od, oh, ow), to + ow * out.strides[4]);
  }
  void tap(ChannelRuns::Run r, int64_t d, int64_t h, int64_t k, int64_t begin, int64_t end,
           A* sum) const {
    const TapRange t = tap_range(plan, k, begin, end, in.sizes[4]);
    if (t.begin >= t.end) return;
    const int64_t x = t.begin * plan.stride[2] + k - plan.padding[2];
    const T* from = in.at<const T>(r.image, r.channel) + d * in.strides[2] + h * in.strides[3] +
                    x * in.strides[4];
    const int64_t step = plan.stride[2] * in.strides[4];
    if (step == 1)
      add_run(from, 1, t.end - t.begin, sum + t.begin - begin);
    else
      add_run(from, step, t.end - t.begin, sum + t.begin - begin);
  }

  void run() const {
    const ChannelRuns runs = channel_runs(in, out);
    const bool rows = runs.length == 1 && plan.sliding && out.sizes[4] >= 4;
    const bool by_columns = rows && fits_columns();
    alignas(64) A widths[longest_run];
    if (by_columns) set_widths(widths);
    each_row(runs, out, row_grain(plan, in, out, runs.length),
             [&](ChannelRuns::Run r, int64_t d, int64_t h) {
               if (by_columns)
                 column_row(r, d, h, widths);
               else if (rows)
                 row(r, d, h);
               else
                 windows(r, d, h);
             });
  }
};

// Whether the windows of an axis lie side by side and leave nothing out.
bool tile_axis(const PoolSpan* spans, int64_t count, int64_t size) {
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (spans[i].first != at || spans[i].last <= at) return false;
    at = spans[i].last;
  }
  return at == size;
}
bool tile(const PoolPlan& plan, const Volume& grad, const Volume& out) {
  for (int d = 0; d < 3; ++d)
    if (!tile_axis(plan.spans[d], grad.sizes[2 + d], out.sizes[2 + d])) return false;
  return true;
}

// Spreads each gradient over its window; A is what sums are kept in, and grad_input's type. Where
// windows tile the input, each element is stored once and need not be zero before.
template <class T, bool tiled>
struct AvgPoolBackward {
  using A = accumulate_t<T>;
  const PoolPlan& plan;
  Divisor divisor;
  Volume grad, out;

  void image(ChannelRuns::Run r) const {
    const bool rows = r.length == 1 && plan.sliding;
    for (int64_t d = 0; d < grad.sizes[2]; ++d)
      for (int64_t h = 0; h < grad.sizes[3]; ++h) {
        for (int64_t w = 0; rows && w < grad.sizes[4]; w += longest_run) row(r, d, h, w);
        for (int64_t w = 0; !rows && w < grad.sizes[4]; ++w) spread(r, d, h, w);
      }
  }
  // Up to longest_run gradients of a row of one channel at once, tap by tap.
  void row(ChannelRuns::Run r, int64_t d, int64_t h, int64_t begin) const {
    const int64_t end = std::min(begin + longest_run, grad.sizes[4]);
    const T* g = grad.at<const T>(r.image, r.channel) + d * grad.strides[2] + h * grad.strides[3];
    A part[longest_run];
    for (int64_t w = begin; w < end; ++w) {
      const PoolWindow win{plan.spans[0][d], plan.spans[1][h], plan.spans[2][w]};
      const int64_t by = divisor(win);  // zero where a window lies outside: then nothing uses it
      part[w - begin] = static_cast<A>(g[w * grad.strides[4]]) / static_cast<A>(by == 0 ? 1 : by);
    }
    const PoolSpan ds = plan.spans[0][d], hs = plan.spans[1][h];
    if (tiled && out.strides[4] == 1 && grad.sizes[4] * plan.kernel[2] == out.sizes[4])
      return tile_lines(r, ds, hs, begin, end, part);
    for (int64_t z = ds.first; z < ds.last; z += plan.step[0])
      for (int64_t y = hs.first; y < hs.last; y += plan.step[1])
        for (int64_t k = 0; k < plan.kernel[2]; ++k) {
          const TapRange t = tap_range(plan, k, begin, end, out.sizes[4]);
          const int64_t x = k * plan.step[2] - plan.padding[2],
                        step = plan.stride[2] * out.strides[4];
          A* to = out.at<A>(r.image, r.channel) + z * out.strides[2] + y * out.strides[3] +
                  x * out.strides[4];
          for (int64_t w = t.begin; w < t.end; ++w) put(to[w * step], part[w - begin]);
        }
  }
  // A zero's sign is that of a sum.
  [[gnu::always_inline]] static void put(A& to, A part) { to = (tiled ? A(0) : to) + part; }

  // The lines of a row of windows, which are all the same.
  void tile_lines(ChannelRuns::Run r, PoolSpan ds, PoolSpan hs, int64_t begin, int64_t end,
                  const A* part) const {
    const int64_t kernel = plan.kernel[2], n = end - begin;
    const A* made = nullptr;
    for (int64_t z = ds.first; z < ds.last; ++z)
      for (int64_t y = hs.first; y < hs.last; ++y) {
        A* const to = out.at<A>(r.image, r.channel) + z * out.strides[2] + y * out.strides[3] +
                      begin * kernel;
        if (made != nullptr)
          std::copy_n(made, n * kernel, to);
        else if (kernel == 2)
          widen_twice(part, n, to);
        else
          widen(part, n, kernel, to);
        made = to;
      }
  }
  static void widen_twice(const A* part, int64_t n, A* __restrict to) {
    for (int64_t w = 0; w < n; ++w) to[2 * w] = to[2 * w + 1] = A(0) + part[w];
  }
  static void widen(const A* part, int64_t n, int64_t kernel, A* __restrict to) {
    for (int64_t w = 0; w < n; ++w)
      for (int64_t k = 0; k < kernel; ++k) to[w * kernel + k] = A(0) + part[w];
  }
  void spread(ChannelRuns::Run r, int64_t d, int64_t h, int64_t w) const {
    const PoolWindow win{plan.spans[0][d], plan.spans[1][h], plan.spans[2][w]};
    const T* g = grad.at<const T>(r.image, r.channel) + d * grad.strides[2] + h * grad.strides[3] +
                 w * grad.strides[4];
    const A by = static_cast<A>(divisor(win));
    A part[longest_run];
    if (win.width.first >= win.width.last) return;
    for (int64_t i = 0; i < r.length; ++i) part[i] = static_cast<A>(g[i * grad.strides[1]]) / by;
    A* to = out.at<A>(r.image, r.channel);
    each_position(plan, win, out, [&](int64_t offset, int64_t) {
      for (int64_t i = 0; i < r.length; ++i) put(to[offset + i], part[i]);
    });
  }
  void run() const {
    const ChannelRuns runs = channel_runs(grad, out);
    const int64_t cost =
        std::max<int64_t>(out.sizes[2] * out.sizes[3] * out.sizes[4] * runs.length, 1);
    parallel_for(runs.count, std::max<int64_t>((1 << 15) / cost, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) image(runs[i]);
                 });
  }
};

enum class Types : uint8_t { WithLong, Full, Floating };

template <class F>
void visit(DType d, Types types, const char* op, F&& f) {
  const bool known = visit_types<float, double>(d, f) ||
                     (types != Types::Full && visit_types<Half, BFloat16>(d, f)) ||
                     (types != Types::Floating && visit_types<int64_t>(d, f));
  if (!known) not_implemented_for(op, d);
}

void average(const Tensor& self, int64_t spatial, const PoolPlan& plan,
             std::optional<int64_t> divisor, Types types, const Tensor& out, const char* op) {
  visit(self.dtype(), types, op, [&]<class T>(Type<T>) {
    AvgPool<T>{plan, {divisor}, volume_of(self, spatial), volume_of(out, spatial)}.run();
  });
}

void spread(const Tensor& grad, int64_t spatial, const PoolPlan& plan,
            std::optional<int64_t> divisor, Types types, const Tensor& out, const char* op) {
  const DType wide = compute_of(out.dtype());
  const Tensor sums =
      wide == out.dtype() ? out : empty_strided_tensor(out.sizes(), out.strides(), wide);
  const Volume from = volume_of(grad, spatial), to = volume_of(sums, spatial);
  const bool tiled = tile(plan, from, to);
  if (!tiled) fill(sums, 0);
  visit(grad.dtype(), types, op, [&]<class T>(Type<T>) {
    if (tiled)
      AvgPoolBackward<T, true>{plan, {divisor}, from, to}.run();
    else
      AvgPoolBackward<T, false>{plan, {divisor}, from, to}.run();
  });
  if (!sums.is_same(out)) copy(out, sums);
}

constexpr int64_t one[] = {1};
PoolPlan plan_of(const Tensor& self, const Tensor& out, int64_t spatial, IntSpan kernel,
                 IntSpan stride, IntSpan padding, bool count_padding) {
  return sliding_windows(volume_of(self, spatial).sizes + 2, volume_of(out, spatial).sizes + 2,
                         spatial, kernel, stride, padding, one, count_padding);
}
PoolPlan adaptive_plan(const Tensor& self, const Tensor& out, int64_t spatial) {
  return adaptive_windows(volume_of(self, spatial).sizes + 2, volume_of(out, spatial).sizes + 2);
}

}  // namespace

void avg_pool2d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, bool,
                bool count_include_pad, std::optional<int64_t> divisor, const Tensor& out) {
  average(self, 2, plan_of(self, out, 2, kernel, stride, padding, count_include_pad), divisor,
          Types::WithLong, out, "avg_pool2d");
}
void avg_pool3d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, bool,
                bool count_include_pad, std::optional<int64_t> divisor, const Tensor& out) {
  average(self, 3, plan_of(self, out, 3, kernel, stride, padding, count_include_pad), divisor,
          Types::Full, out, "avg_pool3d_out_frame");
}
void avg_pool2d_backward(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                         IntSpan padding, bool, bool count_include_pad,
                         std::optional<int64_t> divisor, const Tensor& out) {
  spread(grad, 2, plan_of(self, grad, 2, kernel, stride, padding, count_include_pad), divisor,
         Types::WithLong, out, "avg_pool2d_backward");
}
void avg_pool3d_backward(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                         IntSpan padding, bool, bool count_include_pad,
                         std::optional<int64_t> divisor, const Tensor& out) {
  spread(grad, 3, plan_of(self, grad, 3, kernel, stride, padding, count_include_pad), divisor,
         Types::Full, out, "avg_pool3d_backward_out_frame");
}
void adaptive_avg_pool2d(const Tensor& self, IntSpan, const Tensor& out) {
  average(self, 2, adaptive_plan(self, out, 2), std::nullopt, Types::Floating, out,
          "adaptive_avg_pool2d");
}
void adaptive_avg_pool3d(const Tensor& self, IntSpan, const Tensor& out) {
  average(self, 3, adaptive_plan(self, out, 3), std::nullopt, Types::Floating, out,
          "adaptive_avg_pool3d_cpu");
}
void adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self, const Tensor& out) {
  spread(grad, 2, adaptive_plan(self, grad, 2), std::nullopt, Types::Floating, out,
         "adaptive_avg_pool2d_backward");
}
void adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self, const Tensor& out) {
  spread(grad, 3, adaptive_plan(self, grad, 3), std::nullopt, Types::Floating, out,
         "adaptive_avg_pool3d_backward_cpu");
}

}  // namespace facula::cpu::FACULA_ISA
