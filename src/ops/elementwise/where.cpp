// Selection by a condition, element by element.
#include "ops/elementwise/where.h"

#include "dispatch/out_dtype.h"
#include "dispatch/warn_once.h"
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

template <class T>
void where_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const char* from = data[1][i * steps[1]] != 0 ? data[2] + i * steps[2] : data[3] + i * steps[3];
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = *reinterpret_cast<const T*>(from);
  }
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
    .cpu = typed_kernel<where>,
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
