// Normalisation of rows: layer, RMS and group norm.
#include <cmath>

#include "core/threads.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/norm_wide.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
struct Statistics {
  A mean, rstd;
};

template <bool Centred, class T>
Statistics<wide_t<T>> statistics(const T* x, int64_t n, double eps) {
  using A = wide_t<T>;
  const A count = static_cast<A>(n);
  A mean = 0;
  if constexpr (Centred) mean = lane_sum<A>(0, n, [&](int64_t i) { return widen(x[i]); }) / count;
  const A squares = lane_sum<A>(0, n, [&](int64_t i) {
    const A d = widen(x[i]) - mean;
    return d * d;
  });
  return {mean, A(1) / std::sqrt(squares / count + static_cast<A>(eps))};
}

// --- rows with one weight per element: layer and RMS norm

template <class T>
void normalise(const T* x, T* y, int64_t n, Statistics<wide_t<T>> s, const wide_t<T>* w,
               const wide_t<T>* b) {
  if (w && b)
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>((widen(x[i]) - s.mean) * s.rstd * w[i] + b[i]);
  else if (w)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>((widen(x[i]) - s.mean) * s.rstd * w[i]);
  else if (b)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>((widen(x[i]) - s.mean) * s.rstd + b[i]);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>((widen(x[i]) - s.mean) * s.rstd);
}

int64_t product(IntSpan sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

template <bool Centred, class T>
void forward(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias, double eps,
             const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  using A = wide_t<T>;
  const int64_t rows = n ? input.numel() / n : 0;
  const InOrder in(input);
  const WideInput<A> w(weight), b(bias);
  const WideResult<A> m(mean), r(rstd);
  const T* x = in->data<T>();
  T* y = out.data<T>();
  A *means = m.data(), *rstds = r.data();
  parallel_for(rows, chunk_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Statistics<A> s = statistics<Centred>(x + k * n, n, eps);
      normalise(x + k * n, y + k * n, n, s, w.data(), b.data());
      if (means) means[k] = s.mean;
      rstds[k] = s.rstd;
    }
  });
  m.finish();
  r.finish();
}

template <class A>
struct TwoSums {
  A plain = 0, along = 0;
};
// The sums of term(i), where `Both`, and of term(i) * factor(i): in one pass over a short row.
template <bool Both, class A, class Term, class Factor>
[[gnu::always_inline]] inline TwoSums<A> two_sums(int64_t n, const Term& term,
                                                  const Factor& factor) {
  TwoSums<A> sums;
  if (!Both || n > longest_run) {
    if constexpr (Both) sums.plain = lane_sum<A>(0, n, term);
    sums.along = lane_sum<A>(0, n, [&](int64_t i) { return term(i) * factor(i); });
    return sums;
  }
  A plain[lanes] = {}, along[lanes] = {};
  const auto add = [&](int64_t i, int64_t l) {
    const A t = term(i + l);
    plain[l] += t;
    along[l] += t * factor(i + l);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t l = 0; l < lanes; ++l) add(i, l);
  for (int64_t l = 0; i + l < n; ++l) add(i, l);
  return {fold(plain), fold(along)};
}

// Elements of a row of gradients, times the weights where there are any.
template <bool Weighted, class T>
struct WeightedRow {
  const T* row;
  const wide_t<T>* weight;
  [[gnu::always_inline]] wide_t<T> operator()(int64_t i) const {
    return Weighted ? widen(row[i]) * weight[i] : widen(row[i]);
  }
};

template <bool Centred, class T, class Row>
TwoSums<wide_t<T>> gradient_sums(const T* x, int64_t n, wide_t<T> mean, const Row& weighted) {
  return two_sums<Centred, wide_t<T>>(n, weighted, [&](int64_t i) { return widen(x[i]) - mean; });
}

