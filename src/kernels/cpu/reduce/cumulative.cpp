#include "kernels/cpu/reduce/cumulative.h"

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/lines.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/scalar/complex_math.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {
namespace {

namespace math = scalar::math;

constexpr int64_t tile = 64;

// What is carried along: float sums in double as PyTorch does, integers in 64 bits.
template <class T>
struct Carried {
  using type = std::conditional_t<std::is_integral_v<T>, int64_t,
                                  std::conditional_t<std::is_same_v<T, float>, double, float>>;
};
template <>
struct Carried<double> {
  using type = double;
};
template <>
struct Carried<complex64> {
  using type = complex128;
};
template <>
struct Carried<complex128> {
  using type = complex128;
};

struct Add {
  template <class A>
  static A first() {
    return A(0);
  }
  template <class A>
  static A call(A a, A x) {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(x));
    else
      return a + x;
  }
};
struct Multiply {
  template <class A>
  static A first() {
    return A(1);
  }
  template <class A>
  static A call(A a, A x) {
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(x));
    else
      return a * x;
  }
};
// log(e^a + e^x)
struct LogAdd {
  template <class A>
  static A first() {
    if constexpr (is_complex_v<A>)
      return A(-__builtin_inf());
    else
      return -static_cast<A>(__builtin_inf());
  }
  template <class A>
  static A call(A a, A x) {
    if constexpr (is_complex_v<A>) return complex(a, x);
    if constexpr (!is_complex_v<A>) {
      const A low = a < x ? a : x, high = a < x ? x : a;
      if (x != x || a != a) return a + x;
      if (low == high && math::is_inf(low)) return high;
      return high + math::log1p(math::exp(low - high));
    }
  }

 private:
  template <class R>
  static Complex<R> complex(Complex<R> a, Complex<R> x) {
    if (x.re != x.re || x.im != x.im || a.re != a.re || a.im != a.im)
      return Complex<R>(static_cast<R>(__builtin_nan("")), static_cast<R>(__builtin_nan("")));
    const bool less = a.re < x.re;
    const Complex<R> low = less ? a : x, high = less ? x : a;
    if (math::is_inf(low.re) && low.re < 0) return high;
    if (math::is_inf(high.re) && low.re == high.re) return high;
    const Complex<R> e = math::exp(low - high);
    return high + math::log(Complex<R>(R(1)) + e);
  }
};

template <class F, class T>
void columns(const T* x, T* out, int64_t length, int64_t step, int64_t width) {
  using A = typename Carried<T>::type;
  A carried[tile];
  for (int64_t c = 0; c < width; ++c) carried[c] = F::template first<A>();
  for (int64_t i = 0; i < length; ++i)
    for (int64_t c = 0; c < width; ++c) {
      carried[c] = F::call(carried[c], convert<A>(x[i * step + c]));
      out[i * step + c] = convert<T>(carried[c]);
    }
}

template <class F, class T>
void row(const T* x, T* out, int64_t length) {
  using A = typename Carried<T>::type;
  A carried = F::template first<A>();
  for (int64_t i = 0; i < length; ++i) {
    carried = F::call(carried, convert<A>(x[i]));
    out[i] = convert<T>(carried);
  }
}

// Prefixes of a row of floats, carried in double. Eight neighbours are combined by halves first, so
// that one step for all of them waits for those before; the order is that of every instruction set.
template <class F>
struct Scan {
  static constexpr int64_t group = 8;
  typedef double Wide __attribute__((vector_size(group * sizeof(double))));
  typedef float Narrow __attribute__((vector_size(group * sizeof(float))));
  typedef int64_t Places __attribute__((vector_size(group * sizeof(int64_t))));

  // The neighbours before each element, and in front what changes nothing.
  template <int64_t step>
  [[gnu::always_inline]] static void combine(Wide& v) {
    const Wide none = Wide{} + F::template first<double>();
    constexpr int64_t n = group;
    const Places from = {n - step,     n + 1 - step, n + 2 - step, n + 3 - step,
                         n + 4 - step, n + 5 - step, n + 6 - step, n + 7 - step};
    v = F::call(__builtin_shuffle(none, v, from), v);
  }

