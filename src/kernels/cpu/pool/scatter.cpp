// What follows indices: gradients of maximum pooling, max_unpool, and fractional pooling.
#include <cmath>

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/resample/sampling_volume.h"

namespace facula::cpu {
namespace {

template <class F>
void visit(DType d, bool integers, const char* op, F&& f) {
  const bool known = visit_floating(d, f) || (integers && visit_integral(d, f));
  if (!known) not_implemented_for(op, d);
}

// Element `index` of a volume, as an offset.
int64_t offset_of(const Volume& v, int64_t index) {
  const int64_t w = index % v.sizes[4], rest = index / v.sizes[4];
  return rest / v.sizes[3] * v.strides[2] + rest % v.sizes[3] * v.strides[3] + w * v.strides[4];
}

// Whether the elements of a channel lie at one distance, in order.
bool is_even(const Volume& v) {
  return (v.sizes[3] == 1 || v.strides[3] == v.sizes[4] * v.strides[4]) &&
         (v.sizes[2] == 1 || v.strides[2] == v.sizes[3] * v.sizes[4] * v.strides[4]);
}

// Channels that are walked together: neighbours in memory where that is how tensors lie.
int64_t channels_together(const Volume& from, const Volume& indices, const Volume& to) {
  constexpr int64_t most = 64;
  const bool last = from.strides[1] == 1 && indices.strides[1] == 1 && to.strides[1] == 1;
  return last ? std::min(most, from.sizes[1]) : 1;
}

// One block of channels of one image: put(to, from, offset) for each element of `from` and the
// place that its index names.
template <class F>
class Follower {
 public:
  Follower(const Volume& from, const Volume& indices, const Volume& to, const char* op, F& put)
      : from_(from), indices_(indices), to_(to), op_(op), put_(put) {
    places_ = to.sizes[2] * to.sizes[3] * to.sizes[4];
    count_ = from.sizes[2] * from.sizes[3] * from.sizes[4];
    even_ = is_even(from) && is_even(indices) && is_even(to);
  }

  void block(int64_t n, int64_t channel, int64_t channels) const {
    const int64_t* index = indices_.at<const int64_t>(n, channel);
    if (even_) {
      const int64_t step = from_.strides[4], index_step = indices_.strides[4];
      return walk(
          n, channel, channels, index, [=](int64_t i) { return i * step; },
          [=](int64_t i) { return i * index_step; },
          [step = to_.strides[4]](int64_t i) { return i * step; });
    }
    walk(
        n, channel, channels, index, [this](int64_t i) { return offset_of(from_, i); },
        [this](int64_t i) { return offset_of(indices_, i); },
        [this](int64_t i) { return offset_of(to_, i); });
  }

  int64_t count() const { return count_; }

 private:
  template <class A, class B, class C>
  void walk(int64_t n, int64_t channel, int64_t channels, const int64_t* index, A&& from_at,
            B&& index_at, C&& to_at) const {
    const auto one = [&](int64_t i, int64_t c) {
      const int64_t place = index[index_at(i) + c];
      if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(places_)) [[unlikely]]
        refuse(place);
      put_(n, channel + c, from_at(i), to_at(place));
    };
    if (channels == 1) {  // channels that are walked together lie side by side
      for (int64_t i = 0; i < count_; ++i) one(i, 0);
      return;
    }
    for (int64_t i = 0; i < count_; ++i)
      for (int64_t c = 0; c < channels; ++c) one(i, c);
  }
  [[noreturn, gnu::cold]] void refuse(int64_t place) const {
    throw Error(ErrorKind::Runtime, op_, "(): found an invalid index ", place,
                ": expected one below ", places_);
  }

  const Volume &from_, &indices_, &to_;
  const char* op_;
  F& put_;
  int64_t places_, count_;
  bool even_;
};

template <class F>
void follow(const Volume& from, const Volume& indices, const Volume& to, const char* op, F&& put) {
  const Follower<F> follower(from, indices, to, op, put);
  const int64_t width = channels_together(from, indices, to);
  const int64_t blocks = width == 0 ? 0 : (from.sizes[1] + width - 1) / width;
  const int64_t cost = std::max<int64_t>(follower.count() * width, 1);
  parallel_for(from.sizes[0] * blocks, std::max<int64_t>((1 << 14) / cost, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t channel = k % blocks * width;
                   follower.block(k / blocks, channel, std::min(width, from.sizes[1] - channel));
                 }
               });
}

