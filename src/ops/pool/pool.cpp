// Pooling: sliding, adaptive and fractional windows, and max_unpool.
#include "ops/pool/pool.h"

#include <algorithm>

#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "kernels/cpu/pool/pool.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/index/scatter.h"
#include "ops/pool/sizes.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using pool::Window;

void check_index_type(const Tensor& indices, const char* op) {
  check(indices.dtype() == DType::Int64, op, "(): expected indices of dtype int64; got ",
        name(indices.dtype()));
}

// --- shape rules

MemoryFormat flat_format(const Tensor& self, int64_t spatial) {
  return spatial == 2 ? pool::format(self, spatial) : MemoryFormat::Contiguous;
}

template <int spatial>
void meta_max_pool(Meta& m, const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool ceil_mode) {
  const Window w = pool::window(m.op_name(), spatial, kernel, stride, padding, dilation);
  const IntVec sizes = pool::result_sizes(m.op_name(), self, spatial, w, ceil_mode);
  check(spatial == 2 || self.dim() == 5 || suggested_format(self) == MemoryFormat::Contiguous,
        m.op_name(), "(): a volume without batch must not be channels-last");
  const MemoryFormat f = pool::format(self, spatial);
  m.result_format(0, sizes, self.dtype(), f);
  m.result_format(1, sizes, DType::Int64, f);
}

template <int spatial>
void meta_max_pool_backward(Meta& m, const Tensor& grad, const Tensor& self, IntSpan kernel,
                            IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                            const Tensor& indices) {
  const Window w = pool::window(m.op_name(), spatial, kernel, stride, padding, dilation);
  pool::check_grad(m.op_name(), grad, self,
                   pool::result_sizes(m.op_name(), self, spatial, w, ceil_mode));
  pool::check_same_shape(m.op_name(), "indices", indices, grad.sizes());
  check_index_type(indices, m.op_name().c_str());
  m.result_format(0, self.sizes(), self.dtype(), pool::format(self, spatial));
}

template <int spatial>
void meta_avg_pool(Meta& m, const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                   bool ceil_mode, bool, std::optional<int64_t> divisor) {
  check(!divisor || *divisor != 0, "divisor must be not zero");
  const Window w = pool::window(m.op_name(), spatial, kernel, stride, padding, IntList{1});
  m.result_format(0, pool::result_sizes(m.op_name(), self, spatial, w, ceil_mode), self.dtype(),
                  flat_format(self, spatial));
}

template <int spatial>
void meta_avg_pool_backward(Meta& m, const Tensor& grad, const Tensor& self, IntSpan kernel,
                            IntSpan stride, IntSpan padding, bool ceil_mode, bool,
                            std::optional<int64_t> divisor) {
  check(!divisor || *divisor != 0, "divisor must be not zero");
  const Window w = pool::window(m.op_name(), spatial, kernel, stride, padding, IntList{1});
  pool::check_grad(m.op_name(), grad, self,
                   pool::result_sizes(m.op_name(), self, spatial, w, ceil_mode));
  m.result_format(0, self.sizes(), self.dtype(), flat_format(self, spatial));
}

template <int spatial>
void meta_adaptive_avg(Meta& m, const Tensor& self, IntSpan output_size) {
  m.result_format(0, pool::adaptive_sizes(m.op_name(), self, spatial, output_size, false),
                  self.dtype(), flat_format(self, spatial));
}
template <int spatial>
void meta_adaptive_max(Meta& m, const Tensor& self, IntSpan output_size) {
  const IntVec sizes = pool::adaptive_sizes(m.op_name(), self, spatial, output_size, true);
  const MemoryFormat f = flat_format(self, spatial);
  m.result_format(0, sizes, self.dtype(), f);
  m.result_format(1, sizes, DType::Int64, f);
}
template <int spatial>
void meta_adaptive_backward(Meta& m, const Tensor& grad, const Tensor& self) {
  pool::check_adaptive_grad(m.op_name(), grad, self, spatial);
  m.result_format(0, self.sizes(), self.dtype(), flat_format(self, spatial));
}
template <int spatial>
void meta_adaptive_max_backward(Meta& m, const Tensor& grad, const Tensor& self,
                                const Tensor& indices) {
  check_index_type(indices, m.op_name().c_str());
  pool::check_same_shape(m.op_name(), "indices", indices, grad.sizes());
  meta_adaptive_backward<spatial>(m, grad, self);
}