  static void row(const float* x, float* out, int64_t length) {
    double carried = F::template first<double>();
    int64_t i = 0;
    for (; i + group <= length; i += group) {
      Narrow narrow;
      __builtin_memcpy(&narrow, x + i, sizeof narrow);
      Wide v = __builtin_convertvector(narrow, Wide);
      combine<1>(v);
      combine<2>(v);
      combine<4>(v);
      const Wide before = Wide{} + carried;
      narrow = __builtin_convertvector(F::call(before, v), Narrow);
      __builtin_memcpy(out + i, &narrow, sizeof narrow);
      carried = F::call(carried, v[group - 1]);
    }
    for (; i < length; ++i) {
      carried = F::call(carried, static_cast<double>(x[i]));
      out[i] = static_cast<float>(carried);
    }
  }
};

// Sums of exponentials of a float row, in double: a piece of it shares one maximum, which lets
// exponentials and logarithms be taken side by side. Values too far apart for that, infinities and
// nan go one by one.
inline void log_row(const float* x, float* out, int64_t length) {
  constexpr int64_t piece = 64;
  constexpr double widest = 300;  // the least term is far above the smallest normal number
  double carried = LogAdd::first<double>();
  for (int64_t begin = 0; begin < length; begin += piece) {
    const int64_t n = length - begin < piece ? length - begin : piece;
    float low = x[begin], high = x[begin];
    bool finite = true;
    for (int64_t i = begin; i < begin + n; ++i) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
      finite &= x[i] - x[i] == 0;
    }
    const bool first = begin == 0;
    const double most = !first && carried > high ? carried : static_cast<double>(high);
    const double least = !first && carried < low ? carried : static_cast<double>(low);
    if (!finite || !(most - least < widest)) {
      for (int64_t i = begin; i < begin + n; ++i) {
        carried = LogAdd::call(carried, static_cast<double>(x[i]));
        out[i] = static_cast<float>(carried);
      }
      continue;
    }
    double sums[piece];
    for (int64_t i = 0; i < n; ++i)
      sums[i] = math::exp_by_parts(static_cast<double>(x[begin + i]) - most);
    sums[0] += first ? 0 : math::exp_by_parts(carried - most);
    for (int64_t i = 1; i < n; ++i) sums[i] += sums[i - 1];
    for (int64_t i = 0; i < n; ++i) sums[i] = most + math::log_by_parts(sums[i]);
    for (int64_t i = 0; i < n; ++i) out[begin + i] = static_cast<float>(sums[i]);
    if (first) out[0] = x[0];
    carried = sums[n - 1];
  }
}

// Calls body(offset, columns) for tiles of neighbouring lines.
template <class Body>
void for_tiles(const Lines& l, Body&& body) {
  const int64_t width = l.inner < tile ? l.inner : tile;
  if (width == 0 || l.length == 0) return;
  const int64_t tiles = (l.inner + width - 1) / width;
  const int64_t work = l.length * width, grain = work >= 16384 ? 1 : 16384 / work;
  parallel_for(l.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t c = t % tiles * width;
      body(t / tiles * l.length * l.inner + c, c + width <= l.inner ? width : l.inner - c);
    }
  });
}

template <class F, class T>
void run(const Tensor& in, const Lines& l, const Tensor& out) {
  const T* x = in.data<T>();
  T* to = out.data<T>();
  for_tiles(l, [&](int64_t at, int64_t width) {
    if constexpr (std::is_same_v<F, LogAdd> && std::is_same_v<T, float>) {
      if (l.inner == 1) return log_row(x + at, to + at, l.length);
    } else if constexpr (std::is_same_v<T, float>) {
      if (l.inner == 1) return Scan<F>::row(x + at, to + at, l.length);
    }
    if (l.inner == 1)
      row<F, T>(x + at, to + at, l.length);
    else
      columns<F, T>(x + at, to + at, l.length, l.inner, width);
  });
}

