// Reductions over dimensions.
#include "ops/reduce.h"

#include <algorithm>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/loop.h"
#include "ops/copy.h"
#include "ops/meta_rules.h"
#include "ops/view.h"
#include "ops/view_geometry.h"

namespace facula {
namespace {

// Which dimensions a reduction runs over: none given means all.
IntVec reduced_dims(const std::optional<IntSpan>& dim, int64_t ndim) {
  if (dim && !dim->empty()) return geometry::wrap_dims(*dim, ndim);
  IntVec all;
  for (int64_t d = 0; d < ndim; ++d) all.push_back(d);
  return all;
}

IntVec reduced_sizes(IntSpan sizes, const IntVec& dims, bool keepdim) {
  IntVec out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool gone = std::ranges::find(dims, static_cast<int64_t>(d)) != dims.end();
    if (!gone) out.push_back(sizes[d]);
    if (gone && keepdim) out.push_back(1);
  }
  return out;
}

void meta_sum(Meta& m, const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype) {
  const DType d = dtype.value_or(is_integral(self.dtype(), true) ? DType::Int64 : self.dtype());
  m.result(0, reduced_sizes(self.sizes(), reduced_dims(dim, self.dim()), keepdim), d);
}

template <class T>
void add_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T& to = *reinterpret_cast<T*>(data[0] + i * steps[0]);
    to = static_cast<T>(to + *reinterpret_cast<const T*>(data[1] + i * steps[1]));
  }
}

void sum(const Tensor& self, std::optional<IntSpan> dim, bool, std::optional<DType>, const Tensor& out) {
  const DType wide = compute_of(out.dtype());
  const Tensor in = self.dtype() == wide ? self : cpu::converted(self, wide);
  const Tensor acc = out.dtype() == wide ? out : empty_tensor(out.sizes(), wide);
  cpu::fill(acc, 0);
  const IntVec dims = reduced_dims(dim, self.dim());
  const IntVec kept = reduced_sizes(self.sizes(), dims, true);
  // The result, seen with the input's shape: steps of zero over what is summed.
  IntVec strides(kept.size());
  const bool squeezed = acc.dim() != self.dim();
  for (int64_t d = 0, k = 0; d < self.dim(); ++d) {
    const bool gone = std::ranges::find(dims, d) != dims.end();
    strides[d] = gone ? 0 : acc.strides()[squeezed ? k : d];
    k += !gone;
  }
  cpu::LoopPlan plan(self.sizes());
  plan.add(acc.data(), self.sizes(), strides, acc.itemsize());
  plan.add(in);
  visit_types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t, complex64, complex128>(
      wide, [&]<class T>(Type<T>) { plan.run(&add_row<T>, nullptr, true); });
  if (!acc.is_same(out)) cpu::copy(out, acc);
}

Tensor sum_all(const Tensor& self, std::optional<DType> dtype) {
  return ops::sum(self, std::optional<IntList>(IntList{}), false, dtype);
}

Tensor sum_to_size(const Tensor& self, IntSpan size) {
  const int64_t extra = self.dim() - static_cast<int64_t>(size.size());
  check(extra >= 0, "size {", str(size), "} is not expandable to size {", str(self.sizes()), "}.");
  IntVec dims;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < extra) {
      dims.push_back(d);
      continue;
    }
    check(size[d - extra] == self.sizes()[d] || size[d - extra] == 1, "size {", str(size), "} is not expandable to size {",
          str(self.sizes()), "}.");
    if (size[d - extra] == 1 && self.sizes()[d] != 1) dims.push_back(d);
  }
  if (dims.empty()) return self;
  const Tensor t = ops::sum(self, std::optional<IntList>(dims), true);
  return extra > 0 ? ops::view(t, size) : t;
}

// A gradient of the reduced shape, seen in the input's.
Tensor expanded(Backward& b, const Tensor& grad) {
  const IntSpan sizes = b.sizes("self");
  Tensor g = grad;
  if (!b.flag("keepdim") && !sizes.empty()) {
    IntVec dims = reduced_dims(b.is_none("dim") ? std::nullopt : std::optional<IntSpan>(b.ints("dim")), static_cast<int64_t>(sizes.size()));
    std::ranges::sort(dims);
    for (int64_t d : dims) g = ops::unsqueeze(g, d);
  }
  return ops::expand(g, sizes);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(sum_dim_IntList) {
  .schema = "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .doc = "Sum over the given dimensions, or all.",
  .forms = function | method | out,
  .out_name = "IntList_out",
  .flags = linear,
  .autocast = Autocast::Float32,
  .meta = typed_meta<meta_sum>,
  .cpu = typed_kernel<sum>,
  .derivatives = {vjp("self", [](Backward& b) { return expanded(b, b.grad()); })},
  .batch = batch::reduction,
};
OP(sum) {
  .schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
  .doc = "Sum of all elements.",
  .forms = function | method | out,
  .composite = Composite::Explicit,
  .flags = linear,
  .autocast = Autocast::Float32,
  .any = typed_kernel<sum_all>,
  .derivatives = {vjp("self", [](Backward& b) { return ops::expand(b.grad(), b.sizes("self")); })},
};
OP(sum_to_size) {
  .schema = "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
  .doc = "Sums over the dimensions that broadcasting from `size` to self's sizes would have repeated.",
  .forms = method,
  .composite = Composite::Implicit,
  .flags = same_object,
  .any = typed_kernel<sum_to_size>,
};
