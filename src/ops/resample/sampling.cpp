// Sampling of images and volumes at the points of a grid, and grids of affine maps.
#include "ops/resample/sampling.h"

#include "dispatch/forward.h"
#include "kernels/cpu/resample/sampling.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/resample/sampling_gradients.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using cpu::Interpolation;
using cpu::Padding;

// --- shape rules

void check_sampling(const Meta& m, const Tensor& input, const Tensor& grid, int64_t spatial,
                    int64_t mode, int64_t padding) {
  const std::string& op = m.op_name();
  check(input.dtype() == grid.dtype(), op, "(): input and grid must have one dtype; got ",
        name(input.dtype()), " and ", name(grid.dtype()));
  check(input.dim() == spatial + 2 && grid.dim() == spatial + 2, op,
        "(): input and grid must both have ", spatial + 2, " dimensions; got ", str(input.sizes()),
        " and ", str(grid.sizes()));
  check(input.sizes()[0] == grid.sizes()[0], op,
        "(): input and grid must have one batch size; got ", str(input.sizes()), " and ",
        str(grid.sizes()));
  check(grid.sizes().back() == spatial, op, "(): grid must have ", spatial,
        " numbers in its last dimension; got ", str(grid.sizes()));
  for (int64_t d = 2; d < input.dim(); ++d)
    check(input.sizes()[d] > 0, op, "(): input's spatial dimensions must not be empty; got ",
          str(input.sizes()));
  check(mode >= 0 && mode <= 2, op, "(): expected an interpolation_mode of 0, 1 or 2; got ", mode);
  check(padding >= 0 && padding <= 2, op, "(): expected a padding_mode of 0, 1 or 2; got ",
        padding);
}

IntVec sampled_sizes(const Tensor& input, const Tensor& grid) {
  IntVec sizes{input.sizes()[0], input.sizes()[1]};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.sizes()[d]);
  return sizes;
}

template <int spatial>
void meta_grid_sampler(Meta& m, const Tensor& input, const Tensor& grid, int64_t mode,
                       int64_t padding, bool) {
  check_sampling(m, input, grid, spatial, mode, padding);
  m.result(0, sampled_sizes(input, grid), input.dtype());
}

template <int spatial>
void meta_grid_sampler_backward(Meta& m, const Tensor& grad, const Tensor& input,
                                const Tensor& grid, int64_t mode, int64_t padding, bool,
                                std::span<const bool> mask) {
  check_sampling(m, input, grid, spatial, mode, padding);
  check(mask.size() == 2, m.op_name(), "(): expected output_mask of 2 elements; got ", mask.size());
  const IntVec sizes = sampled_sizes(input, grid);
  check(same_sizes(grad.sizes(), sizes) && grad.dtype() == input.dtype(), m.op_name(),
        "(): expected grad_output of shape ", str(sizes), " and dtype ", name(input.dtype()),
        "; got ", str(grad.sizes()), " and ", name(grad.dtype()));
  if (mask[0]) m.result(0, input.sizes(), input.dtype());
  if (mask[1]) m.result(1, grid.sizes(), grid.dtype());
}

// --- kernels

template <int spatial>
void grid_sample(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align,
                 const Tensor& out) {
  cpu::grid_sample(input, grid, spatial, static_cast<Interpolation>(mode),
                   static_cast<Padding>(padding), align, out);
}
template <int spatial>
void grid_sample_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode,
                          int64_t padding, bool align, std::span<const bool>,
                          const Tensor& grad_input, const Tensor& grad_grid) {
  cpu::grid_sample_backward(grad, input, grid, spatial, static_cast<Interpolation>(mode),
                            static_cast<Padding>(padding), align, grad_input, grad_grid);
}

// --- derivatives

template <int spatial>
void sampling_gradients(Backward& b) {
  if (!b.grad().defined()) return;
  const bool mask[] = {b.needs("input"), b.needs("grid")};
  const int64_t mode = b.integer("interpolation_mode"), padding = b.integer("padding_mode");
  const bool align = b.flag("align_corners");
  auto backward = spatial == 2 ? &ops::grid_sampler_2d_backward : &ops::grid_sampler_3d_backward;
  const auto [input, grid] =
      backward(b.grad(), b["input"], b["grid"], mode, padding, align, std::span<const bool>(mask));
  b.set("input", input);
  b.set("grid", grid);
}

