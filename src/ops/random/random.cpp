// Fills with random numbers, in place. The numbers are those of PyTorch: elements are visited in
// the order of memory, smallest stride innermost.
#include "ops/random/random.h"

#include <cmath>

#include "dispatch/out_dtype.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/random/distributions.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// Calls fill(room, generator), room a dense tensor of the host whose memory has the order of
// self's. A device without a kernel of its own gets the numbers copied.
template <class Fill>
void fill_dense(const Tensor& self, Generator* given, const Fill& fill) {
  if (self.is_meta() || self.numel() == 0) return;
  check(!may_self_overlap(self.sizes(), self.strides()),
        "unsupported operation: a tensor that is written to must hold each element at a place of "
        "its own (use clone() first)");
  Generator& generator = generator_for(given, self.device());
  const bool dense = is_dense_non_overlapping(self.sizes(), self.strides());
  if (dense && self.device().is_cpu()) return fill(self, generator);
  const Tensor* like[] = {&self};
  const IntVec strides = dense ? IntVec(self.strides()) : elementwise_strides(self.sizes(), like);
  const Tensor room = empty_strided_tensor(self.sizes(), strides, self.dtype());
  fill(room, generator);
  ops::copy_(self, room);
}

template <class F>
void dispatch_real(DType d, const char* kernel, F&& f) {
  dispatch<FloatingTypes, IntegralTypes, bool>(d, kernel, f);
}
// A dtype that a kernel lacks raises before memory for it is made.
constexpr auto nothing = [](auto) {};

Tensor no_gradient(Backward& b) { return ops::zeros_like(b.grad()); }

// --- uniform and normal

void check_uniform_bounds(DType d, double from, double to) {
  const DType real = real_of(d);
  if (!visit_floating(real, nothing)) not_implemented_for("check_uniform_bounds", d);
  check(from <= to, "uniform_(): from must not be above to; got ", from, " and ", to);
  const double most = real == DType::Float16    ? 65504.0
                      : real == DType::BFloat16 ? 0x1.fep127
                      : real == DType::Float32  ? 0x1.fffffep127
                                                : 0x1.fffffffffffffp1023;
  auto inside = [&](double v, const char* name) {
    const char* type = real == DType::Float16    ? "c10::Half"
                       : real == DType::BFloat16 ? "c10::BFloat16"
                       : real == DType::Float32  ? "float"
                                                 : "double";
    check(v >= -most && v <= most, name, " is out of bounds for ", type);
  };
  inside(from, "from");
  inside(to, "to");
  check(to - from <= most, "uniform_(): to - from must be finite in ", facula::name(real),
        "; got from ", from, " and to ", to);
}

// A complex tensor is filled as twice as many real numbers.
int64_t real_count(const Tensor& t) { return is_complex(t.dtype()) ? 2 * t.numel() : t.numel(); }

void uniform_(const Tensor& self, double from, double to, Generator* generator) {
  if (is_complex(self.dtype()) && self.numel() == 0) return;
  check_uniform_bounds(self.dtype(), from, to);
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch<FloatingTypes>(real_of(t.dtype()), "uniform", [&]<class T>(Type<T>) {
      dist::uniform<T>(g, t.data<T>(), real_count(t), from, to);
    });
  });
}

void normal_(const Tensor& self, double mean, double std, Generator* generator) {
  check(std >= 0, "normal(): std must not be negative; got ", std);
  if (self.numel() == 0) return;
  const DType real = real_of(self.dtype());
  if (!visit_floating(real, nothing)) not_implemented_for("normal_kernel_cpu", self.dtype());
  const bool contiguous = self.is_contiguous(), complex = is_complex(self.dtype());
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch<FloatingTypes>(real, "normal_kernel_cpu", [&]<class T>(Type<T>) {
      dist::normal<T>(g, t.data<T>(), real_count(t), mean, complex ? std / std::sqrt(2.0) : std,
                      contiguous);
    });
  });
}

void check_deviations(const Tensor& std) {
  check(!is_complex(std.dtype()), "normal(): std must be real; got a complex tensor");
  if (std.is_meta() || std.numel() == 0) return;
  const Tensor wide = ops::contiguous(ops::to(std, Device(), DType::Float64));
  for (int64_t i = 0; i < wide.numel(); ++i)
    check(!(wide.data<double>()[i] < 0), "normal(): numbers of std must not be negative");
}

Tensor fresh(IntSpan sizes, const Tensor& like) {
  return empty_tensor(sizes, like.dtype(), like.device());
}

Tensor normal_tensor_float(const Tensor& mean, double std, Generator* g) {
  return ops::add_(ops::normal_(fresh(mean.sizes(), mean), 0.0, std, g), mean);
}
Tensor normal_float_tensor(double mean, const Tensor& std, Generator* g) {
  check_deviations(std);
  const Tensor t = ops::normal_(fresh(std.sizes(), std), 0.0, 1.0, g);
  return ops::add_(ops::mul_(t, std), mean);
}
Tensor normal_tensor_tensor(const Tensor& mean, const Tensor& std, Generator* g) {
  check_deviations(std);
  const Tensor t =
      ops::normal_(fresh(broadcast_sizes(mean.sizes(), std.sizes()), mean), 0.0, 1.0, g);
  return ops::add_(ops::mul_(t, std), mean);
}

