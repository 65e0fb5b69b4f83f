// From floats to quantized tensors and back, and what a quantized tensor says of itself.
#include "ops/quantized/quantize.h"

#include <vector>

#include "dispatch/call.h"
#include "ops/create/copy.h"
#include "ops/meta_rules.h"
#include "ops/quantized/parameters.h"
#include "ops/quantized/quantizer.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

Quantizer affine(double scale, int64_t zero_point) {
  Quantizer q;
  q.scale = scale;
  q.zero_point = zero_point;
  return q;
}

Quantizer by_channel(const Tensor& scales, const Tensor& zero_points, int64_t axis) {
  Quantizer q;
  const bool whole = is_integral(zero_points.dtype(), false);
  q.scheme = whole ? QScheme::PerChannelAffine : QScheme::PerChannelAffineFloatQParams;
  q.scales = ops::clone(ops::to(scales, whole ? DType::Float64 : DType::Float32));
  q.zero_points = ops::clone(ops::to(zero_points, whole ? DType::Int64 : DType::Float32));
  q.axis = axis;
  return q;
}

Tensor per_tensor(const Tensor& self, double scale, int64_t zero_point, DType dtype) {
  return quantize(self, dtype, affine(scale, zero_point));
}
Tensor per_tensor_by_tensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                             DType dtype) {
  return per_tensor(self, ops::item(scale).to<double>(), ops::item(zero_point).to<int64_t>(),
                    dtype);
}
std::vector<Tensor> per_tensor_list(std::span<const Tensor> tensors, const Tensor& scales,
                                    const Tensor& zero_points, DType dtype) {
  check(scales.numel() == static_cast<int64_t>(tensors.size()) &&
            zero_points.numel() == scales.numel(),
        "quantize_per_tensor(): expected a scale and a zero point for each tensor; got ",
        scales.numel(), " and ", zero_points.numel(), " for ", tensors.size());
  std::vector<Tensor> made;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    made.push_back(per_tensor_by_tensors(tensors[i], ops::select(ops::reshape(scales, {-1}), 0, at),
                                         ops::select(ops::reshape(zero_points, {-1}), 0, at),
                                         dtype));
  }
  return made;
}
Tensor per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points,
                   int64_t axis, DType dtype) {
  return quantize(self, dtype, by_channel(scales, zero_points, axis));
}

AffineChoice choice_for(const Tensor& self, DType dtype, bool reduce_range) {
  check(dtype == qint8 || dtype == quint8, "dtype ", info(dtype).legacy_name, "not supported");
  check(self.dtype() == DType::Float32, "Quantize only works on Float Tensor, got ",
        info(self.dtype()).legacy_name);
  const IntegerRange r = range_of(dtype);
  float low = 0, high = 0;
  if (self.numel() > 0) {
    low = ops::item(ops::min(self)).to<float>();
    high = ops::item(ops::max(self)).to<float>();
  }
  return choose_parameters(low, high, r.least, r.greatest, {.reduces_range = reduce_range});
}
Tensor per_tensor_dynamic(const Tensor& self, DType dtype, bool reduce_range) {
  const AffineChoice p = choice_for(self, dtype, reduce_range);
  return per_tensor(self, p.scale, p.zero_point, dtype);
}
std::tuple<double, int64_t> parameters_for(const Tensor& self, bool reduce_range) {
  const AffineChoice p = choice_for(self, quint8, reduce_range);
  return {p.scale, p.zero_point};
}

Tensor dequantize(const Tensor& self) {
  return is_quantized(self) ? dequantized(self) : ops::to(self, DType::Float32);
}
std::vector<Tensor> dequantize_list(std::span<const Tensor> tensors) {
  std::vector<Tensor> made;
  for (const Tensor& t : tensors) made.push_back(dequantize(t));
  return made;
}

// --- over given integers

DType quantized_dtype_for(DType integers) {
  if (integers == DType::Int8) return qint8;
  if (integers == DType::UInt8) return quint8;
  if (integers == DType::Int32) return qint32;
  throw Error(ErrorKind::Runtime,
              "Creation of quantized tensor requires quantized dtype like torch.quint8; integers "
              "of ",
              name(integers), " have none");
}
Tensor make_per_tensor(const Tensor& self, double scale, int64_t zero_point) {
  return over_integers(ops::clone(self), quantized_dtype_for(self.dtype()),
                       affine(scale, zero_point));
}
Tensor make_per_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                        int64_t axis) {
  return over_integers(ops::clone(self), quantized_dtype_for(self.dtype()),
                       by_channel(scale, zero_point, axis));
}
// What pickles hold: the memory and the quantizer. The integers are shared.
Tensor over_memory(const Tensor& integers, DType dtype, IntSpan sizes, Quantizer q) {
  check(is_quantized(dtype), "expected a quantized dtype; got ", name(dtype));
  return per_byte(dtype) == 1 ? over_integers(integers, dtype, std::move(q))
                              : over_bytes(integers, sizes, dtype, std::move(q));
}
Tensor over_per_tensor(const Tensor& integers, DType dtype, IntSpan size, double scale,
                       int64_t zero_point) {
  return over_memory(integers, dtype, size, affine(scale, zero_point));
}
Tensor over_per_channel(const Tensor& integers, DType dtype, IntSpan size, const Tensor& scales,
                        const Tensor& zero_points, int64_t axis) {
  return over_memory(integers, dtype, size, by_channel(scales, zero_points, axis));
}