template <int spatial>
void meta_fractional(Meta& m, const Tensor& self, IntSpan kernel, IntSpan output_size,
                     const Tensor& samples) {
  const IntVec sizes =
      pool::fractional_sizes(m.op_name(), self, spatial, kernel, output_size, samples);
  m.result(0, sizes, self.dtype());
  m.result(1, sizes, DType::Int64);
}
template <int spatial>
void meta_fractional_backward(Meta& m, const Tensor& grad, const Tensor& self, IntSpan, IntSpan,
                              const Tensor& indices) {
  check_index_type(indices, m.op_name().c_str());
  pool::check_same_shape(m.op_name(), "indices", indices, grad.sizes());
  pool::check_adaptive_grad(m.op_name(), grad, self, spatial);
  m.result(0, self.sizes(), self.dtype());
}

void meta_max_unpool2d(Meta& m, const Tensor& self, const Tensor& indices, IntSpan output_size) {
  m.result_format(0, pool::unpooled_sizes(m.op_name(), self, indices, 2, output_size), self.dtype(),
                  pool::format(self, 2));
}
void meta_max_unpool3d(Meta& m, const Tensor& self, const Tensor& indices, IntSpan output_size,
                       IntSpan stride, IntSpan padding) {
  check(stride.size() == 3 && padding.size() == 3, m.op_name(),
        "(): expected stride and padding of three elements; got ", str(stride), " and ",
        str(padding));
  for (int64_t s : stride)
    check(s > 0, m.op_name(), "(): expected strides greater than zero; got ", str(stride));
  m.result(0, pool::unpooled_sizes(m.op_name(), self, indices, 3, output_size), self.dtype());
}

// --- kernels that differ in their schemas alone

template <int spatial>
void max_pool_backward(const Tensor& grad, const Tensor&, IntSpan, IntSpan, IntSpan, IntSpan, bool,
                       const Tensor& indices, const Tensor& out) {
  cpu::max_pool_backward(grad, indices, spatial, out,
                         spatial == 2 ? "max_pool2d" : "max_pool3d_backward");
}
template <int spatial>
void adaptive_max_backward(const Tensor& grad, const Tensor&, const Tensor& indices,
                           const Tensor& out) {
  cpu::max_pool_backward(grad, indices, spatial, out, "adaptive_max_pool_backward");
}
template <int spatial>
void fractional_backward(const Tensor& grad, const Tensor&, IntSpan, IntSpan, const Tensor& indices,
                         const Tensor& out) {
  cpu::max_pool_backward(grad, indices, spatial, out, "fractional_max_pool_backward");
}
void max_unpool2d(const Tensor& self, const Tensor& indices, IntSpan, const Tensor& out) {
  cpu::max_unpool(self, indices, 2, out, "max_unpool2d");
}
void max_unpool3d(const Tensor& self, const Tensor& indices, IntSpan, IntSpan, IntSpan,
                  const Tensor& out) {
  cpu::max_unpool(self, indices, 3, out, "max_unpool3d");
}

// --- composites