// --- bernoulli

void bernoulli_float(const Tensor& self, double p, Generator* generator) {
  check(p >= 0 && p <= 1, "bernoulli_(): p must be in [0, 1]; got ", p);
  if (self.numel() == 0) return;
  dispatch_real(self.dtype(), "bernoulli_scalar_cpu_", nothing);
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch_real(t.dtype(), "bernoulli_scalar_cpu_", [&]<class T>(Type<T>) {
      dist::bernoulli_scalar<T>(g, t.data<T>(), t.numel(), p);
    });
  });
}

void bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator) {
  dispatch_real(self.dtype(), "bernoulli_tensor_cpu_self_", nothing);
  dispatch<FloatingTypes>(p.dtype(), "bernoulli_tensor_cpu_p_", nothing);
  const Tensor chances = ops::expand(p, self.sizes());
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    const Tensor flat = empty_strided_tensor(t.sizes(), t.strides(), p.dtype());
    ops::copy_(flat, chances);
    dispatch_real(t.dtype(), "bernoulli_tensor_cpu_self_", [&]<class T>(Type<T>) {
      dispatch<FloatingTypes>(p.dtype(), "bernoulli_tensor_cpu_p_", [&]<class P>(Type<P>) {
        dist::bernoulli_each<T, P>(g, t.data<T>(), flat.data<P>(), t.numel());
      });
    });
  });
}

Tensor bernoulli(const Tensor& self, Generator* g) {
  return ops::bernoulli_(fresh(self.sizes(), self), self, g);
}
Tensor bernoulli_p(const Tensor& self, double p, Generator* g) {
  return ops::bernoulli_(fresh(self.sizes(), self), p, g);
}

// --- integers

void random_any(const Tensor& self, Generator* generator) {
  if (self.numel() == 0) return;
  dispatch_real(self.dtype(), "random_kernel_cpu", nothing);
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch_real(t.dtype(), "random_kernel_cpu",
                  [&]<class T>(Type<T>) { dist::random<T>(g, t.data<T>(), t.numel()); });
  });
}

void random_range(const Tensor& self, int64_t from, std::optional<int64_t> to,
                  Generator* generator) {
  const dist::RandomRange r = dist::random_range(self.dtype(), from, to);
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    if (r.full) {
      dispatch<int64_t, float, double, BFloat16>(
          t.dtype(), "random_from_to_range_calc",
          [&]<class T>(Type<T>) { dist::random_full<T>(g, t.data<T>(), t.numel()); });
      return;
    }
    auto draw = [&]<class T>(Type<T>) {
      dist::random_from_to<T>(g, t.data<T>(), t.numel(), r.range, r.base);
    };
    dispatch<FloatingTypes, IntegralTypes, bool, WideUnsignedTypes>(
        t.dtype(), "random_from_to_kernel_cpu", draw);
  });
}
void random_to(const Tensor& self, int64_t to, Generator* g) { random_range(self, 0, to, g); }

void geometric_(const Tensor& self, double p, Generator* generator) {
  check(p > 0 && p < 1, "geometric_(): p must be in (0, 1); got ", p);
  if (self.numel() == 0) return;
  auto draw = [&](const Tensor& t, Generator& g) {
    return [&t, p, &g]<class T>(Type<T>) { dist::geometric<T>(g, t.data<T>(), t.numel(), p); };
  };
  dispatch<FloatingTypes, IntegralTypes>(self.dtype(), "geometric_cpu", nothing);
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch<FloatingTypes, IntegralTypes>(t.dtype(), "geometric_cpu", draw(t, g));
  });
}

// --- continuous distributions

void check_continuous(DType d, const char* distribution) {
  check(is_floating(d), distribution,
        " distribution is continuous: self must have a floating-point dtype; got ",
        facula::name(d));
}

