// Selection by a condition, element by element.
#include "ops/elementwise/where.h"

#include "dispatch/out_dtype.h"
#include "dispatch/warn_once.h"
#include "kernels/cpu/elementwise/described_loop.h"
#include "kernels/cpu/elementwise/select.h"
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

cpu::LoopFn loop_of_size(size_t itemsize) { return FACULA_OF_ISA(select_loop)(itemsize); }

void select_row(const void* loop, char* const* data, const int64_t* steps, int64_t n) {
  (*static_cast<const cpu::LoopFn*>(loop))(data, steps, n, nullptr);
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
  loop.function = "select";
  loop.compute = out.dtype();
  loop.inputs = 3;
  loop.grain = cpu::task_elements;
  loop.loop = loop_of_size(out.itemsize());
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
  const cpu::LoopFn loop = loop_of_size(out.itemsize());
  plan.run(&select_row, &loop);
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