template <class T, class Row>
void write_gradient(const T* x, T* __restrict to, int64_t n, Statistics<wide_t<T>> s,
                    TwoSums<wide_t<T>> sums, const Row& weighted) {
  using A = wide_t<T>;
  const A scale = s.rstd / static_cast<A>(n);
  const A sum = sums.plain * scale, slope = sums.along * scale * s.rstd * s.rstd;
  const auto write = [&](int64_t i) {
    to[i] = static_cast<T>(weighted(i) * s.rstd - sum - (widen(x[i]) - s.mean) * slope);
  };
  if constexpr (std::is_same_v<T, A>)
    by_lanes(n, write);
  else
    for (int64_t i = 0; i < n; ++i) write(i);
}

// Runs of lanes, which need no remainder: rows are short.
template <class T>
void add_parameter_gradients(const T* g, const T* x, int64_t n, Statistics<wide_t<T>> s,
                             wide_t<T>* __restrict gw, wide_t<T>* __restrict gb) {
  by_lanes(n, [&](int64_t i) {
    gw[i] += widen(g[i]) * ((widen(x[i]) - s.mean) * s.rstd);
    gb[i] += widen(g[i]);
  });
}

// Rows of which sums are taken together, so that one need not wait for the other's.
constexpr int64_t rows_together = 8;

// What the gradient by the input is made of.
template <class T>
struct RowGradients {
  const T *x, *grad;
  T* to;
  int64_t n;
  const wide_t<T>* weight;

  template <bool Centred, bool Weighted>
  void run(int64_t first, int64_t count, const Statistics<wide_t<T>>* s) const {
    TwoSums<wide_t<T>> sums[rows_together];
    const auto row = [&](int64_t k) {
      return WeightedRow<Weighted, T>{grad + (first + k) * n, weight};
    };
    for (int64_t k = 0; k < count; ++k)
      sums[k] = gradient_sums<Centred>(x + (first + k) * n, n, s[k].mean, row(k));
    for (int64_t k = 0; k < count; ++k)
      write_gradient(x + (first + k) * n, to + (first + k) * n, n, s[k], sums[k], row(k));
  }
};

constexpr int64_t most_partials =
    32;  // of parameter gradients: rows are summed in that many chunks

template <bool Centred, class T>
void backward(const Tensor& grad, const Tensor& input, int64_t n, const Tensor& mean,
              const Tensor& rstd, const Tensor& weight, const Tensor& grad_input,
              const Tensor& grad_weight, const Tensor& grad_bias) {
  using A = wide_t<T>;
  const int64_t rows = n ? input.numel() / n : 0;
  const Tensor in = contiguous(input), gr = contiguous(grad);
  const WideInput<A> w(weight), m(mean), r(rstd);
  const WideResult<A> gw(grad_weight), gb(grad_bias);
  const bool partials = gw.data() || gb.data();
  const int64_t even = (rows + most_partials - 1) / most_partials, least = chunk_of(n);
  const int64_t chunk = even > least ? even : least, chunks = (rows + chunk - 1) / chunk;
  Scratch<A> sums(partials ? 2 * chunks * n : 0);
  const T *x = in.data<T>(), *g = gr.data<T>();
  T* to = grad_input.defined() ? grad_input.data<T>() : nullptr;
  const RowGradients<T> gradients{x, g, to, n, w.data()};
  parallel_for(rows, chunk, [&](int64_t begin, int64_t end) {
    A* sw = partials ? sums.data() + begin / chunk * 2 * n : nullptr;
    for (int64_t i = 0; partials && i < 2 * n; ++i) sw[i] = 0;
    for (int64_t first = begin; first < end; first += rows_together) {
      const int64_t count = end - first < rows_together ? end - first : rows_together;
      Statistics<A> s[rows_together];
      for (int64_t k = 0; k < count; ++k)
        s[k] = {Centred ? m.data()[first + k] : A(0), r.data()[first + k]};
      if (to && w.data())
        gradients.template run<Centred, true>(first, count, s);
      else if (to)
        gradients.template run<Centred, false>(first, count, s);
      for (int64_t k = 0; partials && k < count; ++k)
        add_parameter_gradients(g + (first + k) * n, x + (first + k) * n, n, s[k], sw, sw + n);
    }
  });
  auto collect = [&](A* into, int64_t offset) {
    if (!into) return;
    for (int64_t i = 0; i < n; ++i) into[i] = 0;
    for (int64_t c = 0; c < chunks; ++c)
      for (int64_t i = 0; i < n; ++i) into[i] += sums[c * 2 * n + offset + i];
  };
  collect(gw.data(), 0);
  collect(gb.data(), n);
  gw.finish();
  gb.finish();
}

