// Sums, means, products, counts, any and all over dimensions.
#include "kernels/cpu/reduce/reduction.h"

namespace facula::scalar {

// Half types add in float, integers in 64 bits.
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, int64_t, cpu::accumulate_t<T>>;
template <class T>
using sum_result_t = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

template <class A>
inline A wrapping_add(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class A>
inline A wrapping_multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

struct sum {
  using Elements = TypeSet<FloatingTypes, ComplexTypes, bool, uint8_t, int32_t, int64_t>;
  static constexpr const char* kernel = "sum_cpu";
  static constexpr bool converts = true;

  template <class T>
  struct Op : Accumulator<T, sum_t<T>, sum_result_t<T>> {
    using typename Accumulator<T, sum_t<T>, sum_result_t<T>>::Acc;
    bool divides = false;  // a mean, by this number
    double count = 0;
    Acc init() const { return Acc(0); }
    Acc step(Acc a, cpu::stored<T> x, Acc) const { return wrapping_add(a, convert<Acc>(T(x))); }
    Acc combine(Acc a, Acc b) const { return wrapping_add(a, b); }
    // A block has 32 rows.
    using Narrow = std::conditional_t<std::is_same_v<T, bool>, uint8_t, uint16_t>;
    Narrow narrow_step(Narrow a, cpu::stored<T> x) const
      requires(sizeof(T) == 1)
    {
      return static_cast<Narrow>(a + T(x));
    }
    sum_result_t<T> finish(Acc a, Acc) const {
      if constexpr (std::is_floating_point_v<Acc>)
        if (divides) a = a / static_cast<Acc>(count);
      if constexpr (is_complex_v<Acc>)
        if (divides) a = a / Acc(static_cast<typename Acc::value_type>(count));
      return convert<sum_result_t<T>>(a);
    }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams&) {
    return {};
  }
};

// Integers have no NaN: their loops are those of sum.
struct nansum {
  using Elements = sum::Elements;
  static constexpr const char* kernel = "nansum_cpu";
  static constexpr bool converts = true;

  template <class T>
  struct Op : sum::Op<T> {
    using typename sum::Op<T>::Acc;
    Acc step(Acc a, T x, Acc) const {
      const Acc v = convert<Acc>(x);
      return a + (v == v ? v : Acc(0));
    }
  };
  template <class T>
  static auto op(const cpu::ReductionParams&) {
    if constexpr (std::is_integral_v<T>)
      return sum::Op<T>();
    else
      return Op<T>();
  }
};

struct mean {
  using Elements = TypeSet<FloatingTypes, ComplexTypes>;
  static constexpr const char* kernel = "mean_kernel";
  static constexpr bool converts = true;

  template <class T>
  static sum::Op<T> op(const cpu::ReductionParams& p) {
    return {{}, true, static_cast<double>(p.count)};
  }
};

struct prod {
  using Elements = TypeSet<FloatingTypes, ComplexTypes, int64_t>;
  static constexpr const char* kernel = "prod_cpu";
  static constexpr bool converts = true;

  template <class T>
  struct Op : sum::Op<T> {
    static constexpr bool costly = std::is_integral_v<T>;
    using typename sum::Op<T>::Acc;
    Acc init() const { return Acc(1); }
    Acc step(Acc a, cpu::stored<T> x, Acc) const {
      return wrapping_multiply(a, convert<Acc>(T(x)));
    }
    Acc combine(Acc a, Acc b) const { return wrapping_multiply(a, b); }
  };
  template <class T>
  static Op<T> op(const cpu::ReductionParams&) {
    return {};
  }
};

// --- whether and how often elements are not zero

// An element as a word of its size, which is zero for the number zero but for signs. One loop
// serves all dtypes of a size.
template <class T>
using word_t = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 8, uint64_t, Bits128>>>>;

// Without the signs of T's real and imaginary parts; integers count every bit.
template <class T>
constexpr word_t<T> magnitude_bits() {
  if constexpr (std::is_same_v<T, complex128>)
    return {INT64_MAX, INT64_MAX};
  else if constexpr (std::is_same_v<T, complex64>)
    return 0x7fffffff7fffffff;
  else if constexpr (std::is_same_v<T, Complex<Half>>)
    return 0x7fff7fff;
  else
    return static_cast<word_t<T>>(~word_t<T>(0)) >> !std::is_integral_v<T>;
}

template <class W, class A, class R>
struct OverWords : Accumulator<W, A, R> {
  W mask;
  bool is_nonzero(W x) const {
    if constexpr (std::is_same_v<W, Bits128>)
      return ((x.lo & mask.lo) | (x.hi & mask.hi)) != 0;
    else
      return (x & mask) != 0;
  }
};

struct count_nonzero {
  using Elements = TypeSet<FloatingTypes, IntegralTypes, bool, ComplexTypes, Complex<Half>>;
  static constexpr const char* kernel = "nonzero_count_cpu";
  static constexpr bool tests_elements = true;

  template <class W>
  struct Op : OverWords<W, int64_t, int64_t> {
    int64_t init() const { return 0; }
    int64_t step(int64_t a, W x, int64_t) const { return a + this->is_nonzero(x); }
    int64_t combine(int64_t a, int64_t b) const { return a + b; }
    int64_t finish(int64_t a, int64_t) const { return a; }
  };
  template <class T>
  static Op<word_t<T>> op(const cpu::ReductionParams&) {
    return {{{}, magnitude_bits<T>()}};
  }
};

template <bool All>
struct truth {
  using Elements = count_nonzero::Elements;
  static constexpr bool no_dims_for_empty = true, tests_elements = true;
  template <class T>
  static constexpr DType result = std::is_same_v<T, uint8_t> ? DType::UInt8 : DType::Bool;

  template <class W>
  struct Op : OverWords<W, uint8_t, uint8_t> {
    uint8_t init() const { return All; }
    uint8_t step(uint8_t a, W x, uint8_t) const {
      const uint8_t v = this->is_nonzero(x);
      return All ? a & v : a | v;
    }
    uint8_t combine(uint8_t a, uint8_t b) const { return All ? a & b : a | b; }
    uint8_t finish(uint8_t a, uint8_t) const { return a; }
  };
  template <class T>
  static Op<word_t<T>> op(const cpu::ReductionParams&) {
    return {{{}, magnitude_bits<T>()}};
  }
};
struct any : truth<false> {
  static constexpr const char* kernel = "any_cpu";
};
struct all : truth<true> {
  static constexpr const char* kernel = "all_cpu";
};

}  // namespace facula::scalar

#ifndef FACULA_KERNEL_PASS
#include "ops/reduce/reduce.h"

#include <algorithm>

#include "dispatch/out_dtype.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/reduce/batch.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/cat.h"
#include "ops/shape/repeat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"

namespace facula {
namespace reduction {

Tensor restored(const Tensor& t, IntSpan sizes, const IntVec& dims, bool keepdim) {
  if (keepdim || sizes.empty()) return t;
  IntVec ordered = dims;
  std::ranges::sort(ordered);
  Tensor r = t;
  for (int64_t d : ordered) r = ops::unsqueeze(r, d);
  return r;
}

IntVec dims_of(Backward& b) {
  const int64_t n = static_cast<int64_t>(b.sizes("self").size());
  const Value& v = b.value("dim");
  if (v.is_none()) return cpu::reduced_dims({}, n);
  if (v.is_number()) return one_dim(b.integer("dim"), n);
  return cpu::reduced_dims(v.as_ints(), n);
}

Tensor restored(Backward& b, const Tensor& t) {
  return restored(t, b.sizes("self"), dims_of(b), b.flag("keepdim"));
}
Tensor expanded(Backward& b, const Tensor& t) {
  return ops::expand(restored(b, t), b.sizes("self"));
}

int64_t reduced_count(Backward& b) {
  int64_t n = 1;
  if (b.sizes("self").empty()) return n;
  for (int64_t d : dims_of(b)) n *= b.sizes("self")[d];
  return n;
}

IntVec one_dim(int64_t dim, int64_t ndim) {
  const int64_t d = wrap_dim(dim, ndim);
  return ndim == 0 ? IntVec() : IntVec{d};
}

void state(Meta& m, int result, const Tensor& self, const IntVec& dims, bool keepdim, DType dtype) {
  m.result(result, cpu::reduced_sizes(self.sizes(), dims, keepdim), dtype);
}

void check_not_empty(const char* op, const Tensor& self, const IntVec& dims, bool given) {
  if (self.numel() > 0) return;
  check(given, op, "(): dim must be given for an input without elements");
  for (int64_t d : dims)
    check_index(self.sizes()[d] > 0, op, "(): a dimension of size 0 cannot be reduced; got dim ",
                d);
}

// The element type as C++ names it, which PyTorch's message has.
static const char* cpp_name(DType d) {
  switch (d) {
    case DType::UInt8:
      return "unsigned char";
    case DType::Int8:
      return "signed char";
    case DType::Int16:
      return "short int";
    case DType::Int32:
      return "int";
    case DType::Int64:
      return "long int";
    case DType::Float32:
      return "float";
    case DType::Float64:
      return "double";
    default:
      return name(d);
  }
}

void check_out_dtype(const Meta& m, int i, DType dtype) {
  if (m.call.op->variant != Variant::Out) return;
  const DType given = m.call.tensor(m.call.info->base_args + i).dtype();
  check(given == dtype, "Expected out tensor to have dtype ", cpp_name(dtype), ", but got ",
        cpp_name(given), " instead");
}

}  // namespace reduction

namespace {

using reduction::expanded;

DType sum_type(const Tensor& self, std::optional<DType> dtype) {
  return dtype.value_or(is_integral(self.dtype(), true) ? DType::Int64 : self.dtype());
}

void meta_sum(Meta& m, const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
              std::optional<DType> dtype) {
  reduction::state(m, 0, self, cpu::reduced_dims(dim, self.dim()), keepdim, sum_type(self, dtype));
}

void meta_nansum(Meta& m, const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
                 std::optional<DType> dtype) {
  check_kind(ErrorKind::NotImplemented, !is_complex(self.dtype()),
             "nansum(): input must be real; got ", name(self.dtype()));
  if (dtype && is_complex(*dtype)) not_implemented_for("nansum_cpu", *dtype);
  meta_sum(m, self, dim, keepdim, dtype);
}

DType mean_type(const Tensor& self, std::optional<DType> dtype) {
  const DType d = dtype.value_or(self.dtype());
  check_kind(ErrorKind::NotImplemented, is_differentiable(d),
             "mean(): ", dtype ? "dtype" : "input's dtype",
             " must be floating point or complex; got ", name(d));
  return d;
}

void meta_mean(Meta& m, const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
               std::optional<DType> dtype) {
  reduction::state(m, 0, self, cpu::reduced_dims(dim, self.dim()), keepdim, mean_type(self, dtype));
}

void meta_prod(Meta& m, const Tensor& self, std::optional<DType> dtype) {
  m.result(0, {}, sum_type(self, dtype));
}

void meta_prod_dim(Meta& m, const Tensor& self, int64_t dim, bool keepdim,
                   std::optional<DType> dtype) {
  reduction::state(m, 0, self, reduction::one_dim(dim, self.dim()), keepdim, sum_type(self, dtype));
}

void meta_count(Meta& m, const Tensor& self, IntSpan dim) {
  reduction::state(m, 0, self, cpu::reduced_dims(dim, self.dim()), false, DType::Int64);
}

// An empty list reduces over nothing here; None means all.
void meta_truth(Meta& m, const Tensor& self, std::optional<IntSpan> dim, bool keepdim) {
  const IntVec dims = dim && dim->empty() ? IntVec() : cpu::reduced_dims(dim, self.dim());
  reduction::state(m, 0, self, dims, keepdim,
                   self.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool);
}

const std::optional<IntList> all_dims;

// A tensor with memory on the CPU, not a wrapper whose values are elsewhere.
bool is_plain_cpu(const Tensor& t) {
  return t->layers - LayerSet(Layer::Autograd) == LayerSet(Layer::CPU);
}

void reduce_all(const KernelRef& reduction, const Tensor& self, const Tensor& out) {
  cpu::reduce_tensor(cpu::table_in_force(reduction), self, cpu::reduced_dims({}, self.dim()), {},
                     out);
}

// On the CPU straight to the kernel: sums and means of everything are asked for all the time. A
// recorder has the whole call put off.
bool goes_straight(const Tensor& self) { return !thread_state.modes && is_plain_cpu(self); }
Tensor sum_all(const Tensor& self, std::optional<DType> dtype) {
  if (!goes_straight(self)) return ops::sum(self, all_dims, false, dtype);
  const Tensor out = empty_tensor({}, sum_type(self, dtype));
  reduce_all(cpu::reduction<scalar::sum>, self, out);
  return out;
}
Tensor mean_all(const Tensor& self, std::optional<DType> dtype) {
  if (!goes_straight(self)) return ops::mean(self, all_dims, false, dtype);
  const Tensor out = empty_tensor({}, mean_type(self, dtype));
  reduce_all(cpu::reduction<scalar::mean>, self, out);
  return out;
}
Tensor count_one(const Tensor& self, std::optional<int64_t> dim) {
  return ops::count_nonzero(self, dim ? IntList{*dim} : IntList{});
}
Tensor any_all(const Tensor& self) { return ops::any(self, all_dims, false); }
Tensor any_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return ops::any(self, std::optional(IntList{dim}), keepdim);
}
Tensor all_all(const Tensor& self) { return ops::all(self, all_dims, false); }
Tensor all_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return ops::all(self, std::optional(IntList{dim}), keepdim);
}

Tensor nanmean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
               std::optional<DType> dtype) {
  check_kind(ErrorKind::NotImplemented, is_differentiable(self.dtype()),
             "nanmean(): input must be floating point or complex; got ", name(self.dtype()));
  const std::optional<IntList> dims = dim ? std::optional(IntList(*dim)) : std::nullopt;
  const Tensor count = ops::sum(ops::logical_not(ops::isnan(ops::detach(self))), dims, keepdim);
  return ops::div(ops::nansum(self, dims, keepdim, dtype), count);
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
    check(size[d - extra] == self.sizes()[d] || size[d - extra] == 1, "size {", str(size),
          "} is not expandable to size {", str(self.sizes()), "}.");
    if (size[d - extra] == 1 && self.sizes()[d] != 1) dims.push_back(d);
  }
  if (dims.empty()) return self.dim() == 0 ? ops::sum(self) : self;
  const Tensor t = ops::sum(self, std::optional<IntList>(dims), true);
  return extra > 0 ? ops::view(t, size) : t;
}

