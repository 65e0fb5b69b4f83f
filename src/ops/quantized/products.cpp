// Linear layers and convolutions of quantized tensors. Their weights are packed once, by
// _quantized_pack; Python's objects for packed weights (facula._library.quantized_operators) hold
// what that gives beside the weight itself.
#include "ops/quantized/products.h"

#include <vector>

#include "dispatch/call.h"
#include "kernels/cpu/quantized/product.h"
#include "ops/create/copy.h"
#include "ops/meta_rules.h"
#include "ops/quantized/parameters.h"
#include "ops/quantized/quantize.h"
#include "ops/quantized/quantizer.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// (packed bytes of each group, sums of each row) of weights (groups, n, k).
std::tuple<Tensor, Tensor> packed_weights(const Tensor& weight) {
  check(weight.dim() == 3 && weight.dtype() == DType::Int8,
        "_quantized_pack(): expected int8 weights (groups, rows, columns); got ",
        name(weight.dtype()), " of sizes ", str(weight.sizes()));
  const Tensor w = ops::contiguous(weight);
  const int64_t groups = w.size(0), n = w.size(1), k = w.size(2);
  const Tensor packed = empty_tensor({{groups, cpu::packed_bytes(n, k)}}, DType::Int8),
               sums = empty_tensor({{groups, n}}, DType::Int32);
  for (int64_t g = 0; g < groups; ++g) FACULA_OF_ISA(pack_bytes)
  (w.data<int8_t>() + g * n * k, n, k, packed.data<int8_t>() + g * packed.size(1),
   sums.data<int32_t>() + g * n);
  return {packed, sums};
}

// The weights of a call, checked; `of(group)` is what kernels take.
class PackedWeights {
 public:
  PackedWeights(const Tensor& packed, const Tensor& sums, const Tensor& scales,
                const Tensor& zero_points, const Tensor& bias, int64_t k)
      : packed_(packed),
        sums_(sums),
        scales_(ops::contiguous(ops::to(scales, DType::Float64))),
        zeros_(ops::contiguous(ops::to(zero_points, DType::Int64))),
        k_(k) {
    check(packed.dtype() == DType::Int8 && packed.dim() == 2 && packed.is_contiguous() &&
              sums.dtype() == DType::Int32 && sums.dim() == 2 && sums.is_contiguous() &&
              sums.size(0) == packed.size(0) && k >= 0 &&
              packed.size(1) == cpu::packed_bytes(sums.size(1), k),
          "quantized product: expected weights packed for ", k, " columns; got packed sizes ",
          str(packed.sizes()), " and sums of sizes ", str(sums.sizes()));
    const int64_t rows = sums.numel();
    check((scales_.numel() == 1 || scales_.numel() == rows) && zeros_.numel() == scales_.numel(),
          "quantized product: expected one scale and zero point, or ", rows, "; got ",
          scales_.numel(), " and ", zeros_.numel());
    if (!bias.defined()) return;
    bias_ = ops::contiguous(ops::to(bias, DType::Float32));
    check(bias_.numel() == rows, "quantized product: expected a bias of ", rows, "; got ",
          bias_.numel());
  }

  int64_t groups() const { return sums_.size(0); }
  int64_t rows() const { return sums_.size(1); }
  cpu::ByteWeights of(int64_t group) const {
    const bool one = scales_.numel() == 1;
    const int64_t n = rows(), at = one ? 0 : group * n;
    return {n,
            k_,
            packed_.data<int8_t>() + group * packed_.size(1),
            sums_.data<int32_t>() + group * n,
            scales_.data<double>() + at,
            zeros_.data<int64_t>() + at,
            one ? 1 : n,
            bias_.defined() ? bias_.data<float>() + group * n : nullptr};
  }

 private:
  Tensor packed_, sums_, scales_, zeros_, bias_;
  int64_t k_;
};

void check_input(const Tensor& x, const char* op) {
  check(is_quantized(x) && x.dtype() == quint8, op, "(): Expected input data type quint8; got ",
        name(x.dtype()));
  check(!quantizer_of(x).per_channel(), op, "(): the input must be quantized as a whole");
}

Quantizer result_quantizer(double scale, int64_t zero_point) {
  check(zero_point >= 0 && zero_point <= 255, "quantized product: expected an output zero point ",
        "in [0, 255]; got ", zero_point);
  Quantizer q;
  q.scale = scale;
  q.zero_point = zero_point;
  return q;
}

