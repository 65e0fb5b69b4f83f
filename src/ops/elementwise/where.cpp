// Selection by a condition, element by element.
#include "ops/elementwise/where.h"

#include "dispatch/out_dtype.h"
#include "dispatch/warn_once.h"
#include "kernels/cpu/elementwise/described_loop.h"
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/loop.h"
#include "ops/meta_rules.h"

namespace facula {
namespace {

void meta_where(Meta& m) {
  const DType c = m.tensor(0).dtype();
  check(c == DType::Bool || c == DType::UInt8, "where(): condition must be bool or uint8; got ",
        name(c));
  static constinit std::atomic<bool> told{false};
  if (c == DType::UInt8)
    warn_once(told, "where(): a condition of uint8 is deprecated in favour of one of bool");
  const DType d = result_type({m.call.args + 1, 2});
  for (int i = 1; i < 3; ++i)
    if (m.arg(i).is_number() && is_integral(d, false)) cpu::check_fits(m.arg(i).as_scalar(), d);
  meta::pointwise_result(m, 3, d, d);
}

// Without branches, which cost ten times as much where the condition is random.
template <class T>
void select_row(T* out, const uint8_t* condition, const T* a, const T* b, int64_t step_a,
                int64_t step_b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T mask = static_cast<T>(0 - static_cast<T>(condition[i] != 0));
    out[i] = static_cast<T>((a[i * step_a] & mask) | (b[i * step_b] & static_cast<T>(~mask)));
  }
}

template <class T>
void where_loop(char* const* data, const int64_t* steps, int64_t n, const void*) {
  constexpr int64_t one = sizeof(T);
  const auto flat = [&](int k) { return steps[k] == one || steps[k] == 0; };
  if constexpr (std::is_integral_v<T>) {
    if (steps[0] == one && steps[1] == 1 && flat(2) && flat(3)) {
      auto* out = reinterpret_cast<T*>(data[0]);
      const auto* c = reinterpret_cast<const uint8_t*>(data[1]);
      const auto *a = reinterpret_cast<const T*>(data[2]), *b = reinterpret_cast<const T*>(data[3]);
      if (steps[2] && steps[3]) return select_row(out, c, a, b, 1, 1, n);
      if (steps[2]) return select_row(out, c, a, b, 1, 0, n);
      if (steps[3]) return select_row(out, c, a, b, 0, 1, n);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const char* from = data[1][i * steps[1]] != 0 ? data[2] + i * steps[2] : data[3] + i * steps[3];
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = *reinterpret_cast<const T*>(from);
  }
}
template <class T>
void where_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  where_loop<T>(data, steps, n, nullptr);
}

// The loop over operands that need not be converted.
void describe_where(const OpCall& c, cpu::LoopOfCall& loop) {
  const Tensor& out = c.results[0].as_tensor();
  for (int k = 0; k < 3; ++k) {
    const Value& v = c.args[k];
    if (!v.is_tensor())
      cpu::store_number(v.as_scalar(), out.dtype(), loop.in[k].cell);
    else if (k > 0 && v.as_tensor().dtype() != out.dtype())
      return;
    else
      loop.in[k].arg = k;
  }
  loop.inputs = 3;
  loop.grain = cpu::task_elements;
  visit_size(out.itemsize(), [&]<class T>(Type<T>) { loop.loop = &where_loop<T>; });
}

void where(const Tensor& condition, const Tensor& self, const Tensor& other, const Tensor& out) {
  const Tensor a = self.dtype() == out.dtype() ? self : cpu::converted(self, out.dtype());
  const Tensor b = other.dtype() == out.dtype() ? other : cpu::converted(other, out.dtype());
  cpu::LoopPlan plan(out.sizes());
  plan.add(out);
  plan.add(condition);
  plan.add(a);
  plan.add(b);
  plan.simplify();
  visit_size(out.itemsize(), [&]<class T>(Type<T>) { plan.run(&where_row<T>, nullptr); });
}

void run_where(void*, OpCall& c) {
  static constexpr KernelRef by_plan = typed_kernel<where>;
  if (cpu::LoopOfCall* loop = cpu::described_loop()) return describe_where(c, *loop);
  by_plan.function[0](nullptr, c);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(where_self){
    .schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    .doc = "Self where condition is true, else other, elementwise; all three broadcast.",
    .forms = function | method | out,
    .out_name = "self_out",
    .flags = pointwise | exact_out,
    .numbers = names("self", "other"),
    .meta = meta_where,
    .cpu = {.function = {&run_where}, .describes_loop = true},
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::where(b["condition"], b.grad(), 0); },
                saves("condition")),
            vjp(
                "other", [](Backward& b) { return ops::where(b["condition"], 0, b.grad()); },
                saves("condition")),
        },
};
