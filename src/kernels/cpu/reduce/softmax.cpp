#include "kernels/cpu/reduce/softmax.h"

#include "core/threads.h"
#include "kernels/cpu/loop/contiguous.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/reduce/softmax_parts.h"
#include "kernels/cpu/reduce/softmax_short_rows.h"

namespace facula::cpu::FACULA_ISA {
namespace {

namespace math = scalar::math;

// A tensor as [outer, n, inner], n the dimension that softmax runs over.
struct Extents {
  int64_t outer = 1, n = 1, inner = 1;
};
Extents extents(const Tensor& t, int64_t dim) {
  Extents e;
  const int64_t at = wrap_dim(dim, t.dim());
  for (int64_t d = 0; d < t.dim(); ++d)
    (d < at ? e.outer : d == at ? e.n : e.inner) *= t.sizes()[d];
  return e;
}

constexpr int64_t columns = 64;  // neighbours along `inner` that are worked on together

// Four accumulators: a comparison has a longer latency than a load takes.
template <class A>
[[gnu::always_inline]] inline A largest(const A* x, int64_t n) {
  constexpr int width = native_lanes<A>, count = 4;
  using V = LaneVector<A, width>;
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  typename V::type most[count];
#pragma GCC unroll 4
  for (int j = 0; j < count; ++j) most[j] = typename V::type{} - static_cast<A>(__builtin_inf());
  int64_t i = 0;
  for (; i + count * width <= n; i += count * width) {
#pragma GCC unroll 4
    for (int j = 0; j < count; ++j) most[j] = larger(most[j], V::load(x + i + j * width));
  }
  for (; i + width <= n; i += width) most[0] = larger(most[0], V::load(x + i));
#pragma GCC unroll 4
  for (int j = 1; j < count; ++j) most[0] = larger(most[0], most[j]);
  A m[width];
  __builtin_memcpy(m, &most[0], sizeof m);
  for (int half = width / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) m[k] = larger(m[k], m[k + half]);
  for (; i < n; ++i) m[0] = larger(m[0], x[i]);
  return m[0];
}

// e[i] = e^(x[i] - most) of a part of a row; the sum of e, lane by lane.
template <class A>
[[gnu::always_inline]] inline A exp_run(const A* __restrict x, A most, A* __restrict e, int64_t n) {
  by_lanes(n, [&](int64_t i) { e[i] = exp_below(x[i] - most); });
  return sum_by_lanes(e, n);
}
// The same for a whole row: long ones pairwise.
template <class A>
A exp_row(const A* x, A most, A* e, int64_t n) {
  if (n <= longest_run) return exp_run(x, most, e, n);
  const int64_t half = (n / 2 + lanes - 1) / lanes * lanes;
  const A first = exp_row(x, most, e, half);
  return first + exp_row(x + half, most, e + half, n - half);
}

// Rows of which logarithms are taken together.
constexpr int64_t together = 16;

template <bool Log>
struct Forward {
  template <class T>
  static void rows(const T* from, T* to, int64_t n, int64_t count) {
    using A = accumulate_t<T>;
    if (ShortRows<A>::serve_forward(n, count)) {
      Scratch<A> room(ShortRows<A>::room_of(n));
      return ShortRows<A>::template forward<Log>(from, to, n, count, room.get());
    }
    Scratch<A> room(2 * n);
    long_rows(from, to, n, count, room.get());
  }

  template <class T>
  static void long_rows(const T* from, T* to, int64_t n, int64_t count, accumulate_t<T>* room) {
    if constexpr (Log) {
      for (int64_t r = 0; r < count; r += together)
        log_rows(from + r * n, to + r * n, n, count - r < together ? count - r : together, room);
    } else {
      for (int64_t r = 0; r < count; ++r) row(from + r * n, to + r * n, n, room);
    }
  }

