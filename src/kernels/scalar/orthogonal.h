// Orthogonal polynomials of degree n by their three-term recurrences; zero for negative n. The
// Chebyshev families use their trigonometric form at high degree inside (-1, 1), where it is
// cheaper.
#pragma once
#include "core/interrupts.h"
#include "kernels/scalar/math.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// p_n from p_0 = 1, p_1 = first and p_(k+1) = next(k, p_k, p_(k-1)). A degree of billions takes
// seconds for one element: some tenths of a millisecond lie between two looks for an interrupt.
template <class T, class Next>
FACULA_SCALAR T recurrence(int64_t n, T first, Next next) {
  if (n <= 0) return n < 0 ? T(0) : T(1);
  constexpr int64_t steps_at_once = 1 << 16;
  T before = T(1), now = first;
  for (int64_t k = 1; k < n && !is_nan(now);) {
    const int64_t end = n - k > steps_at_once ? k + steps_at_once : n;
    for (; k < end && !is_nan(now); ++k) {
      const T after = next(static_cast<T>(k), now, before);
      before = now;
      now = after;
    }
    if (k < n) poll_interrupts();
  }
  return now;
}

template <class T>
FACULA_SCALAR T chebyshev_recurrence(T x, int64_t n, T first) {
  return recurrence(n, first, [x](T, T now, T before) { return (x + x) * now - before; });
}

template <class T>
FACULA_SCALAR T alternate(int64_t n, T even) {
  return n % 2 == 0 ? even : -even;
}

// Above this degree PyTorch answers nan for the Hermite polynomials: the recurrence has overflowed.
template <class T>
inline constexpr int64_t hermite_limit = sizeof(T) <= 4 ? 128 : 512;

}  // namespace detail

template <class T>
FACULA_SCALAR T chebyshev_polynomial_t(T x, int64_t n) {
  if (n < 0) return T(0);
  if (abs(x) == T(1)) return x > T(0) ? T(1) : detail::alternate(n, T(1));
  if (n > 6 && abs(x) < T(1)) return cos(static_cast<T>(n) * acos(x));
  return detail::chebyshev_recurrence(x, n, x);
}

template <class T>
FACULA_SCALAR T chebyshev_polynomial_u(T x, int64_t n) {
  const T count = static_cast<T>(n) + T(1);
  if (n < 0) return T(0);
  if (abs(x) == T(1)) return x > T(0) ? count : detail::alternate(n, count);
  if (n > 8 && abs(x) < T(1)) {
    const T angle = acos(x), s = sin(angle);
    return s != T(0) ? sin(count * angle) / s : count * cos(count * angle) / x;
  }
  return detail::chebyshev_recurrence(x, n, x + x);
}

template <class T>
FACULA_SCALAR T chebyshev_polynomial_v(T x, int64_t n) {
  const T order = static_cast<T>(n), count = order + order + T(1);
  if (n < 0) return T(0);
  if (abs(x) == T(1)) return x > T(0) ? T(1) : detail::alternate(n, count);
  if (n > 8 && abs(x) < T(1)) {
    const T angle = acos(x), c = cos(angle / T(2));
    return c != T(0) ? cos((order + T(0.5)) * angle) / c : detail::alternate(n, count);
  }
  return detail::chebyshev_recurrence(x, n, x + x - T(1));
}

template <class T>
FACULA_SCALAR T chebyshev_polynomial_w(T x, int64_t n) {
  const T order = static_cast<T>(n), count = order + order + T(1);
  if (n < 0) return T(0);
  if (abs(x) == T(1)) return x > T(0) ? count : detail::alternate(n, T(1));
  if (n > 8 && abs(x) < T(1)) {
    const T angle = acos(x), s = sin(angle / T(2));
    return s != T(0) ? sin((order + T(0.5)) * angle) / s : count;
  }
  return detail::chebyshev_recurrence(x, n, x + x + T(1));
}

template <class T>
FACULA_SCALAR T shifted_chebyshev_polynomial_t(T x, int64_t n) {
  return chebyshev_polynomial_t(x + x - T(1), n);
}
template <class T>
FACULA_SCALAR T shifted_chebyshev_polynomial_u(T x, int64_t n) {
  return chebyshev_polynomial_u(x + x - T(1), n);
}
template <class T>
FACULA_SCALAR T shifted_chebyshev_polynomial_v(T x, int64_t n) {
  return chebyshev_polynomial_v(x + x - T(1), n);
}
template <class T>
FACULA_SCALAR T shifted_chebyshev_polynomial_w(T x, int64_t n) {
  return chebyshev_polynomial_w(x + x - T(1), n);
}

// The physicists' Hermite polynomial.
template <class T>
FACULA_SCALAR T hermite_polynomial_h(T x, int64_t n) {
  if (n > detail::hermite_limit<T>) return detail::quiet_nan<T>;
  return detail::recurrence(n, x + x,
                            [x](T k, T now, T before) { return (x + x) * now - (k + k) * before; });
}
// The probabilists' Hermite polynomial.
template <class T>
FACULA_SCALAR T hermite_polynomial_he(T x, int64_t n) {
  if (n > detail::hermite_limit<T>) return detail::quiet_nan<T>;
  return detail::recurrence(n, x, [x](T k, T now, T before) { return x * now - k * before; });
}
template <class T>
FACULA_SCALAR T laguerre_polynomial_l(T x, int64_t n) {
  if (x == T(0)) return n < 0 ? T(0) : T(1);
  return detail::recurrence(n, T(1) - x, [x](T k, T now, T before) {
    return ((k + k + (T(1) - x)) * now - k * before) / (k + T(1));
  });
}
template <class T>
FACULA_SCALAR T legendre_polynomial_p(T x, int64_t n) {
  if (n >= 0 && abs(x) == T(1)) return x > T(0) ? T(1) : detail::alternate(n, T(1));
  return detail::recurrence(n, x, [x](T k, T now, T before) {
    return ((k + k + T(1)) * x * now - k * before) / (k + T(1));
  });
}

}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
