// Variances, vector norms, log-sum-exp.
#include "kernels/cpu/reduce/reduction.h"
#include "kernels/cpu/reduce/softmax_parts.h"
#include "kernels/scalar/math.h"

namespace facula::scalar {

// The numbers that squares are taken around: means as doubles.
struct mean_of_squares {
  using Elements = FloatingTypes;
  static constexpr const char* kernel = "std_cpu";

  template <class T>
  struct Op : Accumulator<T, double, double> {
    double count;
    double init() const { return 0; }
    double step(double a, T x, double) const { return a + convert<double>(x); }
    double combine(double a, double b) const { return a + b; }
    double finish(double a, double) const { return a / count; }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams& p) {
    return {{}, static_cast<double>(p.count)};
  }
};

struct squares {
  using Elements = FloatingTypes;
  static constexpr const char* kernel = "std_cpu";
  static constexpr const char* number = "correction";

  template <class T>
  struct Op : Accumulator<T, double, T> {
    static constexpr bool centered = true;
    double divisor;
    bool root;
    double init() const { return 0; }
    double step(double a, T x, double mean) const {
      const double d = convert<double>(x) - mean;
      return a + d * d;
    }
    double combine(double a, double b) const { return a + b; }
    T finish(double a, double) const {
      const double v = a / divisor;
      return convert<T>(root ? __builtin_sqrt(v) : v);
    }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams& p) {
    const double left = static_cast<double>(p.count) - p.number.value_or(1);
    return {{}, left > 0 ? left : 0, p.root};
  }
};

// --- logsumexp

// What exponentials are taken relative to: the largest element.
struct top_of_exponentials {
  using Elements = FloatingTypes;
  static constexpr const char* kernel = "logsumexp";

  template <class T>
  struct Op : Accumulator<T, cpu::accumulate_t<T>, cpu::accumulate_t<T>> {
    using Acc = cpu::accumulate_t<T>;
    Acc init() const { return -static_cast<Acc>(__builtin_inf()); }
    Acc step(Acc a, T x, Acc) const { return combine(a, convert<Acc>(x)); }
    Acc combine(Acc a, Acc b) const {
      const Acc top = b > a ? b : a;
      return b != b ? b : top;  // NaN stays
    }
    Acc finish(Acc a, Acc) const { return a; }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams&) {
    return {};
  }
};

struct log_of_exponentials {
  using Elements = FloatingTypes;
  static constexpr const char* kernel = "logsumexp";

