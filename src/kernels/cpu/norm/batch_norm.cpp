// Batch normalisation over [N, C, inner] planes, or rows of C neighbours (2-d and channels-last).
#include <cmath>
#include <limits>

#include "core/threads.h"
#include "kernels/cpu/norm/affine.h"
#include "kernels/cpu/norm/converted.h"
#include "kernels/cpu/norm/norm.h"
#include "kernels/cpu/norm/sums.h"
#include "kernels/cpu/simd/lanes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Either planes (rows = N * C of `inner` elements) or rows of C channels (inner = 1, rows = N).
struct Shape {
  int64_t n = 1, channels = 1, inner = 1;
  bool planes = false;
  int64_t count() const { return n * inner; }  // elements of one channel
};

Shape shape_of(const Tensor& out) {
  Shape s;
  s.channels = out.size(1);
  s.n = out.size(0);
  for (int64_t d = 2; d < out.dim(); ++d) s.inner *= out.size(d);
  s.planes = out.is_contiguous() && s.inner > 1;
  if (!s.planes) s.n *= s.inner, s.inner = 1;
  return s;
}

// t with the strides of `like`, so that both may be walked as flat memory.
Tensor laid_out(const Tensor& t, const Tensor& like) {
  if (same_sizes(t.strides(), like.strides()) && t.dtype() == like.dtype()) return t;
  const Tensor made = empty_strided_tensor(like.sizes(), like.strides(), like.dtype());
  copy(made, t);
  return made;
}

// Adds a vector or number to as many doubles.
template <class V>
[[gnu::always_inline]] inline void add_wide(double* into, V v) {
  if constexpr (std::is_arithmetic_v<V>) {
    *into += static_cast<double>(v);
  } else {
    using Doubles = typename LaneVector<double, sizeof(V) / sizeof(v[0])>::type;
    Doubles sum;
    __builtin_memcpy(&sum, into, sizeof sum);
    sum += __builtin_convertvector(v, Doubles);
    __builtin_memcpy(into, &sum, sizeof sum);
  }
}

constexpr int64_t most_partials = 64;
// Rows whose sums are taken before they are added to those of the rows before: few terms lose less.
constexpr int64_t rows_together = 8;

// Neighbouring channels of the sums over some rows, added to what the rows before have left.
template <class V, bool Both, class Step>
[[gnu::always_inline]] inline void add_columns(const Shape& s, int64_t first, int64_t rows,
                                               int64_t c, double* into, const Step& step) {
  V plain{}, along{};
  for (int64_t r = first; r < first + rows; ++r) step(plain, along, r * s.channels + c, c);
  add_wide(into + c, plain);
  if constexpr (Both) add_wide(into + s.channels + c, along);
}

template <bool Both, class A, class Step>
void add_rows(const Shape& s, int64_t first, int64_t rows, double* into, const Step& step) {
  int64_t c = 0;
  for (; c + Simd<A>::lanes <= s.channels; c += Simd<A>::lanes)
    add_columns<Vec<A>, Both>(s, first, rows, c, into, step);
  for (; c < s.channels; ++c) add_columns<A, Both>(s, first, rows, c, into, step);
}

// Of rows: sums[c] = two sums over the channel, step(plain so far, along so far, position, channel)
// adds to both, or to the plain one alone.
template <bool Both, class A, class Step>
void sums_of_rows(const Shape& s, TwoSums<A>* sums, const Step& step) {
  const int64_t even = (s.n + most_partials - 1) / most_partials, least = chunk_of(s.channels);
  const int64_t chunk = even > least ? even : least, chunks = (s.n + chunk - 1) / chunk;
  const int64_t width = 2 * s.channels;
  Scratch<double> partial(chunks * width);
  parallel_for(s.n, chunk, [&](int64_t begin, int64_t end) {
    double* into = partial.get() + begin / chunk * width;
    for (int64_t c = 0; c < width; ++c) into[c] = 0;
    for (int64_t r = begin; r < end; r += rows_together)
      add_rows<Both, A>(s, r, end - r < rows_together ? end - r : rows_together, into, step);
  });
  for (int64_t c = 0; c < s.channels; ++c) {
    double plain = 0, along = 0;
    for (int64_t k = 0; k < chunks; ++k) {
      plain += partial[k * width + c];
      along += partial[k * width + s.channels + c];
    }
    sums[c] = {static_cast<A>(plain), static_cast<A>(along)};
  }
}

