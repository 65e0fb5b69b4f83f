#include "kernels/cpu/loss/loss.h"

#include <atomic>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {
namespace {

namespace math = scalar::math;

constexpr int64_t loss_block = 256;  // pairs whose losses are computed at a time

// A loss: its value for a pair (x, t) and the derivative of that by x; p is the loss's parameter.
// Losses of several transcendental functions have `values` for a block of pairs instead: loops of
// one function each become vectors, where a loop of two may not.

struct Mse {
  template <class A>
  static A value(A x, A t, A) {
    return (x - t) * (x - t);
  }
  template <class A>
  static A slope(A x, A t, A) {
    return A(2) * (x - t);
  }
};

template <class A>
inline A magnitude(A d) {
  return d < 0 ? -d : d;
}

struct SmoothL1 {
  template <class A>
  static A value(A x, A t, A beta) {
    const A d = magnitude(x - t);
    return d < beta ? A(0.5) * d * d / beta : d - A(0.5) * beta;
  }
  template <class A>
  static A slope(A x, A t, A beta) {
    const A d = x - t;
    if (d == 0) return A(0);  // also where beta is 0
    return d <= -beta ? A(-1) : d >= beta ? A(1) : d / beta;
  }
};

struct Huber {
  template <class A>
  static A value(A x, A t, A delta) {
    const A d = magnitude(x - t);
    return d <= delta ? A(0.5) * d * d : delta * (d - A(0.5) * delta);
  }
  template <class A>
  static A slope(A x, A t, A delta) {
    const A d = x - t;
    return d <= -delta ? -delta : d >= delta ? delta : d;
  }
};

struct SoftMargin {
  template <class A>
  static void values(const A* x, const A* t, A* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = math::exp_by_parts(-t[i] * x[i]);
    for (int64_t i = 0; i < n; ++i) out[i] = math::log1p(out[i]);
  }
  template <class A>
  static A slope(A x, A t, A) {
    const A z = math::exp_by_parts(-t * x);
    return -t * z / (A(1) + z);
  }
};

struct CrossEntropy {
  // Logarithms stop at -100, so that the loss stays finite.
  template <class A>
  static void values(const A* x, const A* t, A* out, int64_t n) {
    A yes[loss_block], no[loss_block];
    for (int64_t i = 0; i < n; ++i) yes[i] = math::log_by_parts(x[i]);
    for (int64_t i = 0; i < n; ++i) no[i] = math::log1p(-x[i]);
    for (int64_t i = 0; i < n; ++i) {
      const A low = no[i] > A(-100) ? no[i] : A(-100), high = yes[i] > A(-100) ? yes[i] : A(-100);
      out[i] = (t[i] - A(1)) * low - t[i] * high;
    }
  }
  template <class A>
  static A slope(A x, A t, A) {
    const A spread = (A(1) - x) * x;
    return (x - t) / (spread > A(1e-12) ? spread : A(1e-12));
  }
};

constexpr int64_t per_chunk = 8192;

// t, broadcast and converted, in the memory order of the given geometry.
Tensor laid_out(const Tensor& t, IntSpan sizes, IntSpan strides, DType dtype) {
  if (t.dtype() == dtype && same_sizes(t.sizes(), sizes) && same_sizes(t.strides(), strides))
    return t;
  const Tensor made = empty_strided_tensor(sizes, strides, dtype);
  copy(made, t);
  return made;
}

template <class T>
struct Operands {
  Tensor self, target, weight;
  const T *x, *t, *w;
  Operands(const Tensor& a, const Tensor& b, const Tensor& c, IntSpan sizes, IntSpan strides,
           DType d)
      : self(laid_out(a, sizes, strides, d)), target(laid_out(b, sizes, strides, d)) {
    if (c.defined()) weight = laid_out(c, sizes, strides, d);
    x = self.data<T>();
    t = target.data<T>();
    w = weight.defined() ? weight.data<T>() : nullptr;
  }
};

template <class Loss, class A>
constexpr bool in_blocks = requires(A* a) { Loss::values(a, a, a, 0); };

template <class Loss, class T>
void put_block(const T* x, const T* t, accumulate_t<T> p, accumulate_t<T>* out, int64_t n) {
  using A = accumulate_t<T>;
  if constexpr (in_blocks<Loss, A>) {
    A wide_x[loss_block], wide_t[loss_block];
    Loss::values(widened_row(x, wide_x, n), widened_row(t, wide_t, n), out, n);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = Loss::template value<A>(widen(x[i]), widen(t[i]), p);
  }
}

// The losses of n pairs from `begin` on.
template <class Loss, class T, class To>
void put_losses(const Operands<T>& in, accumulate_t<T> p, int64_t begin, int64_t n, To* out) {
  accumulate_t<T> losses[loss_block];
  for (int64_t at = 0; at < n; at += loss_block) {
    const int64_t count = std::min(loss_block, n - at), from = begin + at;
    put_block<Loss>(in.x + from, in.t + from, p, losses, count);
    if (in.w)
      for (int64_t i = 0; i < count; ++i) losses[i] *= widen(in.w[from + i]);
    for (int64_t i = 0; i < count; ++i) out[at + i] = static_cast<To>(losses[i]);
  }
}

template <class Loss, class T>
void each(const Operands<T>& in, accumulate_t<T> p, T* out, int64_t n) {
  parallel_for(n, per_chunk, [=, &in](int64_t begin, int64_t end) {
    put_losses<Loss>(in, p, begin, end - begin, out + begin);
  });
}

template <class Loss, class T>
accumulate_t<T> sum_of_losses(const Operands<T>& in, accumulate_t<T> p, int64_t begin, int64_t n) {
  using A = accumulate_t<T>;
  if constexpr (!in_blocks<Loss, A>) {
    const T *x = in.x + begin, *t = in.t + begin;
    if (!in.w)
      return lane_sum<A>(
          0, n, [=](int64_t i) { return Loss::template value<A>(widen(x[i]), widen(t[i]), p); });
  }
  A losses[per_chunk];
  put_losses<Loss>(in, p, begin, n, losses);
  return lane_sum<A>(0, n, [&](int64_t i) { return losses[i]; });
}

template <class Loss, class T>
accumulate_t<T> total(const Operands<T>& in, accumulate_t<T> p, int64_t n) {
  using A = accumulate_t<T>;
  const int64_t chunks = (n + per_chunk - 1) / per_chunk;
  Scratch<A> partial(chunks);
  parallel_for(n, per_chunk, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += per_chunk)
      partial[at / per_chunk] = sum_of_losses<Loss>(in, p, at, std::min(per_chunk, end - at));
  });
  return lane_sum<A>(0, chunks, [&](int64_t i) { return partial[i]; });
}