Tensor empty_for(IntSpan size, std::optional<DType> dtype, std::optional<Device> device,
                 const Quantizer& q, std::optional<MemoryFormat> format) {
  if (device && !device->is_cpu())
    throw Error(ErrorKind::NotImplemented, "quantized tensors are on the CPU alone; got device ",
                str(*device));
  return empty_quantized(size, strides_for(size, format.value_or(MemoryFormat::Contiguous)),
                         dtype.value_or(default_dtype()), q);
}
Tensor empty_affine(IntSpan size, std::optional<DType> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>, double scale,
                    int64_t zero_point, std::optional<MemoryFormat> format) {
  return empty_for(size, dtype, device, affine(scale, zero_point), format);
}
Tensor empty_by_channel(IntSpan size, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                        std::optional<DType> dtype, std::optional<Layout>,
                        std::optional<Device> device, std::optional<bool>,
                        std::optional<MemoryFormat> format) {
  return empty_for(size, dtype, device, by_channel(scales, zero_points, axis), format);
}

// --- questions

const Quantizer& asked(const Tensor& self, const char* op) {
  check_kind(ErrorKind::NotImplemented, is_quantized(self), "Could not run 'aten::", op,
             "' with arguments from the 'CPU' backend: ", op, "() needs a quantized tensor; got ",
             name(self.dtype()));
  return quantizer_of(self);
}
Tensor int_repr(const Tensor& self) {
  asked(self, "int_repr");
  return ops::clone(integers_of(self));
}
Tensor shared_integers(const Tensor& self) {
  asked(self, "_shared_int_repr");
  return integers_of(self);
}
double q_scale(const Tensor& self) {
  const Quantizer& q = asked(self, "q_scale");
  check(!q.per_channel(),
        "q_scale(): Expected quantizer->qscheme() == kPerTensorAffine; the tensor is quantized by "
        "channels");
  return q.scale;
}
int64_t q_zero_point(const Tensor& self) {
  const Quantizer& q = asked(self, "q_zero_point");
  check(!q.per_channel(),
        "q_zero_point(): Expected quantizer->qscheme() == kPerTensorAffine; the tensor is "
        "quantized by channels");
  return q.zero_point;
}
const Quantizer& of_channels(const Tensor& self, const char* op) {
  const Quantizer& q = asked(self, op);
  check(q.per_channel(), op, "(): Expected quantizer->qscheme() == kPerChannelAffine; the tensor ",
        "is quantized as a whole");
  return q;
}
Tensor q_per_channel_scales(const Tensor& self) {
  return ops::clone(of_channels(self, "q_per_channel_scales").scales);
}
Tensor q_per_channel_zero_points(const Tensor& self) {
  return ops::clone(of_channels(self, "q_per_channel_zero_points").zero_points);
}
int64_t q_per_channel_axis(const Tensor& self) {
  return of_channels(self, "q_per_channel_axis").axis;
}
int64_t scheme_number(const Tensor& self) {
  return static_cast<int64_t>(asked(self, "qscheme").scheme);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(quantize_per_tensor){
    .schema =
        "quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> "
        "Tensor",
    .doc = "A quantized tensor of self's values (float32), rounded to multiples of scale.",
    .any = typed_kernel<per_tensor>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(quantize_per_tensor_tensor_qparams){
    .schema =
        "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
        "ScalarType dtype) -> Tensor",
    .doc = "A quantized tensor of self's values (float32), rounded to multiples of scale.",
    .any = typed_kernel<per_tensor_by_tensors>,
    .not_differentiable = names("self", "scale", "zero_point", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(quantize_per_tensor_tensors){
    .schema =
        "quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, "
        "ScalarType dtype) -> Tensor[]",
    .doc = "Quantized tensors of several tensors' values, each with its scale and zero point.",
    .any = typed_kernel<per_tensor_list>,
    .not_differentiable = names("tensors", "scales", "zero_points", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(quantize_per_tensor_dynamic){
    .schema =
        "quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> "
        "Tensor",
    .doc = "A quantized tensor of self's values, with scale and zero point that their range gives.",
    .any = typed_kernel<per_tensor_dynamic>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(quantize_per_channel){
    .schema =
        "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, "
        "ScalarType dtype) -> Tensor",
    .doc =
        "A quantized tensor of self's values, with a scale and a zero point for each channel "
        "along axis.",
    .any = typed_kernel<per_channel>,
    .not_differentiable = names("self", "scales", "zero_points", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_choose_qparams_per_tensor){
    .schema = "_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)",
    .doc = "The scale and the zero point of quint8 for self's range.",
    .any = typed_kernel<parameters_for>,
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(dequantize_self){
    .schema = "dequantize.self(Tensor self) -> Tensor",
    .doc = "Self's values as float32.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<dequantize>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(dequantize_tensors){
    .schema = "dequantize.tensors(Tensor[] tensors) -> Tensor[]",
    .doc = "The values of each tensor as float32.",
    .flags = any_layout,
    .any = typed_kernel<dequantize_list>,
    .not_differentiable = names("tensors", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_make_per_tensor_quantized_tensor){
    .schema =
        "_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
    .doc = "A quantized tensor with self's integers (int8, uint8 or int32).",
    .any = typed_kernel<make_per_tensor>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_make_per_channel_quantized_tensor){
    .schema =
        "_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, "
        "int axis) -> Tensor",
    .doc = "A tensor with self's integers (int8, uint8 or int32), quantized by channels.",
    .any = typed_kernel<make_per_channel>,
    .not_differentiable = names("self", "scale", "zero_point", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_over_per_tensor_integers){
    .schema =
        "_over_per_tensor_integers(Tensor integers, ScalarType dtype, SymInt[] size, float "
        "scale, int zero_point) -> Tensor",
    .doc = "A quantized tensor over the memory of `integers`, as a pickle describes it.",
    .forms = hidden,
    .any = typed_kernel<over_per_tensor>,
    .not_differentiable = names("integers", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_over_per_channel_integers){
    .schema =
        "_over_per_channel_integers(Tensor integers, ScalarType dtype, SymInt[] size, Tensor "
        "scales, Tensor zero_points, int axis) -> Tensor",
    .doc =
        "A tensor quantized by channels over the memory of `integers`, as a pickle describes "
        "it.",
    .forms = hidden,
    .any = typed_kernel<over_per_channel>,
    .not_differentiable = names("integers", "scales", "zero_points", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_empty_affine_quantized){
    .schema =
        "_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None, float scale=1, int "
        "zero_point=0, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    .doc = "An uninitialised quantized tensor.",
    .flags = factory | nondeterministic,
    .any = typed_kernel<empty_affine>,
    .not_differentiable = names("result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_empty_per_channel_affine_quantized){
    .schema =
        "_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, "
        "int axis, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
        "pin_memory=None, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    .doc = "An uninitialised tensor that is quantized by channels.",
    .flags = factory | nondeterministic,
    .any = typed_kernel<empty_by_channel>,
    .not_differentiable = names("scales", "zero_points", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(int_repr){
    .schema = "int_repr(Tensor self) -> Tensor",
    .doc = "The integers of a quantized tensor; packed elements as their bytes.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<int_repr>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_shared_int_repr){
    .schema = "_shared_int_repr(Tensor self) -> Tensor",
    .doc = "The integers over the same memory; changes of either are seen in both.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<shared_integers>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(q_scale){
    .schema = "q_scale(Tensor self) -> float",
    .doc = "The scale of a tensor that is quantized as a whole.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<q_scale>,
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(q_zero_point){
    .schema = "q_zero_point(Tensor self) -> int",
    .doc = "The integer that stands for zero in a tensor that is quantized as a whole.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<q_zero_point>,
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(q_per_channel_scales){
    .schema = "q_per_channel_scales(Tensor self) -> Tensor",
    .doc = "The scale of each channel.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<q_per_channel_scales>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(q_per_channel_zero_points){
    .schema = "q_per_channel_zero_points(Tensor self) -> Tensor",
    .doc = "The integer that stands for zero in each channel.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<q_per_channel_zero_points>,
    .not_differentiable = names("self", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(q_per_channel_axis){
    .schema = "q_per_channel_axis(Tensor self) -> int",
    .doc = "The dimension that the channels are along.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<q_per_channel_axis>,
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
OP(_qscheme_number){
    .schema = "_qscheme_number(Tensor self) -> int",
    .doc = "The number of the quantization scheme, as PyTorch counts them.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<scheme_number>,
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
