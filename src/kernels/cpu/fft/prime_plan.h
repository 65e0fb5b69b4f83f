// Transforms of a prime length n as convolutions of length n - 1: Rader, "Discrete Fourier
// transforms when the number of data samples is prime" (1968).
//
// The powers of some g are all numbers from 1 to n - 1. With x(g^q) and the coefficient of g^-m in
// these orders, products of indices are sums of exponents: the coefficient of g^-m is x(0) plus the
// sum over q of x(g^q) w(g^(q - m)), where w(j) = exp(-2 pi i j / n).
#pragma once
#include <algorithm>
#include <vector>

#include "kernels/cpu/fft/plans.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {

// Complex lines, or real ones: of these the Hartley transform, whose w(j) = cos(2 pi j / n) +
// sin(2 pi j / n) is real. With H its coefficients, those of Fourier's are
// (H(k) + H(n - k)) / 2 + (H(n - k) - H(k)) / 2 i.
template <class T, bool is_real>
class PrimePlan {
 public:
  template <class V>
  using Number = std::conditional_t<is_real, V, PlanComplex<V>>;

  // Whether this takes less time than the library's plan, with errors as small: below `least`, that
  // one sums up products, from there on it pads to more than twice the length. What n - 1 takes is
  // about the sum of its prime factors for each number; the bound is measured.
  static bool serves(int64_t n) {
    constexpr int64_t least = is_real ? 250 : 100;
    constexpr double most = 100;
    if (n < least || n > longest || !is_prime(n)) return false;
    const auto length = static_cast<double>(n);
    return plan_cost(n - 1) < length * std::min(most, length / 2);
  }

  explicit PrimePlan(size_t length)
      : n_(static_cast<int64_t>(length)), plan_(plan_of<Plan<T>>(n_ - 1)), filter_(length - 1) {
    for (int64_t g = 2; static_cast<int64_t>(powers_.size()) != n_ - 1; ++g) set_powers(g);
    make_filter();
  }

  size_t length() const { return static_cast<size_t>(n_); }

  // Transforms `line`, with `room` for another one. Backward is forward with real and imaginary
  // parts exchanged, before and after; Hartley's transform is its own inverse.
  template <class V>
  void run(Number<V>* line, Number<V>* room, T scale, bool forward) const {
    const auto part = [&](const Number<V>& x) {
      if constexpr (is_real)
        return x;
      else
        return forward ? x : Number<V>{x.i, x.r};
    };
    Number<V>* to = room;
    for (const int64_t at : powers_) *to++ = part(line[at]);
    plan_->exec(room, T(1), true);
    const Number<V> first = part(line[0]), sum = first + room[0];
    apply_filter<V>(room);
    room[0] = room[0] + first;  // which adds it to each of the results
    plan_->exec(room, scale, false);
    line[0] = part(sum * scale);
    line[1] = part(room[0]);
    for (int64_t m = 1; m < n_ - 1; ++m) line[powers_[n_ - 1 - m]] = part(room[m]);
  }

 private:
  template <class Real>
  using Plan = std::conditional_t<is_real, RealPlan<Real>, ComplexPlan<Real>>;
  static constexpr int64_t longest = int64_t{1} << 20;  // caches hold the orders of no more

  void set_powers(int64_t g) {
    powers_.assign(1, 1);
    for (int64_t power = g % n_; power != 1; power = power * g % n_) powers_.push_back(power);
  }

  // In double: what is off here is off in every transform.
  void make_filter() {
    const PlanRoots<double> roots(length());
    std::vector<Number<double>> line(filter_.size());
    for (int64_t q = 0; q < n_ - 1; ++q) {
      const auto root = roots[static_cast<size_t>(powers_[q == 0 ? 0 : n_ - 1 - q])];
      if constexpr (is_real)
        line[q] = root.r + root.i;
      else
        line[q] = {root.r, -root.i};
    }
    plan_of<Plan<double>>(n_ - 1)->exec(line.data(), 1.0 / static_cast<double>(n_ - 1), true);
    for (size_t q = 0; q < line.size(); ++q) {
      if constexpr (is_real)
        filter_[q] = static_cast<T>(line[q]);
      else
        filter_[q] = {static_cast<T>(line[q].r), static_cast<T>(line[q].i)};
    }
  }

  template <class V>
  [[gnu::always_inline]] static void multiply(V& re, V& im, T by_re, T by_im) {
    const V c = V{} + by_re, s = V{} + by_im, old = re;
    re = multiply_add<V>(-s, im, old * c);
    im = multiply_add<V>(s, old, im * c);
  }

  template <class V>
  void apply_filter(Number<V>* room) const {
    if constexpr (is_real) {  // as the library keeps them: the first, pairs of parts, the middle
      room[0] = room[0] * filter_[0];
      for (int64_t k = 1; k < n_ - 2; k += 2)
        multiply<V>(room[k], room[k + 1], filter_[k], filter_[k + 1]);
      room[n_ - 2] = room[n_ - 2] * filter_[n_ - 2];
    } else {
      for (int64_t k = 0; k < n_ - 1; ++k)
        multiply<V>(room[k].r, room[k].i, filter_[k].r, filter_[k].i);
    }
  }

  int64_t n_;
  std::shared_ptr<const Plan<T>> plan_;
  std::vector<int64_t> powers_;
  std::vector<Number<T>> filter_;  // the transform of w(g^-q), over its length
};

}  // namespace facula::cpu::FACULA_ISA