IntVec linear_sizes(const Tensor& x, const PackedWeights& w, int64_t k) {
  check(w.groups() == 1, "linear: expected weights of one group; got ", w.groups());
  check(x.dim() >= 1 && x.size(-1) == k, "linear: the input's last dimension must be ", k,
        "; got sizes ", str(x.sizes()));
  IntVec sizes(x.sizes());
  sizes.back() = w.rows();
  return sizes;
}

Tensor linear_of_bytes(const Tensor& x, const Tensor& packed, const Tensor& sums,
                       const Tensor& scales, const Tensor& zero_points, const Tensor& bias,
                       int64_t in_features, double output_scale, int64_t output_zero_point,
                       bool relu) {
  check_input(x, "quantized::linear");
  const PackedWeights w(packed, sums, scales, zero_points, bias, in_features);
  const IntVec sizes = linear_sizes(x, w, in_features);
  const Quantizer& q = quantizer_of(x);
  const Tensor rows = ops::contiguous(integers_of(x));
  const Tensor result = empty_tensor(sizes, DType::UInt8);
  if (result.numel() > 0) FACULA_OF_ISA(multiply_bytes)
  ({result.numel() / w.rows(), rows.data<uint8_t>(), in_features, q.scale, q.zero_point}, w.of(0),
   {result.data<uint8_t>(), w.rows(), output_scale, output_zero_point, relu});
  return over_integers(result, quint8, result_quantizer(output_scale, output_zero_point));
}

Tensor linear_dynamic(const Tensor& x, const Tensor& packed, const Tensor& sums,
                      const Tensor& scales, const Tensor& zero_points, const Tensor& bias,
                      int64_t in_features, bool reduce_range, bool relu) {
  check(x.dtype() == DType::Float32, "quantized::linear_dynamic(): expected float32; got ",
        name(x.dtype()));
  const PackedWeights w(packed, sums, scales, zero_points, bias, in_features);
  const IntVec sizes = linear_sizes(x, w, in_features);
  const Tensor result = empty_tensor(sizes, DType::Float32);
  if (result.numel() == 0) return result;
  const Tensor quantized =
      ops::quantize_per_tensor_dynamic(ops::contiguous(x), quint8, reduce_range);
  const Quantizer& q = quantizer_of(quantized);
  FACULA_OF_ISA(multiply_bytes_to_float)
  ({result.numel() / w.rows(), integers_of(quantized).data<uint8_t>(), in_features, q.scale,
    q.zero_point},
   w.of(0), {result.data<float>(), w.rows(), relu});
  return result;
}

// --- convolutions of 1 to 3 spatial dimensions, seen as 3

struct Spatial {
  int64_t of[3];
};
Spatial spatial(IntSpan list, int64_t fill, const char* what, size_t wanted, int64_t least) {
  check(list.size() == wanted, "quantized convolution: expected ", wanted, " numbers for ", what,
        "; got ", list.size());
  Spatial s{{fill, fill, fill}};
  for (size_t i = 0; i < wanted; ++i) {
    check(list[i] >= least && list[i] < (int64_t{1} << 31), "quantized convolution: ", what,
          " must be at least ", least, "; got ", list[i]);
    s.of[3 - wanted + i] = list[i];
  }
  return s;
}

