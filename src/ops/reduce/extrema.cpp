// Minima and maxima, and where they are.
#include "kernels/cpu/reduce/reduction.h"

namespace facula::scalar {

// No element is worse.
template <class A, bool Most>
inline A worst_value() {
  if constexpr (std::is_floating_point_v<A>)
    return Most ? -static_cast<A>(__builtin_inf()) : static_cast<A>(__builtin_inf());
  else if constexpr (std::is_same_v<A, bool>)
    return !Most;
  else if constexpr (std::is_signed_v<A>) {
    constexpr A low = static_cast<A>(A(1) << (8 * sizeof(A) - 1));
    return Most ? low : static_cast<A>(~low);
  } else
    return Most ? A(0) : static_cast<A>(~A(0));
}

// A NaN stays. Two plain selects become vector instructions.
template <class A, bool Most>
inline A better_value(A a, A x) {
  const A best = (Most ? x > a : x < a) ? x : a;
  if constexpr (std::is_floating_point_v<A>) return x != x ? x : best;
  return best;
}

template <bool Most>
struct extreme {
  using Elements = TypeSet<FloatingTypes, IntegralTypes, bool>;

  template <class T>
  struct Op : Accumulator<T, cpu::accumulate_t<T>, T> {
    using Acc = cpu::accumulate_t<T>;
    Acc init() const { return worst_value<Acc, Most>(); }
    Acc step(Acc a, cpu::stored<T> x, Acc) const {
      return better_value<Acc, Most>(a, convert<Acc>(T(x)));
    }
    Acc combine(Acc a, Acc b) const { return better_value<Acc, Most>(a, b); }
    T finish(Acc a, Acc) const { return convert<T>(a); }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams&) {
    return {};
  }
};
struct amin : extreme<false> {
  static constexpr const char* kernel = "min_values_cpu";
};
struct amax : extreme<true> {
  static constexpr const char* kernel = "max_values_cpu";
};
struct min_all : extreme<false> {
  static constexpr const char* kernel = "min_all";
};
struct max_all : extreme<true> {
  static constexpr const char* kernel = "max_all";
};
struct aminmax_low : extreme<false> {
  static constexpr const char* kernel = "aminmax_cpu";
};
struct aminmax_high : extreme<true> {
  static constexpr const char* kernel = "aminmax_cpu";
};

template <bool Most>
struct position {
  using Elements = TypeSet<FloatingTypes, IntegralTypes, bool>;
  static constexpr bool most = Most;
};
struct min_dim : position<false> {
  static constexpr const char* kernel = "min_cpu";
};
struct max_dim : position<true> {
  static constexpr const char* kernel = "max_cpu";
};
struct argmin : position<false> {
  static constexpr const char* kernel = "argmin_cpu";
};
struct argmax : position<true> {
  static constexpr const char* kernel = "argmax_cpu";
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/reduce/extrema.h"

#include "dispatch/out_dtype.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/minmax.h"
#include "ops/index/scatter.h"
#include "ops/reduce/batch.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

void check_real(const char* op, DType d) {
  check_type(!is_complex(d), op, "(): does not support complex input");
}

// --- values

template <bool largest>
void meta_extreme(Meta& m, const Tensor& self, IntSpan dim, bool keepdim) {
  const char* op = m.op_name().c_str();
  const IntVec dims = cpu::reduced_dims(dim, self.dim());
  if (is_complex(self.dtype()))
    not_implemented_for(largest ? "max_values_cpu" : "min_values_cpu", self.dtype());
  reduction::check_not_empty(op, self, dims, !dim.empty());
  if (m.call.op->variant == Variant::Out) {
    const DType given = m.call.tensor(m.call.info->base_args).dtype();
    check(given == self.dtype(), "out= must have input's dtype, ", name(self.dtype()), "; got ",
          name(given));
  }
  reduction::state(m, 0, self, dims, keepdim, self.dtype());
}

void meta_extreme_all(Meta& m, const Tensor& self) {
  if (is_complex(self.dtype())) not_implemented_for((m.op_name() + "_all").c_str(), self.dtype());
  reduction::check_not_empty(m.op_name().c_str(), self, {}, false);
  m.result(0, {}, self.dtype());
}

void meta_aminmax(Meta& m, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_type(!is_complex(self.dtype()), "aminmax not implemented for ",
             info(self.dtype()).legacy_name);
  check(dim || self.numel() > 0,
        "aminmax(): an input without elements has no extremes; dim must be given");
  const IntVec dims =
      dim ? reduction::one_dim(*dim, self.dim()) : cpu::reduced_dims({}, self.dim());
  for (int64_t d : dims)
    check_index(self.sizes()[d] > 0, "aminmax(): a dimension of size 0 cannot be reduced; got dim ",
                d);
  if (m.call.op->variant == Variant::Out) {
    const int first = m.call.info->base_args;
    check_value(memory_overlap(m.call.tensor(first), m.call.tensor(first + 1)) == Overlap::None,
                "aminmax(): min= and max= must not share memory");
  }
  for (int k = 0; k < 2; ++k) {
    reduction::check_out_dtype(m, k, self.dtype());
    reduction::state(m, k, self, dims, keepdim, self.dtype());
  }
}

// Shares the gradient among the elements that equal the result.
Tensor shared(const Tensor& grad, const Tensor& self, const Tensor& result, const IntVec& dims) {
  const Tensor mask = ops::logical_or(ops::eq(self, result),
                                      ops::logical_and(ops::isnan(self), ops::isnan(result)));
  const Tensor count =
      dims.empty() ? ops::sum(mask) : ops::sum(mask, std::optional<IntList>(dims), true);
  return ops::mul(ops::div(grad, count), mask);
}

Tensor extreme_gradient(Backward& b) {
  const IntVec dims = b.sizes("self").empty() ? IntVec() : reduction::dims_of(b);
  return shared(reduction::restored(b, b.grad()), b["self"], reduction::restored(b, b["result"]),
                dims);
}

Tensor extreme_all_gradient(Backward& b) { return shared(b.grad(), b["self"], b["result"], {}); }

void aminmax_gradient(Backward& b) {
  const IntVec dims = b.sizes("self").empty() ? IntVec() : reduction::dims_of(b);
  Tensor sum;
  for (int k = 0; k < 2; ++k) {
    if (!b.grad(k).defined()) continue;
    const Tensor g = shared(reduction::restored(b, b.grad(k)), b["self"],
                            reduction::restored(b, b.result(k)), dims);
    sum = sum.defined() ? ops::add(sum, g) : g;
  }
  b.set("self", sum);
}

// --- values and indices

void meta_extreme_dim(Meta& m, const Tensor& self, int64_t dim, bool keepdim) {
  const IntVec dims = reduction::one_dim(dim, self.dim());
  check_real(m.op_name().c_str(), self.dtype());
  reduction::check_not_empty(m.op_name().c_str(), self, dims, true);
  reduction::state(m, 0, self, dims, keepdim, self.dtype());
  reduction::state(m, 1, self, dims, keepdim, DType::Int64);
  reduction::check_out_dtype(m, 0, self.dtype());
  reduction::check_out_dtype(m, 1, DType::Int64);
}

void meta_arg(Meta& m, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const char* op = m.op_name().c_str();
  const IntVec dims =
      dim ? reduction::one_dim(*dim, self.dim()) : cpu::reduced_dims({}, self.dim());
  check_index(dim || self.numel() > 0, op, "(): dim must be given for an input without elements");
  reduction::check_not_empty(op, self, dims, true);
  check_real(op, self.dtype());
  check_kind(ErrorKind::NotImplemented, self.dtype() != DType::Bool, op,
             "(): does not support bool input");
  reduction::state(m, 0, self, dims, keepdim, DType::Int64);
}

Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim, const Tensor& indices,
                                          IntSpan sizes, bool keepdim) {
  const Tensor zeros = ops::new_zeros(grad, sizes);
  if (sizes.empty()) return ops::add(zeros, grad);
  if (keepdim) return ops::scatter(zeros, dim, indices, grad);
  return ops::scatter(zeros, dim, ops::unsqueeze(indices, dim), ops::unsqueeze(grad, dim));
}

Tensor selected_gradient(Backward& b) {
  if (!b.grad().defined()) return {};
  return ops::value_selecting_reduction_backward(b.grad(), b.integer("dim"), b["indices"],
                                                 b.sizes("self"), b.flag("keepdim"));
}

Tensor max_other(const Tensor& self, const Tensor& other) { return ops::maximum(self, other); }
Tensor min_other(const Tensor& self, const Tensor& other) { return ops::minimum(self, other); }

std::tuple<Tensor, Tensor> _aminmax(const Tensor& self) { return ops::aminmax(self); }
std::tuple<Tensor, Tensor> _aminmax_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return ops::aminmax(self, dim, keepdim);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(amax){
    .schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    .doc =
        "Largest value over the given dimensions, or all; equal largest values share the gradient.",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_extreme<true>>,
    .cpu = cpu::reduction<scalar::amax>,
    .derivatives = {vjp("self", extreme_gradient, saves("self", "result"))},
    .batch = batch::reduction,
};
OP(amin){
    .schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    .doc =
        "Smallest value over the given dimensions, or all; equal smallest values share the "
        "gradient.",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_extreme<false>>,
    .cpu = cpu::reduction<scalar::amin>,
    .derivatives = {vjp("self", extreme_gradient, saves("self", "result"))},
    .batch = batch::reduction,
};
OP(max){
    .schema = "max(Tensor self) -> Tensor",
    .doc = "Largest value of all elements; NaN where there is one.",
    .forms = function | method | out,
    .out_name = "unary_out",
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_extreme_all>,
    .cpu = cpu::reduction<scalar::max_all>,
    .derivatives = {vjp("self", extreme_all_gradient, saves("self", "result"))},
    .node = "MaxBackward1",
    .batch = batch::whole_max,
};
OP(min){
    .schema = "min(Tensor self) -> Tensor",
    .doc = "Smallest value of all elements; NaN where there is one.",
    .forms = function | method | out,
    .out_name = "unary_out",
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_extreme_all>,
    .cpu = cpu::reduction<scalar::min_all>,
    .derivatives = {vjp("self", extreme_all_gradient, saves("self", "result"))},
    .node = "MinBackward1",
    .batch = batch::whole_min,
};
OP(max_dim){
    .schema =
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "Largest values along a dimension and where they are first: int64.",
    .forms = function | method | out,
    .out_name = "dim_max",
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_extreme_dim>,
    .cpu = cpu::arg_reduction<scalar::max_dim>,
    .derivatives = {vjp("self", selected_gradient, saves("indices"))},
    .node = "MaxBackward0",
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(min_dim){
    .schema =
        "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "Smallest values along a dimension and where they are first: int64.",
    .forms = function | method | out,
    .out_name = "dim_min",
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_extreme_dim>,
    .cpu = cpu::arg_reduction<scalar::min_dim>,
    .derivatives = {vjp("self", selected_gradient, saves("indices"))},
    .node = "MinBackward0",
    .not_differentiable = names("indices"),
    .batch = batch::dims,
};
OP(max_other){
    .schema = "max.other(Tensor self, Tensor other) -> Tensor",
    .doc = "The larger of two values, elementwise: maximum().",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .any = typed_kernel<max_other>,
};
OP(min_other){
    .schema = "min.other(Tensor self, Tensor other) -> Tensor",
    .doc = "The smaller of two values, elementwise: minimum().",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .any = typed_kernel<min_other>,
};
OP(aminmax){
    .schema =
        "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    .doc = "Smallest and largest values, in all or along a dimension.",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_aminmax>,
    .cpu = cpu::reduction<scalar::aminmax_low, scalar::aminmax_high>,
    .derivatives = {vjp(names("self"), aminmax_gradient, saves("self", "min", "max"))},
    .batch = batch::arg_reduction,
};
OP(_aminmax){
    .schema = "_aminmax(Tensor self) -> (Tensor, Tensor)",
    .doc = "An older name of aminmax() over all elements.",
    .composite = Composite::Implicit,
    .any = typed_kernel<_aminmax>,
};
OP(_aminmax_dim){
    .schema = "_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    .doc = "An older name of aminmax() along a dimension.",
    .composite = Composite::Implicit,
    .any = typed_kernel<_aminmax_dim>,
};
OP(argmax){
    .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Index of the first largest value along a dimension, or among all elements: int64.",
    .forms = function | method | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_arg>,
    .cpu = cpu::arg_reduction<scalar::argmax>,
    .not_differentiable = names("self", "result"),
    .batch = batch::arg_reduction,
};
OP(argmin){
    .schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Index of the first smallest value along a dimension, or among all elements: int64.",
    .forms = function | method | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_arg>,
    .cpu = cpu::arg_reduction<scalar::argmin>,
    .not_differentiable = names("self", "result"),
    .batch = batch::arg_reduction,
};
OP(value_selecting_reduction_backward){
    .schema =
        "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, "
        "bool keepdim) -> Tensor",
    .doc = "Zeros of the given sizes with grad put where indices say along dim.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<value_selecting_reduction_backward>,
};
#endif