template <int spatial>
Tensor max_pool(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                IntSpan dilation, bool ceil_mode) {
  if constexpr (spatial == 2)
    return std::get<0>(
        ops::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
  else
    return std::get<0>(
        ops::max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
}

// One dimension is the last of two; what it lacks is filled in.
IntVec beside(IntSpan list, int64_t fill) {
  IntVec both(list);
  if (list.size() == 1) both = IntVec{fill, list[0]};
  return both;
}
void check_line(const Tensor& self, const char* op) {
  check(self.dim() == 2 || self.dim() == 3, op, "(): input must have 2 or 3 dimensions; got ",
        str(self.sizes()));
}
void check_single(IntSpan list, const char* what, const char* op, bool may_be_empty = false) {
  check(list.size() == 1 || (may_be_empty && list.empty()), op, "(): expected ", what,
        " of one element; got ", str(list));
}

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntSpan kernel,
                                                   IntSpan stride, IntSpan padding,
                                                   IntSpan dilation, bool ceil_mode) {
  constexpr const char* op = "max_pool1d_with_indices";
  check_line(self, op);
  check_single(kernel, "kernel_size", op);
  check_single(stride, "stride", op, true);
  check_single(padding, "padding", op);
  check_single(dilation, "dilation", op);
  const auto [out, indices] =
      ops::max_pool2d_with_indices(ops::unsqueeze(self, -2), beside(kernel, 1), beside(stride, 1),
                                   beside(padding, 0), beside(dilation, 1), ceil_mode);
  return {ops::squeeze(out, -2), ops::squeeze(indices, -2)};
}
Tensor max_pool1d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                  IntSpan dilation, bool ceil_mode) {
  if (!is_floating(self.dtype())) not_implemented_for("max_pool1d_impl", self.dtype());
  return std::get<0>(
      ops::max_pool1d_with_indices(self, kernel, stride, padding, dilation, ceil_mode));
}

Tensor avg_pool1d(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                  bool ceil_mode, bool count_include_pad) {
  constexpr const char* op = "avg_pool1d";
  check_line(self, op);
  check_single(kernel, "kernel_size", op);
  check_single(stride, "stride", op, true);
  check_single(padding, "padding", op);
  const Tensor y = ops::avg_pool2d(ops::unsqueeze(self, -2), beside(kernel, 1), beside(stride, 1),
                                   beside(padding, 0), ceil_mode, count_include_pad);
  return ops::squeeze(y, -2);
}

Tensor adaptive_avg_pool1d(const Tensor& self, IntSpan output_size) {
  check_line(self, "adaptive_avg_pool1d");
  check_single(output_size, "output_size", "adaptive_avg_pool1d");
  return ops::squeeze(ops::adaptive_avg_pool2d(ops::unsqueeze(self, -2), beside(output_size, 1)),
                      -2);
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntSpan output_size) {
  check_line(self, "adaptive_max_pool1d");
  check_single(output_size, "output_size", "adaptive_max_pool1d");
  const auto [out, indices] =
      ops::adaptive_max_pool2d(ops::unsqueeze(self, -2), beside(output_size, 1));
  return {ops::squeeze(out, -2), ops::squeeze(indices, -2)};
}

template <int spatial>
Tensor adaptive_avg_pool(const Tensor& self, IntSpan output_size) {
  check(output_size.size() == spatial, "adaptive_avg_pool", spatial, "d: output_size must be ",
        spatial, "; got ", str(output_size));
  for (int64_t n : output_size)
    check(n >= 0, "adaptive_avg_pool", spatial,
          "d(): sizes in output_size must not be negative; got ", str(output_size));
  // One window is a mean over everything, which has a kernel of its own and takes complex numbers.
  if (std::ranges::all_of(output_size, [](int64_t n) { return n == 1; })) {
    IntVec over;
    for (int64_t d = -1; d >= -spatial; --d) over.push_back(d);
    const Tensor mean = ops::mean(self, std::optional<IntList>(over), true);
    if (self.dim() != spatial + 2 || pool::format(self, spatial) == MemoryFormat::Contiguous)
      return mean;
    IntVec strides(mean.sizes());  // channels innermost
    strides[0] = mean.sizes()[1];
    strides[1] = 1;
    for (int64_t d = 2; d < mean.dim(); ++d) strides[d] = mean.sizes()[1];
    return ops::as_strided_(mean, mean.sizes(), strides);  // in place: the mean is no view
  }
  return spatial == 2 ? ops::_adaptive_avg_pool2d(self, output_size)
                      : ops::_adaptive_avg_pool3d(self, output_size);
}

