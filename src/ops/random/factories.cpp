// Tensors of random numbers, and samples from given weights or rates.
#include "ops/random/factories.h"

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/random/distributions.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/meta_rules.h"
#include "ops/random/batch.h"
#include "ops/random/random.h"

namespace facula {
namespace {

using MaybeDType = std::optional<DType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

// --- rand, randn, randint: an empty tensor, filled

Tensor rand_generator(IntSpan size, Generator* g, MaybeDType d, MaybeLayout l, MaybeDevice v,
                      MaybeBool pin) {
  return ops::uniform_(ops::empty(size, d, l, v, pin), 0.0, 1.0, g);
}
Tensor rand(IntSpan size, MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin) {
  return rand_generator(size, nullptr, d, l, v, pin);
}
Tensor randn_generator(IntSpan size, Generator* g, MaybeDType d, MaybeLayout l, MaybeDevice v,
                       MaybeBool pin) {
  return ops::normal_(ops::empty(size, d, l, v, pin), 0.0, 1.0, g);
}
Tensor randn(IntSpan size, MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin) {
  return randn_generator(size, nullptr, d, l, v, pin);
}
Tensor randint_low_generator(int64_t low, int64_t high, IntSpan size, Generator* g, MaybeDType d,
                             MaybeLayout l, MaybeDevice v, MaybeBool pin) {
  return ops::random_(ops::empty(size, d.value_or(DType::Int64), l, v, pin), low, high, g);
}
Tensor randint_low(int64_t low, int64_t high, IntSpan size, MaybeDType d, MaybeLayout l,
                   MaybeDevice v, MaybeBool pin) {
  return randint_low_generator(low, high, size, nullptr, d, l, v, pin);
}
Tensor randint_generator(int64_t high, IntSpan size, Generator* g, MaybeDType d, MaybeLayout l,
                         MaybeDevice v, MaybeBool pin) {
  return randint_low_generator(0, high, size, g, d, l, v, pin);
}
Tensor randint(int64_t high, IntSpan size, MaybeDType d, MaybeLayout l, MaybeDevice v,
               MaybeBool pin) {
  return randint_low_generator(0, high, size, nullptr, d, l, v, pin);
}
Tensor normal_float_float(double mean, double std, IntSpan size, Generator* g, MaybeDType d,
                          MaybeLayout l, MaybeDevice v, MaybeBool pin) {
  return ops::normal_(ops::empty(size, d, l, v, pin), mean, std, g);
}

Tensor rand_like_generator(const Tensor& self, Generator* g, MaybeDType d, MaybeLayout l,
                           MaybeDevice v, MaybeBool pin, MaybeFormat f) {
  return ops::uniform_(ops::empty_like(self, d, l, v, pin, f), 0.0, 1.0, g);
}
Tensor rand_like(const Tensor& self, MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin,
                 MaybeFormat f) {
  return rand_like_generator(self, nullptr, d, l, v, pin, f);
}
Tensor randn_like_generator(const Tensor& self, Generator* g, MaybeDType d, MaybeLayout l,
                            MaybeDevice v, MaybeBool pin, MaybeFormat f) {
  return ops::normal_(ops::empty_like(self, d, l, v, pin, f), 0.0, 1.0, g);
}
Tensor randn_like(const Tensor& self, MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin,
                  MaybeFormat f) {
  return randn_like_generator(self, nullptr, d, l, v, pin, f);
}
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Generator* g,
                                  MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin,
                                  MaybeFormat f) {
  return ops::random_(ops::empty_like(self, d, l, v, pin, f), low, high, g);
}
Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, MaybeDType d, MaybeLayout l,
                        MaybeDevice v, MaybeBool pin, MaybeFormat f) {
  return randint_like_low_generator(self, low, high, nullptr, d, l, v, pin, f);
}
Tensor randint_like_generator(const Tensor& self, int64_t high, Generator* g, MaybeDType d,
                              MaybeLayout l, MaybeDevice v, MaybeBool pin, MaybeFormat f) {
  return randint_like_low_generator(self, 0, high, g, d, l, v, pin, f);
}
Tensor randint_like(const Tensor& self, int64_t high, MaybeDType d, MaybeLayout l, MaybeDevice v,
                    MaybeBool pin, MaybeFormat f) {
  return randint_like_low_generator(self, 0, high, nullptr, d, l, v, pin, f);
}
Tensor randint_like_tensor_generator(const Tensor& self, const Tensor& high, Generator* g,
                                     MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin,
                                     MaybeFormat f) {
  return randint_like_low_generator(self, 0, ops::item(high).to<int64_t>(), g, d, l, v, pin, f);
}
Tensor randint_like_tensor(const Tensor& self, const Tensor& high, MaybeDType d, MaybeLayout l,
                           MaybeDevice v, MaybeBool pin, MaybeFormat f) {
  return randint_like_tensor_generator(self, high, nullptr, d, l, v, pin, f);
}

// --- randperm