// Strides for a reduced loss: any order will do, so that of self where it is dense.
IntVec walking_strides(const Tensor& self, IntSpan sizes) {
  const bool dense =
      same_sizes(self.sizes(), sizes) && is_dense_non_overlapping(sizes, self.strides());
  return dense ? IntVec(self.strides()) : contiguous_strides(sizes);
}

template <class Loss>
void forward(const char* name, const Tensor& self, const Tensor& target, const Tensor& weight,
             int64_t reduction, double p, const Tensor& out) {
  dispatch<FloatingTypes>(out.dtype(), name, [&]<class T>(Type<T>) {
    using A = accumulate_t<T>;
    if (reduction == 0) {
      const bool dense = is_dense_non_overlapping(out.sizes(), out.strides());
      const Tensor result = dense ? out : empty_tensor(out.sizes(), out.dtype());
      const Operands<T> in(self, target, weight, result.sizes(), result.strides(), out.dtype());
      each<Loss, T>(in, static_cast<A>(p), result.data<T>(), result.numel());
      if (!dense) copy(out, result);
      return;
    }
    const IntVec sizes = broadcast_sizes(self.sizes(), target.sizes());
    const Operands<T> in(self, target, weight, sizes, walking_strides(self, sizes), out.dtype());
    const int64_t n = in.self.numel();
    const A sum = total<Loss, T>(in, static_cast<A>(p), n);
    *out.data<T>() = static_cast<T>(reduction == 1 ? sum / static_cast<A>(n) : sum);
  });
}

