// Sliding blocks of images as columns, and back.
#include "ops/shape/fold.h"

#include "core/checked.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/shape/pad.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// Blocks of a kernel that slides over an image: two numbers each, for height and width.
struct Blocks {
  IntSpan kernel, dilation, padding, stride;
  int64_t count[2];  // positions of the kernel
};

Blocks blocks(int64_t height, int64_t width, IntSpan kernel, IntSpan dilation, IntSpan padding,
              IntSpan stride) {
  auto pair = [](const char* what, IntSpan v, bool zero_allowed) {
    check(v.size() == 2, "It is expected ", what, " equals to 2, but got size ", v.size());
    for (int64_t x : v)
      check(zero_allowed ? x >= 0 : x > 0, what, " should be ",
            zero_allowed ? "non-negative" : "greater than zero", ", but got ", what,
            "_height: ", v[0], " ", what, "_width: ", v[1]);
  };
  pair("kernel_size", kernel, false);
  pair("dilation", dilation, false);
  pair("padding", padding, true);
  pair("stride", stride, false);
  Blocks b{kernel, dilation, padding, stride, {}};
  const int64_t size[] = {height, width};
  for (int k = 0; k < 2; ++k) {
    const __int128 reach = static_cast<__int128>(dilation[k]) * (kernel[k] - 1) + 1;
    const __int128 room =
        static_cast<__int128>(size[k]) + 2 * static_cast<__int128>(padding[k]) - reach;
    check(room >= 0, "the blocks of an image of (", height, ", ", width,
          ") must be at least one in each direction; got 0 in direction ", k);
    const __int128 count = room / stride[k] + 1;
    check(count <= INT64_MAX, "too many blocks of an image of (", height, ", ", width,
          ") in direction ", k);
    b.count[k] = static_cast<int64_t>(count);
  }
  return b;
}

// The blocks of padded images [N, C, H, W] as [N, C, kh, kw, rows, columns], without copying.
Tensor block_view(const Tensor& padded, const Blocks& b) {
  const IntSpan s = padded.strides();
  const IntVec sizes{padded.sizes()[0], padded.sizes()[1], b.kernel[0],
                     b.kernel[1],       b.count[0],        b.count[1]};
  // A kernel or a row of one position makes no steps, of whatever length.
  const IntVec strides{s[0],
                       s[1],
                       wrapping_mul(s[2], b.dilation[0]),
                       wrapping_mul(s[3], b.dilation[1]),
                       wrapping_mul(s[2], b.stride[0]),
                       wrapping_mul(s[3], b.stride[1])};
  return alias_tensor(padded, sizes, strides, padded.storage_offset());
}

int64_t padded_size(int64_t size, int64_t padding) {
  const int64_t both = checked_mul(padding, 2, "the padding of an image");
  return checked_add(size, both, "the size of a padded image");
}

