// Padding, and the shuffles between channels and pixels.
#include "ops/shape/pad.h"

#include <algorithm>

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/shape/pad.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/index/index.h"
#include "ops/index/indexed.h"
#include "ops/index/scatter.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// --- constant

// Amounts by dimension: the list starts with the last one, before and after.
struct Pads {
  IntVec before, after;
};
Pads pads_by_dim(IntSpan pad, int64_t ndim) {
  Pads p{IntVec(static_cast<size_t>(ndim)), IntVec(static_cast<size_t>(ndim))};
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    p.before[static_cast<size_t>(ndim) - 1 - k] = pad[2 * k];
    p.after[static_cast<size_t>(ndim) - 1 - k] = pad[2 * k + 1];
  }
  return p;
}

enum class Border { Constant, Reflect, Replicate };

// The position of the input, of `size`, that stands where `x` lies; -1 outside.
int64_t source_of(int64_t x, int64_t size, Border border) {
  if (x >= 0 && x < size) return x;
  if (border == Border::Constant) return -1;
  if (border == Border::Replicate) return std::clamp<int64_t>(x, 0, size - 1);
  return x < 0 ? -x : 2 * (size - 1) - x;
}

// Fills `out`; negative amounts cut the input, positive ones go beyond its border.
void fill_padded(const Tensor& self, IntSpan pad, Border border, const Tensor& value,
                 const Tensor& out) {
  const Pads p = pads_by_dim(pad, self.dim());
  int64_t total = 0;
  for (int64_t s : out.sizes()) total += s;
  const Tensor memory = empty_tensor({&total, 1}, DType::Int64);
  int64_t* source = memory.data<int64_t>();
  cpu::PadDims dims;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t n = out.sizes()[d], size = self.sizes()[d], before = p.before[d];
    for (int64_t i = 0; i < n; ++i) source[i] = source_of(i - before, size, border);
    const int64_t begin = std::clamp<int64_t>(before, 0, n),
                  end = std::clamp<int64_t>(before + size, begin, n);
    dims.push_back({n, source, begin, end, 0, 0});
    source += n;
  }
  cpu::pad_elements(self, out, dims, value);
}

void meta_constant_pad(Meta& m, const Tensor& self, IntSpan pad, const Scalar&) {
  const int64_t n = self.dim();
  check(pad.size() % 2 == 0, "pad(): pad must have an even length; got ", pad.size());
  check(static_cast<int64_t>(pad.size()) <= 2 * n,
        "pad(): pad must have at most two numbers for each of the ", n, " dimensions; got ",
        pad.size());
  const Pads p = pads_by_dim(pad, n);
  IntVec sizes(self.sizes());
  for (int64_t d = 0; d < n; ++d) {
    const __int128 whole = static_cast<__int128>(sizes[d]) + p.before[d] + p.after[d];
    check(whole >= 0 && whole <= INT64_MAX, "pad(): a size must not become negative; got ",
          p.before[d], " + ", sizes[d], " + ", p.after[d], " in dimension ", d);
    sizes[d] = static_cast<int64_t>(whole);
  }
  m.result_format(0, sizes, self.dtype(), suggested_format(self));
}

void constant_pad_nd(const Tensor& self, IntSpan pad, const Scalar& value, const Tensor& out) {
  const Tensor number = empty_tensor({}, out.dtype());
  cpu::fill(number, value);
  fill_padded(self, pad, Border::Constant, number, out);
}

// --- reflection and replication: every element of the result is one of the input's

// Along each padded dimension, which index of the input stands at each index of the result.
Tensor sources(int64_t size, int64_t before, int64_t after, Border border) {
  const int64_t n = size + before + after;
  const Tensor t = empty_tensor({&n, 1}, DType::Int64);
  for (int64_t i = 0; i < n; ++i) t.data<int64_t>()[i] = source_of(i - before, size, border);
  return t;
}

