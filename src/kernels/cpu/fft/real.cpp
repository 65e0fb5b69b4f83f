// Transforms of real lines, whose coefficients are conjugates of each other around the middle.
#include "core/complex.h"
#include "kernels/cpu/fft/fft.h"
#include "kernels/cpu/fft/line_block.h"
#include "kernels/cpu/fft/prime_plan.h"
#include "kernels/cpu/fft/real_line_plan.h"
#include "kernels/cpu/fft/real_split_plan.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// The library keeps the coefficients of n real numbers in n rows: the real part of the first, then
// both parts of each. With a row of zeros put behind the first, and for an even n at the end, these
// are complex numbers.
template <int64_t Lanes, class T>
void complete_coefficients(T* rows, int64_t n) {
  std::copy_n(rows + Lanes, Lanes, rows);
  std::fill_n(rows + Lanes, Lanes, T(0));
  if (n % 2 == 0) std::fill_n(rows + (n + 1) * Lanes, Lanes, T(0));
}

// The second half of a line's coefficients.
template <class T>
void mirror(T* line, int64_t step, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) {
    const T* twin = line + 2 * (n - k) * step;
    line[2 * k * step] = twin[0];
    line[2 * k * step + 1] = -twin[1];
  }
}

// The plan for lines that are done one by one, if there is one.
template <class T>
std::shared_ptr<const RealSplitPlan<T>> split_plan(const LinePairs& lines, int64_t n) {
  if (n % 2 != 0 || !should_split<T>(lines, n, 1)) return nullptr;
  const auto plan = plan_of<RealSplitPlan<T>>(n);
  return plan->serves() ? plan : nullptr;
}

// Calls body(plan, arrays and scratch memory as its functions take them), and returns true, where
// lines can be done by the plan of those that lie side by side in memory.
template <int WidthFrom, int WidthTo, class T, class Body>
bool run_line_plan([[maybe_unused]] const LinePairs& lines, [[maybe_unused]] const T* from,
                   [[maybe_unused]] T* to, [[maybe_unused]] int64_t n,
                   [[maybe_unused]] Body&& body) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    if (lines.from_step() != 1 || lines.to_step() != 1 || !RealLinePlan::serves(n)) return false;
    const auto plan = plan_of<RealLinePlan>(n);
    for_each_whole_line<WidthFrom, WidthTo>(lines, from, to, plan->lines_at_once(),
                                            line_cost(n) / 8, plan->scratch(),
                                            [&](auto... arrays) { body(*plan, arrays...); });
    return true;
  }
#endif
  return false;
}

// Of a prime length, through Hartley's transform.
template <class T>
void primes_from_real(const LinePairs& lines, const T* from, T* to, int64_t n, T scale,
                      bool mirrored) {
  const auto plan = plan_of<PrimePlan<T, true>>(n);
  for_each_block<T>(
      lines, n, 3 * n + 1,
      [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes>, const LineStarts<Lanes>& in,
                         const LineStarts<Lanes>& out, T* rows) {
        using Number = std::conditional_t<Lanes == 1, T, PlanVector<T>>;
        load_lines<1>(rows, from, in, n);
        auto* const line = reinterpret_cast<Number*>(rows);
        plan->template run<Number>(line, line + n, scale / 2, true);
        Number* const parts = line + n;
        parts[0] = line[0] + line[0];
        parts[1] = Number{};
        for (int64_t k = 1; k <= n / 2; ++k) {
          parts[2 * k] = line[k] + line[n - k];
          parts[2 * k + 1] = line[n - k] - line[k];
        }
        store_lines<2>(to, rows + n * Lanes, out, n / 2 + 1);
        for (int64_t k = 0; mirrored && k < out.count; ++k)
          mirror(to + 2 * out.start[k], out.step, n);
      });
}

template <class T>
void primes_to_real(const LinePairs& lines, const T* from, T* to, int64_t n, T scale) {
  const auto plan = plan_of<PrimePlan<T, true>>(n);
  for_each_block<T>(
      lines, n, 3 * n + 1,
      [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes>, const LineStarts<Lanes>& in,
                         const LineStarts<Lanes>& out, T* rows) {
        using Number = std::conditional_t<Lanes == 1, T, PlanVector<T>>;
        load_lines<2>(rows + n * Lanes, from, in, n / 2 + 1);
        auto* const line = reinterpret_cast<Number*>(rows);
        const Number* const parts = line + n;
        line[0] = parts[0];
        for (int64_t k = 1; k <= n / 2; ++k) {
          line[k] = parts[2 * k] - parts[2 * k + 1];
          line[n - k] = parts[2 * k] + parts[2 * k + 1];
        }
        plan->template run<Number>(line, line + n, scale, true);
        store_lines<1>(to, rows, out, n);
      });
}

