#include "kernels/cpu/conv/route.h"

#include "core/debug.h"
#include "core/error.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/conv/winograd_tiles.h"
#include "kernels/cpu/matmul/gemm_pairs.h"

namespace facula::cpu::FACULA_ISA {
namespace {

int64_t volume(const int64_t* v) { return v[0] * v[1] * v[2]; }

// A problem as its routes see it: routes but the depthwise ones take elements that a kernel of one
// element steps over for an image of their own (without_stride).
struct Problem {
  explicit Problem(const ConvProblem& p) : pass(p.pass), dtype(p.dtype), given(p), shape(p.shape) {
    if (pass == ConvPass::InputGradient) return;
    ConvTensor<const char> input{};
    shape = without_stride(p.shape, input);
  }

  bool weight() const { return pass == ConvPass::WeightGradient; }
  // Channels that are read, and channels of the result; of a weight gradient those of the result's
  // gradient and of the input.
  int64_t read() const {
    return pass == ConvPass::Forward ? shape.in_channels : shape.out_channels;
  }
  int64_t written() const {
    return pass == ConvPass::Forward ? shape.out_channels : shape.in_channels;
  }
  // Positions that tiles cover.
  const int64_t* places() const {
    return pass == ConvPass::InputGradient ? shape.input : shape.output;
  }

  ConvPass pass;
  DType dtype;
  const ConvProblem& given;
  ConvShape shape;
};

// --- depthwise

bool is_depthwise(const Problem& p) {
  const ConvShape& s = p.given.shape;
  if (p.dtype != DType::Float32 && p.dtype != DType::Float64) return false;
  const bool empty = s.batch <= 0 || volume(s.input) <= 0 || volume(s.output) <= 0;
  return !empty && s.groups == s.in_channels && s.groups == s.out_channels;
}

bool can_depthwise_planes(const Problem& p) {
  constexpr int64_t max_taps = 256;
  const ConvShape& s = p.given.shape;
  const int64_t *a = p.given.source, *b = p.given.other;
  const bool flat = s.kernel[0] == 1 && s.input[0] == 1 && s.output[0] == 1 && s.stride[1] == 1 &&
                    s.stride[2] == 1;
  if (!is_depthwise(p) || !flat || s.kernel[1] * s.kernel[2] > max_taps) return false;
  if (a[4] != 1 || b[4] != 1 || a[1] == 1 || b[1] == 1) return false;
  // The gradient by the input is a correlation as well, unless that took negative padding.
  const bool negative = s.dilation[1] * (s.kernel[1] - 1) < s.padding[1] ||
                        s.dilation[2] * (s.kernel[2] - 1) < s.padding[2];
  return p.pass != ConvPass::InputGradient || !negative;
}

bool can_depthwise(const Problem& p) {
  return is_depthwise(p) && p.given.shape.groups > 1 &&
         volume(p.given.shape.kernel) <= max_depthwise_taps;
}

// Copies of the operands with their channels innermost pay where those fill vectors.
bool depthwise_pays(const Problem& p) {
  const int64_t lanes = vector_bytes / (p.dtype == DType::Float64 ? 8 : 4);
  return (p.given.source[1] == 1 && p.given.other[1] == 1) || p.given.shape.groups >= lanes;
}

// --- Winograd

bool can_winograd(const Problem& p) {
  return p.dtype == DType::Float32 && p.given.whole && winograd_applies(p.shape, p.places());
}

// Few channels or tiles do not repay the transforms.
bool winograd_pays(const Problem& p) {
  const int64_t* places = p.places();
  const int64_t tiles = TileGrid(p.shape.batch, places[1], places[2]).count();
  const int64_t fewer = min_of(p.read(), p.written()), more = max_of(p.read(), p.written());
  if (p.weight()) return fewer >= 32 && tiles >= 64 && 8 * tiles >= more;
  return fewer >= 16 && 16 * tiles >= max_of(more, int64_t{256});
}

// --- im2col

bool can_im2col(const Problem& p) {
  if (p.read() == 0) return false;
  if (p.dtype == DType::BFloat16) return has_pair_products;
  return p.dtype == DType::Float32 && !p.weight();
}

bool im2col_pays(const Problem& p) {
  const ConvShape& s = p.shape;
  const bool pairs = p.dtype == DType::BFloat16;
  const int64_t rows = (p.weight() ? s.in_channels * volume(s.kernel) : p.written()) / s.groups;
  // Rows too few for the lanes, and groups of few channels, are better off elsewhere.
  if (rows < (s.groups == 1 ? 8 : pairs ? 16 : 32)) return false;
  if (pairs || p.given.source[1] == 1) return true;
  // A copy with the channels innermost pays for positions that are steps apart, which fill vectors
  // badly, and for pointwise products, which read every element but once.
  return p.read() / s.groups >= 16 && (volume(s.stride) != 1 || volume(s.kernel) == 1);
}

// --- sums with the input channels across the lanes

// They pay where the channels of a group fill at least half of their lanes.
bool channels_pay(const Problem& p) {
  const bool wide = p.dtype == DType::Float64 || p.dtype == DType::Complex128 ||
                    p.dtype == DType::Int64 || p.dtype == DType::UInt64;
  const int64_t lanes = vector_bytes / (wide ? 8 : 4),
                channels = p.shape.in_channels / p.shape.groups;
  return 2 * channels >= round_up(channels, lanes);
}

struct Choice {
  bool (*can)(const Problem&);
  bool (*pays)(const Problem&);
};
bool always(const Problem&) { return true; }
bool is_weight(const Problem& p) { return p.weight(); }

// In the order of Route; the first that can do a problem and pays is taken.
constexpr Choice choices[route_count] = {
    {can_depthwise_planes, always}, {can_depthwise, depthwise_pays}, {can_winograd, winograd_pays},
    {can_im2col, im2col_pays},      {is_weight, channels_pay},       {always, always},
};

Route choose(const Problem& p) {
  const std::optional<Route> forced = forced_route();
  if (forced && choices[static_cast<int>(*forced)].can(p)) return *forced;
  int i = 0;
  while (!choices[i].can(p) || !choices[i].pays(p)) ++i;
  return static_cast<Route>(i);
}

}  // namespace

Route conv_route(const ConvProblem& problem) {
  const Route route = choose(Problem(problem));
  if (debug::prints(debug::Level::Kernels)) [[unlikely]]
    debug::print_route(concat("convolution, ", name(problem.pass), ": ", name(route)));
  return route;
}

}  // namespace facula::cpu::FACULA_ISA