// The result is indexed by one vector for each padded dimension: offsets are sums over them.
Tensor border_offsets(const Tensor& t, IntSpan input_sizes, IntSpan out_sizes, IntSpan padding,
                      Border border) {
  const size_t n = out_sizes.size(), padded = padding.size() / 2;
  std::vector<Tensor> indices;
  std::vector<cpu::IndexedDim> dims;
  indices.reserve(padded);
  const IntSpan shape = out_sizes.subspan(n - padded);
  for (size_t k = 0; k < padded; ++k) {
    const size_t d = n - padded + k, pair = padded - 1 - k;
    const Tensor at = sources(input_sizes[d], padding[2 * pair], padding[2 * pair + 1], border);
    IntVec strides(padded);
    strides[k] = 1;
    indices.push_back(alias_tensor(at, shape, strides, 0));
    dims.push_back(
        {&indices.back(), input_sizes[d], t.strides()[d], static_cast<int64_t>(d), false});
  }
  const Tensor offsets = cpu::byte_offsets(dims, t.itemsize());
  IntVec strides(n);
  for (size_t k = 0; k < padded; ++k) strides[n - padded + k] = offsets.strides()[k];
  return alias_tensor(offsets, out_sizes, strides, 0);
}

Tensor still_at_end(const Tensor& t, IntSpan sizes, size_t padded) {
  IntVec strides(t.strides());
  for (size_t k = 0; k < padded; ++k) strides[strides.size() - 1 - k] = 0;
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

IntVec border_sizes(Meta& m, const Tensor& self, IntSpan padding, Border border) {
  const Schema& schema = m.call.info->schema;
  const int64_t amounts =
      schema.args[static_cast<size_t>(schema.index_of("padding"))].type.list_size;
  check(static_cast<int64_t>(padding.size()) == amounts, "padding size is expected to be ", amounts,
        ", but got: ", padding.size());
  const int64_t spatial = static_cast<int64_t>(padding.size()) / 2;
  check(self.dim() == spatial + 1 || self.dim() == spatial + 2, "pad: input must be ", spatial + 1,
        "D or ", spatial + 2, "D, and only its batch may be empty; got ", str(self.sizes()));
  IntVec sizes(self.sizes());
  for (int64_t d = self.dim() == spatial + 1 ? 0 : 1; d < self.dim(); ++d)
    check(sizes[d] > 0, "pad: input must be ", spatial + 1, "D or ", spatial + 2,
          "D, and only its batch may be empty; got ", str(self.sizes()));
  for (int64_t k = 0; k < spatial; ++k) {
    const int64_t d = self.dim() - 1 - k, before = padding[2 * k], after = padding[2 * k + 1];
    if (border == Border::Reflect)
      check(before < sizes[d] && after < sizes[d],
            "pad: Padding size should be less than input's, which is reflected; got (", before,
            ", ", after, ") in dimension ", d, " of ", str(self.sizes()));
    int64_t whole;
    check(!__builtin_add_overflow(sizes[d], before, &whole) &&
              !__builtin_add_overflow(whole, after, &whole),
          m.op_name(), "(): padding (", before, ", ", after, ") is too large");
    check(whole >= 1, "input (", d, ": ", sizes[d],
          ") is too small. Calculated output size: ", whole);
    sizes[d] = whole;
  }
  return sizes;
}

template <Border border>
void meta_border(Meta& m, const Tensor& self, IntSpan padding) {
  m.result_format(0, border_sizes(m, self, padding, border), self.dtype(), suggested_format(self));
}
template <Border border>
void pad_border(const Tensor& self, IntSpan padding, const Tensor& out) {
  const Tensor unused = empty_tensor({}, out.dtype());
  cpu::fill(unused, 0);
  fill_padded(self, padding, border, unused, out);
}
template <Border border>
void meta_border_backward(Meta& m, const Tensor& grad, const Tensor& self, IntSpan padding) {
  const IntVec sizes = border_sizes(m, self, padding, border);
  check(same_sizes(sizes, grad.sizes()), m.op_name(), "(): expected grad_output of sizes ",
        str(sizes), "; got ", str(grad.sizes()));
  m.result_format(0, self.sizes(), self.dtype(), suggested_format(self));
}
template <Border border>
void pad_border_backward(const Tensor& grad, const Tensor& self, IntSpan padding,
                         const Tensor& out) {
  cpu::fill(out, 0);
  if (grad.numel() == 0) return;
  const Tensor to = indexed::widened(out);
  cpu::scatter_reduce_elements(still_at_end(to, grad.sizes(), padding.size() / 2),
                               border_offsets(to, self.sizes(), grad.sizes(), padding, border),
                               indexed::widened(grad), cpu::Reduction::Sum, "pad_backward");
  if (!to.is_same(out)) cpu::copy(out, to);
}

// --- circular, and the choice of mode

Tensor pad_circular(const Tensor& self, IntSpan padding) {
  const int64_t spatial = static_cast<int64_t>(padding.size()) / 2;
  check(padding.size() % 2 == 0 && (self.dim() == spatial + 1 || self.dim() == spatial + 2),
        "_pad_circular(): pad must hold two numbers for each dimension but the channels' and the "
        "batch's; got ",
        padding.size(), " for ", self.dim(), " dimensions");
  IntVec sizes(self.sizes());
  Tensor kept = self;  // what negative padding leaves
  for (int64_t k = 0; k < spatial; ++k) {
    const int64_t d = self.dim() - 1 - k, n = self.sizes()[d], before = padding[2 * k],
                  after = padding[2 * k + 1];
    check(before <= n && after <= n, "pad: circular padding must not be wider than the input; got ",
          before, " and ", after, " for size ", n);
    check(static_cast<__int128>(before) + after >= -n, "pad: a size must not become negative; got ",
          before, " + ", n, " + ", after);
    sizes[d] = n + before + after;
    kept = ops::slice(kept, d, std::max<int64_t>(-before, 0), n - std::max<int64_t>(-after, 0), 1);
  }
  const Tensor out = ops::new_empty(self, sizes);
  Tensor middle = out;
  for (int64_t k = 0; k < spatial; ++k) {
    const int64_t d = self.dim() - 1 - k, begin = std::max<int64_t>(padding[2 * k], 0);
    middle = ops::slice(middle, d, begin, begin + kept.sizes()[d], 1);
  }
  ops::copy_(middle, kept);
  // From the last dimension to the first, so that corners are copied from what is already padded.
  for (int64_t k = 0; k < spatial; ++k) {
    const int64_t d = self.dim() - 1 - k, n = kept.sizes()[d];
    const int64_t before = std::max<int64_t>(padding[2 * k], 0),
                  after = std::max<int64_t>(padding[2 * k + 1], 0);
    auto part = [&](int64_t begin, int64_t length) {
      return ops::slice(out, d, begin, begin + length, 1);
    };
    if (before > 0) ops::copy_(part(0, before), part(n, before));
    if (after > 0) ops::copy_(part(before + n, after), part(before, after));
  }
  return out;
}

Tensor pad_by_border(const Tensor& self, IntSpan pad, std::string_view mode) {
  const int64_t n = self.dim();
  const bool reflect = mode == "reflect";
  if (pad.size() == 2 && (n == 2 || n == 3))
    return reflect ? ops::reflection_pad1d(self, pad) : ops::replication_pad1d(self, pad);
  if (pad.size() == 4 && (n == 3 || n == 4))
    return reflect ? ops::reflection_pad2d(self, pad) : ops::replication_pad2d(self, pad);
  if (pad.size() == 6 && (n == 4 || n == 5))
    return reflect ? ops::reflection_pad3d(self, pad) : ops::replication_pad3d(self, pad);
  throw Error(ErrorKind::NotImplemented,
              "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
}

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  check(pad.size() % 2 == 0, "pad(): pad must have an even length; got ", pad.size());
  check(static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
        "pad(): pad must have at most two numbers for each of the ", self.dim(),
        " dimensions; got ", pad.size());
  if (mode == "constant") return ops::constant_pad_nd(self, pad, value.value_or(0.0));
  check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect" || mode == "replicate") return pad_by_border(self, pad, mode);
  if (mode != "circular")
    throw Error(ErrorKind::NotImplemented, "Unrecognised padding mode ", mode);
  if ((pad.size() == 2 && (self.dim() == 2 || self.dim() == 3)) ||
      (pad.size() == 4 && (self.dim() == 3 || self.dim() == 4)) ||
      (pad.size() == 6 && (self.dim() == 4 || self.dim() == 5)))
    return ops::_pad_circular(self, pad);
  throw Error(ErrorKind::NotImplemented,
              "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
}

// --- channels and pixels

Tensor pixel_shuffle(const Tensor& self, int64_t factor) {
  check(self.dim() >= 3, "pixel_shuffle(): input must have at least 3 dimensions; got ",
        self.dim());
  check(factor > 0, "pixel_shuffle(): upscale_factor must be positive; got ", factor);
  const int64_t n = self.dim(), c = self.size(n - 3), h = self.size(n - 2), w = self.size(n - 1);
  check(factor < (int64_t{1} << 31) && c % (factor * factor) == 0,
        "pixel_shuffle(): the square of upscale_factor must divide the number of channels; got ",
        factor, " and ", c);
  IntVec split(self.sizes().first(n - 3)), whole(split), order;
  for (int64_t s : {c / (factor * factor), factor, factor, h, w}) split.push_back(s);
  for (int64_t d = 0; d < n - 3; ++d) order.push_back(d);
  for (int64_t d : {0, 3, 1, 4, 2}) order.push_back(n - 3 + d);
  for (int64_t s : {c / (factor * factor), h * factor, w * factor}) whole.push_back(s);
  return ops::contiguous(ops::reshape(ops::permute(ops::reshape(self, split), order), whole),
                         suggested_format(self));
}
Tensor pixel_unshuffle(const Tensor& self, int64_t factor) {
  check(self.dim() >= 3, "pixel_unshuffle(): input must have at least 3 dimensions; got ",
        self.dim());
  check(factor > 0, "pixel_unshuffle(): downscale_factor must be positive; got ", factor);
  const int64_t n = self.dim(), c = self.size(n - 3), h = self.size(n - 2), w = self.size(n - 1);
  check(h % factor == 0, "pixel_unshuffle(): downscale_factor ", factor,
        " must divide the height; got ", h);
  check(w % factor == 0, "pixel_unshuffle(): downscale_factor ", factor,
        " must divide the width; got ", w);
  IntVec split(self.sizes().first(n - 3)), whole(split), order;
  for (int64_t s : {c, h / factor, factor, w / factor, factor}) split.push_back(s);
  for (int64_t d = 0; d < n - 3; ++d) order.push_back(d);
  for (int64_t d : {0, 2, 4, 1, 3}) order.push_back(n - 3 + d);
  for (int64_t s : {c * factor * factor, h / factor, w / factor}) whole.push_back(s);
  return ops::contiguous(ops::reshape(ops::permute(ops::reshape(self, split), order), whole),
                         suggested_format(self));
}
Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  check(self.dim() > 2, "channel_shuffle(): input must have more than 2 dimensions; got ",
        str(self.sizes()));
  check(groups > 0, "channel_shuffle(): groups must be positive; got ", groups);
  const int64_t c = self.sizes()[1];
  check(c % groups == 0, "channel_shuffle(): groups must divide the number of channels; got ",
        groups, " and ", c);
  IntVec split(self.sizes());
  split[1] = groups;
  split.insert(2, c / groups);
  return ops::contiguous(
      ops::reshape(ops::transpose(ops::reshape(self, split), 1, 2), self.sizes()),
      suggested_format(self));
}

// --- records: what those of the two borders have in common

template <class Op>
Tensor border_gradient(Backward& b) {
  return Op()(b.grad(), b["self"], b.ints("padding"));
}
template <class Op>
Tensor border_second_gradient(Backward& b) {
  return Op()(b.grad(), b.ints("padding"));
}
// The operator itself; `Op` calls the operator of its gradient.
template <Border border, class Op>
constexpr OpRecord border_padding(BatchRule batch, Op, OpRecord r) {
  r.meta = typed_meta<meta_border<border>>;
  r.cpu = typed_kernel<pad_border<border>>;
  r.derivatives[0] = vjp("self", border_gradient<Op>, saves("self"));
  r.batch = batch;
  return r;
}
// The operator of the gradient; `Op` calls the one whose gradient it is.
template <Border border, class Op>
constexpr OpRecord border_backward(BatchRule batch, Op, OpRecord r) {
  r.meta = typed_meta<meta_border_backward<border>>;
  r.cpu = typed_kernel<pad_border_backward<border>>;
  r.derivatives[0] = vjp("grad_output", border_second_gradient<Op>);
  r.derivatives[1] = vjp(
      "self", [](Backward& b) { return ops::zeros_like(b["self"]); },
      saves("self"));  // only its sizes are read
  r.batch = batch;
  return r;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(constant_pad_nd){
    .schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    .doc =
        "Self with elements of one value put before and after each of its last dimensions; "
        "negative amounts cut. `pad` starts "
        "with the last dimension: before, after.",
    .forms = function,
    .meta = typed_meta<meta_constant_pad>,
    .cpu = typed_kernel<constant_pad_nd>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          IntVec back(b.ints("pad"));
                          for (int64_t& p : back) p = -p;
                          return ops::constant_pad_nd(b.grad(), back, 0);
                        })},
    .batch = batch::leading,
};
OP(reflection_pad1d)
border_padding<Border::Reflect>(
    batch::fold1d, [](const auto&... a) { return ops::reflection_pad1d_backward(a...); },
    {
        .schema = "reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
        .doc = "Self with its last dimension continued by its mirror image, without repeating the "
               "border.",
        .forms = function | out,
        .python_module = "nn",
        .autocast_cpu = Autocast::Float32,
    });
