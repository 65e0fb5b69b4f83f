// Softmax and log-softmax.
#include "ops/reduce/softmax.h"

#include "dispatch/out_dtype.h"
#include "kernels/cpu/reduce/softmax.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/exp_log.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"

namespace facula {
namespace {

void meta_softmax(Meta& m, const Tensor& self, int64_t dim, bool half_to_float) {
  check(!half_to_float, "softmax(): half_to_float needs an accelerator; got a CPU tensor");
  wrap_dim(dim, self.dim());
  m.result(0, self.sizes(), self.dtype());
}

void meta_backward(Meta& m, const Tensor& grad, const Tensor& output, int64_t dim, DType) {
  check(same_sizes(grad.sizes(), output.sizes()), m.op_name(),
        "(): expected grad_output and output of one shape; got ", str(grad.sizes()), " and ",
        str(output.sizes()));
  wrap_dim(dim, output.dim());
  m.result(0, output.sizes(), output.dtype());
}

Tensor in_dtype(const Tensor& t, std::optional<DType> dtype) {
  return dtype && *dtype != t.dtype() ? ops::to(t, *dtype) : t;
}
Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_softmax(in_dtype(self, dtype), dim, false);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::_log_softmax(in_dtype(self, dtype), dim, false);
}

Tensor sum_over(const Tensor& t, int64_t dim) { return ops::sum(t, IntList{dim}, true); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(_softmax){
    .schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .doc = "Exponentials of self along a dimension, scaled to sum to one.",
    .forms = function | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_softmax>,
    .cpu = cpu::softmax_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::_softmax_backward_data(b.grad(), b["result"], b.integer("dim"),
                                             b.dtype("self"));
        },
        saves("result"))},
    .batch = batch::dims,
};
OP(_log_softmax){
    .schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .doc = "Logarithm of the softmax of self along a dimension.",
    .forms = function | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_softmax>,
    .cpu = cpu::log_softmax_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::_log_softmax_backward_data(b.grad(), b["result"], b.integer("dim"),
                                                 b.dtype("self"));
        },
        saves("result"))},
    .batch = batch::dims,
};
OP(_softmax_backward_data){
    .schema =
        "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype) -> Tensor",
    .doc = "Gradient of softmax with respect to its input.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_backward>,
    .cpu = cpu::softmax_backward_kernel,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  return ops::_softmax_backward_data(b.grad(), b["output"], b.integer("dim"),
                                                     b.dtype("input_dtype"));
                },
                saves("output")),
            vjp(
                "output",
                [](Backward& b) {
                  const int64_t dim = b.integer("dim");
                  const Tensor inner = b["grad_output"], y = b["output"];
                  const Tensor first =
                      ops::mul(b.grad(), ops::sub(inner, sum_over(ops::mul(inner, y), dim)));
                  return ops::sub(first, ops::mul(inner, sum_over(ops::mul(b.grad(), y), dim)));
                },
                saves("grad_output", "output")),
        },
    .batch = batch::dims,
};
OP(_log_softmax_backward_data){
    .schema =
        "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype) -> Tensor",
    .doc = "Gradient of log_softmax with respect to its input.",
    .forms = function | out,
    .out_layout = OutLayout::Contiguous,
    .meta = typed_meta<meta_backward>,
    .cpu = cpu::log_softmax_backward_kernel,
    .derivatives =
        {
            vjp(
                "grad_output",
                [](Backward& b) {
                  const Tensor y = ops::exp(b["output"]);
                  return ops::sub(b.grad(), sum_over(ops::mul(b.grad(), y), b.integer("dim")));
                },
                saves("output")),
            vjp(
                "output",
                [](Backward& b) {
                  const Tensor sum = sum_over(b["grad_output"], b.integer("dim"));
                  return ops::neg(ops::mul(b.grad(), ops::mul(ops::exp(b["output"]), sum)));
                },
                saves("grad_output", "output")),
        },
    .batch = batch::dims,
};

OP(softmax_int){
    .schema = "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc =
        "Exponentials of self along a dimension, scaled to sum to one; self is first converted to "
        "dtype.",
    .forms = function_method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<softmax>,
};
OP(log_softmax_int){
    .schema = "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "Logarithm of the softmax of self along a dimension; self is first converted to dtype.",
    .forms = function_method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<log_softmax>,
};
OP(special_softmax){
    .schema = "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "The same as softmax.",
    .python_module = "special",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<softmax>,
};
OP(special_log_softmax){
    .schema = "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .doc = "The same as log_softmax.",
    .python_module = "special",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<log_softmax>,
};
