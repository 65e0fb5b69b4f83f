#include "kernels/cpu/elementwise/described_loop.h"
#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/loop/convert_rows.h"

namespace facula::cpu {
namespace {

// The parameters hold the function that does it.
void copy_loop(char* const* data, const int64_t* steps, int64_t n, const void* params) {
  RowFn row;
  __builtin_memcpy(&row, params, sizeof(row));
  row(nullptr, data, steps, n);
}

}  // namespace

void describe_copy(const Tensor& to, const Tensor& from, int arg, LoopOfCall& loop) {
  const bool in_order =
      same_sizes(to.sizes(), from.sizes()) && same_sizes(to.strides(), from.strides());
  if (!in_order || to->conj != from->conj || to->neg != from->neg) return;
  const bool moves = to.dtype() == from.dtype() && to.dtype() != DType::Bool;
  const RowFn row = moves ? FACULA_OF_ISA(mover)(to.itemsize())
                          : FACULA_OF_ISA(converter)(from.dtype(), to.dtype());
  if (!row) return;
  __builtin_memcpy(loop.params, &row, sizeof(row));
  loop.function = moves ? "move" : nullptr;
  loop.compute = from.dtype();
  loop.inputs = 1;
  loop.in[0].arg = arg;
  loop.grain = task_elements;
  loop.loop = &copy_loop;
}

}  // namespace facula::cpu
