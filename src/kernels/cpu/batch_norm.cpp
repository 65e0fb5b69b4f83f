// Batch normalisation over [N, C, inner] planes, or rows of C neighbours (2-d and channels-last).
#include <cmath>

#include "core/threads.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/norm_wide.h"

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

constexpr int64_t most_partials = 64;

// sums[c] = sum over the channel of term(position, channel).
template <class A, class Term>
void channel_sums(const Shape& s, A* sums, const Term& term) {
  if (s.planes) {
    parallel_for(s.channels, chunk_of(s.count()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        A total = 0;
        for (int64_t k = 0; k < s.n; ++k) {
          const int64_t at = (k * s.channels + c) * s.inner;
          total += lane_sum<A>(at, at + s.inner, [&](int64_t i) { return term(i, c); });
        }
        sums[c] = total;
      }
    });
    return;
  }
  const int64_t even = (s.n + most_partials - 1) / most_partials, least = chunk_of(s.channels);
  const int64_t chunk = even > least ? even : least, chunks = (s.n + chunk - 1) / chunk;
  Scratch<A> partial(chunks * s.channels);
  parallel_for(s.n, chunk, [&](int64_t begin, int64_t end) {
    A* into = partial.data() + begin / chunk * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) into[c] = 0;
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < s.channels; ++c) into[c] += term(r * s.channels + c, c);
  });
  for (int64_t c = 0; c < s.channels; ++c) sums[c] = 0;
  for (int64_t k = 0; k < chunks; ++k)
    for (int64_t c = 0; c < s.channels; ++c) sums[c] += partial[k * s.channels + c];
}

// Calls body(position, channel) for every element.
template <class Body>
void for_elements(const Shape& s, const Body& body) {
  if (s.planes) {
    parallel_for(s.n * s.channels, chunk_of(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t c = k % s.channels;
        for (int64_t i = k * s.inner; i < (k + 1) * s.inner; ++i) body(i, c);
      }
    });
    return;
  }
  parallel_for(s.n, chunk_of(s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
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
  using A = wide_t<T>;

  static void batch_statistics(const Shape& s, const T* x, A* mean, A* variance) {
    const A count = static_cast<A>(s.count());
    channel_sums(s, mean, [=](int64_t i, int64_t) { return widen(x[i]); });
    for (int64_t c = 0; c < s.channels; ++c) mean[c] /= count;
    channel_sums(s, variance, [=](int64_t i, int64_t c) {
      const A d = widen(x[i]) - mean[c];
      return d * d;
    });
  }

  static void run(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                  const Tensor& save_invstd) {
    const Shape s = shape_of(out);
    const Tensor in = laid_out(input, out);
    const T* x = in.data<T>();
    T* y = out.data<T>();
    Scratch<A> room(4 * s.channels);
    A *mean = room.data(), *spread = mean + s.channels, *scale = spread + s.channels,
      *shift = scale + s.channels;
    if (training) {
      batch_statistics(s, x, mean, spread);
      const A count = static_cast<A>(s.count());
      store_running(running_mean, mean, momentum, A(1));
      store_running(running_var, spread, momentum, A(1) / (count - 1));
      for (int64_t c = 0; c < s.channels; ++c) spread[c] /= count;
    } else {
      const WideInput<A> m(running_mean), v(running_var);
      for (int64_t c = 0; c < s.channels; ++c) mean[c] = m.data()[c], spread[c] = v.data()[c];
    }
    for (int64_t c = 0; c < s.channels; ++c)
      spread[c] = A(1) / std::sqrt(spread[c] + static_cast<A>(eps));
    const WideInput<A> w(weight), b(bias);
    for (int64_t c = 0; c < s.channels; ++c) {
      scale[c] = w.data() ? spread[c] * w.data()[c] : spread[c];
      shift[c] = b.data() ? b.data()[c] : A(0);
    }
    for_elements(s, [=](int64_t i, int64_t c) {
      y[i] = static_cast<T>((widen(x[i]) - mean[c]) * scale[c] + shift[c]);
    });
    if (!training) return;
    keep(save_mean, mean);
    keep(save_invstd, spread);
  }

  static void keep(const Tensor& into, const A* values) {
    const WideResult<A> r(into);
    for (int64_t c = 0; c < into.numel(); ++c) r.data()[c] = values[c];
    r.finish();
  }
};

template <class T>
void backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean_of,
              const Tensor& spread_of, bool spread_is_variance, bool train, double eps,
              const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
              const Tensor& like) {
  using A = wide_t<T>;
  const Shape s = shape_of(like);
  const Tensor in = laid_out(input, like), gr = laid_out(grad, like);
  const T *x = in.data<T>(), *g = gr.data<T>();
  const WideInput<A> m(mean_of), v(spread_of), w(weight);
  const WideResult<A> gw(grad_weight), gb(grad_bias);
  Scratch<A> room(5 * s.channels);
  A *invstd = room.data(), *sum = invstd + s.channels, *product = sum + s.channels;
  A *scale = product + s.channels, *slope = scale + s.channels;
  const A* mean = m.data();
  for (int64_t c = 0; c < s.channels; ++c)
    invstd[c] =
        spread_is_variance ? A(1) / std::sqrt(v.data()[c] + static_cast<A>(eps)) : v.data()[c];
  channel_sums(s, sum, [=](int64_t i, int64_t) { return widen(g[i]); });
  channel_sums(s, product,
               [=](int64_t i, int64_t c) { return widen(g[i]) * (widen(x[i]) - mean[c]); });
  for (int64_t c = 0; c < s.channels; ++c) {
    if (gw.data()) gw.data()[c] = product[c] * invstd[c];
    if (gb.data()) gb.data()[c] = sum[c];
    scale[c] = w.data() ? invstd[c] * w.data()[c] : invstd[c];
    const A count = static_cast<A>(s.count());
    sum[c] = train ? sum[c] / count : A(0);
    slope[c] = train ? product[c] * invstd[c] * invstd[c] / count : A(0);
  }
  gw.finish();
  gb.finish();
  if (!grad_input.defined()) return;
  T* to = grad_input.data<T>();
  for_elements(s, [=](int64_t i, int64_t c) {
    to[i] = static_cast<T>((widen(g[i]) - sum[c] - (widen(x[i]) - mean[c]) * slope[c]) * scale[c]);
  });
}

}  // namespace

void native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, bool training,
                       double momentum, double eps, const Tensor& out, const Tensor& mean,
                       const Tensor& invstd) {
  visit_floating_or_raise(input.dtype(), "batch_norm", [&]<class T>(Type<T>) {
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
  visit_floating_or_raise(input.dtype(), "batch_norm_backward", [&]<class T>(Type<T>) {
    backward<T>(grad, input, weight, train ? save_mean : running_mean,
                train ? save_invstd : running_var, !train, train, eps, grad_input, grad_weight,
                grad_bias, like);
  });
}

}  // namespace facula::cpu::FACULA_ISA