OP(reflection_pad1d_backward)
border_backward<Border::Reflect>(
    batch::fold1d, [](const auto&... a) { return ops::reflection_pad1d(a...); },
    {
        .schema = "reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) "
                  "-> Tensor",
        .doc = "Gradient of reflection_pad1d; only the sizes of self are read.",
        .forms = hidden,
    });
OP(reflection_pad2d)
border_padding<Border::Reflect>(
    batch::fold2d, [](const auto&... a) { return ops::reflection_pad2d_backward(a...); },
    {
        .schema = "reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
        .doc = "Self with its last two dimensions continued by the mirror image, without repeating "
               "the "
               "border.",
        .forms = function | out,
        .python_module = "nn",
        .autocast_cpu = Autocast::Float32,
    });
OP(reflection_pad2d_backward)
border_backward<Border::Reflect>(
    batch::fold2d, [](const auto&... a) { return ops::reflection_pad2d(a...); },
    {
        .schema = "reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) "
                  "-> Tensor",
        .doc = "Gradient of reflection_pad2d; only the sizes of self are read.",
        .forms = hidden,
    });
OP(reflection_pad3d)
border_padding<Border::Reflect>(
    batch::fold3d, [](const auto&... a) { return ops::reflection_pad3d_backward(a...); },
    {
        .schema = "reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
        .doc = "Self with its last three dimensions continued by the mirror image, without "
               "repeating the "
               "border.",
        .forms = function | out,
        .python_module = "nn",
    });
