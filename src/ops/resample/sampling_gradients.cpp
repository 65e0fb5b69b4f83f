// Second derivatives of grid sampling, from operators, so that they have derivatives themselves.
//
// Sampling S(input, grid) is linear in the input. With a cotangent g of its result, and a and c
// those of its gradients by input and grid, the scalar <a, dS/dinput(g)> + <c, dS/dgrid(g)> equals
// <g, S(a)> + <g, D S(input)>, where D is the derivative by the grid along c. The first summand is
// sampling itself; the second is written here by the elements that a point reads along each axis.
#include "ops/resample/sampling_gradients.h"

#include "dispatch/rules.h"
#include "kernels/cpu/resample/sampling.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/logical.h"
#include "ops/elementwise/rounding.h"
#include "ops/elementwise/where.h"
#include "ops/index/scatter.h"
#include "ops/reduce/reduce.h"
#include "ops/resample/sampling.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

using cpu::Interpolation;
using cpu::Padding;

struct Settings {
  Interpolation how;
  Padding padding;
  bool align;
};

// Positions in elements along one axis, and their derivative by the grid's coordinate.
struct Positions {
  Tensor x, slope;
};

// One of the elements that points read along an axis: its position, and its weight with the first
// and second derivative by the grid's coordinate; undefined derivatives are zero.
struct Tap {
  Tensor position, weight, slope, bend;
};
using Axis = std::vector<Tap>;

Positions unnormalized(const Tensor& coordinate, int64_t size, bool align) {
  const double n = static_cast<double>(size), scale = align ? (n - 1) / 2 : n / 2;
  const Tensor x = ops::add(ops::mul(coordinate, scale), (n - 1) / 2);
  return {x, ops::add(ops::zeros_like(coordinate), scale)};
}

Positions clipped(const Positions& p, int64_t size) {
  const Tensor free = ops::logical_and(ops::gt(p.x, 0), ops::lt(p.x, size - 1));
  return {ops::clamp(p.x, Scalar(int64_t{0}), Scalar(size - 1)), ops::where(free, p.slope, 0)};
}

Positions reflected(const Positions& p, int64_t size, bool align) {
  const double low = align ? 0 : -0.5, span = static_cast<double>(align ? size - 1 : size);
  if (span == 0) return {ops::zeros_like(p.x), ops::zeros_like(p.x)};
  const Tensor from = ops::sub(p.x, low), way = ops::abs(from);
  const Tensor forth = ops::eq(ops::fmod(ops::floor(ops::div(way, span)), 2), 0);
  const Tensor rest = ops::fmod(way, span);
  const Tensor turned = ops::where(ops::lt(from, 0), ops::neg(p.slope), p.slope);
  return {ops::add(ops::where(forth, rest, ops::sub(span, rest)), low),
          ops::where(forth, turned, ops::neg(turned))};
}

Positions padded(const Positions& p, int64_t size, const Settings& s) {
  if (s.padding == Padding::Zeros) return p;
  return clipped(s.padding == Padding::Reflection ? reflected(p, size, s.align) : p, size);
}

Axis nearest_axis(const Positions& p) { return {{ops::round(p.x), ops::ones_like(p.x), {}, {}}}; }

Axis linear_axis(const Positions& p) {
  const Tensor first = ops::floor(p.x), t = ops::sub(p.x, first);
  return {{first, ops::sub(1, t), ops::neg(p.slope), {}}, {ops::add(first, 1), t, p.slope, {}}};
}

// Polynomials by their coefficients, highest power first.
using Polynomial = std::vector<double>;

Tensor value(const Polynomial& c, const Tensor& x) {
  Tensor sum = ops::add(ops::zeros_like(x), c[0]);
  for (size_t i = 1; i < c.size(); ++i) sum = ops::add(ops::mul(sum, x), c[i]);
  return sum;
}
Polynomial derivative(const Polynomial& c) {
  Polynomial d;
  for (size_t i = 0; i + 1 < c.size(); ++i)
    d.push_back(c[i] * static_cast<double>(c.size() - 1 - i));
  return d;
}