// Gradients whose channels are dense planes, or lie innermost in dense images: each goes to the
// place that its index names. False, with nothing done, where tensors lie in another way.
template <class T>
bool add_planes(const Volume& from, const Volume& indices, const Volume& to, const char* op) {
  using A = accumulate_t<T>;
  if (!is_even(from) || !is_even(indices) || !is_even(to)) return false;
  const int64_t count = from.sizes[2] * from.sizes[3] * from.sizes[4], channels = from.sizes[1];
  const int64_t places = to.sizes[2] * to.sizes[3] * to.sizes[4];
  const bool planes = from.strides[4] == 1 && indices.strides[4] == 1 && to.strides[4] == 1;
  const bool last = from.strides[1] == 1 && indices.strides[1] == 1 && to.strides[1] == 1;
  if (!planes && !last) return false;
  const auto fits = [&](int64_t place) {
    if (static_cast<uint64_t>(place) < static_cast<uint64_t>(places)) [[likely]]
      return;
    throw Error(ErrorKind::Runtime, op, "(): found an invalid index ", place,
                ": expected one below ", places);
  };
  const int64_t width = planes ? 1 : std::min<int64_t>(channels, 64);
  const int64_t blocks = width == 0 ? 0 : (channels + width - 1) / width;
  const int64_t cost = std::max<int64_t>(count * width, 1);
  const auto run = [&](int64_t job) {
    const int64_t n = job / blocks, channel = job % blocks * width;
    const int64_t here = std::min(width, channels - channel);
    const T* grad = from.at<const T>(n, channel);
    const int64_t* index = indices.at<const int64_t>(n, channel);
    A* sums = to.at<A>(n, channel);
    if (planes) {
      for (int64_t i = 0; i < count; ++i) {
        fits(index[i]);
        sums[index[i]] = static_cast<A>(sums[index[i]] + static_cast<A>(grad[i]));
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < here; ++c) {
        const int64_t place = index[c];
        fits(place);
        A& sum = sums[place * to.strides[4] + c];
        sum = static_cast<A>(sum + static_cast<A>(grad[c]));
      }
      grad += from.strides[4];
      index += indices.strides[4];
    }
  };
  parallel_for(from.sizes[0] * blocks, std::max<int64_t>((1 << 14) / cost, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t job = begin; job < end; ++job) run(job);
               });
  return true;
}

}  // namespace

void max_pool_backward(const Tensor& grad, const Tensor& indices, int64_t spatial,
                       const Tensor& out, const char* op) {
  const DType wide = compute_of(out.dtype());
  const Tensor sums =
      wide == out.dtype() ? out : empty_strided_tensor(out.sizes(), out.strides(), wide);
  fill(sums, 0);
  const Volume from = volume_of(grad, spatial), to = volume_of(sums, spatial);
  visit(grad.dtype(), true, op, [&]<class T>(Type<T>) {
    using A = accumulate_t<T>;
    if (add_planes<T>(from, volume_of(indices, spatial), to, op)) return;
    follow(from, volume_of(indices, spatial), to, op,
           [&](int64_t n, int64_t c, int64_t source, int64_t place) {
             A& sum = to.at<A>(n, c)[place];
             sum = static_cast<A>(sum + static_cast<A>(from.at<const T>(n, c)[source]));
           });
  });
  if (!sums.is_same(out)) copy(out, sums);
}

void max_unpool(const Tensor& self, const Tensor& indices, int64_t spatial, const Tensor& out,
                const char* op) {
  fill(out, 0);
  const Volume from = volume_of(self, spatial), to = volume_of(out, spatial);
  visit(self.dtype(), false, op, [&]<class T>(Type<T>) {
    follow(from, volume_of(indices, spatial), to, op,
           [&](int64_t n, int64_t c, int64_t source, int64_t place) {
             to.at<T>(n, c)[place] = from.at<const T>(n, c)[source];
           });
  });
}

// --- fractional pooling: windows of one size at pseudo-random places