OP(reflection_pad3d_backward)
border_backward<Border::Reflect>(
    batch::fold3d, [](const auto&... a) { return ops::reflection_pad3d(a...); },
    {
        .schema = "reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) "
                  "-> Tensor",
        .doc = "Gradient of reflection_pad3d; only the sizes of self are read.",
        .forms = hidden,
    });
OP(replication_pad1d)
border_padding<Border::Replicate>(
    batch::fold1d, [](const auto&... a) { return ops::replication_pad1d_backward(a...); },
    {
        .schema = "replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
        .doc = "Self with its last dimension continued by the border.",
        .forms = function | out,
        .python_module = "nn",
        .autocast_cpu = Autocast::Float32,
    });
OP(replication_pad1d_backward)
border_backward<Border::Replicate>(
    batch::fold1d, [](const auto&... a) { return ops::replication_pad1d(a...); },
    {
        .schema = "replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) "
                  "-> Tensor",
        .doc = "Gradient of replication_pad1d; only the sizes of self are read.",
        .forms = hidden,
    });
OP(replication_pad2d)
border_padding<Border::Replicate>(
    batch::fold2d, [](const auto&... a) { return ops::replication_pad2d_backward(a...); },
    {
        .schema = "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
        .doc = "Self with its last two dimensions continued by the border.",
        .forms = function | out,
        .python_module = "nn",
        .autocast_cpu = Autocast::Float32,
    });
