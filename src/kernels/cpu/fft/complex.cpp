// Transforms of complex lines.
#include "core/complex.h"
#include "kernels/cpu/fft/fft.h"
#include "kernels/cpu/fft/lane_plan.h"
#include "kernels/cpu/fft/line_block.h"
#include "kernels/cpu/fft/line_plan.h"
#include "kernels/cpu/fft/prime_plan.h"
#include "kernels/cpu/fft/short_lines.h"
#include "kernels/cpu/fft/sixteen.h"
#include "kernels/cpu/fft/split_plan.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Without copies to lanes and back where lines lie beside each other and fill the vectors.
template <class T, int64_t Lanes>
bool transform_columns(const LanePlan<T>& plan, const LineStarts<Lanes>& in,
                       const LineStarts<Lanes>& out, const T* from, T* to, T* rows, T scale,
                       bool forward) {
  if constexpr (Lanes > 1) {
    if (in.count < Lanes || in.distance() != 1 || out.distance() != 1) return false;
    const T* source = from + 2 * in.start[0];
    T* target = to + 2 * out.start[0];
    const int64_t in_step = 2 * in.step, out_step = 2 * out.step;
    if (forward)
      plan.run_columns(Columns<T, true>{source, target, in_step, out_step}, rows, scale);
    else
      plan.run_columns(Columns<T, false>{source, target, in_step, out_step}, rows, scale);
    return true;
  }
  return false;
}

template <class T>
void transform_in_lanes(const LinePairs& lines, const T* from, T* to, int64_t n, T scale,
                        bool forward) {
  const bool is_short = is_short_line(n);
  constexpr int64_t longest = lane_bytes / (4 * lanes_of<T> * static_cast<int64_t>(sizeof(T)));
  const auto lane_plan = LanePlan<T>::serves(n) && n <= longest ? plan_of<LanePlan<T>>(n) : nullptr;
  const auto plan = is_short || lane_plan ? nullptr : plan_of<ComplexPlan<T>>(n);
  for_each_block<T>(
      lines, n, plan ? 2 * n : 4 * n,  // only the library's plans work in place
      [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes>, const LineStarts<Lanes>& in,
                         const LineStarts<Lanes>& out, T* rows) {
        using Number = std::conditional_t<Lanes == 1, T, PlanVector<T>>;
        if (lane_plan && transform_columns(*lane_plan, in, out, from, to, rows, scale, forward))
          return;
        load_lines<2>(rows, from, in, n);
        auto* const line = reinterpret_cast<PlanComplex<Number>*>(rows);
        if (plan) {
          plan->exec(line, scale, forward);
          return store_lines<2>(to, rows, out, n);
        }
        auto* result = line + n;
        if (lane_plan)
          result = lane_plan->run(line, line + n, scale, forward);
        else
          transform_short_line(line, result, n, scale, forward);
        store_lines<2>(to, reinterpret_cast<const T*>(result), out, n);
      });
}

template <class T>
void transform_primes(const LinePairs& lines, const T* from, T* to, int64_t n, T scale,
                      bool forward) {
  const auto plan = plan_of<PrimePlan<T, false>>(n);
  for_each_block<T>(
      lines, n, 4 * n,
      [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes>, const LineStarts<Lanes>& in,
                         const LineStarts<Lanes>& out, T* rows) {
        using Number = std::conditional_t<Lanes == 1, T, PlanVector<T>>;
        load_lines<2>(rows, from, in, n);
        auto* const line = reinterpret_cast<PlanComplex<Number>*>(rows);
        plan->template run<Number>(line, line + n, scale, forward);
        store_lines<2>(to, rows, out, n);
      });
}

template <class T>
void transform_lines(const Tensor& from, const Tensor& to, int64_t dim, T scale, bool forward) {
  const LinePairs lines(from, to, dim);
  const int64_t n = from.sizes()[dim];
  const T* source = static_cast<const T*>(from.data());
  T* target = static_cast<T*>(to.data());
  if (transform_as_whole_lines(lines, source, target, n, scale, forward)) return;
  if (should_split<T>(lines, n, 2)) {
    const auto plan = plan_of<SplitPlan<T>>(n);
    if (plan->serves())
      return for_each_split_line<2, 2>(lines, source, target, n, n, plan->scratch(),
                                       [&](const T* line, T* result, T* scratch) {
                                         plan->run(line, result, scratch, scale, forward);
                                       });
  }
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    if (n == 16 && lines.from_step() == 1 && lines.to_step() == 1)
      return transform_sixteens(lines, source, target, scale, forward);
#endif
  if (PrimePlan<T, false>::serves(n))
    return transform_primes(lines, source, target, n, scale, forward);
  transform_in_lanes(lines, source, target, n, scale, forward);
}

}  // namespace

void transform_complex(const Tensor& from, const Tensor& to, int64_t dim, double scale,
                       bool forward) {
  if (from.numel() == 0) return;
  dispatch<ComplexTypes>(from.dtype(), "fft_cpu", [&]<class C>(Type<C>) {
    using T = typename C::value_type;
    transform_lines<T>(from, to, dim, static_cast<T>(scale), forward);
  });
}

}  // namespace facula::cpu::FACULA_ISA