// --- derivatives

// What the places that indices name hold: the derivative of every scattering of maxima.
Tensor picked(const Tensor& t, const Tensor& indices, int64_t spatial) {
  if (indices.numel() == 0) return ops::new_zeros(t, indices.sizes());
  auto flat = [&](const Tensor& x) {
    IntVec sizes(x.sizes().first(static_cast<size_t>(x.dim() - spatial)));
    sizes.push_back(-1);
    return ops::reshape(x, sizes);
  };
  return ops::reshape(ops::gather(flat(t), -1, flat(indices)), indices.sizes());
}
template <int spatial>
Tensor picked_grad(Backward& b) {
  return picked(b.grad(), b["indices"], spatial);
}

// Gradients do not depend on the values that were pooled, but their shape does: zeros, not nothing.
Tensor no_change(Backward& b) { return ops::new_zeros(b.grad(), b.sizes("self")); }

std::optional<int64_t> divisor_of(const Backward& b) {
  return b.is_none("divisor_override") ? std::nullopt
                                       : std::optional<int64_t>(b.integer("divisor_override"));
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(max_pool1d){
    .schema =
        "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
        "dilation=[1], "
        "bool ceil_mode=False) -> Tensor",
    .doc = "Maxima of sliding windows over (batch, channels, length).",
    .composite = Composite::Implicit,
    .any = typed_kernel<max_pool1d>,
};
OP(max_pool1d_with_indices){
    .schema =
        "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
        "padding=[0], "
        "int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
    .doc = "As max_pool1d, and where along the length each maximum was.",
    .composite = Composite::Implicit,
    .any = typed_kernel<max_pool1d_with_indices>,
};
OP(max_pool2d){
    .schema =
        "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
        "dilation=1, "
        "bool ceil_mode=False) -> Tensor",
    .doc = "Maxima of sliding windows over (batch, channels, height, width).",
    .composite = Composite::Implicit,
    .any = typed_kernel<max_pool<2>>,
};
OP(max_pool3d){
    .schema =
        "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
        "dilation=1, "
        "bool ceil_mode=False) -> Tensor",
    .doc = "Maxima of sliding windows over (batch, channels, depth, height, width).",
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<max_pool<3>>,
};
OP(max_pool2d_with_indices){
    .schema =
        "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
        "padding=0, "
        "int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    .doc = "As max_pool2d, and where each maximum was: row * width + column, int64.",
    .forms = function | out,
    .python_module = "nn",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_max_pool<2>>,
    .cpu = cpu::max_pool2d_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::max_pool2d_with_indices_backward(
              b.grad(), b["self"], b.ints("kernel_size"), b.ints("stride"), b.ints("padding"),
              b.ints("dilation"), b.flag("ceil_mode"), b.result(1));
        },
        saves("self", "result1"))},
    .not_differentiable = names("result1"),
    .batch = batch::fold2d,
};
OP(max_pool2d_with_indices_backward){
    .schema =
        "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
        "int[2] stride, "
        "int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .doc = "Gradient of max_pool2d_with_indices by self.",
    .forms = out,
    .out_name = "grad_input",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_max_pool_backward<2>>,
    .cpu = typed_kernel<max_pool_backward<2>>,
    .derivatives = {vjp("grad_output", picked_grad<2>, saves("indices")), vjp("self", no_change)},
    .batch = batch::fold2d,
};
OP(max_pool3d_with_indices){
    .schema =
        "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
        "padding=0, "
        "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    .doc = "As max_pool3d, and where in the volume each maximum was, int64.",
    .forms = function | out,
    .python_module = "nn",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_max_pool<3>>,
    .cpu = cpu::max_pool3d_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::max_pool3d_with_indices_backward(
              b.grad(), b["self"], b.ints("kernel_size"), b.ints("stride"), b.ints("padding"),
              b.ints("dilation"), b.flag("ceil_mode"), b.result(1));
        },
        saves("self", "result1"))},
    .not_differentiable = names("result1"),
    .batch = batch::fold3d,
};
OP(max_pool3d_with_indices_backward){
    .schema =
        "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
        "int[3] stride, "
        "int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .doc = "Gradient of max_pool3d_with_indices by self.",
    .forms = out,
    .out_name = "grad_input",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_max_pool_backward<3>>,
    .cpu = typed_kernel<max_pool_backward<3>>,
    .derivatives = {vjp("grad_output", picked_grad<3>, saves("indices")), vjp("self", no_change)},
    .batch = batch::fold3d,
};