  // Functions are always inlined: they call what each instruction set has its own copy of.
  template <class T>
  struct Op : Accumulator<T, cpu::accumulate_t<T>, T> {
    using Acc = cpu::accumulate_t<T>;
    static constexpr bool centered = true, costly = true;
    Acc init() const { return 0; }
    FACULA_SCALAR Acc step(Acc a, T x, Acc top) const {
      return a + cpu::FACULA_ISA::exp_below(convert<Acc>(x) - top);
    }
    Acc combine(Acc a, Acc b) const { return a + b; }
    // The distance to an infinite top is NaN for some elements.
    FACULA_SCALAR T finish(Acc a, Acc top) const {
      return convert<T>(math::is_inf(top) ? top : math::log(a) + top);
    }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams&) {
    return {};
  }
};

// --- norms

template <class T>
struct Magnitude {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using Result = T;
  static FACULA_SCALAR Real of(T x) { return math::abs(convert<Real>(x)); }
  static FACULA_SCALAR Real square(T x) {
    const Real v = convert<Real>(x);
    return v * v;
  }
  static bool is_nonzero(T x) { return convert<Real>(x) != Real(0); }
};
template <class R>
struct Magnitude<Complex<R>> {
  using Real = R;
  using Result = R;
  static FACULA_SCALAR R of(Complex<R> z) { return math::hypot(z.re, z.im); }
  static FACULA_SCALAR R square(Complex<R> z) { return z.re * z.re + z.im * z.im; }
  static bool is_nonzero(Complex<R> z) { return z.re != R(0) || z.im != R(0); }
};

enum class Norm { Zero, One, Two, Power, Most, Least };

// Functions of these are always inlined: they call what each instruction set has its own copy of.
template <class T, Norm N>
struct NormOp : Accumulator<T, typename Magnitude<T>::Real, typename Magnitude<T>::Result> {
  using Acc = typename Magnitude<T>::Real;
  using Out = typename Magnitude<T>::Result;
  static constexpr bool costly = N == Norm::Power || is_complex_v<T>;
  double p;
  Acc init() const { return N == Norm::Least ? static_cast<Acc>(__builtin_inf()) : Acc(0); }
  FACULA_SCALAR Acc step(Acc a, T x, Acc) const {
    if constexpr (N == Norm::Two) return a + Magnitude<T>::square(x);
    if constexpr (N == Norm::Zero) return a + (Magnitude<T>::is_nonzero(x) ? Acc(1) : Acc(0));
    const Acc v = Magnitude<T>::of(x);
    if constexpr (N == Norm::Power) return a + math::pow(v, static_cast<Acc>(p));
    if constexpr (N == Norm::Most || N == Norm::Least) return pick(a, v);
    return a + v;
  }
  FACULA_SCALAR Acc combine(Acc a, Acc b) const {
    if constexpr (N == Norm::Most || N == Norm::Least) return pick(a, b);
    return a + b;
  }
  FACULA_SCALAR Out finish(Acc a, Acc) const {
    if constexpr (N == Norm::Two) return convert<Out>(math::sqrt(a));
    if constexpr (N == Norm::Power) return convert<Out>(math::pow(a, static_cast<Acc>(1 / p)));
    return convert<Out>(a);
  }
  static Acc pick(Acc a, Acc x) {
    const Acc best = (N == Norm::Most ? x > a : x < a) ? x : a;
    return x != x ? x : best;
  }
};

template <Norm N>
struct norm {
  using Elements = TypeSet<FloatingTypes, ComplexTypes>;
  static constexpr const char* kernel = "norm_cpu";
  static constexpr const char* number = "ord";
  static constexpr bool converts = true;
  template <class T>
  static NormOp<T, N> op(const cpu::ReductionParams& p) {
    return {{}, p.number.value_or(2)};
  }
};
struct norm_zero : norm<Norm::Zero> {};
struct norm_one : norm<Norm::One> {};
struct norm_two : norm<Norm::Two> {};
struct norm_power : norm<Norm::Power> {};
struct norm_most : norm<Norm::Most> {};
struct norm_least : norm<Norm::Least> {};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/reduce/variance.h"

#include <algorithm>
#include <cmath>

#include "dispatch/warnings.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/powers.h"
#include "ops/index/index.h"
#include "ops/reduce/batch.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using MaybeDims = std::optional<IntSpan>;
using MaybeNumber = std::optional<Scalar>;

std::optional<IntList> list(const MaybeDims& dim) {
  return dim ? std::optional(IntList(*dim)) : std::nullopt;
}

// --- variance

void check_variance(const Meta& m, const Tensor& self) {
  const bool with_mean = m.call.info->results == 2;
  check_kind(ErrorKind::NotImplemented, is_differentiable(self.dtype()),
             with_mean ? m.op_name() : std::string("std and var"),
             " only support floating point and complex dtypes");
}

void warn_without_freedom(const Meta& m, const Tensor& self, const IntVec& dims,
                          const MaybeNumber& correction) {
  int64_t count = self.numel() == 0 ? 0 : 1;
  for (const int64_t d : dims) count *= self.sizes()[d];
  const double less = correction ? correction->to<double>() : 1;
  if (static_cast<double>(count) > less) return;
  warn(concat(m.op_name(),
              "(): expected more elements than correction, degrees of freedom are "
              "none; got ",
              count, " and ", less));
}

void meta_variance(Meta& m, const Tensor& self, MaybeDims dim, const MaybeNumber& correction,
                   bool keepdim) {
  check_variance(m, self);
  const IntVec dims = cpu::reduced_dims(dim, self.dim());
  warn_without_freedom(m, self, dims, correction);
  reduction::state(m, 0, self, dims, keepdim, real_of(self.dtype()));
  if (m.call.info->results == 2) reduction::state(m, 1, self, dims, keepdim, self.dtype());
}

// The overloads with `unbiased` and those without dimensions: corrections of one or zero.
Scalar correction_of(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

Tensor var_all(const Tensor& self, bool unbiased) {
  return ops::var(self, std::nullopt, correction_of(unbiased), false);
}
Tensor var_dims(const Tensor& self, MaybeDims dim, bool unbiased, bool keepdim) {
  return ops::var(self, list(dim), correction_of(unbiased), keepdim);
}
Tensor std_all(const Tensor& self, bool unbiased) {
  return ops::std(self, std::nullopt, correction_of(unbiased), false);
}
Tensor std_dims(const Tensor& self, MaybeDims dim, bool unbiased, bool keepdim) {
  return ops::std(self, list(dim), correction_of(unbiased), keepdim);
}
using Pair = std::tuple<Tensor, Tensor>;
Pair var_mean_all(const Tensor& self, bool unbiased) {
  return ops::var_mean(self, std::nullopt, correction_of(unbiased), false);
}
Pair var_mean_dims(const Tensor& self, MaybeDims dim, bool unbiased, bool keepdim) {
  return ops::var_mean(self, list(dim), correction_of(unbiased), keepdim);
}
Pair std_mean_all(const Tensor& self, bool unbiased) {
  return ops::std_mean(self, std::nullopt, correction_of(unbiased), false);
}
Pair std_mean_dims(const Tensor& self, MaybeDims dim, bool unbiased, bool keepdim) {
  return ops::std_mean(self, list(dim), correction_of(unbiased), keepdim);
}

Tensor variance_gradient(Backward& b, const Tensor& grad) {
  const Tensor self = b["self"];
  const double correction = b.is_none("correction") ? 1 : b.number("correction");
  const double left = std::max(0.0, static_cast<double>(reduction::reduced_count(b)) - correction);
  const Tensor mean =
      self.dim() ? ops::mean(self, std::optional<IntList>(reduction::dims_of(b)), true) : self;
  return ops::mul(ops::mul(reduction::restored(b, grad), 2.0 / left), ops::sub(self, mean));
}
Tensor deviation_gradient(Backward& b, const Tensor& grad, const Tensor& result) {
  const Tensor half = ops::div(grad, ops::mul(result, 2));
  return variance_gradient(b, ops::masked_fill(half, ops::eq(result, 0), Scalar(0)));
}
Tensor mean_gradient(Backward& b, const Tensor& grad) {
  return ops::div(reduction::expanded(b, grad), static_cast<double>(reduction::reduced_count(b)));
}
void set_sum(Backward& b, const Tensor& x, const Tensor& y) {
  b.set("self", x.defined() && y.defined() ? ops::add(x, y) : (x.defined() ? x : y));
}
void var_mean_gradient(Backward& b) {
  set_sum(b, b.grad(0).defined() ? variance_gradient(b, b.grad(0)) : Tensor(),
          b.grad(1).defined() ? mean_gradient(b, b.grad(1)) : Tensor());
}
void std_mean_gradient(Backward& b) {
  set_sum(b, b.grad(0).defined() ? deviation_gradient(b, b.grad(0), b.result(0)) : Tensor(),
          b.grad(1).defined() ? mean_gradient(b, b.grad(1)) : Tensor());
}

// --- norms

void check_norm_dtype(const Tensor& self, DType dtype) {
  check(is_differentiable(dtype),
        "linalg.vector_norm(): dtype must be floating point or complex; got ", name(dtype));
  check(is_complex(self.dtype()) == is_complex(dtype), "linalg.vector_norm: dtype should be ",
        is_complex(self.dtype()) ? "complex" : "real", " for ",
        is_complex(self.dtype()) ? "complex" : "real", " inputs, but got ", name(dtype));
  check(promote(self.dtype(), dtype) == dtype, "linalg.vector_norm: the dtype of the input (",
        info(self.dtype()).legacy_name,
        ") should be convertible without narrowing to the specified dtype (",
        info(dtype).legacy_name, ")");
}

void meta_vector_norm(Meta& m, const Tensor& self, const Scalar& ord, MaybeDims dim, bool keepdim,
                      std::optional<DType> dtype) {
  check_kind(ErrorKind::NotImplemented, is_differentiable(self.dtype()),
             "linalg.vector_norm(): input must be floating point or complex; got ",
             name(self.dtype()));
  if (dtype) check_norm_dtype(self, *dtype);
  check(!ord.is_complex(), "linalg.vector_norm(): ord must be real; got a complex number");
  const IntVec dims = cpu::reduced_dims(dim, self.dim());
  const double p = ord.to<double>();
  if (self.numel() == 0 && (p < 0 || std::isinf(p))) {
    check(dim && !dim->empty(), "linalg.vector_norm(): order ", ord.str(),
          " has no value for an input without elements");
    for (int64_t d : dims)
      check(self.sizes()[d] != 0, "linalg.vector_norm(): order ", ord.str(),
            " has no value over dimension ", d, ", whose size is 0");
  }
  const DType d = real_of(dtype.value_or(self.dtype()));
  reduction::check_out_dtype(m, 0, d);
  reduction::state(m, 0, self, dims, keepdim, d);
}

Tensor norm_all_typed(const Tensor& self, const MaybeNumber& p, DType dtype) {
  return ops::linalg_vector_norm(self, p.value_or(Scalar(2)), std::nullopt, false, dtype);
}
Tensor norm_all(const Tensor& self, const Scalar& p) { return ops::linalg_vector_norm(self, p); }
Tensor norm_dims(const Tensor& self, const MaybeNumber& p, IntSpan dim, bool keepdim) {
  return ops::linalg_vector_norm(self, p.value_or(Scalar(2)), std::optional(IntList(dim)), keepdim);
}
Tensor norm_dims_typed(const Tensor& self, const MaybeNumber& p, IntSpan dim, bool keepdim,
                       DType dtype) {
  return ops::linalg_vector_norm(self, p.value_or(Scalar(2)), std::optional(IntList(dim)), keepdim,
                                 dtype);
}

Tensor zero_where(const Tensor& t, const Tensor& mask) {
  return ops::masked_fill(t, mask, Scalar(0));
}

// Zero where the divisor is, in derivatives of the quotient too.
Tensor quotient_or_zero(const Tensor& of, const Tensor& by) {
  const Tensor none = ops::eq(by, 0);
  return zero_where(ops::div(of, ops::masked_fill(by, none, Scalar(1))), none);
}

Tensor norm_gradient(Backward& b) {
  const Tensor self = b["self"];
  return reduction::vector_norm_gradient(self, reduction::restored(b, b["result"]),
                                         reduction::restored(b, b.grad()), b.number("ord"),
                                         self.dim() ? reduction::dims_of(b) : IntVec());
}

// The position of a loop among those of linalg_vector_norm.
int loop_of_order(const OpCall& c) {
  const double p = c.arg(1).as_scalar().to<double>();
  if (p == 0) return 0;
  if (p == 1) return 1;
  if (p == 2) return 2;
  if (std::isinf(p)) return p > 0 ? 3 : 4;
  return 5;
}

// --- logsumexp

Tensor logsumexp(const Tensor& input, IntSpan dim, bool keepdim) {
  const Tensor self = is_integral(input.dtype(), true) ? ops::to(input, default_dtype()) : input;
  const std::optional<IntList> dims{IntList(dim)};
  if (self.numel() == 0) return ops::log(ops::sum(ops::exp(self), dims, keepdim));
  const Tensor size = is_complex(self.dtype()) ? ops::real(self) : self;
  const Tensor top = ops::amax(size, dim, true);
  const Tensor shift = ops::masked_fill(top, ops::isinf(top), Scalar(0));
  const Tensor sum = ops::log(ops::sum(ops::exp(ops::sub(self, shift)), dims, keepdim));
  const IntVec gone = cpu::reduced_dims(std::optional(dim), self.dim());
  const Tensor seen = keepdim || self.dim() == 0
                          ? shift
                          : ops::reshape(shift, cpu::reduced_sizes(self.sizes(), gone, false));
  return ops::add(sum, seen);
}
// In two passes over memory, which other types and devices do not have.
Tensor logsumexp_on_cpu(const Tensor& self, IntSpan dim, bool keepdim) {
  if (!is_floating(self.dtype()) || self.numel() == 0) return logsumexp(self, dim, keepdim);
  const IntVec gone = cpu::reduced_dims(std::optional(dim), self.dim());
  const Tensor out = empty_tensor(cpu::reduced_sizes(self.sizes(), gone, keepdim), self.dtype());
  const Tensor tops = empty_tensor(IntList{out.numel()}, DType::Float64);
  cpu::reduce_around(cpu::table_in_force(cpu::reduction<scalar::top_of_exponentials>),
                     cpu::table_in_force(cpu::reduction<scalar::log_of_exponentials>), self, gone,
                     {}, out, tops.data());
  return out;
}
Tensor special_logsumexp(const Tensor& self, IntSpan dim, bool keepdim) {
  return ops::logsumexp(self, dim, keepdim);
}

Tensor logsumexp_gradient(Backward& b) {
  const Tensor difference = ops::sub(b["self"], reduction::restored(b, b["result"]));
  return ops::mul(reduction::restored(b, b.grad()), ops::conj(ops::exp(difference)));
}

}  // namespace

Tensor reduction::vector_norm_gradient(const Tensor& self, const Tensor& norm, const Tensor& grad,
                                       double p, const IntVec& dims) {
  if (p == 0) return {};  // a count: no gradient
  if (p == 1) return ops::mul(ops::sgn(self), grad);
  if (p == 2) return ops::mul(self, quotient_or_zero(grad, norm));
  const Tensor size = ops::abs(self);
  if (std::isinf(p)) {
    const Tensor mask = ops::logical_or(ops::eq(size, norm), ops::isnan(size));
    const Tensor count =
        self.dim() ? ops::sum(mask, std::optional<IntList>(dims), true) : ops::sum(mask);
    return ops::mul(ops::mul(ops::sgn(self), ops::div(grad, count)), mask);
  }
  if (p < 1)
    return ops::mul(ops::mul(ops::sgn(self), zero_where(ops::pow(size, p - 1), ops::eq(self, 0))),
                    ops::mul(grad, ops::pow(norm, 1 - p)));
  const Tensor scale = quotient_or_zero(grad, ops::pow(norm, p - 1));
  if (p < 2) return ops::mul(ops::mul(ops::sgn(self), ops::pow(size, p - 1)), scale);
  return ops::mul(ops::mul(self, ops::pow(size, p - 2)), scale);
}

}  // namespace facula

