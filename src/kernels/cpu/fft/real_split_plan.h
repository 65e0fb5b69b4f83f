// One long line of an even number of real numbers: as half as many complex ones, split.
#pragma once
#include "kernels/cpu/fft/neighbours.h"
#include "kernels/cpu/fft/split_plan.h"

namespace facula::cpu::FACULA_ISA {

// With a and b of coefficients k and the conjugate of m - k: their sum plus their difference
// turned, and the conjugate of the sum less it. Numbers or vectors.
template <bool forward, class T, class V>
[[gnu::always_inline]] inline void exchange_pair(ComplexLanes<V>& low, ComplexLanes<V>& high,
                                                 ComplexLanes<V> root) {
  constexpr T half = forward ? T(0.5) : T(1);
  const V c = root.re, s = forward ? root.im : -root.im;
  const V sr = (low.re + high.re) * half, si = (low.im - high.im) * half,
          dr = (low.re - high.re) * half, di = (low.im + high.im) * half;
  const V tr = dr * c - di * s, ti = dr * s + di * c;
  low = {sr + tr, si + ti};
  high = {sr - tr, ti - si};
}

// With m = n / 2, real numbers x stand for complex z(j) = x(2j) + i x(2j + 1). Coefficients k and
// m - k of the ones follow from those of the others.
template <class T>
class RealSplitPlan {
 public:
  explicit RealSplitPlan(size_t length) : n_(length), m_(static_cast<int64_t>(length) / 2) {
    if (length % 2 != 0) return;
    plan_ = plan_of<SplitPlan<T>>(m_);
    if (!serves()) return;
    const PlanRoots<T> roots(length);
    turns_.resize(static_cast<size_t>(m_ + 2));
    for (int64_t k = 0; k <= m_ / 2; ++k) {  // -i exp(-2 pi i k / n)
      const auto root = roots[static_cast<size_t>(k)];
      turns_[static_cast<size_t>(2 * k)] = -root.i;
      turns_[static_cast<size_t>(2 * k + 1)] = -root.r;
    }
  }

  size_t length() const { return n_; }
  bool serves() const { return plan_ && plan_->serves(); }
  int64_t scratch() const { return plan_->scratch(); }

  // n real numbers to n / 2 + 1 coefficients.
  void from_real(const T* from, T* to, T* scratch, T scale) const {
    plan_->run(from, to, scratch, scale, true);
    const T even = to[0], odd = to[1];
    to[0] = even + odd;
    to[2 * m_] = even - odd;
    to[1] = to[2 * m_ + 1] = T(0);
    exchange<true>(to, to);
  }
  // n / 2 + 1 coefficients to n real numbers; `line` is room for n.
  void to_real(const T* from, T* to, T* scratch, T* line, T scale) const {
    line[0] = from[0] + from[2 * m_];
    line[1] = from[0] - from[2 * m_];
    exchange<false>(from, line);
    plan_->run(line, to, scratch, scale, false);
  }

 private:
  static constexpr int64_t lanes = lanes_of<T>;

  // All pairs but that of the first; `to` may be `from`.
  template <bool forward>
  void exchange(const T* from, T* to) const {
    constexpr int64_t cost_of_vector = 60;
    const int64_t vectors = (m_ - 1) / 2 / lanes;
    parallel_for(vectors, chunk_of(cost_of_vector), [&](int64_t begin, int64_t end) {
      for (int64_t k = 1 + begin * lanes; k <= end * lanes; k += lanes) {
        const int64_t last = m_ - k - lanes + 1;
        auto low = load_complex(from + 2 * k), high = load_complex<true>(from + 2 * last);
        exchange_pair<forward, T>(low, high, load_complex(turns_.data() + 2 * k));
        store_complex(to + 2 * k, low);
        store_complex<true>(to + 2 * last, high);
      }
    });
    for (int64_t k = 1 + vectors * lanes; 2 * k <= m_; ++k) {
      const auto number = [](const T* at) { return ComplexLanes<T>{at[0], at[1]}; };
      const auto keep = [](T* at, ComplexLanes<T> v) { at[0] = v.re, at[1] = v.im; };
      auto low = number(from + 2 * k), high = number(from + 2 * (m_ - k));
      exchange_pair<forward, T>(low, high, number(turns_.data() + 2 * k));
      keep(to + 2 * k, low);
      keep(to + 2 * (m_ - k), high);
    }
  }

  size_t n_;
  int64_t m_;
  std::shared_ptr<const SplitPlan<T>> plan_;
  PlanArray<T> turns_;
};

}  // namespace facula::cpu::FACULA_ISA
