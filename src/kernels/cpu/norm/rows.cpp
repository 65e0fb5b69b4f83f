// Normalisation of rows: layer, RMS and group norm.
#include <cmath>
#include <limits>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/norm/affine.h"
#include "kernels/cpu/norm/converted.h"
#include "kernels/cpu/norm/norm.h"
#include "kernels/cpu/norm/sums.h"
#include "kernels/cpu/simd/lanes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class A>
struct Statistics {
  A mean, rstd;
};

// Rows handled together: one need not wait for the other's sums, and sums over all rows are of few
// terms first, which loses less.
constexpr int64_t rows_together = 8;

// Statistics of up to rows_together rows.
template <bool Centred, class T>
void statistics(const T* x, int64_t n, int64_t rows, double eps, Statistics<accumulate_t<T>>* s) {
  using A = accumulate_t<T>;
  TwoSums<A> sums[rows_together];
  for (int64_t k = 0; k < rows; ++k)
    s[k].mean = Centred ? sum<T, A>(x + k * n, n) / static_cast<A>(n) : A(0);
  for (int64_t k = 0; k < rows; ++k) sums[k] = deviations<T, A>(x + k * n, n, s[k].mean);
  for (int64_t k = 0; k < rows; ++k) {
    if (!Centred) sums[k].plain = 0;
    const Moments m = corrected(s[k].mean, sums[k], static_cast<double>(n));
    s[k] = {static_cast<A>(m.mean), reciprocal_deviation<A>(m.variance, eps)};
  }
}

// --- rows with one weight per element: layer and RMS norm

template <class T>
void normalise(const T* x, T* y, int64_t n, Statistics<accumulate_t<T>> s, const accumulate_t<T>* w,
               const accumulate_t<T>* b) {
  const auto normal = affine_of(s.mean, s.rstd, accumulate_t<T>(0));
  if (w && b)
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>(multiply_add(normal(widen(x[i])), w[i], b[i]));
  else if (w)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(normal(widen(x[i])) * w[i]);
  else if (b)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(normal(widen(x[i])) + b[i]);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(normal(widen(x[i])));
}

int64_t product(IntSpan sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// Of rows without elements, as PyTorch has them.
void statistics_of_nothing(const Tensor& mean, const Tensor& rstd) {
  if (mean.defined()) fill(mean, Scalar(0));
  fill(rstd, Scalar(std::numeric_limits<double>::quiet_NaN()));
}

template <bool Centred, class T>
void forward(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias, double eps,
             const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  using A = accumulate_t<T>;
  if (n == 0) return statistics_of_nothing(mean, rstd);
  const int64_t rows = input.numel() / n;
  const ContiguousTensor in(input);
  const ConvertedInput<A> w(weight), b(bias);
  const ConvertedResult<A> m(mean), r(rstd);
  const T* x = in->data<T>();
  T* y = out.data<T>();
  A *means = m.data(), *rstds = r.data();
  parallel_for(rows, chunk_of(n), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += rows_together) {
      const int64_t count = end - first < rows_together ? end - first : rows_together;
      Statistics<A> s[rows_together];
      statistics<Centred>(x + first * n, n, count, eps, s);
      for (int64_t k = 0; k < count; ++k) {
        normalise(x + (first + k) * n, y + (first + k) * n, n, s[k], w.data(), b.data());
        if (means) means[first + k] = s[k].mean;
        rstds[first + k] = s[k].rstd;
      }
    }
  });
  m.store();
  r.store();
}

// Elements of a row of gradients, times the weights where there are any.
template <bool Weighted, class T>
struct WeightedRow {
  const T* row;
  const accumulate_t<T>* weight;
  template <class V>
  [[gnu::always_inline]] V at(int64_t i) const {
    return Weighted ? load_as<V>(row + i) * load_as<V>(weight + i) : load_as<V>(row + i);
  }
};