// The largest n whose numbers 0, ..., n - 1 the dtype tells apart.
void check_permutation(int64_t n, DType d) {
  if (d == DType::Float16)
    check(n <= 2049, "randperm(): float16 holds the integers below 2049 alone; got n ", n);
  const bool known = visit_integral(d, [&]<class T>(Type<T>) {
    const bool fits = n == 0 || static_cast<int64_t>(static_cast<T>(n - 1)) == n - 1;
    check(fits, "value cannot be converted to type ", d == DType::UInt8 ? "uint8_t" : name(d),
          " without overflow");
  });
  if (!known && !visit_floating(d, [](auto) {})) not_implemented_for("randperm", d);
}

Tensor randperm_generator(int64_t n, Generator* generator, MaybeDType dtype, MaybeLayout l,
                          MaybeDevice v, MaybeBool pin) {
  const DType d = dtype.value_or(DType::Int64);
  const Tensor t = ops::empty(IntList{n}, d, l, v, pin);
  check_permutation(n, d);
  if (t.is_meta()) return t;
  const Tensor host = t.device().is_cpu() ? t : empty_tensor(IntList{n}, d);
  Generator& g = generator_for(generator, t.device());
  auto draw = [&]<class T>(Type<T>) { dist::randperm<T>(g, host.data<T>(), n); };
  dispatch<IntegralTypes, FloatingTypes>(d, "randperm", draw);
  return host.is_same(t) ? t : ops::copy_(t, host);
}
Tensor randperm(int64_t n, MaybeDType d, MaybeLayout l, MaybeDevice v, MaybeBool pin) {
  return randperm_generator(n, nullptr, d, l, v, pin);
}

// --- samples

void meta_like(Meta& m, const Tensor& self) { m.result(0, self.sizes(), self.dtype()); }

void poisson(const Tensor& self, Generator* generator, const Tensor& out) {
  const Tensor rate = cpu::contiguous(self);
  Generator& g = generator_for(generator, Device());
  dispatch<FloatingTypes>(self.dtype(), "poisson_cpu", [&]<class T>(Type<T>) {
    dist::poisson<T>(g, out.data<T>(), rate.data<T>(), out.numel());
  });
}

void meta_binomial(Meta& m, const Tensor& count, const Tensor& prob) {
  check_value(is_floating(count.dtype()), "binomial(): count must be floating point; got ",
              name(count.dtype()));
  check_value(is_floating(prob.dtype()), "binomial(): prob must be floating point; got ",
              name(prob.dtype()));
  check(count.dtype() == prob.dtype(), "binomial(): count and prob must have one dtype; got ",
        name(count.dtype()), " and ", name(prob.dtype()));
  const IntVec sizes = broadcast_sizes(count.sizes(), prob.sizes());
  check(same_sizes(sizes, count.sizes()), "output with shape ", str(count.sizes()),
        " doesn't match the broadcast shape ", str(sizes));
  m.result(0, count.sizes(), count.dtype());
}
void binomial(const Tensor& count, const Tensor& prob, Generator* generator, const Tensor& out) {
  const Tensor n = cpu::contiguous(count), p = empty_tensor(count.sizes(), count.dtype());
  cpu::copy(p, prob);
  Generator& g = generator_for(generator, Device());
  dispatch<float, double>(count.dtype(), "binomial_cpu", [&]<class T>(Type<T>) {
    dist::binomial<T>(g, out.data<T>(), n.data<T>(), p.data<T>(), out.numel());
  });
}