using namespace facula;

OP(var_correction){
    .schema =
        "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> Tensor",
    .doc =
        "Variance over the given dimensions, or all, divided by the number of elements less the "
        "correction (1).",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_variance>,
    .cpu = cpu::variance_reduction<false, scalar::mean_of_squares, scalar::squares>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return variance_gradient(b, b.grad()); }, saves("self"))},
    .batch = batch::reduction,
};
OP(var_dim){
    .schema = "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    .doc = "Variance over the given dimensions.",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .any = typed_kernel<var_dims>,
};
OP(var){
    .schema = "var(Tensor self, bool unbiased=True) -> Tensor",
    .doc = "Variance of all elements.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<var_all>,
};
OP(std_correction){
    .schema =
        "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> Tensor",
    .doc = "Standard deviation over the given dimensions, or all; see var().",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_variance>,
    .cpu = cpu::variance_reduction<true, scalar::mean_of_squares, scalar::squares>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return deviation_gradient(b, b.grad(), b["result"]); },
        saves("self", "result"))},
    .batch = batch::reduction,
};
OP(std_dim){
    .schema = "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    .doc = "Standard deviation over the given dimensions.",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .any = typed_kernel<std_dims>,
};
OP(std){
    .schema = "std(Tensor self, bool unbiased=True) -> Tensor",
    .doc = "Standard deviation of all elements.",
    .forms = function | method,
    .composite = Composite::Implicit,
    .any = typed_kernel<std_all>,
};
OP(var_mean_correction){
    .schema =
        "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)",
    .doc = "Variance and mean over the given dimensions, or all.",
    .forms = function,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_variance>,
    .cpu = cpu::variance_reduction<false, scalar::mean_of_squares, scalar::squares>,
    .derivatives = {vjp(names("self"), var_mean_gradient, saves("self"))},
    .batch = batch::reduction,
};
OP(var_mean_dim){
    .schema =
        "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
        "(Tensor, Tensor)",
    .doc = "Variance and mean over the given dimensions.",
    .composite = Composite::Implicit,
    .any = typed_kernel<var_mean_dims>,
};
OP(var_mean){
    .schema = "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .doc = "Variance and mean of all elements.",
    .composite = Composite::Implicit,
    .any = typed_kernel<var_mean_all>,
};
OP(std_mean_correction){
    .schema =
        "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)",
    .doc = "Standard deviation and mean over the given dimensions, or all.",
    .forms = function,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_variance>,
    .cpu = cpu::variance_reduction<true, scalar::mean_of_squares, scalar::squares>,
    .derivatives = {vjp(names("self"), std_mean_gradient, saves("self", "result0"))},
    .batch = batch::reduction,
};
OP(std_mean_dim){
    .schema =
        "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
        "(Tensor, Tensor)",
    .doc = "Standard deviation and mean over the given dimensions.",
    .composite = Composite::Implicit,
    .any = typed_kernel<std_mean_dims>,
};
OP(std_mean){
    .schema = "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .doc = "Standard deviation and mean of all elements.",
    .composite = Composite::Implicit,
    .any = typed_kernel<std_mean_all>,
};