// --- groups of channels: one weight per channel of `hxw` neighbours

struct Groups {
  int64_t n, channels, hxw, groups;
  int64_t rows() const { return n * groups; }
  int64_t per_group() const { return channels / groups; }
  int64_t first_channel(int64_t row) const { return row % groups * per_group(); }
};

template <class T>
void group_forward(const Groups& p, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  using A = wide_t<T>;
  const Tensor in = contiguous(input);
  const Tensor result = out.is_contiguous() ? out : empty_tensor(out.sizes(), out.dtype());
  const WideInput<A> w(weight), b(bias);
  const WideResult<A> m(mean), r(rstd);
  const int64_t length = p.per_group() * p.hxw;
  const T* x = in.data<T>();
  T* y = result.data<T>();
  parallel_for(p.rows(), chunk_of(length), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Statistics<A> s = statistics<true>(x + k * length, length, eps);
      m.data()[k] = s.mean;
      r.data()[k] = s.rstd;
      for (int64_t c = 0; c < p.per_group(); ++c) {
        const int64_t channel = p.first_channel(k) + c, at = k * length + c * p.hxw;
        const A scale = w.data() ? s.rstd * w.data()[channel] : s.rstd,
                shift = b.data() ? b.data()[channel] : A(0);
        for (int64_t i = at; i < at + p.hxw; ++i)
          y[i] = static_cast<T>((widen(x[i]) - s.mean) * scale + shift);
      }
    }
  });
  m.finish();
  r.finish();
  if (!result.is_same(out)) copy(out, result);
}

// Sums over one channel of one sample: of the gradient, and of gradient times deviation.
template <class A>
struct ChannelSums {
  A grad, product;
};

template <class T>
void group_backward(const Groups& p, const Tensor& grad, const Tensor& input, const Tensor& mean,
                    const Tensor& rstd, const Tensor& weight, const Tensor& grad_input,
                    const Tensor& grad_weight, const Tensor& grad_bias) {
  using A = wide_t<T>;
  const Tensor in = contiguous(input), gr = contiguous(grad);
  const WideInput<A> w(weight), m(mean), r(rstd);
  const WideResult<A> gw(grad_weight), gb(grad_bias);
  Tensor result;
  if (grad_input.defined())
    result = grad_input.is_contiguous() ? grad_input
                                        : empty_tensor(grad_input.sizes(), grad_input.dtype());
  const int64_t length = p.per_group() * p.hxw;
  Scratch<ChannelSums<A>> sums(p.n * p.channels);
  const T *x = in.data<T>(), *g = gr.data<T>();
  T* to = result.defined() ? result.data<T>() : nullptr;
  parallel_for(p.rows(), chunk_of(length), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const A mu = m.data()[k], rs = r.data()[k];
      A sum = 0, product = 0;
      for (int64_t c = 0; c < p.per_group(); ++c) {
        const int64_t at = k * length + c * p.hxw, channel = p.first_channel(k) + c;
        const A scale = w.data() ? w.data()[channel] : A(1);
        ChannelSums<A>& s = sums[k * p.per_group() + c];
        s.grad = lane_sum<A>(at, at + p.hxw, [&](int64_t i) { return widen(g[i]); });
        s.product = lane_sum<A>(at, at + p.hxw,
                                [&](int64_t i) { return widen(g[i]) * (widen(x[i]) - mu); });
        sum += s.grad * scale;
        product += s.product * scale;
      }
      const A even = sum * rs / static_cast<A>(length),
              slope = product * rs * rs * rs / static_cast<A>(length);
      for (int64_t c = 0; to && c < p.per_group(); ++c) {
        const int64_t at = k * length + c * p.hxw, channel = p.first_channel(k) + c;
        const A scale = w.data() ? w.data()[channel] * rs : rs;
        for (int64_t i = at; i < at + p.hxw; ++i)
          to[i] = static_cast<T>(widen(g[i]) * scale - even - (widen(x[i]) - mu) * slope);
      }
    }
  });
  for (int64_t c = 0; c < p.channels; ++c) {
    A weights = 0, biases = 0;
    for (int64_t k = 0; k < p.n; ++k) {
      const ChannelSums<A>& s = sums[k * p.channels + c];
      weights += s.product * r.data()[k * p.groups + c / p.per_group()];
      biases += s.grad;
    }
    if (gw.data()) gw.data()[c] = weights;
    if (gb.data()) gb.data()[c] = biases;
  }
  gw.finish();
  gb.finish();
  if (result.defined() && !result.is_same(grad_input)) copy(grad_input, result);
}

}  // namespace