OP(avg_pool1d){
    .schema =
        "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
        "ceil_mode=False, "
        "bool count_include_pad=True) -> Tensor",
    .doc = "Means of sliding windows over (batch, channels, length).",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<avg_pool1d>,
};
OP(avg_pool2d){
    .schema =
        "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
        "ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .doc = "Means of sliding windows over (batch, channels, height, width).",
    .forms = function | out,
    .python_module = "nn",
    .flags = linear | exact_out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_avg_pool<2>>,
    .cpu = cpu::avg_pool2d_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::avg_pool2d_backward(b.grad(), b["self"], b.ints("kernel_size"),
                                          b.ints("stride"), b.ints("padding"), b.flag("ceil_mode"),
                                          b.flag("count_include_pad"), divisor_of(b));
        },
        saves("self"))},
    .batch = batch::fold2d,
};
OP(avg_pool2d_backward){
    .schema =
        "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
        "int[2] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .doc = "Gradient of avg_pool2d by self.",
    .forms = out,
    .out_name = "grad_input",
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_avg_pool_backward<2>>,
    .cpu = cpu::avg_pool2d_backward_kernel,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::avg_pool2d(b.grad(), b.ints("kernel_size"), b.ints("stride"),
                                                 b.ints("padding"), b.flag("ceil_mode"),
                                                 b.flag("count_include_pad"), divisor_of(b));
                        }),
                    vjp("self", no_change)},
    .batch = batch::fold2d,
};
OP(avg_pool3d){
    .schema =
        "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
        "ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .doc = "Means of sliding windows over (batch, channels, depth, height, width).",
    .forms = function | out,
    .python_module = "nn",
    .flags = linear | exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_avg_pool<3>>,
    .cpu = cpu::avg_pool3d_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::avg_pool3d_backward(b.grad(), b["self"], b.ints("kernel_size"),
                                          b.ints("stride"), b.ints("padding"), b.flag("ceil_mode"),
                                          b.flag("count_include_pad"), divisor_of(b));
        },
        saves("self"))},
    .batch = batch::fold3d,
};
OP(avg_pool3d_backward){
    .schema =
        "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, "
        "int[3] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .doc = "Gradient of avg_pool3d by self.",
    .forms = out,
    .out_name = "grad_input",
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_avg_pool_backward<3>>,
    .cpu = cpu::avg_pool3d_backward_kernel,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::avg_pool3d(b.grad(), b.ints("kernel_size"), b.ints("stride"),
                                                 b.ints("padding"), b.flag("ceil_mode"),
                                                 b.flag("count_include_pad"), divisor_of(b));
                        }),
                    vjp("self", no_change)},
    .batch = batch::fold3d,
};

