// Tensors of compressed layouts made from their parts.
#include "ops/sparse/compressed_tensor.h"

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/create/copy.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/layouts.h"
#include "ops/sparse/validate.h"

namespace facula {
namespace {

using namespace sparse;
using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using Flag = std::optional<bool>;

Tensor of_parts(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntSpan size,
                OptionalDType, OptionalLayout layout, OptionalDevice, Flag) {
  check(layout && is_compressed_layout(*layout),
        "sparse_compressed_tensor expected sparse compressed tensor layout but got ",
        layout ? backend_name(*layout) : "none");
  check(is_strided(compressed) && is_strided(plain) && is_strided(values),
        "sparse_compressed_tensor(): all parts must be strided tensors");
  check_compressed_shapes(compressed, plain, values, size, *layout);
  if (checks_invariants()) check_compressed(compressed, plain, values, size, *layout);
  return compressed_tensor(*layout, size, compressed, plain, values);
}

void validate(const Tensor& compressed, const Tensor& plain, const Tensor& values, IntSpan size,
              Layout layout) {
  check(is_compressed_layout(layout),
        "_validate_sparse_compressed_tensor_args(): expected a compressed sparse layout; got ",
        layout_name(layout));
  check_compressed(compressed, plain, values, size, layout);
}

Tensor values_gradient(Backward& b) {
  const Tensor grad = b.grad(), result = b["result"];
  return ops::values(ops::sparse_mask(grad, result));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_sparse_compressed_tensor_unsafe){
    .schema =
        "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor "
        "values, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .doc = "A tensor of a compressed layout; operators check indices when they read them.",
    .flags = any_layout,
    .any = typed_kernel<of_parts>,
    .derivatives = {vjp("values", values_gradient, saves("result"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_validate_sparse_compressed_tensor_args){
    .schema =
        "_validate_sparse_compressed_tensor_args(Tensor compressed_indices, Tensor plain_indices, "
        "Tensor values, int[] size, Layout layout) -> ()",
    .doc = "RuntimeError unless the parts make a tensor of this layout and size.",
    .composite = Composite::Implicit,
    .any = typed_kernel<validate>,
};