template <bool Centred, class T, class Row>
TwoSums<accumulate_t<T>> gradient_sums(const T* x, int64_t n, accumulate_t<T> mean,
                                       const Row& weighted) {
  return two_sums<accumulate_t<T>>(0, n, [&]<class V>(V& plain, V& along, int64_t i) {
    const V term = weighted.template at<V>(i), d = load_as<V>(x + i) - mean;
    if constexpr (Centred) plain += term;
    along = multiply_add(term, d, along);
  });
}

template <class T, class Row>
void write_gradient(const T* x, T* __restrict to, int64_t n, Statistics<accumulate_t<T>> s,
                    TwoSums<accumulate_t<T>> sums, const Row& weighted) {
  using A = accumulate_t<T>;
  const A scale = -s.rstd / static_cast<A>(n);
  const auto rest = affine_of(s.mean, sums.along * scale * s.rstd * s.rstd, sums.plain * scale);
  const auto write = [&](int64_t i) {
    to[i] = static_cast<T>(multiply_add(weighted.template at<A>(i), s.rstd, rest(widen(x[i]))));
  };
  if constexpr (std::is_same_v<T, A>)
    by_lanes(n, write);
  else
    for (int64_t i = 0; i < n; ++i) write(i);
}

// Neighbours of the sums over some rows, added to what the rows before have left.
template <class V, class T>
[[gnu::always_inline]] inline void add_columns(const T* g, const T* x, int64_t n, int64_t rows,
                                               const Statistics<accumulate_t<T>>* s,
                                               accumulate_t<T>* gw, accumulate_t<T>* gb) {
  V w{}, b{};
  for (int64_t k = 0; k < rows; ++k) {
    const V grad = load_as<V>(g + k * n);
    w = multiply_add(grad, (load_as<V>(x + k * n) - s[k].mean) * s[k].rstd, w);
    b += grad;
  }
  w += load_as<V>(gw);
  b += load_as<V>(gb);
  __builtin_memcpy(gw, &w, sizeof w);
  __builtin_memcpy(gb, &b, sizeof b);
}

// Adds the gradients by the parameters from up to rows_together rows.
template <class T>
void add_parameter_gradients(const T* g, const T* x, int64_t n, int64_t rows,
                             const Statistics<accumulate_t<T>>* s, accumulate_t<T>* gw,
                             accumulate_t<T>* gb) {
  using A = accumulate_t<T>;
  int64_t i = 0;
  for (; i + Simd<A>::lanes <= n; i += Simd<A>::lanes)
    add_columns<Vec<A>>(g + i, x + i, n, rows, s, gw + i, gb + i);
  for (; i < n; ++i) add_columns<A>(g + i, x + i, n, rows, s, gw + i, gb + i);
}

// What the gradient by the input is made of.
template <class T>
struct RowGradients {
  const T *x, *grad;
  T* to;
  int64_t n;
  const accumulate_t<T>* weight;