void exponential_(const Tensor& self, double lambd, Generator* generator) {
  check(lambd > 0, "exponential_(): lambd must be positive; got ", lambd);
  if (self.numel() == 0) return;
  check_continuous(self.dtype(), "Exponential");
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch<FloatingTypes>(t.dtype(), "exponential_cpu", [&]<class T>(Type<T>) {
      dist::exponential<T>(g, t.data<T>(), t.numel(), lambd);
    });
  });
}
void cauchy_(const Tensor& self, double median, double sigma, Generator* generator) {
  check(sigma > 0, "cauchy_(): sigma must be positive; got ", sigma);
  check_continuous(self.dtype(), "Cauchy");
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch<FloatingTypes>(t.dtype(), "cauchy_cpu", [&]<class T>(Type<T>) {
      dist::cauchy<T>(g, t.data<T>(), t.numel(), median, sigma);
    });
  });
}
void log_normal_(const Tensor& self, double mean, double std, Generator* generator) {
  check(std > 0, "log_normal_(): std must be positive; got ", std);
  if (self.numel() == 0) return;
  dispatch<FloatingTypes>(self.dtype(), "log_normal_cpu", nothing);
  fill_dense(self, generator, [&](const Tensor& t, Generator& g) {
    dispatch<FloatingTypes>(t.dtype(), "log_normal_cpu", [&]<class T>(Type<T>) {
      dist::log_normal<T>(g, t.data<T>(), t.numel(), mean, std);
    });
  });
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(uniform_){
    .schema =
        "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> "
        "Tensor(a!)",
    .doc = "Fills self with numbers uniform over [from, to).",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<uniform_>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(normal_){
    .schema =
        "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> "
        "Tensor(a!)",
    .doc = "Fills self with normal numbers of the given mean and standard deviation.",
    .forms = method,
    .flags = random,
    .any = typed_kernel<normal_>,
    .derivatives = {vjp("self", no_gradient)},
    .node = "NormalBackward0",
    .batch = batch::pointwise,
};
OP(normal_Tensor_float){
    .schema =
        "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers, each with its own mean.",
    .forms = function | out,
    .out_name = "Tensor_float_out",
    .composite = Composite::Explicit,
    .flags = random,
    .any = typed_kernel<normal_tensor_float>,
    .derivatives = {vjp("mean",
                        [](Backward& b) { return ops::new_zeros(b.grad(), b.sizes("mean")); })},
    .node = "NormalBackward1",
};
OP(normal_float_Tensor){
    .schema = "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers, each with its own standard deviation.",
    .forms = function | out,
    .out_name = "float_Tensor_out",
    .composite = Composite::Explicit,
    .flags = random,
    .any = typed_kernel<normal_float_tensor>,
    .derivatives = {vjp("std",
                        [](Backward& b) { return ops::new_zeros(b.grad(), b.sizes("std")); })},
    .node = "NormalBackward2",
};
OP(normal_Tensor_Tensor){
    .schema =
        "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers, each with its own mean and standard deviation.",
    .forms = function | out,
    .out_name = "Tensor_Tensor_out",
    .composite = Composite::Explicit,
    .flags = random,
    .any = typed_kernel<normal_tensor_tensor>,
    .derivatives =
        {
            vjp("mean", [](Backward& b) { return ops::new_zeros(b.grad(), b.sizes("mean")); }),
            vjp("std", [](Backward& b) { return ops::new_zeros(b.grad(), b.sizes("std")); }),
        },
    .node = "NormalBackward3",
};

OP(bernoulli__float){
    .schema =
        "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> "
        "Tensor(a!)",
    .doc = "Fills self with ones of probability p, else zeros.",
    .forms = method,
    .flags = random,
    .any = typed_kernel<bernoulli_float>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(bernoulli__Tensor){
    .schema =
        "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    .doc = "Fills self with ones of the probabilities p, else zeros; p broadcasts.",
    .forms = method,
    .flags = random,
    .any = typed_kernel<bernoulli_tensor>,
    .derivatives = {vjp("self", no_gradient),
                    vjp("p", [](Backward& b) { return ops::new_zeros(b.grad(), b.sizes("p")); })},
    .batch = batch::pointwise,
};
OP(bernoulli){
    .schema = "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    .doc = "Ones with the probabilities in self, else zeros.",
    .forms = function_method | out,
    .composite = Composite::Explicit,
    .flags = random | count_out,
    .any = typed_kernel<bernoulli>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(bernoulli_p){
    .schema = "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    .doc = "Ones with probability p, else zeros, in a tensor like self.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .flags = random,
    .any = typed_kernel<bernoulli_p>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};

OP(random_){
    .schema = "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    .doc =
        "Fills self with integers of the dtype's whole non-negative range (floats: up to "
        "2^digits).",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<random_any>,
    .derivatives = {vjp("self", no_gradient)},
    .node = "RandomBackward2",
    .batch = batch::pointwise,
};
OP(random__from){
    .schema =
        "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> "
        "Tensor(a!)",
    .doc = "Fills self with integers of [from, to).",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<random_range>,
    .derivatives = {vjp("self", no_gradient)},
    .node = "RandomBackward0",
    .batch = batch::pointwise,
};
OP(random__to){
    .schema = "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    .doc = "Fills self with integers of [0, to).",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<random_to>,
    .derivatives = {vjp("self", no_gradient)},
    .node = "RandomBackward1",
    .batch = batch::pointwise,
};
OP(geometric_){
    .schema = "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    .doc = "Fills self with the number of trials up to the first success of probability p.",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<geometric_>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(exponential_){
    .schema =
        "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
    .doc = "Fills self with exponential numbers of rate lambd.",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<exponential_>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(cauchy_){
    .schema =
        "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> "
        "Tensor(a!)",
    .doc = "Fills self with Cauchy numbers of the given median and half width.",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<cauchy_>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(log_normal_){
    .schema =
        "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> "
        "Tensor(a!)",
    .doc =
        "Fills self with exponentials of normal numbers of the given mean and standard deviation.",
    .forms = method | functional,
    .flags = random,
    .any = typed_kernel<log_normal_>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