OP(replication_pad2d_backward)
border_backward<Border::Replicate>(
    batch::fold2d, [](const auto&... a) { return ops::replication_pad2d(a...); },
    {
        .schema = "replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) "
                  "-> Tensor",
        .doc = "Gradient of replication_pad2d; only the sizes of self are read.",
        .forms = hidden,
    });
OP(replication_pad3d)
border_padding<Border::Replicate>(
    batch::fold3d, [](const auto&... a) { return ops::replication_pad3d_backward(a...); },
    {
        .schema = "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
        .doc = "Self with its last three dimensions continued by the border.",
        .forms = function | out,
        .python_module = "nn",
        .autocast_cpu = Autocast::Float32,
    });
OP(replication_pad3d_backward)
border_backward<Border::Replicate>(
    batch::fold3d, [](const auto&... a) { return ops::replication_pad3d(a...); },
    {
        .schema = "replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) "
                  "-> Tensor",
        .doc = "Gradient of replication_pad3d; only the sizes of self are read.",
        .forms = hidden,
    });
OP(_pad_circular){
    .schema = "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
    .doc =
        "A batch with all dimensions behind the channels continued by what stands at their other "
        "end.",
    .composite = Composite::Implicit,
    .any = typed_kernel<pad_circular>,
};
OP(pad){
    .schema = "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
    .doc =
        "Self with its last dimensions extended: by a value (\"constant\"), its mirror image "
        "(\"reflect\"), its border "
        "(\"replicate\") or its other end (\"circular\").",
    .python_module = "nn",
    .composite = Composite::Implicit,
    .any = typed_kernel<pad>,
};