void meta_multinomial(Meta& m, const Tensor& self, int64_t samples, bool replacement) {
  check(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  check(is_floating(self.dtype()), "multinomial(): input must be floating point; got ",
        name(self.dtype()));
  check(samples > 0, "cannot sample n_sample <= 0 samples");
  check(replacement || samples <= self.size(-1),
        "multinomial(): without replacement num_samples must be at most the number of "
        "categories, ",
        self.size(-1), "; got ", samples);
  const OpCall& c = m.call;
  const DType given =
      c.op->variant == Variant::Out ? c.args[c.info->base_args].as_tensor().dtype() : DType::Int64;
  check(given == DType::Int64, "multinomial(): out= must have dtype int64; got ", name(given));
  check(self.size(-1) <= int64_t{1} << 24, "number of categories cannot exceed 2^24");
  if (self.dim() == 1) return m.result(0, IntVec{samples}, DType::Int64);
  m.result(0, IntVec{self.size(0), samples}, DType::Int64);
}
void multinomial(const Tensor& self, int64_t samples, bool replacement, Generator* generator,
                 const Tensor& out) {
  Generator& g = generator_for(generator, Device());
  if (out.numel() == 0) return;
  check(self.size(-1) > 0,
        "multinomial(): invalid multinomial distribution: there are no categories");
  dispatch<FloatingTypes>(self.dtype(), "multinomial", [&]<class T>(Type<T>) {
    const bool matrix = self.dim() == 2;
    const dist::Weights<T> w{self.data<T>(), matrix ? self.size(0) : 1, self.size(-1),
                             matrix ? self.stride(0) : 0, self.stride(-1)};
    if (replacement)
      dist::multinomial_with_replacement<T>(g, out.data<int64_t>(), w, samples);
    else
      dist::multinomial_without_replacement<T>(g, out.data<int64_t>(), w, samples);
  });
}

Tensor no_gradient(Backward& b) { return ops::zeros_like(b.grad()); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(rand){
    .schema =
        "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Numbers uniform over [0, 1).",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<rand>,
};
OP(rand_generator){
    .schema =
        "rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Numbers uniform over [0, 1).",
    .forms = function | out,
    .out_name = "generator_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<rand_generator>,
};
OP(randn){
    .schema =
        "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Standard normal numbers.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randn>,
};
OP(randn_generator){
    .schema =
        "randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Standard normal numbers.",
    .forms = function | out,
    .out_name = "generator_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randn_generator>,
};
OP(randint){
    .schema =
        "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Integers of [0, high).",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint>,
};
OP(randint_generator){
    .schema =
        "randint.generator(SymInt high, SymInt[] size, *, Generator? generator, "
        "ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "Integers of [0, high).",
    .forms = function | out,
    .out_name = "generator_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_generator>,
};
OP(randint_low){
    .schema =
        "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Integers of [low, high).",
    .forms = function | out,
    .out_name = "low_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_low>,
};
OP(randint_low_generator){
    .schema =
        "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "
        "ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "Integers of [low, high).",
    .forms = function | out,
    .out_name = "low_generator_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_low_generator>,
};
OP(randperm){
    .schema =
        "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A random permutation of 0, ..., n - 1.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randperm>,
};
OP(randperm_generator){
    .schema =
        "randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "A random permutation of 0, ..., n - 1.",
    .forms = function | out,
    .out_name = "generator_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randperm_generator>,
};
OP(rand_like){
    .schema =
        "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Numbers uniform over [0, 1) in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<rand_like>,
    .not_differentiable = names("self", "result"),
};
OP(rand_like_generator){
    .schema =
        "rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Numbers uniform over [0, 1) in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<rand_like_generator>,
    .not_differentiable = names("self", "result"),
};
OP(randn_like){
    .schema =
        "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Standard normal numbers in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randn_like>,
    .not_differentiable = names("self", "result"),
};
OP(randn_like_generator){
    .schema =
        "randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Standard normal numbers in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randn_like_generator>,
    .not_differentiable = names("self", "result"),
};
OP(randint_like){
    .schema =
        "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Integers of [0, high) in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_like>,
    .not_differentiable = names("self", "result"),
};
OP(randint_like_generator){
    .schema =
        "randint_like.generator(Tensor self, SymInt high, *, Generator? generator, "
        "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Integers of [0, high) in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_like_generator>,
    .not_differentiable = names("self", "result"),
};
OP(randint_like_Tensor){
    .schema =
        "randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Integers of [0, high) in a tensor like self; high has one element.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_like_tensor>,
    .not_differentiable = names("self", "result"),
};
OP(randint_like_Tensor_generator){
    .schema =
        "randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, "
        "ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Integers of [0, high) in a tensor like self; high has one element.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_like_tensor_generator>,
    .not_differentiable = names("self", "result"),
};
OP(randint_like_low_dtype){
    .schema =
        "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Integers of [low, high) in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_like_low>,
    .not_differentiable = names("self", "result"),
};
OP(randint_like_low_generator_dtype){
    .schema =
        "randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, "
        "Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "Integers of [low, high) in a tensor like self.",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<randint_like_low_generator>,
    .not_differentiable = names("self", "result"),
};
OP(normal_float_float){
    .schema =
        "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
        "ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Normal numbers of the given mean and standard deviation.",
    .forms = function | out,
    .out_name = "float_float_out",
    .composite = Composite::Explicit,
    .flags = factory | random,
    .any = typed_kernel<normal_float_float>,
};
OP(poisson){
    .schema = "poisson(Tensor self, Generator? generator=None) -> Tensor",
    .doc = "Poisson counts of the rates in self.",
    .forms = function | out,
    .flags = random,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_like>,
    .cpu = typed_kernel<poisson>,
    .derivatives = {vjp("self", no_gradient)},
    .batch = batch::pointwise,
};
OP(binomial){
    .schema = "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    .doc = "Numbers of successes in `count` trials of probability `prob`.",
    .forms = function | out,
    .flags = random,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_binomial>,
    .cpu = typed_kernel<binomial>,
    .derivatives = {vjp("count", no_gradient),
                    vjp("prob",
                        [](Backward& b) { return ops::new_zeros(b.grad(), b.sizes("prob")); })},
    .batch = batch::pointwise,
};
OP(multinomial){
    .schema =
        "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
        "generator=None) -> Tensor",
    .doc = "Category numbers drawn by the weights in self, (n,) or (rows, n).",
    .forms = function_method | out,
    .flags = random,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_multinomial>,
    .cpu = typed_kernel<multinomial>,
    .not_differentiable = names("result"),
    .batch = batch::draw_rows,
};
