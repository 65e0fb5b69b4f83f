#include "transforms/view_step.h"

#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/shape/slice_scatter.h"
#include "ops/shape/view.h"
#include "ops/shape/view_copy.h"

namespace facula {

Tensor ViewCall::on(const Tensor& value) const {
  std::vector<Value> values;
  for (const OwnedValue& a : args) values.push_back(a.value());
  values[static_cast<size_t>(base)] = pack(value);
  Results<8> made;
  facula::call(*op, values.data(), made.slots);
  const Value& v = made.slots[result];
  return item < 0 ? v.as_tensor() : v.as_tensors()[static_cast<size_t>(item)];
}

std::optional<ViewCall> view_call(const OpCall& c, int result, int item) {
  // Offsets within the storage hold for one base only.
  if (c.op->record->flags & reads_strides) return std::nullopt;
  ViewCall made{c.op, {}, c.info->alias_of[result], result, item};
  for (int i = 0; i < c.info->args; ++i) {
    if (i == made.base) {
      made.args.emplace_back(Value());
      continue;
    }
    const Value& v = c.args[i];
    if (v.is_tensor() || v.tag == Tag::TensorList) return std::nullopt;
    made.args.emplace_back(v);
  }
  return made;
}

namespace {

Tensor bits_as(const Tensor& t, DType dtype, bool copies) {
  return copies ? ops::view_copy(t, dtype) : ops::view(t, dtype);
}

}  // namespace

ViewStep ViewStep::between(const Tensor& from, const Tensor& view) {
  ViewStep s;
  if (view->conj != from->conj) {
    s.kind = ViewStep::Kind::Conjugate;
  } else if (view->neg != from->neg) {
    s.kind = ViewStep::Kind::Negative;
  } else if (view.dtype() == from.dtype()) {
    s.sizes = IntVec(view.sizes());
    s.strides = IntVec(view.strides());
    s.offset = view.storage_offset() - from.storage_offset();
  } else if (is_complex(from.dtype()) && view.dtype() == real_of(from.dtype()) &&
             view.dim() == from.dim() + 1) {
    s.kind = ViewStep::Kind::AsReal;
  } else if (is_complex(view.dtype()) && from.dtype() == real_of(view.dtype()) &&
             view.dim() + 1 == from.dim()) {
    s.kind = ViewStep::Kind::AsComplex;
  } else {
    s.kind = ViewStep::Kind::Bits;
    s.dtype = view.dtype();
    s.base_dtype = from.dtype();
  }
  return s;
}

Tensor ViewStep::view_of(const Tensor& base, bool as_copy) const {
  const bool copies = this->copies && as_copy;
  if (call && !copies) return call->on(base);
  const int64_t from = base.storage_offset() + offset;
  switch (kind) {
    case Kind::Strided:
      return copies ? ops::as_strided_copy(base, sizes, strides, from)
                    : ops::as_strided(base, sizes, strides, from);
    case Kind::Conjugate:
      return copies ? ops::_conj_copy(base) : ops::_conj(base);
    case Kind::Negative:
      return copies ? ops::_neg_view_copy(base) : ops::_neg_view(base);
    case Kind::AsReal:
      return copies ? ops::view_as_real_copy(base) : ops::view_as_real(base);
    case Kind::AsComplex:
      return copies ? ops::view_as_complex_copy(base) : ops::view_as_complex(base);
    case Kind::Bits:
      return bits_as(base, dtype, copies);
  }
  __builtin_unreachable();
}

Tensor ViewStep::put_into(const Tensor& base, const Tensor& view) const {
  switch (kind) {
    case Kind::Strided:
      if (offset == 0 && same_sizes(base.sizes(), sizes) && same_sizes(base.strides(), strides))
        return view;
      return ops::as_strided_scatter(base, view, sizes, strides, base.storage_offset() + offset);
    case Kind::Conjugate:
      return copies ? ops::_conj_copy(view) : ops::_conj(view);
    case Kind::Negative:
      return copies ? ops::_neg_view_copy(view) : ops::_neg_view(view);
    case Kind::AsReal:
      return copies ? ops::view_as_complex_copy(ops::contiguous(view))
                    : ops::view_as_complex(ops::contiguous(view));
    case Kind::AsComplex:
      return copies ? ops::view_as_real_copy(ops::resolve_conj(view))
                    : ops::view_as_real(ops::resolve_conj(view));
    case Kind::Bits:
      return bits_as(ops::contiguous(view), base_dtype, copies);
  }
  __builtin_unreachable();
}

}  // namespace facula