OP(adaptive_avg_pool1d){
    .schema = "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    .doc = "Means of as many windows as output_size says, over (batch, channels, length).",
    .forms = function | out,
    .composite = Composite::Implicit,
    .flags = out_follows,
    .any = typed_kernel<adaptive_avg_pool1d>,
};
OP(adaptive_avg_pool2d){
    .schema = "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
    .doc = "Means of as many windows as output_size says, over (batch, channels, height, width).",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .flags = out_follows,
    .any = typed_kernel<adaptive_avg_pool<2>>,
};
OP(adaptive_avg_pool3d){
    .schema = "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
    .doc =
        "Means of as many windows as output_size says, over (batch, channels, depth, height, "
        "width).",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .flags = out_follows,
    .autocast = Autocast::Float32,
    .any = typed_kernel<adaptive_avg_pool<3>>,
};
OP(_adaptive_avg_pool2d){
    .schema = "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
    .doc = "What adaptive_avg_pool2d computes for more than one window.",
    .forms = function | out,
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_avg<2>>,
    .cpu = cpu::adaptive_avg_pool2d_kernel,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::_adaptive_avg_pool2d_backward(b.grad(), b["self"]); },
        saves("self"))},
    .batch = batch::fold2d,
};
OP(_adaptive_avg_pool2d_backward){
    .schema = "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "Gradient of _adaptive_avg_pool2d by self.",
    .forms = out,
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_backward<2>>,
    .cpu = cpu::adaptive_avg_pool2d_backward_kernel,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::_adaptive_avg_pool2d(b.grad(),
                                                           b.sizes("grad_output").last(2));
                        }),
                    vjp("self", no_change)},
    .batch = batch::fold2d,
};
OP(_adaptive_avg_pool3d){
    .schema = "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
    .doc = "What adaptive_avg_pool3d computes for more than one window.",
    .forms = function | out,
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_avg<3>>,
    .cpu = cpu::adaptive_avg_pool3d_kernel,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::_adaptive_avg_pool3d_backward(b.grad(), b["self"]); },
        saves("self"))},
    .batch = batch::fold3d,
};
OP(_adaptive_avg_pool3d_backward){
    .schema = "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
    .doc = "Gradient of _adaptive_avg_pool3d by self.",
    .forms = out,
    .flags = linear,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_backward<3>>,
    .cpu = cpu::adaptive_avg_pool3d_backward_kernel,
    .derivatives = {vjp("grad_output",
                        [](Backward& b) {
                          return ops::_adaptive_avg_pool3d(b.grad(),
                                                           b.sizes("grad_output").last(3));
                        }),
                    vjp("self", no_change)},
    .batch = batch::fold3d,
};

OP(adaptive_max_pool1d){
    .schema = "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    .doc =
        "Maxima of as many windows as output_size says, over (batch, channels, length), and where "
        "they were.",
    .composite = Composite::Implicit,
    .any = typed_kernel<adaptive_max_pool1d>,
};
OP(adaptive_max_pool2d){
    .schema = "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
    .doc =
        "Maxima of as many windows as output_size says, over (batch, channels, height, width), and "
        "where they were.",
    .forms = function | out,
    .python_module = "nn",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_max<2>>,
    .cpu = cpu::adaptive_max_pool2d_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::adaptive_max_pool2d_backward(b.grad(), b["self"], b.result(1));
        },
        saves("self", "result1"))},
    .not_differentiable = names("result1"),
    .batch = batch::fold2d,
};
OP(adaptive_max_pool2d_backward){
    .schema =
        "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
    .doc = "Gradient of adaptive_max_pool2d by self.",
    .forms = out,
    .out_name = "grad_input",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_max_backward<2>>,
    .cpu = typed_kernel<adaptive_max_backward<2>>,
    .derivatives = {vjp("grad_output", picked_grad<2>, saves("indices")), vjp("self", no_change)},
    .batch = batch::fold2d,
};
OP(adaptive_max_pool3d){
    .schema = "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
    .doc =
        "Maxima of as many windows as output_size says, over (batch, channels, depth, height, "
        "width), and where they were.",
    .forms = function | out,
    .python_module = "nn",
    .overlaps = Overlaps::None,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_adaptive_max<3>>,
    .cpu = cpu::adaptive_max_pool3d_kernel,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::adaptive_max_pool3d_backward(b.grad(), b["self"], b.result(1));
        },
        saves("self", "result1"))},
    .not_differentiable = names("result1"),
    .batch = batch::fold3d,
};
OP(adaptive_max_pool3d_backward){
    .schema =
        "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
    .doc = "Gradient of adaptive_max_pool3d by self.",
    .forms = out,
    .out_name = "grad_input",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_adaptive_max_backward<3>>,
    .cpu = typed_kernel<adaptive_max_backward<3>>,
    .derivatives = {vjp("grad_output", picked_grad<3>, saves("indices")), vjp("self", no_change)},
    .batch = batch::fold3d,
};