namespace {

// Where window `i` starts along an axis; the last one ends with the input.
template <class A>
int64_t fractional_start(A sample, int64_t i, int64_t input, int64_t output, int64_t kernel) {
  if (i == output - 1) return input - kernel;
  const A alpha = static_cast<A>(input - kernel) / static_cast<A>(output - 1);
  const int64_t start = static_cast<int64_t>((static_cast<A>(i) + sample) * alpha) -
                        static_cast<int64_t>(sample * alpha);
  return std::clamp<int64_t>(start, 0, input - kernel);
}

template <class T>
struct FractionalPool {
  using A = accumulate_t<T>;
  Volume in, out, where;
  int64_t kernel[3];
  const Tensor& samples;  // (batch, channels, axes), fastest axis first
  int64_t spatial;

  // samples hold the width's number first for planes, but depth's first for volumes
  A sample(int64_t n, int64_t c, int axis) const {
    const int64_t k = spatial == 2 ? 2 - axis : axis;
    const T* s = samples.data<const T>() + n * samples.strides()[0] + c * samples.strides()[1];
    return static_cast<A>(s[k * samples.strides()[2]]);
  }
  int64_t start(int64_t n, int64_t c, int axis, int64_t i) const {
    if (axis < 3 - spatial) return 0;
    return fractional_start<A>(sample(n, c, axis), i, in.sizes[2 + axis], out.sizes[2 + axis],
                               kernel[axis]);
  }
  void window(int64_t n, int64_t c, int64_t d, int64_t h, int64_t w) const {
    const int64_t d0 = start(n, c, 0, d), h0 = start(n, c, 1, h), w0 = start(n, c, 2, w);
    const T* from = in.at<const T>(n, c);
    A best = -std::numeric_limits<A>::infinity();
    int64_t at = (d0 * in.sizes[3] + h0) * in.sizes[4] + w0;
    for (int64_t z = d0; z < d0 + kernel[0]; ++z)
      for (int64_t y = h0; y < h0 + kernel[1]; ++y)
        for (int64_t x = w0; x < w0 + kernel[2]; ++x) {
          const A v =
              static_cast<A>(from[z * in.strides[2] + y * in.strides[3] + x * in.strides[4]]);
          if (!(v > best || std::isnan(v))) continue;
          best = v;
          at = (z * in.sizes[3] + y) * in.sizes[4] + x;
        }
    out.at<T>(n, c)[d * out.strides[2] + h * out.strides[3] + w * out.strides[4]] =
        static_cast<T>(best);
    where.at<int64_t>(n, c)[d * where.strides[2] + h * where.strides[3] + w * where.strides[4]] =
        at;
  }
  void run() const {
    parallel_for(in.sizes[0] * in.sizes[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        for (int64_t d = 0; d < out.sizes[2]; ++d)
          for (int64_t h = 0; h < out.sizes[3]; ++h)
            for (int64_t w = 0; w < out.sizes[4]; ++w)
              window(p / in.sizes[1], p % in.sizes[1], d, h, w);
    });
  }
};

void fractional(const Tensor& self, int64_t spatial, IntSpan kernel, const Tensor& samples,
                const Tensor& out, const Tensor& indices, const char* op) {
  visit(self.dtype(), false, op, [&]<class T>(Type<T>) {
    FractionalPool<T> pool{volume_of(self, spatial),
                           volume_of(out, spatial),
                           volume_of(indices, spatial),
                           {1, 1, 1},
                           samples,
                           spatial};
    for (int64_t d = 0; d < spatial; ++d)
      pool.kernel[3 - spatial + d] = kernel.size() == 1 ? kernel[0] : kernel[d];
    pool.run();
  });
}

}  // namespace

void fractional_max_pool2d(const Tensor& self, IntSpan kernel, IntSpan, const Tensor& samples,
                           const Tensor& out, const Tensor& indices) {
  fractional(self, 2, kernel, samples, out, indices, "fractional_max_pool2d_out_frame");
}
void fractional_max_pool3d(const Tensor& self, IntSpan kernel, IntSpan, const Tensor& samples,
                           const Tensor& out, const Tensor& indices) {
  fractional(self, 3, kernel, samples, out, indices, "fractional_max_pool3d_out_frame");
}

}  // namespace facula::cpu
