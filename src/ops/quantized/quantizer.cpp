#include "ops/quantized/quantizer.h"

#include <mutex>
#include <vector>

#include "ops/create/copy.h"
#include "ops/elementwise/comparison.h"
#include "ops/shape/view.h"

namespace facula {

bool Quantizer::operator==(const Quantizer& o) const {
  if (scheme != o.scheme) return false;
  if (!per_channel()) return scale == o.scale && zero_point == o.zero_point;
  return axis == o.axis && ops::equal(scales, o.scales) && ops::equal(zero_points, o.zero_points);
}

namespace {

const ExtensionKind* registered() {
  ExtensionKind kind;
  kind.name = "facula.quantized";
  kind.impl_name = "QTensorImpl";
  kind.dispatch_key = "Quantized";
  kind.quantized = true;
  const ExtensionKind& k = register_extension_kind(kind);
  add_quantized_kernels(k);
  return &k;
}

}  // namespace

const ExtensionKind& quantized_kind() {
  static const ExtensionKind* kind = registered();
  return *kind;
}

bool is_quantized(const Tensor& t) {
  return t.defined() && has_layout_kind(t) && is_quantized(t.dtype()) &&
         t->extension->kind == &quantized_kind();
}

const Quantizer& quantizer_of(const Tensor& t) {
  check(is_quantized(t), "expected a quantized tensor; got one of dtype ", name(t.dtype()));
  return static_cast<const QuantizedExtension*>(t->extension)->quantizer;
}

void set_quantizer(const Tensor& t, Quantizer q) {
  quantizer_of(t);
  static_cast<QuantizedExtension*>(t->extension)->quantizer = std::move(q);
}

namespace {

// A plain header over the tensor's memory.
Tensor plain_header(const Tensor& t, DType dtype, IntSpan sizes, IntSpan strides, int64_t offset) {
  TensorImpl* made = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(made));
  made->storage = t->storage;
  made->offset = offset;
  made->dtype = dtype;
  made->device = t.device();
  made->layers = backend_layer(t.device().type);
  made->set_geometry(sizes, strides);
  return owner;
}

Tensor quantized_header(const Tensor& integers, DType dtype, IntSpan sizes, IntSpan strides,
                        Quantizer q) {
  const Tensor t = plain_header(integers, dtype, sizes, strides, integers.storage_offset());
  t->extension = new QuantizedExtension(quantized_kind(), std::move(q));
  t->layers |= Layer::Layout;
  return t;
}

}  // namespace

Tensor integers_of(const Tensor& t) {
  if (per_byte(t.dtype()) == 1)
    return plain_header(t, integers_of(t.dtype()), t.sizes(), t.strides(), t.storage_offset());
  const auto bytes = static_cast<int64_t>(t->storage->nbytes()), one = int64_t{1};
  return plain_header(t, DType::UInt8, IntSpan(&bytes, 1), IntSpan(&one, 1), 0);
}

void check_channels(const Quantizer& q, IntSpan sizes, const char* what) {
  if (!q.per_channel()) return;
  const auto ndim = static_cast<int64_t>(sizes.size());
  check(q.axis >= 0 && q.axis < ndim, "Channel axis out of range in per channel affine ", what,
        ". Got: ", q.axis, " Expected: [0, ", ndim, ")");
  check(q.scales.dim() == 1 && q.zero_points.dim() == 1,
        "scales and zero_points must be vectors; got ", q.scales.dim(), " and ",
        q.zero_points.dim(), " dimensions");
  check(q.scales.numel() == q.zero_points.numel(),
        "number of elements in scales and zero_points must match; got ", q.scales.numel(), " and ",
        q.zero_points.numel());
  const int64_t channels = sizes[static_cast<size_t>(q.axis)];
  check(q.scales.numel() == channels, "length of scales must equal to channel, expected ", channels,
        " got, ", q.scales.numel());
}

Tensor over_integers(const Tensor& integers, DType dtype, Quantizer q) {
  check(integers.dtype() == integers_of(dtype) && per_byte(dtype) == 1,
        "quantized tensors of dtype ", name(dtype), " are made over ", name(integers_of(dtype)),
        "; got ", name(integers.dtype()));
  check_channels(q, integers.sizes(), "quantization");
  return quantized_header(integers, dtype, integers.sizes(), integers.strides(), std::move(q));
}

Tensor over_bytes(const Tensor& bytes, IntSpan sizes, DType dtype, Quantizer q) {
  const int64_t count = checked_numel(sizes), each = per_byte(dtype);
  check(bytes.dtype() == DType::UInt8 && bytes.is_contiguous() &&
            static_cast<int64_t>(bytes->storage->nbytes()) >= (count + each - 1) / each,
        "expected ", (count + each - 1) / each, " bytes for a tensor of dtype ", name(dtype),
        " and sizes ", str(sizes));
  check_channels(q, sizes, "quantization");
  return quantized_header(bytes, dtype, sizes, contiguous_strides(sizes), std::move(q));
}

Tensor empty_quantized(IntSpan sizes, IntSpan strides, DType dtype, const Quantizer& q) {
  check(is_quantized(dtype),
        "Creation of quantized tensor requires quantized dtype like "
        "torch.quint8; got ",
        name(dtype));
  if (per_byte(dtype) == 1)
    return over_integers(empty_strided_tensor(sizes, strides, integers_of(dtype)), dtype, q);
  const int64_t each = per_byte(dtype), bytes = (checked_numel(sizes) + each - 1) / each;
  return over_bytes(empty_tensor(IntSpan(&bytes, 1), DType::UInt8), sizes, dtype, q);
}