// Channels innermost, in memory.
Tensor channels_inner(const Tensor& x) {
  IntVec order{0};
  for (int64_t d = 2; d < x.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return ops::contiguous(ops::permute(x, order));
}
Tensor channels_second(const Tensor& x) {
  IntVec order{0, x.dim() - 1};
  for (int64_t d = 1; d + 1 < x.dim(); ++d) order.push_back(d);
  return ops::permute(x, order);
}

Tensor convolution(const Tensor& x, const Tensor& packed, const Tensor& sums, const Tensor& scales,
                   const Tensor& zero_points, const Tensor& bias, IntSpan kernel, IntSpan stride,
                   IntSpan padding, IntSpan dilation, double output_scale,
                   int64_t output_zero_point, bool relu) {
  check_input(x, "quantized::conv");
  const size_t dims = kernel.size();
  check(dims >= 1 && dims <= 3 && x.dim() == static_cast<int64_t>(dims) + 2,
        "quantized convolution: expected an input of ", dims + 2, " dimensions; got sizes ",
        str(x.sizes()));
  cpu::ByteConvolution s{};
  const Spatial kernels = spatial(kernel, 1, "kernel_size", dims, 1),
                strides = spatial(stride, 1, "stride", dims, 1),
                paddings = spatial(padding, 0, "padding", dims, 0),
                dilations = spatial(dilation, 1, "dilation", dims, 1),
                inputs = spatial(x.sizes().subspan(2), 1, "the input's sizes", dims, 1);
  check(sums.dim() == 2 && sums.size(0) > 0 && x.size(1) % sums.size(0) == 0,
        "quantized convolution: expected channels in groups; got ", x.size(1));
  s.batch = x.size(0);
  s.channels = x.size(1);
  s.groups = sums.size(0);
  const int64_t taps = kernels.of[0] * kernels.of[1] * kernels.of[2];
  const PackedWeights w(packed, sums, scales, zero_points, bias, taps * (s.channels / s.groups));
  s.outputs = s.groups * w.rows();
  IntVec sizes{s.batch};
  for (int d = 0; d < 3; ++d) {
    s.in[d] = inputs.of[d];
    s.kernel[d] = kernels.of[d];
    s.stride[d] = strides.of[d];
    s.padding[d] = paddings.of[d];
    s.dilation[d] = dilations.of[d];
    s.out[d] =
        (s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
    check(s.in[d] + 2 * s.padding[d] > s.dilation[d] * (s.kernel[d] - 1),
          "quantized convolution: the kernel is larger than the padded input, of sizes ",
          str(x.sizes()));
    if (d >= 3 - static_cast<int>(dims)) sizes.push_back(s.out[d]);
  }
  sizes.push_back(s.outputs);
  const Quantizer& q = quantizer_of(x);
  const Tensor inner = channels_inner(integers_of(x));
  s.data = inner.data<uint8_t>();
  s.scale = q.scale;
  s.zero_point = q.zero_point;
  std::vector<cpu::ByteWeights> groups;
  for (int64_t g = 0; g < s.groups; ++g) groups.push_back(w.of(g));
  const Tensor result = empty_tensor(sizes, DType::UInt8);
  if (result.numel() > 0) FACULA_OF_ISA(convolve_bytes)
  (s, groups.data(), {result.data<uint8_t>(), s.outputs, output_scale, output_zero_point, relu});
  return over_integers(channels_second(result), quint8,
                       result_quantizer(output_scale, output_zero_point));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_quantized_pack){
    .schema = "_quantized_pack(Tensor weight) -> (Tensor packed, Tensor sums)",
    .doc =
        "Weights of int8 (groups, rows, columns) as products of bytes read them, and the sum of "
        "each row.",
    .forms = hidden,
    .any = typed_kernel<packed_weights>,
    .not_differentiable = names("weight", "packed", "sums"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_quantized_linear){
    .schema =
        "_quantized_linear(Tensor self, Tensor packed, Tensor sums, Tensor scales, Tensor "
        "zero_points, Tensor? bias, int in_features, float output_scale, int "
        "output_zero_point, bool relu) -> Tensor",
    .doc = "A linear layer of quint8 with packed weights of int8.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<linear_of_bytes>,
    .not_differentiable = names("self", "packed", "sums", "scales", "zero_points", "bias",
                                "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_quantized_linear_dynamic){
    .schema =
        "_quantized_linear_dynamic(Tensor self, Tensor packed, Tensor sums, Tensor scales, "
        "Tensor zero_points, Tensor? bias, int in_features, bool reduce_range, bool relu) -> "
        "Tensor",
    .doc =
        "A linear layer of floats, which are quantized by their range, with packed weights of "
        "int8.",
    .forms = hidden,
    .any = typed_kernel<linear_dynamic>,
    .not_differentiable = names("self", "packed", "sums", "scales", "zero_points", "bias",
                                "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_quantized_convolution){
    .schema =
        "_quantized_convolution(Tensor self, Tensor packed, Tensor sums, Tensor scales, "
        "Tensor zero_points, Tensor? bias, int[] kernel_size, int[] stride, int[] padding, "
        "int[] dilation, float output_scale, int output_zero_point, bool relu) -> Tensor",
    .doc = "A convolution of quint8 over 1 to 3 dimensions with packed weights of int8.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<convolution>,
    .not_differentiable = names("self", "packed", "sums", "scales", "zero_points", "bias",
                                "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
