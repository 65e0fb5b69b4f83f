// Resampling of images to another size.
#include "ops/resample/upsample.h"

#include <cmath>

#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "kernels/cpu/resample/upsample.h"

namespace facula {
namespace {

using cpu::Filter;

// --- shape rules

void check_count(const Meta& m, const char* what, IntSpan list, int64_t count) {
  check(static_cast<int64_t>(list.size()) == count, m.op_name(), "(): It is expected ", what,
        " equals to ", count, ", but got size ", list.size());
}

void check_space(const Meta& m, IntSpan input, IntSpan output) {
  for (size_t d = 0; d < output.size(); ++d)
    check(input[d + 2] > 0 && output[d] > 0, m.op_name(),
          "(): sizes of input and output must be positive; got ", str(input), " and ", str(output));
}

IntVec with_space(IntSpan input, IntSpan space) {
  IntVec sizes(input.first(2));
  for (int64_t n : space) sizes.push_back(n);
  return sizes;
}

// The first arguments of every forward operator: self, output_size.
template <int spatial>
void meta_forward(Meta& m) {
  const Tensor& self = m.tensor(0);
  const IntSpan output = m.arg(1).as_ints();
  check_count(m, "output_size", output, spatial);
  check_count(m, "input_size", self.sizes(), spatial + 2);
  check_space(m, self.sizes(), output);
  check(self.sizes()[1] > 0, m.op_name(), "(): input must be ", spatial + 2,
        "D with channels and no empty dimension but the batch; got ", str(self.sizes()));
  m.result_format(0, with_space(self.sizes(), output), self.dtype(), suggested_format(self));
}

// And of every backward one: grad_output, output_size, input_size. Gradients of cubic
// interpolation are contiguous, the others follow the cotangent's memory format.
template <int spatial, bool keeps_format = true>
void meta_backward(Meta& m) {
  const Tensor& grad = m.tensor(0);
  const IntSpan output = m.arg(1).as_ints(), input = m.arg(2).as_ints();
  check_count(m, "output_size", output, spatial);
  check_count(m, "input_size", input, spatial + 2);
  check_space(m, input, output);
  const IntVec sizes = with_space(input, output);
  check(same_sizes(grad.sizes(), sizes), m.op_name(),
        "(): grad_output must have the output's shape, ", str(sizes), "; got ", str(grad.sizes()));
  if (keeps_format) return m.result_format(0, input, grad.dtype(), suggested_format(grad));
  m.result(0, input, grad.dtype());
}

// --- sizes or factors, as interpolate() has them

using Factors = std::optional<std::span<const double>>;
using Scale = std::optional<double>;

IntVec output_size(const Tensor& input, int64_t spatial, const std::optional<IntSpan>& size,
                   const Factors& factors) {
  check(size.has_value() != factors.has_value(),
        "upsample: one of output_size and scale_factors must be given; got both or neither");
  check(input.dim() == spatial + 2, "upsample: input must have ", spatial + 2, " dimensions; got ",
        input.dim());
  const size_t given = size ? size->size() : factors->size();
  check(static_cast<int64_t>(given) == spatial, "expected ", spatial,
        " elements of output_size or scale_factors; got ", given);
  if (size) return IntVec(*size);
  IntVec sizes;
  for (int64_t d = 0; d < spatial; ++d) {
    const double n = static_cast<double>(input.sizes()[d + 2]) * (*factors)[d];
    check(std::abs(n) < 1e15, "scale_factors: expected numbers that give a sensible size; got ",
          (*factors)[d]);
    sizes.push_back(static_cast<int64_t>(n));
  }
  return sizes;
}
Scale factor(const Factors& f, size_t i) { return f ? Scale((*f)[i]) : std::nullopt; }

// One for each shape of schema: the operator's name is that of two functions, so that its type is
// needed to pick one.
template <Tensor (*op)(const Tensor&, IntList, Scale)>
Tensor nearest_vec1(const Tensor& input, const std::optional<IntSpan>& size, const Factors& f) {
  return op(input, output_size(input, 1, size, f), factor(f, 0));
}
template <Tensor (*op)(const Tensor&, IntList, Scale, Scale)>
Tensor nearest_vec2(const Tensor& input, const std::optional<IntSpan>& size, const Factors& f) {
  return op(input, output_size(input, 2, size, f), factor(f, 0), factor(f, 1));
}
template <Tensor (*op)(const Tensor&, IntList, Scale, Scale, Scale)>
Tensor nearest_vec3(const Tensor& input, const std::optional<IntSpan>& size, const Factors& f) {
  return op(input, output_size(input, 3, size, f), factor(f, 0), factor(f, 1), factor(f, 2));
}
template <Tensor (*op)(const Tensor&, IntList, bool, Scale)>
Tensor smooth_vec1(const Tensor& input, const std::optional<IntSpan>& size, bool align,
                   const Factors& f) {
  return op(input, output_size(input, 1, size, f), align, factor(f, 0));
}
template <Tensor (*op)(const Tensor&, IntList, bool, Scale, Scale)>
Tensor smooth_vec2(const Tensor& input, const std::optional<IntSpan>& size, bool align,
                   const Factors& f) {
  return op(input, output_size(input, 2, size, f), align, factor(f, 0), factor(f, 1));
}
template <Tensor (*op)(const Tensor&, IntList, bool, Scale, Scale, Scale)>
Tensor smooth_vec3(const Tensor& input, const std::optional<IntSpan>& size, bool align,
                   const Factors& f) {
  return op(input, output_size(input, 3, size, f), align, factor(f, 0), factor(f, 1), factor(f, 2));
}

Scale scale(const Backward& b, Name n) { return b.is_none(n) ? std::nullopt : Scale(b.number(n)); }

// --- derivatives: each operator's is the operator of its gradient, and the other way round

template <int spatial, class F>
Tensor with_scales(const Backward& b, const F& call) {
  if constexpr (spatial == 1)
    return call(scale(b, "scales"));
  else if constexpr (spatial == 2)
    return call(scale(b, "scales_h"), scale(b, "scales_w"));
  else
    return call(scale(b, "scales_d"), scale(b, "scales_h"), scale(b, "scales_w"));
}
template <int spatial, bool aligns, class Op>
Tensor gradient_of_self(Backward& b) {
  return with_scales<spatial>(b, [&](const auto&... scales) {
    const IntSpan output = b.ints("output_size"), input = b.sizes("self");
    if constexpr (aligns)
      return Op()(b.grad(), output, input, b.flag("align_corners"), scales...);
    else
      return Op()(b.grad(), output, input, scales...);
  });
}
template <int spatial, bool aligns, class Op>
Tensor gradient_of_gradient(Backward& b) {
  return with_scales<spatial>(b, [&](const auto&... scales) {
    const IntSpan output = b.ints("output_size");
    if constexpr (aligns)
      return Op()(b.grad(), output, b.flag("align_corners"), scales...);
    else
      return Op()(b.grad(), output, scales...);
  });
}

// --- records: what is alike in those of one kind

template <int spatial>
constexpr BatchRule fold_rule = spatial == 1   ? &batch::fold1d
                                : spatial == 2 ? &batch::fold2d
                                               : &batch::fold3d;

constexpr OpRecord interpolating(OpRecord r) {
  r.autocast = Autocast::Float32;
  r.autocast_cpu = Autocast::None;
  return r;
}
// The operator itself; `Op` calls the operator of its gradient.
template <int spatial, bool aligns, class Op>
constexpr OpRecord resampling(KernelRef kernel, Op, OpRecord r) {
  r.flags = linear | exact_out;
  r.overlaps = Overlaps::None;
  r.meta = meta_forward<spatial>;
  r.cpu = kernel;
  r.derivatives[0] = vjp("self", gradient_of_self<spatial, aligns, Op>);
  r.batch = fold_rule<spatial>;
  return interpolating(r);
}
// The operator of the gradient; `Op` calls the one whose gradient it is.
template <int spatial, bool aligns, bool keeps_format = true, class Op>
constexpr OpRecord resampling_backward(KernelRef kernel, Op, OpRecord r) {
  r.flags = linear | exact_out;
  r.overlaps = Overlaps::None;
  r.meta = meta_backward<spatial, keeps_format>;
  r.cpu = kernel;
  r.derivatives[0] = vjp("grad_output", gradient_of_gradient<spatial, aligns, Op>);
  r.batch = fold_rule<spatial>;
  r.sizes = names("input_size");
  return r;
}
// The form that takes a size or the factors by which sizes grow.
constexpr OpRecord by_factors(KernelRef kernel, OpRecord r) {
  r.composite = Composite::Implicit;
  r.any = kernel;
  return interpolating(r);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(upsample_nearest1d)
resampling<1, false>(
    cpu::nearest_1d_kernel<Filter::Nearest>,
    [](const auto&... a) { return ops::upsample_nearest1d_backward(a...); },
    {
        .schema = "upsample_nearest1d(Tensor self, SymInt[1] output_size, "
                  "float? scales=None) -> Tensor",
        .doc = "Nearest elements of (batch, channels, length) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_nearest1d_vec)
by_factors(typed_kernel<nearest_vec1<ops::upsample_nearest1d>>,
           {
               .schema = "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? "
                         "scale_factors) -> "
                         "Tensor",
               .doc = "The same, with the size or the factors by which sizes grow.",
               .forms = function,
               .python_module = "nn",
           });
OP(upsample_nearest1d_backward)
resampling_backward<1, false>(
    cpu::nearest_1d_backward_kernel<Filter::Nearest>,
    [](const auto&... a) { return ops::upsample_nearest1d(a...); },
    {
        .schema =
            "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
            "input_size, "
            "float? scales=None) -> Tensor",
        .doc = "Gradient of upsample_nearest1d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(upsample_nearest2d)
resampling<2, false>(
    cpu::nearest_2d_kernel<Filter::Nearest>,
    [](const auto&... a) { return ops::upsample_nearest2d_backward(a...); },
    {
        .schema = "upsample_nearest2d(Tensor self, SymInt[2] output_size, "
                  "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Nearest elements of (batch, channels, height, width) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_nearest2d_vec)
by_factors(typed_kernel<nearest_vec2<ops::upsample_nearest2d>>,
           {
               .schema = "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? "
                         "scale_factors) -> "
                         "Tensor",
               .doc = "The same, with the size or the factors by which sizes grow.",
               .forms = function | out,
               .python_module = "nn",
           });
OP(upsample_nearest2d_backward)
resampling_backward<2, false>(
    cpu::nearest_2d_backward_kernel<Filter::Nearest>,
    [](const auto&... a) { return ops::upsample_nearest2d(a...); },
    {
        .schema =
            "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
            "input_size, "
            "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of upsample_nearest2d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(upsample_nearest3d)
resampling<3, false>(
    cpu::nearest_3d_kernel<Filter::Nearest>,
    [](const auto&... a) { return ops::upsample_nearest3d_backward(a...); },
    {
        .schema = "upsample_nearest3d(Tensor self, SymInt[3] output_size, "
                  "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Nearest elements of (batch, channels, depth, height, width) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_nearest3d_vec)
by_factors(typed_kernel<nearest_vec3<ops::upsample_nearest3d>>,
           {
               .schema = "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? "
                         "scale_factors) -> "
                         "Tensor",
               .doc = "The same, with the size or the factors by which sizes grow.",
               .forms = function,
               .python_module = "nn",
           });
OP(upsample_nearest3d_backward)
resampling_backward<3, false>(
    cpu::nearest_3d_backward_kernel<Filter::Nearest>,
    [](const auto&... a) { return ops::upsample_nearest3d(a...); },
    {
        .schema =
            "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
            "input_size, "
            "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of upsample_nearest3d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(_upsample_nearest_exact1d)
resampling<1, false>(
    cpu::nearest_1d_kernel<Filter::NearestExact>,
    [](const auto&... a) { return ops::_upsample_nearest_exact1d_backward(a...); },
    {
        .schema = "_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, "
                  "float? scales=None) -> Tensor",
        .doc = "Nearest elements, by centres, of (batch, channels, length) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(_upsample_nearest_exact1d_vec)
by_factors(
    typed_kernel<nearest_vec1<ops::_upsample_nearest_exact1d>>,
    {
        .schema = "_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? "
                  "scale_factors) -> Tensor",
        .doc = "The same, with the size or the factors by which sizes grow.",
        .forms = function,
        .python_module = "nn",
    });
OP(_upsample_nearest_exact1d_backward)
resampling_backward<1, false>(cpu::nearest_1d_backward_kernel<Filter::NearestExact>,
                              [](const auto&... a) { return ops::_upsample_nearest_exact1d(a...); },
                              {
                                  .schema = "_upsample_nearest_exact1d_backward(Tensor "
                                            "grad_output, SymInt[1] output_size, SymInt[3] "
                                            "input_size, "
                                            "float? scales=None) -> Tensor",
                                  .doc = "Gradient of _upsample_nearest_exact1d by self.",
                                  .forms = out,
                                  .out_name = "grad_input",
                              });
OP(_upsample_nearest_exact2d)
resampling<2, false>(cpu::nearest_2d_kernel<Filter::NearestExact>,
                     [](const auto&... a) { return ops::_upsample_nearest_exact2d_backward(a...); },
                     {
                         .schema = "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, "
                                   "float? scales_h=None, float? scales_w=None) -> Tensor",
                         .doc = "Nearest elements, by centres, of (batch, channels, height, width) "
                                "at output_size points.",
                         .forms = function | out,
                         .python_module = "nn",
                     });
OP(_upsample_nearest_exact2d_vec)
by_factors(
    typed_kernel<nearest_vec2<ops::_upsample_nearest_exact2d>>,
    {
        .schema = "_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? "
                  "scale_factors) -> Tensor",
        .doc = "The same, with the size or the factors by which sizes grow.",
        .forms = function,
        .python_module = "nn",
    });
OP(_upsample_nearest_exact2d_backward)
resampling_backward<2, false>(cpu::nearest_2d_backward_kernel<Filter::NearestExact>,
                              [](const auto&... a) { return ops::_upsample_nearest_exact2d(a...); },
                              {
                                  .schema = "_upsample_nearest_exact2d_backward(Tensor "
                                            "grad_output, SymInt[2] output_size, SymInt[4] "
                                            "input_size, "
                                            "float? scales_h=None, float? scales_w=None) -> Tensor",
                                  .doc = "Gradient of _upsample_nearest_exact2d by self.",
                                  .forms = out,
                                  .out_name = "grad_input",
                              });
OP(_upsample_nearest_exact3d)
resampling<3, false>(
    cpu::nearest_3d_kernel<Filter::NearestExact>,
    [](const auto&... a) { return ops::_upsample_nearest_exact3d_backward(a...); },
    {
        .schema = "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, "
                  "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Nearest elements, by centres, of (batch, channels, depth, height, width) at "
               "output_size "
               "points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(_upsample_nearest_exact3d_vec)
by_factors(
    typed_kernel<nearest_vec3<ops::_upsample_nearest_exact3d>>,
    {
        .schema = "_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? "
                  "scale_factors) -> Tensor",
        .doc = "The same, with the size or the factors by which sizes grow.",
        .forms = function,
        .python_module = "nn",
    });
OP(_upsample_nearest_exact3d_backward)
resampling_backward<3, false>(
    cpu::nearest_3d_backward_kernel<Filter::NearestExact>,
    [](const auto&... a) { return ops::_upsample_nearest_exact3d(a...); },
    {
        .schema = "_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, "
                  "SymInt[5] "
                  "input_size, "
                  "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of _upsample_nearest_exact3d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(upsample_linear1d)
resampling<1, true>(
    cpu::smooth_1d_kernel<Filter::Linear>,
    [](const auto&... a) { return ops::upsample_linear1d_backward(a...); },
    {
        .schema = "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, "
                  "float? scales=None) -> Tensor",
        .doc = "Linear interpolation of (batch, channels, length) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_linear1d_vec)
by_factors(typed_kernel<smooth_vec1<ops::upsample_linear1d>>,
           {
               .schema = "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool "
                         "align_corners, float[]? "
                         "scale_factors) -> Tensor",
               .doc = "The same, with the size or the factors by which sizes grow.",
               .forms = function,
               .python_module = "nn",
           });
OP(upsample_linear1d_backward)
resampling_backward<1, true>(
    cpu::smooth_1d_backward_kernel<Filter::Linear>,
    [](const auto&... a) { return ops::upsample_linear1d(a...); },
    {
        .schema = "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                  "input_size, bool align_corners, "
                  "float? scales=None) -> Tensor",
        .doc = "Gradient of upsample_linear1d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(upsample_bilinear2d)
resampling<2, true>(
    cpu::smooth_2d_kernel<Filter::Linear>,
    [](const auto&... a) { return ops::upsample_bilinear2d_backward(a...); },
    {
        .schema = "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, "
                  "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Bilinear interpolation of (batch, channels, height, width) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_bilinear2d_vec)
by_factors(typed_kernel<smooth_vec2<ops::upsample_bilinear2d>>,
           {
               .schema = "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool "
                         "align_corners, float[]? "
                         "scale_factors) -> Tensor",
               .doc = "The same, with the size or the factors by which sizes grow.",
               .forms = function | out,
               .python_module = "nn",
           });
OP(upsample_bilinear2d_backward)
resampling_backward<2, true>(
    cpu::smooth_2d_backward_kernel<Filter::Linear>,
    [](const auto&... a) { return ops::upsample_bilinear2d(a...); },
    {
        .schema =
            "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
            "input_size, bool align_corners, "
            "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of upsample_bilinear2d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(upsample_trilinear3d)
resampling<3, true>(
    cpu::smooth_3d_kernel<Filter::Linear>,
    [](const auto&... a) { return ops::upsample_trilinear3d_backward(a...); },
    {
        .schema = "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, "
                  "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Trilinear interpolation of (batch, channels, depth, height, width) at output_size "
               "points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_trilinear3d_vec)
by_factors(
    typed_kernel<smooth_vec3<ops::upsample_trilinear3d>>,
    {
        .schema =
            "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
            "float[]? scale_factors) -> Tensor",
        .doc = "The same, with the size or the factors by which sizes grow.",
        .forms = function,
        .python_module = "nn",
    });
OP(upsample_trilinear3d_backward)
resampling_backward<3, true>(
    cpu::smooth_3d_backward_kernel<Filter::Linear>,
    [](const auto&... a) { return ops::upsample_trilinear3d(a...); },
    {
        .schema =
            "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
            "input_size, bool align_corners, "
            "float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of upsample_trilinear3d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(upsample_bicubic2d)
resampling<2, true>(
    cpu::smooth_2d_kernel<Filter::Cubic>,
    [](const auto&... a) { return ops::upsample_bicubic2d_backward(a...); },
    {
        .schema = "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, "
                  "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Bicubic interpolation of (batch, channels, height, width) at output_size points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(upsample_bicubic2d_vec)
by_factors(typed_kernel<smooth_vec2<ops::upsample_bicubic2d>>,
           {
               .schema = "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool "
                         "align_corners, float[]? "
                         "scale_factors) -> Tensor",
               .doc = "The same, with the size or the factors by which sizes grow.",
               .forms = function,
               .python_module = "nn",
           });
OP(upsample_bicubic2d_backward)
resampling_backward<2, true, false>(
    cpu::smooth_2d_backward_kernel<Filter::Cubic>,
    [](const auto&... a) { return ops::upsample_bicubic2d(a...); },
    {
        .schema =
            "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
            "input_size, bool align_corners, "
            "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of upsample_bicubic2d by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(_upsample_bilinear2d_aa)
resampling<2, true>(
    cpu::smooth_2d_kernel<Filter::AaLinear>,
    [](const auto&... a) { return ops::_upsample_bilinear2d_aa_backward(a...); },
    {
        .schema = "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, "
                  "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Antialiased bilinear resampling of (batch, channels, height, width) at output_size "
               "points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(_upsample_bilinear2d_aa_vec)
by_factors(
    typed_kernel<smooth_vec2<ops::_upsample_bilinear2d_aa>>,
    {
        .schema =
            "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
            "float[]? scale_factors) -> Tensor",
        .doc = "The same, with the size or the factors by which sizes grow.",
        .forms = function,
        .python_module = "nn",
    });
OP(_upsample_bilinear2d_aa_backward)
resampling_backward<2, true>(
    cpu::smooth_2d_backward_kernel<Filter::AaLinear>,
    [](const auto&... a) { return ops::_upsample_bilinear2d_aa(a...); },
    {
        .schema =
            "_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
            "input_size, bool align_corners, "
            "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of _upsample_bilinear2d_aa by self.",
        .forms = out,
        .out_name = "grad_input",
    });
OP(_upsample_bicubic2d_aa)
resampling<2, true>(
    cpu::smooth_2d_kernel<Filter::AaCubic>,
    [](const auto&... a) { return ops::_upsample_bicubic2d_aa_backward(a...); },
    {
        .schema = "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, "
                  "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Antialiased bicubic resampling of (batch, channels, height, width) at output_size "
               "points.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(_upsample_bicubic2d_aa_vec)
by_factors(
    typed_kernel<smooth_vec2<ops::_upsample_bicubic2d_aa>>,
    {
        .schema =
            "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
            "float[]? scale_factors) -> Tensor",
        .doc = "The same, with the size or the factors by which sizes grow.",
        .forms = function,
        .python_module = "nn",
    });
OP(_upsample_bicubic2d_aa_backward)
resampling_backward<2, true, false>(
    cpu::smooth_2d_backward_kernel<Filter::AaCubic>,
    [](const auto&... a) { return ops::_upsample_bicubic2d_aa(a...); },
    {
        .schema =
            "_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
            "input_size, bool align_corners, "
            "float? scales_h=None, float? scales_w=None) -> Tensor",
        .doc = "Gradient of _upsample_bicubic2d_aa by self.",
        .forms = out,
        .out_name = "grad_input",
    });
