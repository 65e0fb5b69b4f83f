#include "kernels/cpu/shape/pad.h"

#include <algorithm>

#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {

// Largest steps of the result first.
static void order(PadDims& dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    for (size_t k = i; k > 0 && dims[k].out_stride > dims[k - 1].out_stride; --k)
      std::swap(dims[k], dims[k - 1]);
}

static bool is_whole(const PadDim& d) {
  return d.begin == 0 && d.end == d.size && d.source[0] == 0;
}

void pad_elements(const Tensor& self, const Tensor& out, const PadDims& sources,
                  const Tensor& value) {
  if (out.numel() == 0) return;
  PadPlan plan;
  for (size_t d = 0; d < sources.size(); ++d) {
    PadDim dim = sources[d];
    dim.in_stride = self.strides()[d];
    dim.out_stride = out.strides()[d];
    if (dim.size > 1 || !is_whole(dim)) plan.dims.push_back(dim);
  }
  order(plan.dims);
  if (plan.dims.size() > 0 && plan.dims.back().out_stride != 1) {
    const Tensor made = empty_tensor(out.sizes(), out.dtype());
    pad_elements(self, made, sources, value);
    return copy(out, made);
  }
  // Innermost dimensions that are not padded are moved as they are.
  while (plan.dims.size() > 1) {
    const PadDim last = plan.dims.back(), next = plan.dims[plan.dims.size() - 2];
    const bool follows =
        next.in_stride == plan.unit * last.size && next.out_stride == plan.unit * last.size;
    if (!is_whole(last) || last.in_stride != plan.unit || !follows) break;
    plan.unit *= last.size;
    plan.dims.pop_back();
  }
  if (plan.dims.size() == 0) {
    static constexpr int64_t first = 0;
    plan.dims.push_back({1, &first, 0, 1, 1, 1});
  }
  FACULA_OF_ISA(pad_rows)
  (plan, out.itemsize(), self.numel() > 0 ? self.data() : nullptr, out.data(), value.data());
}

}  // namespace facula::cpu