OP(fractional_max_pool2d){
    .schema =
        "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
        "random_samples) "
        "-> (Tensor, Tensor)",
    .doc =
        "Maxima of windows at places that random_samples (batch, channels, 2) in [0, 1) choose, "
        "and where they were.",
    .forms = function | out,
    .python_module = "nn",
    .out_name = "output",
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_fractional<2>>,
    .cpu = typed_kernel<cpu::fractional_max_pool2d>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::fractional_max_pool2d_backward(b.grad(), b["self"], b.ints("kernel_size"),
                                                     b.ints("output_size"), b.result(1));
        },
        saves("self", "result1"))},
    .not_differentiable = names("random_samples", "result1"),
    .batch = batch::fold2d,
    .always_batched = names("random_samples"),
};
OP(fractional_max_pool2d_backward){
    .schema =
        "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
        "int[2] output_size, "
        "Tensor indices) -> Tensor",
    .doc = "Gradient of fractional_max_pool2d by self.",
    .forms = out,
    .out_name = "grad_input",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_fractional_backward<2>>,
    .cpu = typed_kernel<fractional_backward<2>>,
    .derivatives = {vjp("grad_output", picked_grad<2>, saves("indices")), vjp("self", no_change)},
    .batch = batch::fold2d,
};
OP(fractional_max_pool3d){
    .schema =
        "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
        "random_samples) "
        "-> (Tensor, Tensor)",
    .doc =
        "Maxima of windows at places that random_samples (batch, channels, 3) in [0, 1) choose, "
        "and where they were.",
    .forms = function | out,
    .python_module = "nn",
    .out_name = "output",
    .overlaps = Overlaps::None,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_fractional<3>>,
    .cpu = typed_kernel<cpu::fractional_max_pool3d>,
    .derivatives = {vjp(
        "self",
        [](Backward& b) {
          return ops::fractional_max_pool3d_backward(b.grad(), b["self"], b.ints("kernel_size"),
                                                     b.ints("output_size"), b.result(1));
        },
        saves("self", "result1"))},
    .not_differentiable = names("random_samples", "result1"),
    .batch = batch::fold3d,
    .always_batched = names("random_samples"),
};
OP(fractional_max_pool3d_backward){
    .schema =
        "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
        "int[3] output_size, "
        "Tensor indices) -> Tensor",
    .doc = "Gradient of fractional_max_pool3d by self.",
    .forms = out,
    .out_name = "grad_input",
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_fractional_backward<3>>,
    .cpu = typed_kernel<fractional_backward<3>>,
    .derivatives = {vjp("grad_output", picked_grad<3>, saves("indices")), vjp("self", no_change)},
    .batch = batch::fold3d,
};

OP(max_unpool2d){
    .schema = "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
    .doc =
        "Zeros of output_size with self's values at the places that max_pool2d_with_indices found.",
    .forms = function | out,
    .python_module = "nn",
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_max_unpool2d>,
    .cpu = typed_kernel<max_unpool2d>,
    .derivatives = {vjp("self", picked_grad<2>, saves("indices"))},
    .batch = batch::fold2d,
};
OP(max_unpool3d){
    .schema =
        "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] "
        "padding) -> Tensor",
    .doc =
        "Zeros of output_size with self's values at the places that max_pool3d_with_indices found.",
    .forms = function | out,
    .python_module = "nn",
    .overlaps = Overlaps::None,
    .autocast_cpu = Autocast::Float32,
    .meta = typed_meta<meta_max_unpool3d>,
    .cpu = typed_kernel<max_unpool3d>,
    .derivatives = {vjp("self", picked_grad<3>, saves("indices"))},
    .batch = batch::fold3d,
};
