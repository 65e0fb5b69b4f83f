#include "ops/pool/sizes.h"

#include <limits>

namespace facula::pool {
namespace {

IntVec each(const std::string& op, const char* what, IntSpan list, int64_t spatial) {
  check(list.size() == 1 || static_cast<int64_t>(list.size()) == spatial, op, "(): ", what,
        " must be a single int or ", spatial, " ints; got ", str(list));
  for (int64_t n : list)
    check(n >= std::numeric_limits<int32_t>::min() && n <= std::numeric_limits<int32_t>::max(), op,
          "(): ", what, ": integer out of range: ", n);
  return list.size() == 1 ? IntVec(static_cast<size_t>(spatial), list[0]) : IntVec(list);
}

void check_positive(const std::string& op, const char* what, const IntVec& list) {
  for (int64_t n : list) check(n > 0, op, "(): ", what, " must be positive; got ", str(list));
}

// The batch and the spatial sizes may not be empty in the same way: only the batch may be.
void check_input(const std::string& op, const Tensor& self, int64_t spatial) {
  check(self.dim() == spatial + 1 || self.dim() == spatial + 2, op, "(): input must be ",
        spatial + 1, "D or ", spatial + 2, "D, and only its batch may be empty; got ",
        str(self.sizes()));
  for (int64_t d = self.dim() - spatial - 1; d < self.dim(); ++d)
    check(self.sizes()[d] > 0, op, "(): input must be ", spatial + 1, "D or ", spatial + 2,
          "D, and only its batch may be empty; got ", str(self.sizes()));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

int64_t result_size(int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                    int64_t dilation, bool ceil_mode) {
  const int64_t room = input + 2 * padding - dilation * (kernel - 1) - 1;
  const int64_t size = floor_div(room + (ceil_mode ? stride - 1 : 0), stride) + 1;
  // The last window must start inside of the input or of the padding before it.
  return ceil_mode && (size - 1) * stride >= input + padding ? size - 1 : size;
}

IntVec with_space(const Tensor& self, int64_t spatial, IntSpan space) {
  IntVec sizes(self.sizes().first(static_cast<size_t>(self.dim() - spatial)));
  for (int64_t n : space) sizes.push_back(n);
  return sizes;
}

}  // namespace

Window window(const std::string& op, int64_t spatial, IntSpan kernel, IntSpan stride,
              IntSpan padding, IntSpan dilation) {
  Window w;
  w.kernel = each(op, "kernel_size", kernel, spatial);
  w.stride = stride.empty() ? w.kernel : each(op, "stride", stride, spatial);
  w.padding = each(op, "padding", padding, spatial);
  w.dilation = each(op, "dilation", dilation, spatial);
  check_positive(op, "kernel size", w.kernel);
  check_positive(op, "stride", w.stride);
  check_positive(op, "dilation", w.dilation);
  return w;
}

IntVec result_sizes(const std::string& op, const Tensor& self, int64_t spatial, const Window& w,
                    bool ceil_mode) {
  check_input(op, self, spatial);
  IntVec space;
  for (int64_t d = 0; d < spatial; ++d) {
    check(w.padding[d] >= 0, op, "(): padding must not be negative; got ", w.padding[d]);
    check(w.padding[d] <= ((w.kernel[d] - 1) * w.dilation[d] + 1) / 2, op,
          "(): padding must be at most half of the dilated kernel; got padding ", w.padding[d],
          ", kernel_size ", w.kernel[d], " and dilation ", w.dilation[d]);
    const int64_t n = self.sizes()[self.dim() - spatial + d];
    space.push_back(
        result_size(n, w.kernel[d], w.stride[d], w.padding[d], w.dilation[d], ceil_mode));
  }
  for (int64_t n : space)
    check(n >= 1, op, "(): Output size is too small: each must be at least 1; got ", str(space),
          " for input ", str(self.sizes()));
  return with_space(self, spatial, space);
}

IntVec adaptive_sizes(const std::string& op, const Tensor& self, int64_t spatial,
                      IntSpan output_size, bool channels) {
  check(static_cast<int64_t>(output_size.size()) == spatial, op,
        "(): internal error: output_size.size() must be ", spatial, "; got ", str(output_size));
  check(self.dim() == spatial + 1 || self.dim() == spatial + 2, op, "(): input must be ",
        spatial + 1, "D or ", spatial + 2, "D; got ", str(self.sizes()));
  for (int64_t d = channels ? 1 : self.dim() - spatial; d < self.dim(); ++d)
    check(self.sizes()[d] > 0, op,
          "(): input must have a non-zero size in each dimension after the batch; got ",
          str(self.sizes()));
  for (int64_t n : output_size)
    check(n >= 0, op, "(): sizes in output_size must not be negative; got ", str(output_size));
  return with_space(self, spatial, output_size);
}

IntVec fractional_sizes(const std::string& op, const Tensor& self, int64_t spatial, IntSpan kernel,
                        IntSpan output_size, const Tensor& samples) {
  const IntVec window = each(op, "kernel_size", kernel, spatial);
  check(static_cast<int64_t>(output_size.size()) == spatial, op,
        "(): output_size must be a single int or ", spatial, " ints; got ", str(output_size));
  check_input(op, self, spatial);
  check(self.dtype() == samples.dtype(), op, "(): _random_samples must have input's dtype, ",
        name(self.dtype()), "; got ", name(samples.dtype()));
  check(samples.dim() == 3, op, "(): _random_samples must have 3 dimensions; got ", samples.dim());
  const int64_t batch = self.dim() == spatial + 2 ? self.sizes()[0] : 1,
                channels = self.sizes()[self.dim() - spatial - 1];
  check(samples.sizes()[0] >= batch && samples.sizes()[1] == channels &&
            samples.sizes()[2] == spatial,
        op, "(): expected _random_samples of shape [", batch, ", ", channels, ", ", spatial,
        "]; got ", str(samples.sizes()));
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t n = self.sizes()[self.dim() - spatial + d];
    check(window[d] > 0 && output_size[d] > 0, op,
          "(): kernel_size and output_size must be positive; got ", str(window), " and ",
          str(output_size));
    // PyTorch leaves one element more of room in volumes than in planes.
    check(output_size[d] <= n - window[d] + (spatial == 2), op, "(): pool size ", window[d],
          " too large relative to input size ", n, " for output size ", output_size[d]);
  }
  return with_space(self, spatial, output_size);
}

IntVec unpooled_sizes(const std::string& op, const Tensor& self, const Tensor& indices,
                      int64_t spatial, IntSpan output_size) {
  check(indices.dtype() == DType::Int64, op, "(): indices must have dtype int64; got ",
        name(indices.dtype()));
  check(static_cast<int64_t>(output_size.size()) == spatial, op, "(): There should be exactly ",
        spatial, " elements in output_size, but got ", output_size.size(), " elements.");
  check(self.dim() == spatial + 1 || self.dim() == spatial + 2, op, "(): input must be ",
        spatial + 1, "D or ", spatial + 2, "D; got ", self.dim(), " dimensions");
  check_same_shape(op, "indices", indices, self.sizes());
  for (int64_t d = 1; d < self.dim(); ++d)
    check(self.sizes()[d] > 0, op,
          "(): input must have a non-zero size in each dimension after the batch; got ",
          str(self.sizes()));
  return with_space(self, spatial, output_size);
}

void check_same_shape(const std::string& op, const char* what, const Tensor& t, IntSpan sizes) {
  check(same_sizes(t.sizes(), sizes), op, "(): expected ", what, " of shape ", str(sizes), "; got ",
        str(t.sizes()));
}

void check_grad(const std::string& op, const Tensor& grad, const Tensor& self, IntSpan sizes) {
  check_same_shape(op, "grad_output", grad, sizes);
  check(grad.dtype() == self.dtype(), op, "(): grad_output must have input's dtype, ",
        name(self.dtype()), "; got ", name(grad.dtype()));
}

void check_adaptive_grad(const std::string& op, const Tensor& grad, const Tensor& self,
                         int64_t spatial) {
  check(self.dim() == spatial + 1 || self.dim() == spatial + 2, op, "(): input must be ",
        spatial + 1, "D or ", spatial + 2, "D; got ", str(self.sizes()));
  const bool fits = grad.dim() == self.dim() &&
                    same_sizes(grad.sizes().first(static_cast<size_t>(self.dim() - spatial)),
                               self.sizes().first(static_cast<size_t>(self.dim() - spatial)));
  check(fits, op, "(): grad_output must have input's batch and channels, ", str(self.sizes()),
        "; got ", str(grad.sizes()));
  check(grad.dtype() == self.dtype(), op, "(): grad_output must have input's dtype, ",
        name(self.dtype()), "; got ", name(grad.dtype()));
  for (int64_t d = 1; d < grad.dim(); ++d)
    check(grad.sizes()[d] > 0, op,
          "(): grad_output must have a non-zero size in each dimension after the batch; got ",
          str(grad.sizes()));
}

MemoryFormat format(const Tensor& self, int64_t spatial) {
  return self.dim() == spatial + 2 ? suggested_format(self) : MemoryFormat::Contiguous;
}

}  // namespace facula::pool
