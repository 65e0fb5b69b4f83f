#include "ops/index/indexed.h"

#include <tuple>

#include "kernels/cpu/loop/convert.h"

namespace facula::indexed {

Tensor at_least_1d(const Tensor& t) {
  const int64_t one = 1;
  return t.dim() > 0 ? t : alias_tensor(t, {&one, 1}, {&one, 1}, t.storage_offset());
}

Tensor still(const Tensor& t, IntSpan sizes, int64_t dim) {
  IntVec strides(t.strides());
  strides[dim] = 0;
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

Tensor spread_along(const Tensor& offsets, IntSpan sizes, int64_t dim) {
  IntVec strides(sizes.size());
  strides[dim] = 1;
  return alias_tensor(offsets, sizes, strides, 0);
}

Tensor element(const Scalar& value, DType dtype) {
  const Tensor t = empty_tensor({}, dtype);
  // Negative numbers wrap around in unsigned types.
  const bool negative = !value.is_complex() && value.to<double>() < 0;
  const auto check_range = [&]<class T>(Type<T>) {
    const bool wraps = std::is_unsigned_v<T> && negative;
    (wraps ? -value : value).checked_to<T>(name(dtype));
  };
  // Other dtypes hold every number.
  std::ignore =
      visit_integral(dtype, check_range) || visit_types<float, Half, BFloat16>(dtype, check_range);
  if (!is_complex(dtype) && dtype != DType::Bool)
    check(!value.is_complex(), "value cannot be converted to type ", name(dtype),
          " without overflow");
  cpu::fill(t, value);
  return t;
}

Tensor apart_from(const Tensor& read, const Tensor& written) {
  return read->storage == written->storage ? cpu::converted(read, read.dtype()) : read;
}

static void check_apart(const Tensor& to, const Tensor& from) {
  check(memory_overlap(to, from) == Overlap::None,
        "unsupported operation: an input shares memory with the tensor that is written to (use "
        "clone() first)");
}

void check_out(const Meta& m, DType dtype, std::initializer_list<int> apart) {
  const OpCall& c = m.call;
  if (c.op->variant == Variant::Base) return;
  const Tensor& to = c.args[c.op->variant == Variant::Out ? c.info->base_args : 0].as_tensor();
  check(to.dtype() == dtype, "out= must have dtype ", name(dtype), "; got ", name(to.dtype()));
  check(c.op->variant != Variant::Out || !may_self_overlap(to.sizes(), to.strides()),
        "out= must not hold one memory location twice; clone() it first");
  for (int i : apart)
    if (c.args[i].is_tensor()) check_apart(to, c.args[i].as_tensor());
}

void check_join(const Meta& m, std::span<const Tensor> tensors, DType dtype) {
  if (m.call.op->variant != Variant::Out) return;
  const Tensor& to = m.call.args[m.call.info->base_args].as_tensor();
  check_type(can_cast(dtype, to.dtype()), "torch.", m.op_name(),
             "(): out= must have a dtype that the inputs' ", name(dtype), " can be cast to; got ",
             name(to.dtype()));
  for (const Tensor& t : tensors) check_apart(to, t);
}

void check_cpu(const Tensor& t, const char* op) {
  if (!t.device().is_cpu() && !t.is_meta())
    throw Error(ErrorKind::NotImplemented, op, "(): no kernel for the device ", str(t.device()));
}

void start_from(const Tensor& self, const Tensor& out) {
  if (!out.is_same(self)) cpu::copy(out, self);
}

Tensor widened(const Tensor& t) {
  const bool complex_half = t.dtype() == DType::Complex32;
  const DType wide = complex_half ? DType::Complex64 : compute_of(t.dtype());
  return wide == t.dtype() ? t : cpu::converted(t, wide);
}

}  // namespace facula::indexed