// Of planes: the two sums over channel c, as above.
template <class A, class Step>
TwoSums<A> sums_of_planes(const Shape& s, int64_t c, const Step& step) {
  double plain = 0, along = 0;
  for (int64_t k = 0; k < s.n; ++k) {
    const int64_t at = (k * s.channels + c) * s.inner;
    const auto plane =
        two_sums<A>(at, at + s.inner, [&]<class V>(V& p, V& a, int64_t i) { step(p, a, i, c); });
    plain += static_cast<double>(plane.plain);
    along += static_cast<double>(plane.along);
  }
  return {static_cast<A>(plain), static_cast<A>(along)};
}

// sums[c] = the two sums over channel c.
template <class A, class Step>
void channel_sums(const Shape& s, TwoSums<A>* sums, const Step& step) {
  if (!s.planes) return sums_of_rows<true>(s, sums, step);
  parallel_for(s.channels, chunk_of(s.count()), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) sums[c] = sums_of_planes<A>(s, c, step);
  });
}

// A number of the channel at c, or of as many channels as a vector of neighbours crosses.
template <class V, class A>
[[gnu::always_inline]] inline V of_channel(const Shape& s, const A* numbers, int64_t c) {
  if constexpr (std::is_arithmetic_v<V>)
    return numbers[c];
  else
    return s.planes ? Simd<A>::broadcast(numbers[c]) : Simd<A>::load(numbers + c);
}

// Calls body(position, channel) for every element. What it writes is an input itself or apart from
// all of them: rows of few channels must not begin with a test of that.
template <class Body>
void for_elements(const Shape& s, const Body& body) {
  if (s.planes) {
    parallel_for(s.n * s.channels, chunk_of(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t c = k % s.channels;
#pragma GCC ivdep
        for (int64_t i = k * s.inner; i < (k + 1) * s.inner; ++i) body(i, c);
      }
    });
    return;
  }
  parallel_for(s.n, chunk_of(s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
#pragma GCC ivdep
      for (int64_t c = 0; c < s.channels; ++c) body(r * s.channels + c, c);
  });
}

template <class A>
void store_running(const Tensor& running, const A* fresh, double momentum, A scale) {
  if (!running.defined()) return;
  const Tensor wide = empty_tensor(running.sizes(), dtype_of<A>);
  copy(wide, running);
  A* r = wide.data<A>();
  for (int64_t c = 0; c < running.numel(); ++c)
    r[c] = static_cast<A>(momentum * static_cast<double>(fresh[c] * scale) +
                          (1 - momentum) * static_cast<double>(r[c]));
  copy(running, wide);
}

template <class T>
struct Forward {
  using A = accumulate_t<T>;

  // Of each channel: the mean and the sum of squared deviations from it.
  struct Statistics {
    A *mean, *squares;

    // From a mean that was found or guessed, and the sums of the deviations from it. False where
    // it is off by more than rounding and by more than two standard deviations: that costs digits.
    bool set(int64_t c, TwoSums<A> sums, double count) const {
      const double off = static_cast<double>(sums.plain) / count;
      const Moments m = corrected(mean[c], sums, count);
      mean[c] = static_cast<A>(m.mean);
      squares[c] = static_cast<A>(m.variance * count);
      const double rounding = 16 * std::numeric_limits<A>::epsilon() * m.mean;
      const double most = std::fmax(2 * std::sqrt(m.variance), std::abs(rounding));
      return std::isfinite(off) && std::abs(off) <= most;
    }
  };