// --- the gradient of a product

// For each element the product of the others along dim: products from both ends, without dividing.
Tensor product_of_others(const Tensor& self, int64_t dim) {
  const int64_t n = self.sizes()[dim];
  const Tensor one = ops::ones_like(ops::narrow(self, dim, 0, 1));
  const Tensor before[] = {one, ops::narrow(self, dim, 0, n - 1)};
  const Tensor after[] = {one, ops::narrow(ops::flip(self, {dim}), dim, 0, n - 1)};
  const Tensor left = ops::cumprod(ops::cat(before, dim), dim);
  const Tensor right = ops::flip(ops::cumprod(ops::cat(after, dim), dim), {dim});
  return ops::mul(left, right);
}

bool has_zero(const Tensor& self) {
  return self.is_meta() || ops::item(ops::any(ops::eq(self, 0), std::nullopt)).to<bool>();
}

Tensor prod_gradient(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (self.numel() == 0) return ops::zeros_like(self);
  if (self.sizes()[dim] == 1) return ops::expand(grad, self.sizes());
  if (has_zero(ops::detach(self))) return ops::mul(grad, ops::conj(product_of_others(self, dim)));
  return ops::mul(grad, ops::conj(ops::div(result, self)));
}

Tensor prod_all_gradient(Backward& b) {
  const Tensor self = b["self"];
  if (self.dim() == 0) return b.grad();
  const Tensor flat = ops::reshape(self, {-1});
  return ops::view(ops::reshape(prod_gradient(b.grad(), flat, b["result"], 0), self.sizes()),
                   self.sizes());
}