OP(pixel_shuffle){
    .schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    .doc = "Sizes (..., C*r*r, H, W) to (..., C, H*r, W*r): channels become pixels.",
    .composite = Composite::Explicit,
    .any = typed_kernel<pixel_shuffle>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::pixel_unshuffle(b.grad(), b.integer("upscale_factor"));
                        })},
};
OP(pixel_unshuffle){
    .schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    .doc = "Sizes (..., C, H*r, W*r) to (..., C*r*r, H, W): pixels become channels.",
    .composite = Composite::Explicit,
    .any = typed_kernel<pixel_unshuffle>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::pixel_shuffle(b.grad(), b.integer("downscale_factor"));
                        })},
};
OP(channel_shuffle){
    .schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    .doc = "Channels, seen as groups times channels of a group, with these two exchanged.",
    .composite = Composite::Explicit,
    .any = typed_kernel<channel_shuffle>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          const int64_t of_a_group = b.sizes("self")[1] / b.integer("groups");
                          return ops::channel_shuffle(b.grad(), std::max<int64_t>(of_a_group, 1));
                        })},
};
OP(native_channel_shuffle){
    .schema = "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    .doc = "As channel_shuffle.",
    .composite = Composite::Implicit,
    .any = typed_kernel<channel_shuffle>,
};