  template <bool Centred, bool Weighted>
  void run(int64_t first, int64_t count, const Statistics<accumulate_t<T>>* s) const {
    TwoSums<accumulate_t<T>> sums[rows_together];
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
  using A = accumulate_t<T>;
  const int64_t rows = n ? input.numel() / n : 0;
  const Tensor in = contiguous(input), gr = contiguous(grad);
  const ConvertedInput<A> w(weight), m(mean), r(rstd);
  const ConvertedResult<A> gw(grad_weight), gb(grad_bias);
  const bool partials = gw.data() || gb.data();
  const int64_t even = (rows + most_partials - 1) / most_partials, least = chunk_of(n);
  const int64_t chunk = even > least ? even : least, chunks = (rows + chunk - 1) / chunk;
  Scratch<A> sums(partials ? 2 * chunks * n : 0);
  const T *x = in.data<T>(), *g = gr.data<T>();
  T* to = grad_input.defined() ? grad_input.data<T>() : nullptr;
  const RowGradients<T> gradients{x, g, to, n, w.data()};
  parallel_for(rows, chunk, [&](int64_t begin, int64_t end) {
    A* sw = partials ? sums.get() + begin / chunk * 2 * n : nullptr;
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
      if (partials) add_parameter_gradients(g + first * n, x + first * n, n, count, s, sw, sw + n);
    }
  });
  auto collect = [&](A* into, int64_t offset) {
    for (int64_t begin = 0; into && begin < n; begin += lanes) {
      const int64_t count = n - begin < lanes ? n - begin : lanes;
      double all[lanes] = {};
      for (int64_t c = 0; c < chunks; ++c)
        for (int64_t l = 0; l < count; ++l)
          all[l] += static_cast<double>(sums[c * 2 * n + offset + begin + l]);
      for (int64_t l = 0; l < count; ++l) into[begin + l] = static_cast<A>(all[l]);
    }
  };
  collect(gw.data(), 0);
  collect(gb.data(), n);
  gw.store();
  gb.store();
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
  using A = accumulate_t<T>;
  const Tensor in = contiguous(input);
  const Tensor result = out.is_contiguous() ? out : empty_tensor(out.sizes(), out.dtype());
  const ConvertedInput<A> w(weight), b(bias);
  const ConvertedResult<A> m(mean), r(rstd);
  const int64_t length = p.per_group() * p.hxw;
  const T* x = in.data<T>();
  T* y = result.data<T>();
  parallel_for(p.rows(), chunk_of(length), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      Statistics<A> s;
      statistics<true>(x + k * length, length, 1, eps, &s);
      m.data()[k] = s.mean;
      r.data()[k] = s.rstd;
      for (int64_t c = 0; c < p.per_group(); ++c) {
        const int64_t channel = p.first_channel(k) + c, at = k * length + c * p.hxw;
        const auto normal = affine_of(s.mean, w.data() ? s.rstd * w.data()[channel] : s.rstd,
                                      b.data() ? b.data()[channel] : A(0));
        for (int64_t i = at; i < at + p.hxw; ++i) y[i] = static_cast<T>(normal(widen(x[i])));
      }
    }
  });
  m.store();
  r.store();
  if (!result.is_same(out)) copy(out, result);
}

template <class T>
void group_backward(const Groups& p, const Tensor& grad, const Tensor& input, const Tensor& mean,
                    const Tensor& rstd, const Tensor& weight, const Tensor& grad_input,
                    const Tensor& grad_weight, const Tensor& grad_bias) {
  using A = accumulate_t<T>;
  const Tensor in = contiguous(input), gr = contiguous(grad);
  const ConvertedInput<A> w(weight), m(mean), r(rstd);
  const ConvertedResult<A> gw(grad_weight), gb(grad_bias);
  Tensor result;
  if (grad_input.defined())
    result = grad_input.is_contiguous() ? grad_input
                                        : empty_tensor(grad_input.sizes(), grad_input.dtype());
  const int64_t length = p.per_group() * p.hxw;
  // Of one channel of one sample: of the gradient, and of the gradient times the deviation.
  Scratch<TwoSums<A>> sums(p.n * p.channels);
  const T *x = in.data<T>(), *g = gr.data<T>();
  T* to = result.defined() ? result.data<T>() : nullptr;
  parallel_for(p.rows(), chunk_of(length), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const A mu = m.data()[k], rs = r.data()[k];
      double sum = 0, product = 0;
      for (int64_t c = 0; c < p.per_group(); ++c) {
        const int64_t at = k * length + c * p.hxw, channel = p.first_channel(k) + c;
        const A scale = w.data() ? w.data()[channel] : A(1);
        TwoSums<A>& s = sums[k * p.per_group() + c];
        s = gradient_sums<true>(x + at, p.hxw, mu, WeightedRow<false, T>{g + at, nullptr});
        sum += static_cast<double>(s.plain * scale);
        product += static_cast<double>(s.along * scale);
      }
      const double each = -static_cast<double>(rs) / static_cast<double>(length);
      const auto rest =
          affine_of(mu, static_cast<A>(product * each * rs * rs), static_cast<A>(sum * each));
      for (int64_t c = 0; to && c < p.per_group(); ++c) {
        const int64_t at = k * length + c * p.hxw, channel = p.first_channel(k) + c;
        const A scale = w.data() ? w.data()[channel] * rs : rs;
        for (int64_t i = at; i < at + p.hxw; ++i)
          to[i] = static_cast<T>(multiply_add(widen(g[i]), scale, rest(widen(x[i]))));
      }
    }
  });
  for (int64_t c = 0; c < p.channels; ++c) {
    double weights = 0, biases = 0;
    for (int64_t k = 0; k < p.n; ++k) {
      const TwoSums<A>& s = sums[k * p.channels + c];
      const A rs = r.data()[k * p.groups + c / p.per_group()];
      weights += static_cast<double>(s.along) * static_cast<double>(rs);
      biases += static_cast<double>(s.plain);
    }
    if (gw.data()) gw.data()[c] = static_cast<A>(weights);
    if (gb.data()) gb.data()[c] = static_cast<A>(biases);
  }
  gw.store();
  gb.store();
  if (result.defined() && !result.is_same(grad_input)) copy(grad_input, result);
}

}  // namespace