template <class T>
void lines_from_real(const Tensor& from, const Tensor& to, int64_t dim, T scale) {
  const LinePairs lines(from, to, dim);
  const int64_t n = from.sizes()[dim], half = n / 2 + 1;
  const bool mirrored = to.sizes()[dim] > half;
  const T* source = static_cast<const T*>(from.data());
  T* target = static_cast<T*>(to.data());
  const bool done =
      run_line_plan<1, 2>(lines, source, target, n,
                          [&](const auto& plan, const T* first, const T* second, T* to_first,
                              T* to_second, T* scratch) {
                            plan.from_real(first, second, to_first, to_second, scratch, scale);
                            if (mirrored) mirror(to_first, 1, n);
                            if (mirrored && to_second != to_first) mirror(to_second, 1, n);
                          });
  if (done) return;
  if (const auto plan = split_plan<T>(lines, n))
    return for_each_split_line<1, 2>(lines, source, target, n, to.sizes()[dim], plan->scratch(),
                                     [&](const T* line, T* result, T* scratch) {
                                       plan->from_real(line, result, scratch, scale);
                                       if (mirrored) mirror(result, 1, n);
                                     });
  if (PrimePlan<T, true>::serves(n))
    return primes_from_real(lines, source, target, n, scale, mirrored);
  const auto plan = plan_of<RealPlan<T>>(n);
  for_each_block<T>(
      lines, n, n + 2,
      [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes>, const LineStarts<Lanes>& in,
                         const LineStarts<Lanes>& out, T* rows) {
        using Number = std::conditional_t<Lanes == 1, T, PlanVector<T>>;
        load_lines<1>(rows + Lanes, source, in, n);
        plan->exec(reinterpret_cast<Number*>(rows + Lanes), scale, true);
        complete_coefficients<Lanes>(rows, n);
        store_lines<2>(target, rows, out, half);
        for (int64_t k = 0; mirrored && k < out.count; ++k)
          mirror(target + 2 * out.start[k], out.step, n);
      });
}

template <class T>
void lines_to_real(const Tensor& from, const Tensor& to, int64_t dim, T scale) {
  const LinePairs lines(from, to, dim);
  const int64_t n = to.sizes()[dim], half = n / 2 + 1;
  const T* source = static_cast<const T*>(from.data());
  T* target = static_cast<T*>(to.data());
  const bool done = run_line_plan<2, 1>(
      lines, source, target, n,
      [&](const auto& plan, auto... arrays) { plan.to_real(arrays..., scale); });
  if (done) return;
  if (const auto plan = split_plan<T>(lines, n))
    return for_each_split_line<2, 1>(lines, source, target, half, n, plan->scratch() + n,
                                     [&](const T* line, T* result, T* scratch) {
                                       plan->to_real(line, result, scratch,
                                                     scratch + plan->scratch(), scale);
                                     });
  if (PrimePlan<T, true>::serves(n)) return primes_to_real(lines, source, target, n, scale);
  const auto plan = plan_of<RealPlan<T>>(n);
  for_each_block<T>(
      lines, n, 2 * half,
      [&]<int64_t Lanes>(std::integral_constant<int64_t, Lanes>, const LineStarts<Lanes>& in,
                         const LineStarts<Lanes>& out, T* rows) {
        using Number = std::conditional_t<Lanes == 1, T, PlanVector<T>>;
        load_lines<2>(rows, source, in, half);
        std::copy_n(rows, Lanes, rows + Lanes);
        plan->exec(reinterpret_cast<Number*>(rows + Lanes), scale, false);
        store_lines<1>(target, rows + Lanes, out, n);
      });
}

}  // namespace

void transform_from_real(const Tensor& from, const Tensor& to, int64_t dim, double scale) {
  if (from.numel() == 0) return;
  dispatch<float, double>(from.dtype(), "fft_cpu", [&]<class T>(Type<T>) {
    lines_from_real<T>(from, to, dim, static_cast<T>(scale));
  });
}

void transform_to_real(const Tensor& from, const Tensor& to, int64_t dim, double scale) {
  if (to.numel() == 0) return;
  dispatch<float, double>(to.dtype(), "fft_cpu", [&]<class T>(Type<T>) {
    lines_to_real<T>(from, to, dim, static_cast<T>(scale));
  });
}

}  // namespace facula::cpu::FACULA_ISA
