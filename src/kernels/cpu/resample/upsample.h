// Resampling of images in one to three dimensions, and its gradients.
#pragma once
#include "dispatch/typed.h"
#include "kernels/cpu/resample/upsample_plan.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

using OptionalScale = std::optional<double>;

// One wrapper for each shape of schema; the sizes that they leave out are those of `out`.
FACULA_PER_ISA(
    void resample(const Resampling& how, const Tensor& self, const Tensor& out);
    void resample_backward(const Resampling& how, const Tensor& grad, const Tensor& out);

    template <Filter f>
    void nearest_1d(const Tensor& self, IntSpan, OptionalScale w, const Tensor& out) {
      resample({f, 1, false, {{}, {}, w}}, self, out);
    } template <Filter f>
    void nearest_2d(const Tensor& self, IntSpan, OptionalScale h, OptionalScale w,
                    const Tensor& out) {
      resample({f, 2, false, {{}, h, w}}, self, out);
    } template <Filter f>
    void nearest_3d(const Tensor& self, IntSpan, OptionalScale d, OptionalScale h, OptionalScale w,
                    const Tensor& out) {
      resample({f, 3, false, {d, h, w}}, self, out);
    } template <Filter f>
    void smooth_1d(const Tensor& self, IntSpan, bool align, OptionalScale w, const Tensor& out) {
      resample({f, 1, align, {{}, {}, w}}, self, out);
    } template <Filter f>
    void smooth_2d(const Tensor& self, IntSpan, bool align, OptionalScale h, OptionalScale w,
                   const Tensor& out) {
      resample({f, 2, align, {{}, h, w}}, self, out);
    } template <Filter f>
    void smooth_3d(const Tensor& self, IntSpan, bool align, OptionalScale d, OptionalScale h,
                   OptionalScale w, const Tensor& out) {
      resample({f, 3, align, {d, h, w}}, self, out);
    } template <Filter f>
    void nearest_1d_backward(const Tensor& grad, IntSpan, IntSpan, OptionalScale w,
                             const Tensor& out) {
      resample_backward({f, 1, false, {{}, {}, w}}, grad, out);
    } template <Filter f>
    void nearest_2d_backward(const Tensor& grad, IntSpan, IntSpan, OptionalScale h, OptionalScale w,
                             const Tensor& out) {
      resample_backward({f, 2, false, {{}, h, w}}, grad, out);
    } template <Filter f>
    void nearest_3d_backward(const Tensor& grad, IntSpan, IntSpan, OptionalScale d, OptionalScale h,
                             OptionalScale w, const Tensor& out) {
      resample_backward({f, 3, false, {d, h, w}}, grad, out);
    } template <Filter f>
    void smooth_1d_backward(const Tensor& grad, IntSpan, IntSpan, bool align, OptionalScale w,
                            const Tensor& out) {
      resample_backward({f, 1, align, {{}, {}, w}}, grad, out);
    } template <Filter f>
    void smooth_2d_backward(const Tensor& grad, IntSpan, IntSpan, bool align, OptionalScale h,
                            OptionalScale w, const Tensor& out) {
      resample_backward({f, 2, align, {{}, h, w}}, grad, out);
    } template <Filter f>
    void smooth_3d_backward(const Tensor& grad, IntSpan, IntSpan, bool align, OptionalScale d,
                            OptionalScale h, OptionalScale w, const Tensor& out) {
      resample_backward({f, 3, align, {d, h, w}}, grad, out);
    })

template <Filter f>
inline constexpr KernelRef nearest_1d_kernel = FACULA_BY_ISA(nearest_1d<f>);
template <Filter f>
inline constexpr KernelRef nearest_2d_kernel = FACULA_BY_ISA(nearest_2d<f>);
template <Filter f>
inline constexpr KernelRef nearest_3d_kernel = FACULA_BY_ISA(nearest_3d<f>);
template <Filter f>
inline constexpr KernelRef smooth_1d_kernel = FACULA_BY_ISA(smooth_1d<f>);
template <Filter f>
inline constexpr KernelRef smooth_2d_kernel = FACULA_BY_ISA(smooth_2d<f>);
template <Filter f>
inline constexpr KernelRef smooth_3d_kernel = FACULA_BY_ISA(smooth_3d<f>);
template <Filter f>
inline constexpr KernelRef nearest_1d_backward_kernel = FACULA_BY_ISA(nearest_1d_backward<f>);
template <Filter f>
inline constexpr KernelRef nearest_2d_backward_kernel = FACULA_BY_ISA(nearest_2d_backward<f>);
template <Filter f>
inline constexpr KernelRef nearest_3d_backward_kernel = FACULA_BY_ISA(nearest_3d_backward<f>);
template <Filter f>
inline constexpr KernelRef smooth_1d_backward_kernel = FACULA_BY_ISA(smooth_1d_backward<f>);
template <Filter f>
inline constexpr KernelRef smooth_2d_backward_kernel = FACULA_BY_ISA(smooth_2d_backward<f>);
template <Filter f>
inline constexpr KernelRef smooth_3d_backward_kernel = FACULA_BY_ISA(smooth_3d_backward<f>);

}  // namespace facula::cpu