// --- composites

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align) {
  check(input.dim() == 4 || input.dim() == 5,
        "grid_sampler(): input must have 4 or 5 dimensions, and grid as many; got ",
        str(input.sizes()), " and ", str(grid.sizes()));
  return input.dim() == 4 ? ops::grid_sampler_2d(input, grid, mode, padding, align)
                          : ops::grid_sampler_3d(input, grid, mode, padding, align);
}
Tensor grid_sampler_2d_again(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                             bool align) {
  check(is_floating(input.dtype()),
        "_grid_sampler_2d_cpu_fallback(): input must be floating point; got ", name(input.dtype()));
  return ops::grid_sampler_2d(input, grid, mode, padding, align);
}

// Coordinates of n elements from -1 to 1: of their centres, or with the outer ones at the ends.
Tensor coordinates(const Tensor& like, int64_t n, bool align) {
  if (n <= 1) return ops::new_zeros(like, {n});
  const Tensor even = ops::linspace(-1, 1, n, like.dtype(), std::nullopt, like.device());
  if (align) return even;
  return ops::to(ops::div(ops::mul(even, n - 1), n), like.dtype());  // integers are cut off
}

// Every point of the grid as (x, y, 1) or (x, y, z, 1): a matrix (points, coordinates).
Tensor grid_points(const Tensor& theta, IntSpan space, bool align) {
  std::vector<Tensor> parts;
  const int64_t n = static_cast<int64_t>(space.size());
  for (int64_t d = n - 1; d >= 0; --d) {
    IntVec shape(static_cast<size_t>(n), 1);
    shape[d] = space[d];
    parts.push_back(ops::expand(ops::reshape(coordinates(theta, space[d], align), shape), space));
  }
  parts.push_back(ops::new_ones(theta, space));
  return ops::reshape(ops::stack(parts, -1), {-1, n + 1});
}

void check_affine(IntSpan size) {
  check(size.size() == 4 || size.size() == 5,
        "affine_grid_generator(): size must have 4 or 5 numbers; got ", str(size));
  for (int64_t n : size)
    check(n > 0, "affine_grid_generator(): sizes must be positive; got ", str(size));
}

Tensor affine_grid_generator(const Tensor& theta, IntSpan size, bool align) {
  check_affine(size);
  const IntSpan space = size.subspan(2);
  const int64_t n = static_cast<int64_t>(space.size());
  check(theta.dim() == 3 && theta.sizes()[0] == size[0] && theta.sizes()[1] == n &&
            theta.sizes()[2] == n + 1,
        "affine_grid_generator(): theta must have shape [", size[0], ", ", n, ", ", n + 1,
        "]; got ", str(theta.sizes()));
  const Tensor points = grid_points(theta, space, align);
  const Tensor batch = ops::expand(ops::unsqueeze(points, 0), {size[0], points.sizes()[0], n + 1});
  IntVec sizes{size[0]};
  for (int64_t s : space) sizes.push_back(s);
  sizes.push_back(n);
  return ops::view(ops::bmm(batch, ops::transpose(theta, 1, 2)), sizes);
}

Tensor affine_grid_generator_backward(const Tensor& grad, IntSpan size, bool align) {
  check_affine(size);
  const int64_t n = static_cast<int64_t>(size.size()) - 2;
  const Tensor points = grid_points(grad, size.subspan(2), align);
  check(grad.dim() == n + 2 && grad.sizes().back() == n &&
            grad.numel() == size[0] * points.sizes()[0] * n,
        "affine_grid_generator_backward(): expected grad of the grid for size ", str(size),
        "; got ", str(grad.sizes()));
  const Tensor batch = ops::expand(ops::unsqueeze(ops::transpose(points, 0, 1), 0),
                                   {size[0], n + 1, points.sizes()[0]});
  return ops::transpose(ops::bmm(batch, ops::reshape(grad, {size[0], points.sizes()[0], n})), 1, 2);
}

