// Fills with random numbers, in place. The numbers are those of PyTorch: elements are visited in
// the order of memory, smallest stride innermost.
#include "ops/random.h"

#include <cmath>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/distributions.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/meta_rules.h"
#include "ops/view.h"

namespace facula {
namespace {

Generator& stream(Generator* g) { return g ? *g : default_generator(); }

[[noreturn]] void not_implemented(const char* kernel, DType d) {
  throw Error(ErrorKind::NotImplemented, "\"", kernel, "\" not implemented for '",
              info(d).legacy_name, "'");
}

// Calls fill(room), room a dense tensor whose memory has the order of self's.
template <class Fill>
void fill_dense(const Tensor& self, const Fill& fill) {
  if (self.is_meta() || self.numel() == 0) return;
  check(!may_self_overlap(self.sizes(), self.strides()),
        "unsupported operation: a tensor that is written to must hold each element at a place of "
        "its own (use clone() first)");
  if (is_dense_non_overlapping(self.sizes(), self.strides())) return fill(self);
  const Tensor* like[] = {&self};
  const Tensor room =
      empty_strided_tensor(self.sizes(), elementwise_strides(self.sizes(), like), self.dtype());
  fill(room);
  cpu::copy(self, room);
}

template <class F>
bool visit_real(DType d, F&& f) {
  return visit_floating(d, f) || visit_integral(d, f) || visit_types<bool>(d, f);
}

Tensor no_gradient(Backward& b) { return ops::zeros_like(b.grad()); }

// --- uniform and normal

void check_uniform_bounds(DType d, double from, double to) {
  const DType real = real_of(d);
  if (!visit_floating(real, [](auto) {})) not_implemented("check_uniform_bounds", d);
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
  fill_dense(self, [&](const Tensor& t) {
    visit_floating(real_of(t.dtype()), [&]<class T>(Type<T>) {
      dist::uniform<T>(stream(generator), t.data<T>(), real_count(t), from, to);
    });
  });
}

void normal_(const Tensor& self, double mean, double std, Generator* generator) {
  check(std >= 0, "normal(): std must not be negative; got ", std);
  if (self.numel() == 0) return;
  const DType real = real_of(self.dtype());
  if (!visit_floating(real, [](auto) {})) not_implemented("normal_kernel_cpu", self.dtype());
  const bool contiguous = self.is_contiguous(), complex = is_complex(self.dtype());
  fill_dense(self, [&](const Tensor& t) {
    visit_floating(real, [&]<class T>(Type<T>) {
      dist::normal<T>(stream(generator), t.data<T>(), real_count(t), mean,
                      complex ? std / std::sqrt(2.0) : std, contiguous);
    });
  });
}

void check_deviations(const Tensor& std) {
  check(!is_complex(std.dtype()), "normal(): std must be real; got a complex tensor");
  if (std.is_meta() || std.numel() == 0) return;
  const Tensor wide = cpu::contiguous(cpu::converted(std, DType::Float64));
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
  if (!visit_real(self.dtype(), [](auto) {}))
    not_implemented("bernoulli_scalar_cpu_", self.dtype());
  fill_dense(self, [&](const Tensor& t) {
    visit_real(t.dtype(), [&]<class T>(Type<T>) {
      dist::bernoulli_scalar<T>(stream(generator), t.data<T>(), t.numel(), p);
    });
  });
}

void bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator) {
  if (!visit_real(self.dtype(), [](auto) {}))
    not_implemented("bernoulli_tensor_cpu_self_", self.dtype());
  if (!visit_floating(p.dtype(), [](auto) {}))
    not_implemented("bernoulli_tensor_cpu_p_", p.dtype());
  const Tensor chances = ops::expand(p, self.sizes());
  fill_dense(self, [&](const Tensor& t) {
    const Tensor flat = empty_strided_tensor(t.sizes(), t.strides(), p.dtype());
    cpu::copy(flat, chances);
    visit_real(t.dtype(), [&]<class T>(Type<T>) {
      visit_floating(p.dtype(), [&]<class P>(Type<P>) {
        dist::bernoulli_each<T, P>(stream(generator), t.data<T>(), flat.data<P>(), t.numel());
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
  if (!visit_real(self.dtype(), [](auto) {})) not_implemented("random_kernel_cpu", self.dtype());
  fill_dense(self, [&](const Tensor& t) {
    visit_real(t.dtype(), [&]<class T>(Type<T>) {
      dist::random<T>(stream(generator), t.data<T>(), t.numel());
    });
  });
}

void random_range(const Tensor& self, int64_t from, std::optional<int64_t> to,
                  Generator* generator) {
  const dist::RandomRange r = dist::random_range(self.dtype(), from, to);
  fill_dense(self, [&](const Tensor& t) {
    if (r.full) {
      visit_types<int64_t, float, double, BFloat16>(t.dtype(), [&]<class T>(Type<T>) {
        dist::random_full<T>(stream(generator), t.data<T>(), t.numel());
      });
      return;
    }
    auto draw = [&]<class T>(Type<T>) {
      dist::random_from_to<T>(stream(generator), t.data<T>(), t.numel(), r.range, r.base);
    };
    visit_real(t.dtype(), draw) || visit_types<uint16_t, uint32_t, uint64_t>(t.dtype(), draw);
  });
}
void random_to(const Tensor& self, int64_t to, Generator* g) { random_range(self, 0, to, g); }

void geometric_(const Tensor& self, double p, Generator* generator) {
  check(p > 0 && p < 1, "geometric_(): p must be in (0, 1); got ", p);
  if (self.numel() == 0) return;
  auto draw = [&](const Tensor& t) {
    return [&t, p, generator]<class T>(Type<T>) {
      dist::geometric<T>(stream(generator), t.data<T>(), t.numel(), p);
    };
  };
  auto known = [](auto) {};
  if (!visit_floating(self.dtype(), known) && !visit_integral(self.dtype(), known))
    not_implemented("geometric_cpu", self.dtype());
  fill_dense(self, [&](const Tensor& t) {
    visit_floating(t.dtype(), draw(t)) || visit_integral(t.dtype(), draw(t));
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
  fill_dense(self, [&](const Tensor& t) {
    visit_floating(t.dtype(), [&]<class T>(Type<T>) {
      dist::exponential<T>(stream(generator), t.data<T>(), t.numel(), lambd);
    });
  });
}
void cauchy_(const Tensor& self, double median, double sigma, Generator* generator) {
  check(sigma > 0, "cauchy_(): sigma must be positive; got ", sigma);
  check_continuous(self.dtype(), "Cauchy");
  fill_dense(self, [&](const Tensor& t) {
    visit_floating(t.dtype(), [&]<class T>(Type<T>) {
      dist::cauchy<T>(stream(generator), t.data<T>(), t.numel(), median, sigma);
    });
  });
}
void log_normal_(const Tensor& self, double mean, double std, Generator* generator) {
  check(std > 0, "log_normal_(): std must be positive; got ", std);
  if (self.numel() == 0) return;
  if (!visit_floating(self.dtype(), [](auto) {})) not_implemented("log_normal_cpu", self.dtype());
  fill_dense(self, [&](const Tensor& t) {
    visit_floating(t.dtype(), [&]<class T>(Type<T>) {
      dist::log_normal<T>(stream(generator), t.data<T>(), t.numel(), mean, std);
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
    .flags = random,
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
