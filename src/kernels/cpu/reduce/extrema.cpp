// Minima, maxima, any, all.
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/reduce/engine.h"
#include "kernels/cpu/reduce/reduce.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class T>
using Compared =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class A, bool Most>
inline A worst() {
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
inline A better(A a, A x) {
  const A best = (Most ? x > a : x < a) ? x : a;
  if constexpr (std::is_floating_point_v<A>) return x != x ? x : best;
  return best;
}

template <class T, bool Most>
struct Extreme {
  using In = stored<T>;
  using Acc = Compared<T>;
  using Out = T;
  static constexpr bool centered = false;
  static constexpr bool costly = false;
  Acc init() const { return worst<Acc, Most>(); }
  Acc step(Acc a, In x, Acc) const { return better<Acc, Most>(a, convert<Acc>(T(x))); }
  Acc combine(Acc a, Acc b) const { return better<Acc, Most>(a, b); }
  Out finish(Acc a, Acc) const { return convert<Out>(a); }
};

template <class T, class R, bool All>
struct Truth {
  using In = stored<T>;
  using Acc = uint8_t;
  using Out = R;
  static constexpr bool centered = false;
  static constexpr bool costly = false;
  Acc init() const { return All; }
  Acc step(Acc a, In x, Acc) const {
    const Acc v = convert<bool>(T(x));
    return All ? a & v : a | v;
  }
  Acc combine(Acc a, Acc b) const { return All ? a & b : a | b; }
  Out finish(Acc a, Acc) const { return static_cast<Out>(a); }
};

template <bool Most>
void extreme(const Tensor& self, const IntVec& dims, const Tensor& out, const char* name) {
  const ReducePlan plan = plan_reduction(self, dims);
  dispatch<FloatingTypes, IntegralTypes, bool>(self.dtype(), name, [&]<class T>(Type<T>) {
    reduce(Extreme<T, Most>{}, plan, self.data<stored<T>>(), out.data<T>());
  });
}

// An empty list of dimensions reduces nothing.
template <bool All>
void truth(const Tensor& self, const std::optional<IntSpan>& dim, const Tensor& out) {
  const ReducePlan plan =
      plan_reduction(self, dim && dim->empty() ? IntVec() : reduced_dims(dim, self.dim()));
  dispatch<FloatingTypes, IntegralTypes, bool, ComplexTypes>(
      self.dtype(), All ? "all_cpu" : "any_cpu", [&]<class T>(Type<T>) {
        using R = std::conditional_t<std::is_same_v<T, uint8_t>, uint8_t, bool>;
        reduce(Truth<T, R, All>{}, plan, self.data<stored<T>>(), out.data<R>());
      });
}

}  // namespace

void amin(const Tensor& self, IntSpan dim, bool, const Tensor& out) {
  extreme<false>(self, reduced_dims(dim, self.dim()), out, "min_values_cpu");
}
void amax(const Tensor& self, IntSpan dim, bool, const Tensor& out) {
  extreme<true>(self, reduced_dims(dim, self.dim()), out, "max_values_cpu");
}
void min_all(const Tensor& self, const Tensor& out) {
  extreme<false>(self, reduced_dims({}, self.dim()), out, "min_all");
}
void max_all(const Tensor& self, const Tensor& out) {
  extreme<true>(self, reduced_dims({}, self.dim()), out, "max_all");
}

void aminmax(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& low,
             const Tensor& high) {
  const IntVec dims =
      dim ? reduced_dims(IntSpan(&*dim, 1), self.dim()) : reduced_dims({}, self.dim());
  extreme<false>(self, dims, low, "aminmax_cpu");
  extreme<true>(self, dims, high, "aminmax_cpu");
}

void any(const Tensor& self, std::optional<IntSpan> dim, bool, const Tensor& out) {
  truth<false>(self, dim, out);
}
void all(const Tensor& self, std::optional<IntSpan> dim, bool, const Tensor& out) {
  truth<true>(self, dim, out);
}

}  // namespace facula::cpu::FACULA_ISA