void native_layer_norm(const Tensor& input, IntSpan shape, const Tensor& weight, const Tensor& bias,
                       double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  dispatch<FloatingTypes>(input.dtype(), "LayerNormKernelImpl", [&]<class T>(Type<T>) {
    forward<true, T>(input, product(shape), weight, bias, eps, out, mean, rstd);
  });
}
void native_layer_norm_backward(const Tensor& grad, const Tensor& input, IntSpan shape,
                                const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                const Tensor&, std::span<const bool>, const Tensor& grad_input,
                                const Tensor& grad_weight, const Tensor& grad_bias) {
  dispatch<FloatingTypes>(input.dtype(), "LayerNormBackwardKernelImpl", [&]<class T>(Type<T>) {
    backward<true, T>(grad, input, product(shape), mean, rstd, weight, grad_input, grad_weight,
                      grad_bias);
  });
}
void fused_rms_norm(const Tensor& input, IntSpan shape, const Tensor& weight,
                    std::optional<double> eps, const Tensor& out, const Tensor& rstd) {
  dispatch<FloatingTypes>(input.dtype(), "rms_norm", [&]<class T>(Type<T>) {
    const double least = std::is_same_v<T, double> ? 0x1p-52 : 0x1p-23;
    forward<false, T>(input, product(shape), weight, {}, eps ? *eps : least, out, {}, rstd);
  });
}
void fused_rms_norm_backward(const Tensor& grad, const Tensor& input, IntSpan shape,
                             const Tensor& rstd, const Tensor& weight, std::span<const bool>,
                             const Tensor& grad_input, const Tensor& grad_weight) {
  dispatch<FloatingTypes>(input.dtype(), "rms_norm_backward", [&]<class T>(Type<T>) {
    backward<false, T>(grad, input, product(shape), {}, rstd, weight, grad_input, grad_weight, {});
  });
}
void native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                       int64_t c, int64_t hxw, int64_t group, double eps, const Tensor& out,
                       const Tensor& mean, const Tensor& rstd) {
  dispatch<FloatingTypes>(input.dtype(), "GroupNormKernelImpl", [&]<class T>(Type<T>) {
    group_forward<T>({n, c, hxw, group}, input, weight, bias, eps, out, mean, rstd);
  });
}
void native_group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                const Tensor& rstd, const Tensor& weight, int64_t n, int64_t c,
                                int64_t hxw, int64_t group, std::span<const bool>,
                                const Tensor& grad_input, const Tensor& grad_weight,
                                const Tensor& grad_bias) {
  dispatch<FloatingTypes>(input.dtype(), "GroupNormBackwardKernelImpl", [&]<class T>(Type<T>) {
    group_backward<T>({n, c, hxw, group}, grad, input, mean, rstd, weight, grad_input, grad_weight,
                      grad_bias);
  });
}

}  // namespace facula::cpu::FACULA_ISA