Axis cubic_axis(const Tensor& coordinate, int64_t size, const Settings& s) {
  constexpr double a = -0.75;
  static const Polynomial inner = {a + 2, -(a + 3), 0, 1}, outer = {a, -5 * a, 8 * a, -4 * a};
  const Positions p = unnormalized(coordinate, size, s.align);
  const Tensor first = ops::floor(p.x), t = ops::sub(p.x, first);
  Axis axis;
  for (int i = 0; i < 4; ++i) {
    const Polynomial& f = i == 0 || i == 3 ? outer : inner;
    const Tensor away = i < 2 ? ops::add(t, 1 - i) : ops::sub(i - 1, t);
    const Tensor by_t = value(derivative(f), away);
    const Tensor slope = ops::mul(i < 2 ? by_t : ops::neg(by_t), p.slope);
    const Tensor bend =
        ops::mul(value(derivative(derivative(f)), away), ops::mul(p.slope, p.slope));
    const Positions at = padded({ops::add(first, i - 1), ops::ones_like(first)}, size, s);
    axis.push_back({at.x, value(f, away), slope, bend});
  }
  return axis;
}

Axis axis_of(const Tensor& coordinate, int64_t size, const Settings& s) {
  if (s.how == Interpolation::Cubic) return cubic_axis(coordinate, size, s);
  const Positions p = padded(unnormalized(coordinate, size, s.align), size, s);
  return s.how == Interpolation::Linear ? linear_axis(p) : nearest_axis(p);
}

// Undefined tensors stand for zeros.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? ops::add(a, b) : a.defined() ? a : b;
}
template <class... More>
Tensor product(const Tensor& a, const More&... more) {
  if constexpr (sizeof...(more) == 0) {
    return a;
  } else {
    const Tensor rest = product(more...);
    return a.defined() && rest.defined() ? ops::mul(a, rest) : Tensor();
  }
}

// One element that each point (batch, points) reads: where, and what the axes say of it.
struct Corner {
  Tensor index, inside;
  std::vector<const Tap*> taps;  // by dimension

  // The product of the weights along all axes but those two.
  Tensor weight_without(size_t d, size_t e) const {
    Tensor w = ops::ones_like(taps[0]->weight);
    for (size_t f = 0; f < taps.size(); ++f)
      if (f != d && f != e) w = ops::mul(w, taps[f]->weight);
    return w;
  }
  // The derivative of the weight along c; and of that by the coordinate of axis d.
  Tensor slope_along(const std::vector<Tensor>& c) const {
    Tensor sum;
    for (size_t d = 0; d < taps.size(); ++d)
      sum = sum_of(sum, product(c[d], taps[d]->slope, weight_without(d, d)));
    return sum;
  }
  Tensor bend_along(const std::vector<Tensor>& c, size_t d) const {
    Tensor sum = product(c[d], taps[d]->bend, weight_without(d, d));
    for (size_t e = 0; e < taps.size(); ++e)
      if (e != d)
        sum = sum_of(sum, product(c[e], taps[d]->slope, taps[e]->slope, weight_without(d, e)));
    return sum;
  }
};

Corner corner_of(const std::vector<Axis>& axes, IntSpan space, size_t number) {
  Corner corner;
  for (size_t d = 0; d < axes.size(); ++d) {
    const Tap& tap = axes[d][number % axes[d].size()];
    number /= axes[d].size();
    const Tensor in = ops::logical_and(ops::ge(tap.position, 0), ops::lt(tap.position, space[d]));
    const Tensor index = ops::to(ops::where(in, tap.position, 0), DType::Int64);
    corner.inside = d == 0 ? in : ops::logical_and(corner.inside, in);
    corner.index = d == 0 ? index : ops::add(ops::mul(corner.index, space[d]), index);
    corner.taps.push_back(&tap);
  }
  return corner;
}

// The gradients of <g, D S(input)>; undefined where they are zero.
struct SecondGradients {
  Tensor grad, input, grid;
};