  template <class T>
  static void row(const T* from, T* to, int64_t n, accumulate_t<T>* room) {
    using A = accumulate_t<T>;
    const A* x = widened_row(from, room, n);
    const A m = largest(x, n);
    if constexpr (std::is_same_v<T, A>) {
      const A sum = exp_row(x, m, to, n), inverse = A(1) / sum;
      by_lanes(n, [&](int64_t i) { to[i] = share_of(to[i], sum, inverse); });
    } else {
      A* __restrict e = room + n;
      const A sum = exp_row(x, m, e, n), inverse = A(1) / sum;
      by_lanes(n, [&](int64_t i) { e[i] = share_of(e[i], sum, inverse); });
      narrow_row(e, to, n);
    }
  }

  template <class T>
  static void log_rows(const T* from, T* to, int64_t n, int64_t count, accumulate_t<T>* room) {
    using A = accumulate_t<T>;
    A m[together], shift[together] = {};
    const auto sum_row = [n](const A* x, A most) {
      return lane_sum<A>(0, n, [=](int64_t i) { return exp_below(x[i] - most); });
    };
    if constexpr (std::is_same_v<T, A>) {
      // Rows do not wait for each other's maxima.
      for (int64_t r = 0; r < count; ++r) m[r] = largest(from + r * n, n);
      for (int64_t r = 0; r < count; ++r) shift[r] = sum_row(from + r * n, m[r]);
    } else {
      for (int64_t r = 0; r < count; ++r) {
        const A* x = widened_row(from + r * n, room, n);
        m[r] = largest(x, n);
        shift[r] = sum_row(x, m[r]);
      }
    }
    for (int64_t r = 0; r < together; ++r) shift[r] = math::log_by_parts(shift[r]);
    for (int64_t r = 0; r < count; ++r) {
      const T* x = from + r * n;
      T* y = to + r * n;
      const A most = m[r], less = shift[r];
      if constexpr (std::is_same_v<T, A>) {
        by_lanes(n, [&](int64_t i) { y[i] = x[i] - most - less; });
      } else {
        const A* wide = widened_row(x, room, n);
        A* __restrict result = room + n;
        by_lanes(n, [&](int64_t i) { result[i] = wide[i] - most - less; });
        narrow_row(result, y, n);
      }
    }
  }

  // `width` columns of n elements each, `step` apart.
  template <class T>
  static void block(const T* x, T* y, int64_t n, int64_t step, int64_t width) {
    using A = accumulate_t<T>;
    A m[columns], sum[columns];
    for (int64_t c = 0; c < width; ++c) m[c] = -static_cast<A>(__builtin_inf()), sum[c] = 0;
    for (int64_t d = 0; d < n; ++d)
      for (int64_t c = 0; c < width; ++c) {
        const A v = widen(x[d * step + c]);
        m[c] = v > m[c] ? v : m[c];
      }
    for (int64_t d = 0; d < n; ++d)
      for (int64_t c = 0; c < width; ++c) sum[c] += exp_below(widen(x[d * step + c]) - m[c]);
    if constexpr (Log)
      for (int64_t c = 0; c < width; ++c) sum[c] = math::log_by_parts(sum[c]);
    for (int64_t d = 0; d < n; ++d)
      for (int64_t c = 0; c < width; ++c) {
        const A v = widen(x[d * step + c]) - m[c];
        y[d * step + c] = static_cast<T>(Log ? v - sum[c] : exp_below(v) / sum[c]);
      }
  }
};

template <bool Log>
struct Backward {
  template <class T>
  static void rows(const T* grad, const T* y, T* to, int64_t n, int64_t count) {
    using A = accumulate_t<T>;
    if (ShortRows<A>::serve_backward(n, count)) {
      Scratch<A> room(ShortRows<A>::room_of(n));
      return ShortRows<A>::template backward<Log>(grad, y, to, n, count, room.get());
    }
    for (int64_t r = 0; r < count; ++r) row(grad + r * n, y + r * n, to + r * n, n);
  }

