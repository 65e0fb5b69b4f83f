// Elementwise operators of one sparse tensor: what keeps zeros acts on the values alone.
#include "ops/sparse/pointwise_calls.h"

#include <algorithm>

#include "dispatch/backend.h"
#include "dispatch/call.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/comparison.h"
#include "ops/sparse/layouts.h"

namespace facula {
namespace sparse {

Tensor called_with(const OpCall& c, int at, const Tensor& replacement) {
  const Operator* base = c.op->variant == Variant::Base ? c.op : c.op->variant_of(Variant::Base);
  check(base != nullptr, c.op->name(), "(): has no form that makes a new tensor");
  Value args[32];
  std::copy(c.args, c.args + base->info().args, args);
  args[at] = Value::of_tensor(replacement.get());
  return call_tensor(*base, args);
}

const Tensor& values_of(const Tensor& t) {
  return is_coo(t) ? coo(t).values : compressed(t).values;
}

}  // namespace sparse

namespace {

using namespace sparse;

// The place of the call's only tensor argument; -1 where there are none or several.
int only_tensor(const OpCall& c) {
  int at = -1;
  for (int i = 0; i < c.info->base_args; ++i) {
    if (c.args[i].tag == Tag::TensorList) return -1;
    if (!c.args[i].is_tensor()) continue;
    if (at >= 0) return -1;
    at = i;
  }
  return at;
}

bool keeps_zero(const OpCall& c, int at) {
  const Tensor zero = ops::zeros({1}, c.tensor(at).dtype());
  const Tensor found = called_with(c, at, zero);
  return ops::equal(found, ops::zeros_like(found));
}

Tensor on_values(const OpCall& c, int at) {
  const uint32_t flags = c.op->record->flags;
  const Tensor& t = c.tensor(at);
  // Values at one position are added, which only linear functions may do afterwards.
  const Tensor self = is_coo(t) && !(flags & linear) ? coalesced(t) : t;
  return with_values(self, called_with(c, at, values_of(self)));
}

void give(OpCall& c, const Tensor& result) {
  if (c.op->variant == Variant::Base) return set_result(c.results[0], result);
  const int target = c.op->variant == Variant::Inplace ? 0 : c.info->base_args;
  ops::copy_(c.tensor(target), result);
  set_result(c.results[0], Tensor::share(c.args[target].tensor));
}

const Tensor* first_sparse(const OpCall& c) {
  for (int i = 0; i < c.info->args; ++i) {
    const Value& v = c.args[i];
    if (v.is_tensor() && has_layout_kind(v.as_tensor())) return &v.as_tensor();
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors())
        if (t.defined() && has_layout_kind(t)) return &t;
  }
  return nullptr;
}

// By way of the operator's base form, which is looked up anew.
void by_base(OpCall& c) {
  Value args[32];
  const Operator& base = *c.op->variant_of(Variant::Base);
  std::copy(c.args, c.args + base.info().args, args);
  give(c, call_tensor(base, args));
}

// Whether this form writes what another one makes, for which there is a kernel.
bool writes_by_base(const OpCall& c) {
  if (c.op->variant != Variant::Inplace && c.op->variant != Variant::Out) return false;
  const Operator* base = c.op->variant_of(Variant::Base);
  const Tensor* t = first_sparse(c);
  return base && t && has_layout_kernel(*base, *(*t)->extension->kind, t->device().type);
}

void fallback(void*, OpCall& c) {
  const uint32_t flags = c.op->record->flags;
  const bool one_result = c.info->results == 1;
  if (one_result && writes_by_base(c)) return by_base(c);
  const int at = (flags & pointwise) && !(flags & random) && one_result ? only_tensor(c) : -1;
  if (at >= 0 && has_layout_kind(c.tensor(at)) && keeps_zero(c, at))
    return give(c, on_values(c, at));
  if (has_composite_kernel(*c.op)) return run_composite(c);
  const Tensor* t = first_sparse(c);
  check_kind(ErrorKind::NotImplemented, t != nullptr, c.op->name(),
             "(): not implemented for sparse layouts");
  not_implemented(*c.op, *t);
}

const bool registered = [] {
  set_layout_fallback(coo_kind(), fallback, nullptr);
  for (Layout l : {Layout::SparseCsr, Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc})
    set_layout_fallback(compressed_kind(l), fallback, nullptr);
  return true;
}();

}  // namespace

namespace sparse {

void not_implemented(const Operator& op, const Tensor& t) {
  std::string backend = is_strided(t) ? "" : is_coo(t) ? "Sparse" : "SparseCsr";
  const std::string device = str(Device{t.device().type, -1});
  for (char c : device) backend += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  throw Error(ErrorKind::NotImplemented, "Could not run '", op.name(),
              "' with arguments from the '", backend,
              "' backend: it is not implemented for layout ", layout_name(t->layout));
}

}  // namespace sparse
}  // namespace facula