template <class F>
void accumulate(const Tensor& self, int64_t dim, const Tensor& out, const char* name) {
  const Tensor in = contiguous(self.dtype() == out.dtype() ? self : converted(self, out.dtype()));
  const Lines lines(in.sizes(), in.dim() ? wrap_dim(dim, in.dim()) : 0);
  auto body = [&]<class T>(Type<T>) { run<F, T>(in, lines, out); };
  if constexpr (std::is_same_v<F, LogAdd>)
    dispatch<FloatingTypes, ComplexTypes>(in.dtype(), name, body);
  else
    dispatch<FloatingTypes, ComplexTypes, IntegralTypes>(in.dtype(), name, body);
}

// --- running extrema: the last of equal values, the last NaN once there is one

template <class T, bool Most>
[[gnu::always_inline]] inline bool takes(T v, T best) {
  const bool take = Most ? v >= best : v <= best;
  if constexpr (std::is_integral_v<T>) return take;
  return (take & (best == best)) | (v != v);
}

// Neighbouring lines, row by row.
template <class T, bool Most>
void extreme_columns(const T* x, T* values, int64_t* indices, int64_t length, int64_t step,
                     int64_t width) {
  T best[tile];
  int64_t at[tile];
  for (int64_t c = 0; c < width; ++c) best[c] = x[c];
  for (int64_t c = 0; c < width; ++c) at[c] = 0;
  for (int64_t i = 0; i < length; ++i, x += step, values += step, indices += step) {
    for (int64_t c = 0; c < width; ++c) {
      const bool take = takes<T, Most>(x[c], best[c]);
      best[c] = take ? x[c] : best[c];
      at[c] = take ? i : at[c];
    }
    for (int64_t c = 0; c < width; ++c) values[c] = best[c];
    for (int64_t c = 0; c < width; ++c) indices[c] = at[c];
  }
}

// One row, element by element with selects: whether a value is taken is not to be predicted.
template <class T, bool Most>
void extreme_row(const T* x, T* values, int64_t* indices, int64_t length) {
  T best = x[0];
  int64_t at = 0;
  for (int64_t i = 0; i < length; ++i) {
    const T v = x[i];
    const bool take = takes<T, Most>(v, best);
    best = take ? v : best;
    at = take ? i : at;
    values[i] = best;
    indices[i] = at;
  }
}

template <bool Most>
void extreme(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices,
             const char* name) {
  const Tensor in = contiguous_values(self);
  const Lines l(in.sizes(), in.dim() ? wrap_dim(dim, in.dim()) : 0);
  int64_t* to = indices.data<int64_t>();
  auto body = [&]<class T>(Type<T>) {
    for_tiles(l, [&](int64_t at, int64_t width) {
      if (l.inner == 1)
        return extreme_row<T, Most>(in.data<T>() + at, values.data<T>() + at, to + at, l.length);
      extreme_columns<T, Most>(in.data<T>() + at, values.data<T>() + at, to + at, l.length, l.inner,
                               width);
    });
  };
  dispatch<FloatingTypes, IntegralTypes, bool>(in.dtype(), name, body);
}

}  // namespace

void cumsum(const Tensor& self, int64_t dim, std::optional<DType>, const Tensor& out) {
  accumulate<Add>(self, dim, out, "cumsum_out_cpu");
}
void cumprod(const Tensor& self, int64_t dim, std::optional<DType>, const Tensor& out) {
  accumulate<Multiply>(self, dim, out, "cumprod_out_cpu");
}
void logcumsumexp(const Tensor& self, int64_t dim, const Tensor& out) {
  accumulate<LogAdd>(self, dim, out, "logcumsumexp_out_cpu");
}
void cummax(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  extreme<true>(self, dim, values, indices, "cummax_cpu");
}
void cummin(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  extreme<false>(self, dim, values, indices, "cummin_cpu");
}

}  // namespace facula::cpu::FACULA_ISA