  static auto add_deviations(const Shape& s, const T* x, const A* mean) {
    return [=]<class V>(V& off, V& square, int64_t i, int64_t c) {
      const V d = load_as<V>(x + i) - of_channel<V>(s, mean, c);
      off += d;
      square = multiply_add(d, d, square);
    };
  }

  static void batch_statistics(const Shape& s, const T* x, Statistics to) {
    const double count = static_cast<double>(s.count());
    const auto add = [x]<class V>(V& sum, V&, int64_t i, int64_t) { sum += load_as<V>(x + i); };
    const auto mean_of = [=](TwoSums<A> sums) {
      return static_cast<A>(static_cast<double>(sums.plain) / count);
    };
    if (!s.planes) return statistics_of_rows(s, x, to, add, mean_of);
    parallel_for(s.channels, chunk_of(s.count()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {  // a channel's planes are still in the cache
        to.mean[c] = mean_of(sums_of_planes<A>(s, c, add));
        to.set(c, sums_of_planes<A>(s, c, add_deviations(s, x, to.mean)), count);
      }
    });
  }

  // Memory is passed once where rows from all over it give a good enough guess of the means.
  template <class Add, class MeanOf>
  static void statistics_of_rows(const Shape& s, const T* x, Statistics to, const Add& add,
                                 const MeanOf& mean_of) {
    const double count = static_cast<double>(s.count());
    Scratch<TwoSums<A>> sums(s.channels);
    const auto measure = [&] {
      sums_of_rows<true>(s, sums.get(), add_deviations(s, x, to.mean));
      bool good = true;
      for (int64_t c = 0; c < s.channels; ++c) good &= to.set(c, sums[c], count);
      return good;
    };
    if (s.n > 16 * rows_of_guess) {
      guess_means(s, x, to.mean);
      if (measure()) return;
    }
    sums_of_rows<false>(s, sums.get(), add);
    for (int64_t c = 0; c < s.channels; ++c) to.mean[c] = mean_of(sums[c]);
    measure();
  }

  static constexpr int64_t rows_of_guess = 32;
  static void guess_means(const Shape& s, const T* x, A* mean) {
    for (int64_t c = 0; c < s.channels; ++c) mean[c] = 0;
    for (int64_t k = 0; k < rows_of_guess; ++k) {
      const T* row = x + s.n / rows_of_guess * k * s.channels;
      for (int64_t c = 0; c < s.channels; ++c)
        mean[c] += widen(row[c]) * (A(1) / static_cast<A>(rows_of_guess));
    }
  }

  static void run(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                  const Tensor& save_invstd) {
    const Shape s = shape_of(out);
    const Tensor in = laid_out(input, out);
    const T* x = in.data<T>();
    T* y = out.data<T>();
    Scratch<A> room(5 * s.channels);
    A *mean = room.get(), *spread = mean + s.channels, *scale = spread + s.channels;
    const AffineChannels<A> affine{scale, scale + s.channels, scale + 2 * s.channels};
    const double count = training ? static_cast<double>(s.count()) : 1.0;
    if (training) {
      batch_statistics(s, x, {mean, spread});
      store_running(running_mean, mean, momentum, A(1));
      store_running(running_var, spread, momentum, A(1) / static_cast<A>(count - 1));
    } else {
      const ConvertedInput<A> m(running_mean), v(running_var);
      for (int64_t c = 0; c < s.channels; ++c) mean[c] = m.data()[c], spread[c] = v.data()[c];
    }
    for (int64_t c = 0; c < s.channels; ++c)
      spread[c] = reciprocal_deviation<A>(static_cast<double>(spread[c]) / count, eps);
    const ConvertedInput<A> w(weight), b(bias);
    for (int64_t c = 0; c < s.channels; ++c)
      affine.set(c, affine_of(mean[c], w.data() ? spread[c] * w.data()[c] : spread[c],
                              b.data() ? b.data()[c] : A(0)));
    for_elements(s, [=](int64_t i, int64_t c) { y[i] = static_cast<T>(affine(widen(x[i]), c)); });
    if (!training) return;
    keep(save_mean, mean);
    keep(save_invstd, spread);
  }