  template <class T>
  static void row(const T* grad, const T* y, T* to, int64_t n) {
    using A = accumulate_t<T>;
    const A sum =
        lane_sum<A>(0, n, [&](int64_t i) { return weighted<Log>(widen(grad[i]), widen(y[i])); });
    for (int64_t i = 0; i < n; ++i)
      to[i] = static_cast<T>(slope<Log>(widen(grad[i]), widen(y[i]), sum));
  }

  template <class T>
  static void block(const T* grad, const T* y, T* to, int64_t n, int64_t step, int64_t width) {
    using A = accumulate_t<T>;
    A sum[columns] = {};
    for (int64_t d = 0; d < n; ++d)
      for (int64_t c = 0; c < width; ++c)
        sum[c] += weighted<Log>(widen(grad[d * step + c]), widen(y[d * step + c]));
    for (int64_t d = 0; d < n; ++d)
      for (int64_t c = 0; c < width; ++c) {
        const int64_t i = d * step + c;
        to[i] = static_cast<T>(slope<Log>(widen(grad[i]), widen(y[i]), sum[c]));
      }
  }
};

// Calls body(offset, width) for every block of columns.
template <class Body>
void for_blocks(const Extents& e, const Body& body) {
  const int64_t blocks = (e.inner + columns - 1) / columns;
  parallel_for(e.outer * blocks, chunk_of(e.n * columns), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k % blocks * columns, left = e.inner - first;
      body(k / blocks * e.n * e.inner + first, left < columns ? left : columns);
    }
  });
}

template <bool Log>
void run_forward(const Tensor& self, int64_t dim, const Tensor& out) {
  const Extents e = extents(self, dim);
  const char* kernel =
      Log ? (e.inner == 1 ? "log_softmax_lastdim_kernel_impl" : "log_softmax_kernel_impl")
          : (e.inner == 1 ? "softmax_lastdim_kernel_impl" : "softmax_kernel_impl");
  if (self.numel() == 0) return;
  const ContiguousTensor in(self);
  dispatch<FloatingTypes>(self.dtype(), kernel, [&]<class T>(Type<T>) {
    const T* x = in->data<T>();
    T* y = out.data<T>();
    if (e.inner > 1)
      return for_blocks(e, [&](int64_t at, int64_t width) {
        Forward<Log>::block(x + at, y + at, e.n, e.inner, width);
      });
    parallel_for(e.outer, chunk_of(e.n), [&](int64_t begin, int64_t end) {
      Forward<Log>::rows(x + begin * e.n, y + begin * e.n, e.n, end - begin);
    });
  });
}

template <bool Log>
void run_backward(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& out) {
  const Extents e = extents(output, dim);
  const DType dtype = output.dtype();
  if (output.numel() == 0) return;
  const Tensor g = contiguous(grad.dtype() == dtype ? grad : converted(grad, dtype)),
               y = contiguous(output);
  const char* kernel =
      Log ? "log_softmax_backward_lastdim_kernel_impl" : "softmax_backward_lastdim_kernel_impl";
  dispatch<FloatingTypes>(dtype, kernel, [&]<class T>(Type<T>) {
    const T *gd = g.data<T>(), *yd = y.data<T>();
    T* to = out.data<T>();
    if (e.inner > 1)
      return for_blocks(e, [&](int64_t at, int64_t width) {
        Backward<Log>::block(gd + at, yd + at, to + at, e.n, e.inner, width);
      });
    parallel_for(e.outer, chunk_of(e.n), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * e.n;
      Backward<Log>::rows(gd + at, yd + at, to + at, e.n, end - begin);
    });
  });
}

}  // namespace

void softmax(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  run_forward<false>(self, dim, out);
}
void log_softmax(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  run_forward<true>(self, dim, out);
}
void softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, DType,
                      const Tensor& out) {
  run_backward<false>(grad, output, dim, out);
}
void log_softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, DType,
                          const Tensor& out) {
  run_backward<true>(grad, output, dim, out);
}

}  // namespace facula::cpu::FACULA_ISA