Tensor prod_dim_gradient(Backward& b) {
  const Tensor self = b["self"];
  if (self.dim() == 0) return b.grad();
  return prod_gradient(reduction::restored(b, b.grad()), self, reduction::restored(b, b["result"]),
                       wrap_dim(b.integer("dim"), self.dim()));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(sum_dim_IntList){
    .schema =
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) "
        "-> Tensor",
    .doc = "Sum over the given dimensions, or all. Integers add in int64.",
    .forms = function | method | out,
    .out_name = "IntList_out",
    .flags = linear,
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_sum>,
    .cpu = cpu::reduction<scalar::sum>,
    .derivatives = {vjp("self", [](Backward& b) { return expanded(b, b.grad()); })},
    .batch = batch::reduction,
};
OP(sum){
    .schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Sum of all elements.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .flags = linear,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<sum_all>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::expand(b.grad(), b.sizes("self")); })},
};
OP(sum_to_size){
    .schema = "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
    .doc =
        "Sums over the dimensions that broadcasting from `size` to self's sizes would have "
        "repeated.",
    .forms = method,
    .composite = Composite::Implicit,
    .flags = same_object,
    .any = typed_kernel<sum_to_size>,
};
OP(nansum){
    .schema =
        "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .doc = "Sum over the given dimensions, or all, with NaN counted as zero.",
    .forms = function | method | out,
    .flags = real_out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_nansum>,
    .cpu = cpu::reduction<scalar::nansum>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::mul(expanded(b, b.grad()), ops::logical_not(ops::isnan(b["self"])));
        },
        saves("self"))},
    .batch = batch::reduction,
};
OP(mean_dim){
    .schema =
        "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .doc = "Mean over the given dimensions, or all.",
    .forms = function | method | out,
    .out_name = "out",
    .flags = linear,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_mean>,
    .cpu = cpu::reduction<scalar::mean>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::div(expanded(b, b.grad()),
                                          static_cast<double>(reduction::reduced_count(b)));
                        })},
    .batch = batch::reduction,
};
OP(mean){
    .schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Mean of all elements.",
    .forms = function | method | out,
    .out_name = "dtype_out",
    .composite = Composite::Explicit,
    .flags = linear,
    .any = typed_kernel<mean_all>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          int64_t n = 1;
                          for (int64_t s : b.sizes("self")) n *= s;
                          return ops::div(ops::expand(b.grad(), b.sizes("self")),
                                          static_cast<double>(n));
                        })},
};
OP(nanmean){
    .schema =
        "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .doc = "Mean over the given dimensions, or all, of the elements that are not NaN.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = real_out,
    .any = typed_kernel<nanmean>,
};
OP(prod){
    .schema = "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Product of all elements. Integers multiply in int64.",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_prod>,
    .cpu = cpu::reduction<scalar::prod>,
    .derivatives = {vjp("self", prod_all_gradient, saves("self", "result"))},
    .batch = batch::whole_prod,
};
OP(prod_dim_int){
    .schema =
        "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .doc = "Product over one dimension.",
    .forms = function | method | out,
    .out_name = "int_out",
    .out_layout = OutLayout::Contiguous,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_prod_dim>,
    .cpu = cpu::reduction<scalar::prod>,
    .derivatives = {vjp("self", prod_dim_gradient, saves("self", "result"))},
    .batch = batch::dims,
};
OP(count_nonzero_dim_IntList){
    .schema = "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    .doc = "How many elements are not zero, over the given dimensions (all for an empty list).",
    .forms = function | method | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_count>,
    .cpu = cpu::reduction<scalar::count_nonzero>,
    .not_differentiable = names("self", "result"),
    .batch = batch::reduction,
};
OP(count_nonzero){
    .schema = "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    .doc = "How many elements are not zero, in all or over one dimension.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<count_one>,
    .not_differentiable = names("self", "result"),
};
OP(any_dims){
    .schema = "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc =
        "Whether any element is not zero, over the given dimensions; an empty list reduces "
        "nothing, None all.",
    .forms = function | method | out,
    .flags = truth_out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_truth>,
    .cpu = cpu::reduction<scalar::any>,
    .not_differentiable = names("self", "result"),
    .batch = batch::reduction,
};
OP(any_dim){
    .schema = "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    .doc = "Whether any element along a dimension is not zero.",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Explicit,
    .flags = truth_out,
    .any = typed_kernel<any_dim>,
    .not_differentiable = names("self", "result"),
};
OP(any){
    .schema = "any(Tensor self) -> Tensor",
    .doc = "Whether any element is not zero: bool, or uint8 for uint8.",
    .forms = function | method | out,
    .out_name = "all_out",
    .composite = Composite::Explicit,
    .flags = truth_out,
    .any = typed_kernel<any_all>,
    .not_differentiable = names("self", "result"),
};
OP(all_dims){
    .schema = "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc =
        "Whether no element is zero, over the given dimensions; an empty list reduces nothing, "
        "None all.",
    .forms = function | method | out,
    .flags = truth_out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_truth>,
    .cpu = cpu::reduction<scalar::all>,
    .not_differentiable = names("self", "result"),
    .batch = batch::reduction,
};
OP(all_dim){
    .schema = "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    .doc = "Whether no element along a dimension is zero.",
    .forms = function | method | out,
    .out_name = "out",
    .composite = Composite::Explicit,
    .flags = truth_out,
    .any = typed_kernel<all_dim>,
    .not_differentiable = names("self", "result"),
};
OP(all){
    .schema = "all(Tensor self) -> Tensor",
    .doc = "Whether no element is zero: bool, or uint8 for uint8.",
    .forms = function | method | out,
    .out_name = "all_out",
    .composite = Composite::Explicit,
    .flags = truth_out,
    .any = typed_kernel<all_all>,
    .not_differentiable = names("self", "result"),
};
#endif