// Linear in the input. By the grid: each channel's gradient of ones, along the grid's tangent.
template <int N>
void sampling_tangent(Forward& f) {
  const Tensor &input = f.primal("input"), &t = f.tangent("grid");
  Tensor sum;
  if (f.tangent("input").defined()) sum = f.run_with(0, f.tangent("input"));
  if (t.defined()) {
    const int64_t n = input.size(0), channels = input.size(1);
    auto for_channels = [&](const Tensor& x) {
      IntVec sizes(x.sizes());
      sizes.insert(1, channels);
      const Tensor spread = ops::expand(ops::unsqueeze(x, 1), sizes);
      IntVec joined(x.sizes());
      joined[0] = n * channels;
      return ops::reshape(spread, joined);
    };
    IntVec planes(input.sizes()), ones(f.result().sizes());
    planes[0] = ones[0] = n * channels;
    planes[1] = ones[1] = 1;
    static constexpr bool only_grid[] = {false, true};
    const Tensor grad = ops::expand(ops::add(ops::new_zeros(input, IntSpan()), 1), ones);
    constexpr auto& backward =
        N == 2 ? ops::grid_sampler_2d_backward : ops::grid_sampler_3d_backward;
    const auto [unused, slope] =
        backward(grad, ops::reshape(input, planes), for_channels(f.primal("grid")),
                 f.value("interpolation_mode").i, f.value("padding_mode").i,
                 f.value("align_corners").b, std::span<const bool>(only_grid));
    const Tensor part = ops::sum(ops::mul(slope, for_channels(t)), IntList{-1});
    const Tensor shaped = ops::reshape(part, f.result().sizes());
    sum = sum.defined() ? ops::add(sum, shaped) : shaped;
  }
  f.set(0, sum);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(grid_sampler){
    .schema =
        "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
        "align_corners) -> Tensor",
    .doc =
        "The input's values at the grid's points: grid_sampler_2d for 4 dimensions, "
        "grid_sampler_3d for 5.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<grid_sampler>,
};
OP(grid_sampler_2d){
    .schema =
        "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
        "align_corners) -> Tensor",
    .doc =
        "Values of input (batch, channels, height, width) at points (batch, rows, columns, 2) in "
        "[-1, 1]; modes bilinear, "
        "nearest, bicubic; padding zeros, border, reflection.",
    .forms = function | out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_grid_sampler<2>>,
    .cpu = typed_kernel<grid_sample<2>>,
    .derivatives = {vjp(names("input", "grid"), sampling_gradients<2>, saves("input", "grid"))},
    .jvp = sampling_tangent<2>,
    .batch = batch::fold2d,
};
OP(grid_sampler_2d_backward){
    .schema =
        "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int "
        "interpolation_mode, int padding_mode, "
        "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
    .doc = "Gradients of grid_sampler_2d by input and grid; the mask says which are wanted.",
    .forms = out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_grid_sampler_backward<2>>,
    .cpu = typed_kernel<grid_sample_backward<2>>,
    .derivatives = {vjp(names("grad_output", "input", "grid"), sampling_second_gradients,
                        saves("grad_output", "input", "grid"))},
    .batch = batch::fold2d,
};
OP(_grid_sampler_2d_cpu_fallback){
    .schema =
        "_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int "
        "padding_mode, "
        "bool align_corners) -> Tensor",
    .doc = "The same as grid_sampler_2d.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<grid_sampler_2d_again>,
};
OP(grid_sampler_3d){
    .schema =
        "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
        "align_corners) -> Tensor",
    .doc =
        "Values of input (batch, channels, depth, height, width) at points (batch, planes, rows, "
        "columns, 3) in [-1, 1].",
    .forms = function | out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::Float32,
    .meta = typed_meta<meta_grid_sampler<3>>,
    .cpu = typed_kernel<grid_sample<3>>,
    .derivatives = {vjp(names("input", "grid"), sampling_gradients<3>, saves("input", "grid"))},
    .jvp = sampling_tangent<3>,
    .batch = batch::fold3d,
};
OP(grid_sampler_3d_backward){
    .schema =
        "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int "
        "interpolation_mode, int padding_mode, "
        "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
    .doc = "Gradients of grid_sampler_3d by input and grid; the mask says which are wanted.",
    .forms = out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_grid_sampler_backward<3>>,
    .cpu = typed_kernel<grid_sample_backward<3>>,
    .derivatives = {vjp(names("grad_output", "input", "grid"), sampling_second_gradients,
                        saves("grad_output", "input", "grid"))},
    .batch = batch::fold3d,
};
OP(affine_grid_generator){
    .schema = "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    .doc =
        "Where affine maps theta (batch, 2, 3) or (batch, 3, 4) take the points of an image of the "
        "given size.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<affine_grid_generator>,
    .derivatives = {vjp("theta",
                        [](Backward& b) {
                          return ops::affine_grid_generator_backward(b.grad(), b.ints("size"),
                                                                     b.flag("align_corners"));
                        })},
};
OP(affine_grid_generator_backward){
    .schema =
        "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    .doc = "Gradient of affine_grid_generator by theta.",
    .composite = Composite::Implicit,
    .any = typed_kernel<affine_grid_generator_backward>,
};