void native_layer_norm(const Tensor& input, IntSpan shape, const Tensor& weight, const Tensor& bias,
                       double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  visit_floating_or_raise(input.dtype(), "LayerNormKernelImpl", [&]<class T>(Type<T>) {
    forward<true, T>(input, product(shape), weight, bias, eps, out, mean, rstd);
  });
}
void native_layer_norm_backward(const Tensor& grad, const Tensor& input, IntSpan shape,
                                const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                const Tensor&, std::span<const bool>, const Tensor& grad_input,
                                const Tensor& grad_weight, const Tensor& grad_bias) {
  visit_floating_or_raise(input.dtype(), "LayerNormBackwardKernelImpl", [&]<class T>(Type<T>) {
    backward<true, T>(grad, input, product(shape), mean, rstd, weight, grad_input, grad_weight,
                      grad_bias);
  });
}
void fused_rms_norm(const Tensor& input, IntSpan shape, const Tensor& weight,
                    std::optional<double> eps, const Tensor& out, const Tensor& rstd) {
  visit_floating_or_raise(input.dtype(), "rms_norm", [&]<class T>(Type<T>) {
    const double least = std::is_same_v<T, double> ? 0x1p-52 : 0x1p-23;
    forward<false, T>(input, product(shape), weight, {}, eps ? *eps : least, out, {}, rstd);
  });
}
void fused_rms_norm_backward(const Tensor& grad, const Tensor& input, IntSpan shape,
                             const Tensor& rstd, const Tensor& weight, std::span<const bool>,
                             const Tensor& grad_input, const Tensor& grad_weight) {
  visit_floating_or_raise(input.dtype(), "rms_norm_backward", [&]<class T>(Type<T>) {
    backward<false, T>(grad, input, product(shape), {}, rstd, weight, grad_input, grad_weight, {});
  });
}
void native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                       int64_t c, int64_t hxw, int64_t group, double eps, const Tensor& out,
                       const Tensor& mean, const Tensor& rstd) {
  visit_floating_or_raise(input.dtype(), "GroupNormKernelImpl", [&]<class T>(Type<T>) {
    group_forward<T>({n, c, hxw, group}, input, weight, bias, eps, out, mean, rstd);
  });
}
void native_group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                const Tensor& rstd, const Tensor& weight, int64_t n, int64_t c,
                                int64_t hxw, int64_t group, std::span<const bool>,
                                const Tensor& grad_input, const Tensor& grad_weight,
                                const Tensor& grad_bias) {
  visit_floating_or_raise(input.dtype(), "GroupNormBackwardKernelImpl", [&]<class T>(Type<T>) {
    group_backward<T>({n, c, hxw, group}, grad, input, mean, rstd, weight, grad_input, grad_weight,
                      grad_bias);
  });
}

}  // namespace facula::cpu::FACULA_ISA