HeldParameters::HeldParameters(const Quantizer& q) : q_(q) {
  if (!q.per_channel()) return;
  const bool whole = q.scheme == QScheme::PerChannelAffine;
  scales_ = ops::contiguous(ops::to(q.scales, DType::Float64));
  zero_points_ = ops::contiguous(ops::to(q.zero_points, whole ? DType::Int64 : DType::Float64));
}

cpu::AffineParameters HeldParameters::view() const {
  if (!q_.per_channel()) return {&q_.scale, &q_.zero_point, nullptr, 1};
  const bool whole = q_.scheme == QScheme::PerChannelAffine;
  return {scales_.data<double>(), whole ? zero_points_.data<int64_t>() : nullptr,
          whole ? nullptr : zero_points_.data<double>(), scales_.numel()};
}

namespace {

cpu::ChannelBlock block_of(const Quantizer& q, IntSpan sizes) {
  cpu::ChannelBlock b;
  b.inner = checked_numel(sizes);
  if (!q.per_channel()) return b;
  b.inner = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    const int64_t n = sizes[static_cast<size_t>(d)];
    (d < q.axis ? b.outer : d == q.axis ? b.channels : b.inner) *= n;
  }
  return b;
}

// Whether elements can be walked in the order of memory.
bool walks_memory(const Tensor& t, const Quantizer& q) {
  if (t.is_contiguous()) return true;
  return !q.per_channel() && is_dense_non_overlapping(t.sizes(), t.strides());
}

void pack(const uint8_t* from, int64_t n, DType dtype, uint8_t* to) {
  const int each = per_byte(dtype), bits = bits_of(dtype);
  for (int64_t i = 0; i < n; ++i) {
    const auto shifted = static_cast<uint8_t>(from[i] << (i % each * bits));
    to[i / each] = i % each ? static_cast<uint8_t>(to[i / each] | shifted) : shifted;
  }
}
void unpack(const uint8_t* from, int64_t n, DType dtype, uint8_t* to) {
  const int each = per_byte(dtype), bits = bits_of(dtype);
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<uint8_t>(from[i / each] >> (i % each * bits) & ((1 << bits) - 1));
}

}  // namespace

void check_zero_point(const Quantizer& q, DType dtype) {
  // PyTorch leaves those of packed elements unchecked.
  if (q.per_channel() || per_byte(dtype) > 1) return;
  const IntegerRange r = range_of(dtype);
  check(q.zero_point >= r.least, "quantize_tensor_per_tensor_affine zero_point ", q.zero_point,
        " is below lower bound.");
  check(q.zero_point <= r.greatest, "quantize_tensor_per_tensor_affine zero_point ", q.zero_point,
        " is above upper bound.");
}

Tensor quantize(const Tensor& given, DType dtype, const Quantizer& q) {
  check(is_quantized(dtype), "ScalarType ", info(dtype).legacy_name,
        " is not supported in new_qtensor.");
  check(given.dtype() == DType::Float32, "Quantize only works on Float Tensor, got ",
        info(given.dtype()).legacy_name);
  if (!given.device().is_cpu())
    throw Error(ErrorKind::NotImplemented, "quantized tensors are on the CPU alone; got device ",
                str(given.device()));
  check_zero_point(q, dtype);
  check_channels(q, given.sizes(), "quantization");
  const bool packed = per_byte(dtype) > 1;
  const Tensor values = !packed && walks_memory(given, q) ? given : ops::contiguous(given);
  const Tensor result = empty_quantized(values.sizes(), values.strides(), dtype, q);
  const HeldParameters held(q);
  const IntegerRange r = range_of(dtype);
  const Tensor integers = packed ? empty_tensor(values.sizes(), DType::UInt8) : integers_of(result);
  if (values.numel() > 0) FACULA_OF_ISA(quantize_block)
  (values.data<float>(), block_of(q, values.sizes()), held.view(), integers.dtype(), r.least,
   r.greatest, integers.data());
  if (packed)
    pack(integers.data<uint8_t>(), integers.numel(), dtype, integers_of(result).data<uint8_t>());
  return result;
}

Tensor dequantized(const Tensor& t) {
  const Quantizer& q = quantizer_of(t);
  check_channels(q, t.sizes(), "dequantization");
  Tensor integers = integers_of(t);
  if (per_byte(t.dtype()) > 1) {
    const Tensor wide = empty_tensor(t.sizes(), DType::UInt8);
    unpack(integers.data<uint8_t>(), t.numel(), t.dtype(), wide.data<uint8_t>());
    integers = wide;
  } else if (!walks_memory(t, q)) {
    integers = ops::contiguous(integers);
  }
  const Tensor values = empty_strided_tensor(integers.sizes(), integers.strides(), DType::Float32);
  const HeldParameters held(q);
  if (values.numel() > 0) FACULA_OF_ISA(dequantize_block)
  (integers.data(), integers.dtype(), block_of(q, integers.sizes()), held.view(),
   values.data<float>());
  return values;
}

}  // namespace facula
