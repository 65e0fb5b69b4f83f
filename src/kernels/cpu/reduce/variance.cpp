// Variances and vector norms.
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/reduce/engine.h"
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {
namespace {

namespace math = scalar::math;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// --- variance: a pass for the mean, one for the squares of the deviations from it

template <class T>
struct MeanOf {
  using In = T;
  using Acc = double;
  using Out = double;
  static constexpr bool centered = false;
  static constexpr bool costly = false;
  double count;
  Acc init() const { return 0; }
  Acc step(Acc a, In x, Acc) const { return a + convert<double>(x); }
  Acc combine(Acc a, Acc b) const { return a + b; }
  Out finish(Acc a, Acc) const { return a / count; }
};
template <class T>
struct Squares {
  using In = T;
  using Acc = double;
  using Out = T;
  static constexpr bool centered = true;
  static constexpr bool costly = false;
  double divisor;
  bool root;
  Acc init() const { return 0; }
  Acc step(Acc a, In x, Acc mean) const {
    const double d = convert<double>(x) - mean;
    return a + d * d;
  }
  Acc combine(Acc a, Acc b) const { return a + b; }
  Out finish(Acc a, Acc) const {
    const double v = a / divisor;
    return convert<Out>(root ? __builtin_sqrt(v) : v);
  }
};

template <class T>
void variance_of(const Tensor& self, const ReducePlan& plan, double correction, bool root,
                 const Tensor& out, const Tensor& mean) {
  const double n = static_cast<double>(plan.count), left = n - correction;
  Scratch<double> center(plan.results);
  reduce(MeanOf<T>{n}, plan, self.data<T>(), center.get());
  reduce(Squares<T>{left > 0 ? left : 0, root}, plan, self.data<T>(), out.data<T>(), center.get());
  if (!mean.defined()) return;
  T* to = mean.data<T>();
  for (int64_t i = 0; i < plan.results; ++i) to[i] = convert<T>(center.get()[i]);
}

void variance(const Tensor& self, const IntVec& dims, double correction, bool root,
              const Tensor& out, const Tensor& mean) {
  const ReducePlan plan = plan_reduction(self, dims);
  dispatch<FloatingTypes>(self.dtype(), "std_cpu", [&]<class T>(Type<T>) {
    variance_of<T>(self, plan, correction, root, out, mean);
  });
}

// Real or imaginary parts, seen as a tensor.
Tensor part_of(const Tensor& z, int64_t part) {
  IntVec strides(z.strides());
  for (int64_t& s : strides) s *= 2;
  return tensor_over(z->storage, real_of(z.dtype()), 2 * z.storage_offset() + part, z.sizes(),
                     strides);
}

// The variances of the parts add.
template <class R>
void complex_variance(const Tensor& self, const IntVec& dims, double correction, bool root,
                      const Tensor& out, const Tensor& mean) {
  Tensor parts[2], means[2];
  for (int k = 0; k < 2; ++k) {
    parts[k] = empty_tensor(out.sizes(), out.dtype());
    if (mean.defined()) means[k] = empty_tensor(out.sizes(), out.dtype());
    variance(part_of(self, k), dims, correction, false, parts[k], means[k]);
  }
  for (int64_t i = 0; i < out.numel(); ++i) {
    const R v = parts[0].data<R>()[i] + parts[1].data<R>()[i];
    out.data<R>()[i] = root ? math::sqrt(v) : v;
    if (mean.defined()) mean.data<Complex<R>>()[i] = {means[0].data<R>()[i], means[1].data<R>()[i]};
  }
}

void variance(const Tensor& self, const std::optional<IntSpan>& dim,
              const std::optional<Scalar>& correction, bool root, const Tensor& out,
              const Tensor& mean = {}) {
  const IntVec dims = reduced_dims(dim, self.dim());
  const double minus = correction ? correction->to<double>() : 1;
  if (!is_complex(self.dtype())) return variance(self, dims, minus, root, out, mean);
  dispatch<float, double>(out.dtype(), "std_cpu", [&]<class R>(Type<R>) {
    complex_variance<R>(self, dims, minus, root, out, mean);
  });
}

// --- norms

template <class T>
struct Magnitude {
  using Real = Wide<T>;
  static Real of(T x) { return math::abs(convert<Real>(x)); }
  static Real square(T x) {
    const Real v = convert<Real>(x);
    return v * v;
  }
};
template <class R>
struct Magnitude<Complex<R>> {
  using Real = R;
  static R of(Complex<R> z) { return math::hypot(z.re, z.im); }
  static R square(Complex<R> z) { return z.re * z.re + z.im * z.im; }
};

enum class Norm { Zero, One, Two, Power, Most, Least };

template <class T, class R, Norm N>
struct NormOp {
  using In = T;
  using Acc = typename Magnitude<T>::Real;
  using Out = R;
  static constexpr bool centered = false;
  static constexpr bool costly = N == Norm::Power || is_complex_v<T>;
  double p;
  Acc init() const { return N == Norm::Least ? static_cast<Acc>(__builtin_inf()) : Acc(0); }
  Acc step(Acc a, In x, Acc) const {
    if constexpr (N == Norm::Two) return a + Magnitude<T>::square(x);
    const Acc v = Magnitude<T>::of(x);
    if constexpr (N == Norm::Zero) return a + (v != Acc(0) ? Acc(1) : Acc(0));
    if constexpr (N == Norm::Power) return a + math::pow(v, static_cast<Acc>(p));
    if constexpr (N == Norm::Most || N == Norm::Least) return pick(a, v);
    return a + v;
  }
  Acc combine(Acc a, Acc b) const {
    if constexpr (N == Norm::Most || N == Norm::Least) return pick(a, b);
    return a + b;
  }
  Out finish(Acc a, Acc) const {
    if constexpr (N == Norm::Two) return convert<Out>(math::sqrt(a));
    if constexpr (N == Norm::Power) return convert<Out>(math::pow(a, static_cast<Acc>(1 / p)));
    return convert<Out>(a);
  }
  static Acc pick(Acc a, Acc x) {
    const Acc best = (N == Norm::Most ? x > a : x < a) ? x : a;
    return x != x ? x : best;
  }
};

template <class T, class R>
void norm_of(const Tensor& in, const ReducePlan& plan, double p, const Tensor& out) {
  auto run = [&]<Norm N>() { reduce(NormOp<T, R, N>{p}, plan, in.data<T>(), out.data<R>()); };
  if (p == 0) return run.template operator()<Norm::Zero>();
  if (p == 1) return run.template operator()<Norm::One>();
  if (p == 2) return run.template operator()<Norm::Two>();
  if (p == __builtin_inf()) return run.template operator()<Norm::Most>();
  if (p == -__builtin_inf()) return run.template operator()<Norm::Least>();
  run.template operator()<Norm::Power>();
}

}  // namespace

void var(const Tensor& self, std::optional<IntSpan> dim, const std::optional<Scalar>& correction,
         bool, const Tensor& out) {
  variance(self, dim, correction, false, out);
}
void deviation(const Tensor& self, std::optional<IntSpan> dim,
               const std::optional<Scalar>& correction, bool, const Tensor& out) {
  variance(self, dim, correction, true, out);
}
void var_mean(const Tensor& self, std::optional<IntSpan> dim,
              const std::optional<Scalar>& correction, bool, const Tensor& out,
              const Tensor& mean) {
  variance(self, dim, correction, false, out, mean);
}
void deviation_mean(const Tensor& self, std::optional<IntSpan> dim,
                    const std::optional<Scalar>& correction, bool, const Tensor& out,
                    const Tensor& mean) {
  variance(self, dim, correction, true, out, mean);
}

void vector_norm(const Tensor& self, const Scalar& ord, std::optional<IntSpan> dim, bool,
                 std::optional<DType> dtype, const Tensor& out) {
  const Tensor in = dtype && *dtype != self.dtype() ? converted(self, *dtype) : self;
  const ReducePlan plan = plan_reduction(in, reduced_dims(dim, in.dim()));
  const double p = ord.to<double>();
  dispatch<FloatingTypes, ComplexTypes>(in.dtype(), "norm_cpu", [&]<class T>(Type<T>) {
    if constexpr (is_complex_v<T>)
      norm_of<T, typename T::value_type>(in, plan, p, out);
    else
      norm_of<T, T>(in, plan, p, out);
  });
}

}  // namespace facula::cpu::FACULA_ISA
