// Sums, products and counts.
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/reduce/engine.h"
#include "kernels/cpu/reduce/reduce.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Half types add in float, integers in 64 bits.
template <class T>
using Wide = std::conditional_t<
    std::is_integral_v<T>, int64_t,
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>>;

template <class A>
inline A plus(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class A>
inline A times(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <class T, class R>
struct Sum {
  using In = stored<T>;
  using Acc = Wide<T>;
  using Out = R;
  static constexpr bool centered = false;
  static constexpr bool costly = false;
  Acc init() const { return Acc(0); }
  Acc step(Acc a, In x, Acc) const { return plus(a, convert<Acc>(T(x))); }
  Acc combine(Acc a, Acc b) const { return plus(a, b); }
  Out finish(Acc a, Acc) const { return convert<Out>(a); }
};
template <class T, class R>
struct NanSum : Sum<T, R> {
  using typename Sum<T, R>::Acc;
  Acc step(Acc a, T x, Acc) const {
    const Acc v = convert<Acc>(x);
    return a + (v == v ? v : Acc(0));
  }
};
template <class T, class R>
struct Mean : Sum<T, R> {
  using typename Sum<T, R>::Acc;
  double count;
  R finish(Acc a, Acc) const { return convert<R>(a / Acc(static_cast<real_t<Acc>>(count))); }
  template <class A>
  struct Real {
    using type = A;
  };
  template <class A>
  struct Real<Complex<A>> {
    using type = A;
  };
  template <class A>
  using real_t = typename Real<A>::type;
};
template <class T, class R>
struct Prod : Sum<T, R> {
  static constexpr bool costly = std::is_integral_v<T>;
  using typename Sum<T, R>::Acc;
  Acc init() const { return Acc(1); }
  Acc step(Acc a, T x, Acc) const { return times(a, convert<Acc>(x)); }
  Acc combine(Acc a, Acc b) const { return times(a, b); }
};
template <class T>
struct CountNonzero {
  using In = stored<T>;
  using Acc = int64_t;
  using Out = int64_t;
  static constexpr bool centered = false;
  static constexpr bool costly = false;
  Acc init() const { return 0; }
  Acc step(Acc a, In x, Acc) const { return a + convert<bool>(T(x)); }
  Acc combine(Acc a, Acc b) const { return a + b; }
  Out finish(Acc a, Acc) const { return a; }
};

// The common integers stay as they are when the result is an integer; else the input is converted.
Tensor input_for(const Tensor& self, DType result) {
  const DType d = self.dtype();
  if (d == result) return self;
  const bool common = d == DType::Bool || d == DType::UInt8 || d == DType::Int32;
  return common && result == DType::Int64 ? self : converted(self, result);
}

template <template <class, class> class Op>
void run_wide(const Tensor& self, const IntVec& dims, const Tensor& out, const char* name) {
  const DType wide = is_integral(out.dtype(), true) ? DType::Int64 : out.dtype();
  const Tensor to = wide == out.dtype() ? out : empty_tensor(out.sizes(), wide);
  const Tensor in = input_for(self, wide);
  const ReducePlan plan = plan_reduction(in, dims);
  dispatch<FloatingTypes, ComplexTypes, bool, uint8_t, int32_t, int64_t>(
      in.dtype(), name, [&]<class T>(Type<T>) {
        using R = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
        reduce(Op<T, R>{}, plan, in.data<stored<T>>(), to.data<R>());
      });
  if (!to.is_same(out)) copy(out, to);
}

}  // namespace

void sum(const Tensor& self, std::optional<IntSpan> dim, bool, std::optional<DType>,
         const Tensor& out) {
  run_wide<Sum>(self, reduced_dims(dim, self.dim()), out, "sum_cpu");
}

void prod(const Tensor& self, std::optional<DType>, const Tensor& out) {
  run_wide<Prod>(self, reduced_dims({}, self.dim()), out, "prod_cpu");
}

void prod_dim(const Tensor& self, int64_t dim, bool, std::optional<DType>, const Tensor& out) {
  run_wide<Prod>(self, reduced_dims(IntSpan(&dim, 1), self.dim()), out, "prod_cpu");
}

void nansum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim,
            std::optional<DType> dtype, const Tensor& out) {
  if (!is_floating(out.dtype())) return sum(self, dim, keepdim, dtype, out);
  const Tensor in = input_for(self, out.dtype());
  const ReducePlan plan = plan_reduction(in, reduced_dims(dim, self.dim()));
  dispatch<FloatingTypes>(in.dtype(), "nansum_cpu", [&]<class T>(Type<T>) {
    reduce(NanSum<T, T>{}, plan, in.data<T>(), out.data<T>());
  });
}

void mean(const Tensor& self, std::optional<IntSpan> dim, bool, std::optional<DType>,
          const Tensor& out) {
  const Tensor in = input_for(self, out.dtype());
  const ReducePlan plan = plan_reduction(in, reduced_dims(dim, self.dim()));
  dispatch<FloatingTypes, ComplexTypes>(in.dtype(), "mean_kernel", [&]<class T>(Type<T>) {
    Mean<T, T> op;
    op.count = static_cast<double>(plan.count);
    reduce(op, plan, in.data<T>(), out.data<T>());
  });
}

void count_nonzero(const Tensor& self, IntSpan dim, const Tensor& out) {
  const ReducePlan plan = plan_reduction(self, reduced_dims(dim, self.dim()));
  dispatch<FloatingTypes, IntegralTypes, bool, ComplexTypes>(
      self.dtype(), "nonzero_count_cpu", [&]<class T>(Type<T>) {
        reduce(CountNonzero<T>{}, plan, self.data<stored<T>>(), out.data<int64_t>());
      });
}

}  // namespace facula::cpu::FACULA_ISA
