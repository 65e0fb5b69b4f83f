#include "kernels/cpu/quantized/affine.h"

#include <cmath>
#include <limits>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/loop.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t grain = 16384;  // values that a thread takes at once

// One channel of one outer index.
struct Line {
  float scale, zero_point;
  bool rounds_sum;  // the zero point is no integer, so it is added before rounding
};

Line line_of(const AffineParameters& p, int64_t channel) {
  const int64_t c = p.count == 1 ? 0 : channel;
  const float scale = static_cast<float>(p.scales[c]);
  if (p.float_zero_points) return {scale, static_cast<float>(p.float_zero_points[c]), true};
  return {scale, static_cast<float>(p.zero_points[c]), false};
}

template <class F>
void for_lines(const ChannelBlock& b, F&& f) {
  const int64_t lines = b.outer * b.channels;
  if (lines == 1)
    return parallel_for(b.inner, grain, [&](int64_t begin, int64_t end) { f(0, begin, end); });
  parallel_for(lines, std::max<int64_t>(1, grain / std::max<int64_t>(b.inner, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   f(i % b.channels, i * b.inner, (i + 1) * b.inner);
               });
}

template <class T>
void quantize_line(const float* x, int64_t n, const Line& line, float least, float greatest, T* q) {
  const float inverse = 1.0f / line.scale;
  const float before = line.rounds_sum ? line.zero_point : 0.0f;
  const float after = line.rounds_sum ? 0.0f : line.zero_point;
  for (int64_t i = 0; i < n; ++i) {
    float v = std::nearbyint(x[i] * inverse + before) + after;
    v = v < greatest ? v : greatest;
    v = v > least ? v : least;
    q[i] = static_cast<T>(static_cast<int32_t>(v));
  }
}

// Floats do not hold every int32, so the bounds are kept in double.
void quantize_line(const float* x, int64_t n, const Line& line, double least, double greatest,
                   int32_t* q) {
  const float inverse = 1.0f / line.scale;
  for (int64_t i = 0; i < n; ++i) {
    double v = std::nearbyint(x[i] * inverse) + static_cast<double>(line.zero_point);
    v = v > least ? v : least;
    q[i] = static_cast<int32_t>(v < greatest ? v : greatest);
  }
}

}  // namespace

void quantize_block(const float* values, const ChannelBlock& block, const AffineParameters& p,
                    DType type, int64_t least, int64_t greatest, void* integers) {
  dispatch<int8_t, uint8_t, int32_t>(type, "quantize", [&]<class T>(Type<T>) {
    using Bound = std::conditional_t<std::is_same_v<T, int32_t>, double, float>;
    for_lines(block, [&](int64_t channel, int64_t begin, int64_t end) {
      quantize_line(values + begin, end - begin, line_of(p, channel), static_cast<Bound>(least),
                    static_cast<Bound>(greatest), static_cast<T*>(integers) + begin);
    });
  });
}

void dequantize_block(const void* integers, DType type, const ChannelBlock& block,
                      const AffineParameters& p, float* values) {
  dispatch<int8_t, uint8_t, int32_t>(type, "dequantize", [&]<class T>(Type<T>) {
    for_lines(block, [&](int64_t channel, int64_t begin, int64_t end) {
      const Line line = line_of(p, channel);
      const T* q = static_cast<const T*>(integers);
      for (int64_t i = begin; i < end; ++i)
        values[i] = (static_cast<float>(q[i]) - line.zero_point) * line.scale;
    });
  });
}

namespace {

template <class T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

struct FakeRow {
  FakeRange range;
  bool per_channel, float_zero_point;
};

// As PyTorch does it, an integer of a channel that no int64 holds counts as the least int64, and
// one of a whole tensor is clamped as a float.
template <class C>
C integer_of(C x, float scale, float zero_point, const FakeRow& row) {
  const float inverse = 1.0f / scale;
  const C q = row.float_zero_point ? std::nearbyint(x * inverse + zero_point)
                                   : std::nearbyint(x * inverse) + zero_point;
  if (row.per_channel && !(std::fabs(q) < C(0x1p63))) return -std::numeric_limits<C>::infinity();
  return q;
}

template <class T>
void fake_row(const void* context, char* const* data, const int64_t* strides, int64_t n) {
  using C = Computed<T>;
  const FakeRow& row = *static_cast<const FakeRow*>(context);
  const C least = static_cast<C>(row.range.least), greatest = static_cast<C>(row.range.greatest);
  for (int64_t i = 0; i < n; ++i) {
    const float scale = *reinterpret_cast<const float*>(data[3] + i * strides[3]);
    const float zero_point = *reinterpret_cast<const float*>(data[4] + i * strides[4]);
    const C x = convert<C>(*reinterpret_cast<const T*>(data[2] + i * strides[2]));
    const C q = integer_of(x, scale, zero_point, row);
    const bool in_range = q >= least && q <= greatest;
    C kept = q > least ? q : least;
    kept = kept < greatest ? kept : greatest;
    *reinterpret_cast<T*>(data[0] + i * strides[0]) =
        convert<T>(static_cast<C>((kept - zero_point) * scale));
    *reinterpret_cast<bool*>(data[1] + i * strides[1]) = in_range;
  }
}

}  // namespace

void fake_quantize(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                   FakeRange range, bool per_channel, const Tensor& output, const Tensor& mask) {
  const FakeRow row{range, per_channel, per_channel && zero_point.dtype() != DType::Int32};
  const Tensor zeros = empty_tensor(zero_point.sizes(), DType::Float32);
  copy(zeros, zero_point);
  const Tensor scales = empty_tensor(scale.sizes(), DType::Float32);
  copy(scales, scale);
  LoopPlan plan(self.sizes());
  plan.add(output);
  plan.add(mask);
  plan.add(self);
  for (const Tensor& t : {scales, zeros}) {
    // A vector of channels arrives with sizes that broadcast to self's.
    plan.add(t);
  }
  plan.simplify();
  dispatch<FloatingTypes>(self.dtype(), "fake_quantize_tensor_cachemask_kernel_type_handling",
                          [&]<class T>(Type<T>) { plan.run(fake_row<T>, &row, grain); });
}

}  // namespace facula::cpu::FACULA_ISA