Tensor batched(const Tensor& t, int64_t dims) {
  if (t.dim() == dims) return t;
  IntVec sizes(t.sizes()), strides(t.strides());
  sizes.insert(0, 1);
  strides.insert(0, 0);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

void check_values(DType d, const char* op) {
  check_kind(ErrorKind::NotImplemented, !is_integral(d, false), "\"", op,
             "\" not implemented for '", info(d).legacy_name, "'");
}

void meta_im2col(Meta& m, const Tensor& self, IntSpan kernel, IntSpan dilation, IntSpan padding,
                 IntSpan stride) {
  const int64_t n = self.dim();
  check(n == 3 || n == 4, "im2col(): input must be 3D or 4D, and only its batch may be empty; got ",
        str(self.sizes()));
  for (int64_t d = n - 3; d < n; ++d)
    check(self.sizes()[d] > 0,
          "im2col(): input must be 3D or 4D, and only its batch may be empty; got ",
          str(self.sizes()));
  check_values(self.dtype(), "im2col_out_cpu");
  const Blocks b =
      blocks(self.sizes()[n - 2], self.sizes()[n - 1], kernel, dilation, padding, stride);
  IntVec sizes;
  if (n == 4) sizes.push_back(self.sizes()[0]);
  sizes.push_back(checked_product(IntVec{self.sizes()[n - 3], kernel[0], kernel[1]},
                                  "im2col(): the number of rows"));
  sizes.push_back(checked_product(b.count, "im2col(): the number of columns"));
  m.result(0, sizes, self.dtype());
}

void im2col(const Tensor& self, IntSpan kernel, IntSpan dilation, IntSpan padding, IntSpan stride,
            const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor images = batched(self, 4);
  const IntSpan s = images.sizes();
  const Blocks b = blocks(s[2], s[3], kernel, dilation, padding, stride);
  Tensor padded = images;
  if (padding[0] || padding[1]) {
    padded = empty_tensor(
        IntList{s[0], s[1], padded_size(s[2], padding[0]), padded_size(s[3], padding[1])},
        self.dtype());
    cpu::fill(padded, 0);
    cpu::copy(
        alias_tensor(padded, s, padded.strides(), padding[0] * padded.strides()[2] + padding[1]),
        images);
  }
  const Tensor view = block_view(padded, b);
  cpu::copy(alias_tensor(out, view.sizes(), contiguous_strides(view.sizes()), out.storage_offset()),
            view);
}

Tensor col2im(const Tensor& self, IntSpan output_size, IntSpan kernel, IntSpan dilation,
              IntSpan padding, IntSpan stride) {
  const int64_t n = self.dim();
  check(output_size.size() == 2, "col2im(): output_size must have 2 elements; got ",
        output_size.size());
  check(n == 2 || n == 3, "col2im(): input must be 2D or 3D, and only its batch may be empty; got ",
        str(self.sizes()));
  check_values(self.dtype(), "col2im_out_cpu");
  const Blocks b = blocks(output_size[0], output_size[1], kernel, dilation, padding, stride);
  const int64_t rows = self.sizes()[n - 2],
                area = checked_product(kernel, "col2im(): the elements of a block"),
                length = checked_product(b.count, "col2im(): the number of blocks");
  check(rows % area == 0, "col2im(): input's rows must be divisible by the ", area,
        " elements of a block; got ", rows);
  check(self.sizes()[n - 1] == length, "col2im(): input must have a column for each of the ",
        b.count[0], " * ", b.count[1], " blocks of the image; got ", self.sizes()[n - 1]);
  const int64_t batch = n == 3 ? self.sizes()[0] : 1, channels = rows / area;
  const Tensor columns =
      ops::reshape(self, {batch, channels, kernel[0], kernel[1], b.count[0], b.count[1]});
  const Tensor padded =
      ops::new_zeros(self, {batch, channels, padded_size(output_size[0], padding[0]),
                            padded_size(output_size[1], padding[1])});
  for (int64_t i = 0; i < kernel[0]; ++i)
    for (int64_t j = 0; j < kernel[1]; ++j) {
      const int64_t y = i * dilation[0], x = j * dilation[1];
      const Tensor line = ops::slice(padded, 2, y, y + (b.count[0] - 1) * stride[0] + 1, stride[0]);
      const Tensor places = ops::slice(line, 3, x, x + (b.count[1] - 1) * stride[1] + 1, stride[1]);
      ops::add_(places, ops::select(ops::select(columns, 2, i), 2, j));
    }
  const Tensor cut = ops::slice(ops::slice(padded, 2, padding[0], padding[0] + output_size[0], 1),
                                3, padding[1], padding[1] + output_size[1], 1);
  return ops::clone(n == 3 ? cut : ops::squeeze(cut, 0), MemoryFormat::Contiguous);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(im2col){
    .schema =
        "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
        "-> Tensor",
    .doc =
        "Blocks of images [N, C, H, W] under a sliding kernel as columns [N, C*kh*kw, positions].",
    .forms = function | out,
    .python_module = "nn",
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_im2col>,
    .cpu = typed_kernel<im2col>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          const IntSpan s = b.sizes("self");
                          return ops::col2im(b.grad(), {s[s.size() - 2], s[s.size() - 1]},
                                             b.ints("kernel_size"), b.ints("dilation"),
                                             b.ints("padding"), b.ints("stride"));
                        })},
    .batch = batch::fold2d,
};
OP(col2im){
    .schema =
        "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
        "padding, int[2] stride) -> Tensor",
    .doc =
        "Images [N, C, H, W] from columns of sliding blocks [N, C*kh*kw, positions]; blocks that "
        "overlap add up.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Explicit,
    .any = typed_kernel<col2im>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::im2col(b.grad(), b.ints("kernel_size"), b.ints("dilation"),
                                             b.ints("padding"), b.ints("stride"));
                        })},
};