OP(linalg_vector_norm){
    .schema =
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .doc = "The ord-norm of the elements over the given dimensions, or all, taken as vectors.",
    .forms = function | out,
    .python_module = "linalg",
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_vector_norm>,
    .cpu =
        cpu::chosen_reduction<loop_of_order, scalar::norm_zero, scalar::norm_one, scalar::norm_two,
                              scalar::norm_most, scalar::norm_least, scalar::norm_power>,
    .derivatives = {vjp("self", norm_gradient, saves("self", "result"))},
    .batch = batch::reduction,
};
OP(norm_Scalar){
    .schema = "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    .doc = "The p-norm of all elements.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<norm_all>,
};
OP(norm_ScalarOpt_dim){
    .schema =
        "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    .doc = "The p-norm over the given dimensions.",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<norm_dims>,
};
OP(norm_ScalarOpt_dim_dtype){
    .schema =
        "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
        "dtype) -> Tensor",
    .doc = "The p-norm over the given dimensions, computed in dtype.",
    .forms = function | method | out,
    .out_name = "dtype_out",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<norm_dims_typed>,
};
OP(norm_ScalarOpt_dtype){
    .schema = "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
    .doc = "The p-norm of all elements, computed in dtype.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<norm_all_typed>,
};

OP(logsumexp){
    .schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .doc = "Logarithm of the sum of exponentials over the given dimensions, without overflow.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .cpu = typed_kernel<logsumexp_on_cpu>,
    .any = typed_kernel<logsumexp>,
    .derivatives = {vjp("self", logsumexp_gradient, saves("self", "result"))},
};
OP(special_logsumexp){
    .schema = "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .doc = "logsumexp() under its other name.",
    .forms = function | out,
    .python_module = "special",
    .composite = Composite::Implicit,
    .any = typed_kernel<special_logsumexp>,
};
#endif