  static void keep(const Tensor& into, const A* values) {
    const ConvertedResult<A> r(into);
    for (int64_t c = 0; c < into.numel(); ++c) r.data()[c] = values[c];
    r.store();
  }
};

template <class T>
void backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean_of,
              const Tensor& spread_of, bool spread_is_variance, bool train, double eps,
              const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
              const Tensor& like) {
  using A = accumulate_t<T>;
  const Shape s = shape_of(like);
  const Tensor in = laid_out(input, like), gr = laid_out(grad, like);
  const T *x = in.data<T>(), *g = gr.data<T>();
  const ConvertedInput<A> m(mean_of), v(spread_of), w(weight);
  const ConvertedResult<A> gw(grad_weight), gb(grad_bias);
  Scratch<A> room(5 * s.channels);
  Scratch<TwoSums<A>> sums(s.channels);
  A *invstd = room.get(), *scale = invstd + s.channels, *slope = scale + s.channels;
  const AffineChannels<A> rest{slope, slope + s.channels, slope + 2 * s.channels};
  const A* mean = m.data();
  for (int64_t c = 0; c < s.channels; ++c)
    invstd[c] = spread_is_variance ? reciprocal_deviation<A>(static_cast<double>(v.data()[c]), eps)
                                   : v.data()[c];
  channel_sums(s, sums.get(), [=]<class V>(V& plain, V& along, int64_t i, int64_t c) {
    const V term = load_as<V>(g + i);
    plain += term;
    along = multiply_add(term, load_as<V>(x + i) - of_channel<V>(s, mean, c), along);
  });
  for (int64_t c = 0; c < s.channels; ++c) {
    const auto [sum, product] = sums[c];
    if (gw.data()) gw.data()[c] = product * invstd[c];
    if (gb.data()) gb.data()[c] = sum;
    scale[c] = w.data() ? invstd[c] * w.data()[c] : invstd[c];
    const A each = -scale[c] / static_cast<A>(s.count());
    rest.set(c, affine_of(mean[c], product * invstd[c] * invstd[c] * each, sum * each));
  }
  gw.store();
  gb.store();
  if (!grad_input.defined()) return;
  T* to = grad_input.data<T>();
  if (!train)
    return for_elements(
        s, [=](int64_t i, int64_t c) { to[i] = static_cast<T>(widen(g[i]) * scale[c]); });
  for_elements(s, [=](int64_t i, int64_t c) {
    to[i] = static_cast<T>(multiply_add(widen(g[i]), scale[c], rest(widen(x[i]), c)));
  });
}

}  // namespace

void native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, bool training,
                       double momentum, double eps, const Tensor& out, const Tensor& mean,
                       const Tensor& invstd) {
  dispatch<FloatingTypes>(input.dtype(), "batch_norm", [&]<class T>(Type<T>) {
    Forward<T>::run(input, weight, bias, running_mean, running_var, training, momentum, eps, out,
                    mean, invstd);
  });
}

void native_batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                const Tensor& running_mean, const Tensor& running_var,
                                const Tensor& save_mean, const Tensor& save_invstd, bool train,
                                double eps, std::span<const bool>, const Tensor& grad_input,
                                const Tensor& grad_weight, const Tensor& grad_bias) {
  const Tensor like = grad_input.defined() ? grad_input : contiguous(input);
  dispatch<FloatingTypes>(input.dtype(), "batch_norm_backward", [&]<class T>(Type<T>) {
    backward<T>(grad, input, weight, train ? save_mean : running_mean,
                train ? save_invstd : running_var, !train, train, eps, grad_input, grad_weight,
                grad_bias, like);
  });
}

}  // namespace facula::cpu::FACULA_ISA
