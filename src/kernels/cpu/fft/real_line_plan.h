// Lines of real numbers that lie side by side in memory, of powers of two: as half as many complex
// ones, by line_plan.h.
#pragma once
#include "kernels/cpu/fft/line_plan.h"
#include "kernels/cpu/fft/real_split_plan.h"

namespace facula::cpu::FACULA_ISA {

#if defined(__AVX512F__)

// As in real_split_plan.h, but the coefficients of the complex line are kept apart from those of
// the real one, so that vectors of pairs may overlap.
class RealLinePlan {
 public:
  static bool serves(int64_t n) {
    return n <= LinePlan::longest && n % 2 == 0 && LinePlan::serves(n / 2);
  }

  explicit RealLinePlan(size_t length)
      : m_(static_cast<int64_t>(length) / 2), plan_(plan_of<LinePlan>(m_)) {
    const PlanRoots<float> roots(length);
    for (int64_t k = 0; k < m_ / 2; k += lanes) {  // -i exp(-2 pi i k / n)
      for (int64_t i = k; i < k + lanes; ++i) turns_.push_back(-roots[static_cast<size_t>(i)].i);
      for (int64_t i = k; i < k + lanes; ++i) turns_.push_back(-roots[static_cast<size_t>(i)].r);
    }
  }

  size_t length() const { return static_cast<size_t>(2 * m_); }
  int64_t lines_at_once() const { return plan_->lines_at_once(); }
  int64_t scratch() const { return plan_->scratch() + 2 * room_of_line(); }

  // Lines of n real numbers to n / 2 + 1 coefficients each.
  void from_real(const float* first, const float* second, float* to_first, float* to_second,
                 float* scratch, float scale) const {
    float* const room = scratch + plan_->scratch();
    plan_->transform<true>(first, second, scratch, scale,
                           [&](int line, int64_t k, auto re, auto im) {
                             float* const to = room + line * room_of_line() + k;
                             Simd<float>::store(to, re);
                             Simd<float>::store(to + m_, im);
                           });
    complete(room, to_first);
    if (lines_at_once() > 1) complete(room + room_of_line(), to_second);
  }

  // The way back.
  void to_real(const float* first, const float* second, float* to_first, float* to_second,
               float* scratch, float scale) const {
    float* const room = scratch + plan_->scratch();
    merge(first, room);
    if (lines_at_once() > 1) merge(second, room + room_of_line());
    plan_->transform<false>(room, room + room_of_line(), scratch, scale,
                            [&](int line, int64_t k, auto re, auto im) {
                              store_complex((line == 0 ? to_first : to_second) + 2 * k,
                                            ComplexLanes<decltype(re)>{im, re});
                            });
  }

 private:
  static constexpr int lanes = Simd<float>::lanes;
  using Numbers = ComplexLanes<Simd<float>::Vec>;

  // The real parts of a line, then the imaginary ones; or both in turn, and a number more.
  int64_t room_of_line() const { return 2 * (m_ + lanes); }

  // Numbers k, k - 1, ... of a line, from the vectors that begin with number k and end before it:
  // a load across both would wait for their stores.
  static Simd<float>::Vec load_backward(const float* part, int64_t k, int64_t m) {
    return backward(Simd<float>::load(part + (k & (m - 1))), Simd<float>::load(part + k - lanes),
                    std::make_index_sequence<size_t{lanes}>());
  }
  template <size_t... I>
  static Simd<float>::Vec backward(Simd<float>::Vec first, Simd<float>::Vec others,
                                   std::index_sequence<I...>) {
    constexpr int end = 2 * lanes;
    return __builtin_shufflevector(first, others, (I == 0 ? 0 : end - static_cast<int>(I))...);
  }

  // From coefficients of complex numbers to those of real ones.
  void complete(const float* line, float* to) const {
    const float *const re = line, *const im = line + m_;
    for (int64_t k = 0; k < m_ / 2; k += lanes) {
      Numbers low{Simd<float>::load(re + k), Simd<float>::load(im + k)},
          high{load_backward(re, m_ - k, m_), load_backward(im, m_ - k, m_)};
      exchange_pair<true, float>(low, high, turns(k));
      store_complex(to + 2 * k, low);
      store_complex<true>(to + 2 * (m_ - k - lanes + 1), high);
    }
    // The first is its own partner's, and infinite sums must not become NaN there.
    to[0] = re[0] + im[0];
    to[2 * m_] = re[0] - im[0];
    to[1] = to[2 * m_ + 1] = 0.0F;
    to[m_] = re[m_ / 2];
    to[m_ + 1] = -im[m_ / 2];
  }

  // From coefficients of real numbers to those of complex ones.
  void merge(const float* from, float* line) const {
    for (int64_t k = 0; k < m_ / 2; k += lanes) {
      const int64_t last = m_ - k - lanes + 1;
      auto low = load_complex(from + 2 * k), high = load_complex<true>(from + 2 * last);
      exchange_pair<false, float>(low, high, turns(k));
      store_complex(line + 2 * k, low);
      store_complex<true>(line + 2 * last, high);
    }
    line[0] = from[0] + from[2 * m_];
    line[1] = from[0] - from[2 * m_];
    line[m_] = 2 * from[m_];
    line[m_ + 1] = -2 * from[m_ + 1];
  }

  Numbers turns(int64_t k) const {
    const float* at = turns_.data() + 2 * k;
    return {Simd<float>::load(at), Simd<float>::load(at + lanes)};
  }

  int64_t m_;
  std::shared_ptr<const LinePlan> plan_;
  std::vector<float> turns_;  // by vectors: real parts, imaginary parts
};

#endif

}  // namespace facula::cpu::FACULA_ISA