SecondGradients along_grid(const Tensor& g, const Tensor& input, const Tensor& grid,
                           const Tensor& c, const Settings& s) {
  const IntSpan space = input.sizes().subspan(2);
  const size_t n = space.size();
  const int64_t batch = input.size(0), channels = input.size(1);
  const int64_t points = g.numel() == 0 ? 0 : g.numel() / (batch * channels);
  if (points == 0) return {};
  const IntVec flat = {batch, channels, -1};
  const Tensor from = ops::reshape(input, flat), cotangent = ops::reshape(g, flat);
  // Coordinates stand width first, against the order of the dimensions.
  std::vector<Axis> axes;
  std::vector<Tensor> along, by_grid(n);
  const auto coordinate = [&](const Tensor& t, size_t d) {
    return ops::select(ops::reshape(t, {batch, points, static_cast<int64_t>(n)}), 2,
                       static_cast<int64_t>(n - 1 - d));
  };
  size_t corners = 1;
  for (size_t d = 0; d < n; ++d) {
    axes.push_back(axis_of(coordinate(grid, d), space[d], s));
    along.push_back(coordinate(c, d));
    corners *= axes.back().size();
  }
  const auto spread = [&](const Tensor& t) {
    return ops::expand(ops::unsqueeze(t, 1), {batch, channels, points});
  };
  SecondGradients sums;
  for (size_t k = 0; k < corners; ++k) {
    const Corner corner = corner_of(axes, space, k);
    const Tensor index = spread(corner.index), inside = spread(corner.inside);
    const Tensor read = ops::where(inside, ops::gather(from, 2, index), 0);
    const Tensor slope = corner.slope_along(along);
    if (slope.defined()) {
      sums.grad = sum_of(sums.grad, ops::mul(read, ops::unsqueeze(slope, 1)));
      const Tensor share = ops::mul(cotangent, ops::unsqueeze(slope, 1));
      const Tensor into = sums.input.defined() ? sums.input : ops::zeros_like(from);
      sums.input = ops::scatter_add(into, 2, index, ops::where(inside, share, 0));
    }
    const Tensor share = ops::sum(ops::mul(cotangent, read), IntList{1});
    for (size_t d = 0; d < n; ++d)
      by_grid[d] = sum_of(by_grid[d], product(share, corner.bend_along(along, d)));
  }
  if (sums.grad.defined()) sums.grad = ops::reshape(sums.grad, g.sizes());
  if (sums.input.defined()) sums.input = ops::reshape(sums.input, input.sizes());
  std::vector<Tensor> parts;
  for (size_t d = n; d-- > 0;)
    parts.push_back(by_grid[d].defined() ? by_grid[d] : ops::zeros_like(along[d]));
  sums.grid = ops::reshape(ops::stack(parts, -1), grid.sizes());
  return sums;
}

}  // namespace

void sampling_second_gradients(Backward& b) {
  const Tensor g = b["grad_output"], input = b["input"], grid = b["grid"];
  const Tensor a = b.grad(0), c = b.grad(1);
  const int64_t mode = b.integer("interpolation_mode"), padding = b.integer("padding_mode");
  const bool align = b.flag("align_corners");
  SecondGradients sums;
  if (c.defined())
    sums = along_grid(g, input, grid, c,
                      {static_cast<Interpolation>(mode), static_cast<Padding>(padding), align});
  if (a.defined()) {
    static constexpr bool only_grid[] = {false, true};
    const auto backward =
        input.dim() == 4 ? &ops::grid_sampler_2d_backward : &ops::grid_sampler_3d_backward;
    sums.grad = sum_of(sums.grad, ops::grid_sampler(a, grid, mode, padding, align));
    if (b.needs("grid"))
      sums.grid = sum_of(sums.grid, std::get<1>(backward(g, a, grid, mode, padding, align,
                                                         std::span<const bool>(only_grid))));
  }
  if (b.needs("grad_output")) b.set("grad_output", sums.grad);
  if (b.needs("input")) b.set("input", sums.input);
  if (b.needs("grid")) b.set("grid", sums.grid);
}

}  // namespace facula
