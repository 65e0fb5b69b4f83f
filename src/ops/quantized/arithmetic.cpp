// Sums and products of quantized tensors, which are quantized anew.
#include "ops/quantized/arithmetic.h"

#include "kernels/cpu/quantized/arithmetic.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/quantized/quantizer.h"

namespace facula {
namespace {

// Whether the integers of both can be walked side by side in the order of memory.
bool side_by_side(const Tensor& a, const Tensor& b) {
  if (!is_quantized(a) || !is_quantized(b) || a.dtype() != b.dtype()) return false;
  if (per_byte(a.dtype()) > 1 || bits_of(a.dtype()) != 8) return false;
  return !quantizer_of(a).per_channel() && !quantizer_of(b).per_channel() &&
         same_sizes(a.sizes(), b.sizes()) && same_sizes(a.strides(), b.strides()) &&
         is_dense_non_overlapping(a.sizes(), a.strides());
}

cpu::AffineNumbers numbers_of(const Tensor& t, const Tensor& integers) {
  const Quantizer& q = quantizer_of(t);
  return {integers.data(), static_cast<float>(q.scale), static_cast<float>(q.zero_point)};
}

Tensor values_of(const Tensor& t) { return is_quantized(t) ? dequantized(t) : t; }

Tensor binary(const Tensor& a, const Tensor& b, double scale, int64_t zero_point, bool is_product,
              bool relu) {
  Quantizer q;
  q.scale = scale;
  q.zero_point = zero_point;
  if (!side_by_side(a, b)) {
    const Tensor x = values_of(a), y = values_of(b);
    const Tensor values = is_product ? ops::mul(x, y) : ops::add(x, y);
    return quantize(relu ? ops::relu(values) : values, a.dtype(), q);
  }
  check_zero_point(q, a.dtype());
  const Tensor result = empty_quantized(a.sizes(), a.strides(), a.dtype(), q);
  const Tensor left = integers_of(a), right = integers_of(b), integers = integers_of(result);
  const IntegerRange r = range_of(a.dtype());
  const cpu::AffineResult how{static_cast<float>(scale), static_cast<float>(zero_point),
                              static_cast<float>(r.least), static_cast<float>(r.greatest), relu};
  const auto operation =
      is_product ? cpu::QuantizedOperation::Multiply : cpu::QuantizedOperation::Add;
  if (a.numel() > 0) FACULA_OF_ISA(quantized_binary)
  (operation, left.dtype(), numbers_of(a, left), numbers_of(b, right), a.numel(), how,
   integers.data());
  return result;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_quantized_binary){
    .schema =
        "_quantized_binary(Tensor self, Tensor other, float scale, int zero_point, bool "
        "is_product, bool relu) -> Tensor",
    .doc = "The sum or the product of the values of quantized tensors, quantized anew.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<binary>,
    .not_differentiable = names("self", "other", "result"),
    .hole = "quantized tensors exist on the CPU alone, and transforms do not take them",
};