template <class Loss>
void backward(const char* name, const Tensor& grad, const Tensor& self, const Tensor& target,
              const Tensor& weight, int64_t reduction, double p, const Tensor& out) {
  dispatch<FloatingTypes>(out.dtype(), name, [&]<class T>(Type<T>) {
    using A = accumulate_t<T>;
    const bool dense = is_dense_non_overlapping(out.sizes(), out.strides());
    const Tensor result = dense ? out : empty_tensor(out.sizes(), out.dtype());
    const Operands<T> in(self, target, weight, result.sizes(), result.strides(), out.dtype());
    const int64_t n = result.numel();
    const bool single = grad.numel() == 1;
    const Tensor g = single ? converted(grad, out.dtype())
                            : laid_out(grad, result.sizes(), result.strides(), out.dtype());
    const A scale = reduction == 1 ? A(1) / static_cast<A>(n) : A(1), param = static_cast<A>(p);
    const T *x = in.x, *t = in.t, *w = in.w, *from = g.data<T>();
    const int64_t step = single ? 0 : 1;
    T* to = result.data<T>();
    parallel_for(n, per_chunk, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const A v = Loss::template slope<A>(widen(x[i]), widen(t[i]), param) *
                    widen(from[i * step]) * scale;
        to[i] = static_cast<T>(w ? v * widen(w[i]) : v);
      }
    });
    if (!dense) copy(out, result);
  });
}

template <class T>
bool lie_between_0_and_1(const T* p, int64_t n) {
  int outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<accumulate_t<T>>(p[i]);
    outside |= !((v >= 0) & (v <= 1));
  }
  return outside == 0;
}

}  // namespace

void mse_loss(const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
  forward<Mse>("mse_cpu", self, target, {}, reduction, 0, out);
}
bool are_probabilities(const Tensor& t) {
  const Tensor in =
      contiguous(visit_floating(t.dtype(), [](auto) {}) ? t : converted(t, DType::Float32));
  std::atomic<bool> hold{true};
  dispatch<FloatingTypes>(in.dtype(), "binary_cross_entropy", [&]<class T>(Type<T>) {
    const T* p = in.data<T>();
    parallel_for(in.numel(), 32768, [&](int64_t begin, int64_t end) {
      if (!lie_between_0_and_1(p + begin, end - begin))
        hold.store(false, std::memory_order_relaxed);
    });
  });
  return hold.load(std::memory_order_relaxed);
}

void mse_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                       int64_t reduction, const Tensor& out) {
  backward<Mse>("mse_backward_cpu_out", grad, self, target, {}, reduction, 0, out);
}
void smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta,
                    const Tensor& out) {
  forward<SmoothL1>("smooth_l1_cpu", self, target, {}, reduction, beta, out);
}
void smooth_l1_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                             int64_t reduction, double beta, const Tensor& out) {
  backward<SmoothL1>("smooth_l1_backward_cpu_out", grad, self, target, {}, reduction, beta, out);
}
void huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta,
                const Tensor& out) {
  forward<Huber>("huber_cpu", self, target, {}, reduction, delta, out);
}
void huber_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                         int64_t reduction, double delta, const Tensor& out) {
  backward<Huber>("huber_backward_cpu_out", grad, self, target, {}, reduction, delta, out);
}
void soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction,
                      const Tensor& out) {
  forward<SoftMargin>("soft_margin_loss", self, target, {}, reduction, 0, out);
}
void soft_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                               int64_t reduction, const Tensor& out) {
  backward<SoftMargin>("soft_margin_loss_backward", grad, self, target, {}, reduction, 0, out);
}
void binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, const Tensor& out) {
  forward<CrossEntropy>("binary_cross_entropy", self, target, weight, reduction, 0, out);
}
void binary_cross_entropy_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                   const Tensor& weight, int64_t reduction, const Tensor& out) {
  backward<CrossEntropy>("binary_cross_entropy_backward", grad, self, target, weight, reduction, 0,
                         out);
}

}  // namespace facula::cpu::FACULA_ISA
