#include "kernels/cpu/conv/nonfinite.h"

#include <algorithm>
#include <cmath>

#include "core/scalar.h"
#include "core/threads.h"

namespace facula::cpu {
namespace {

// A place among weights: output channel, input channel of the group, kernel.
struct WeightPlace {
  int64_t at[5];
};

int64_t weight_size(const ConvShape& s, int d) {
  if (d == 0) return s.out_channels;
  return d == 1 ? s.in_channels / s.groups : s.kernel[d - 2];
}

int64_t count_weights(const ConvShape& s) {
  int64_t n = 1;
  for (int d = 0; d < 5; ++d) n *= weight_size(s, d);
  return n;
}

WeightPlace place_of(const ConvShape& s, int64_t number) {
  WeightPlace p{};
  for (int d = 5; d-- > 0; number /= weight_size(s, d)) p.at[d] = number % weight_size(s, d);
  return p;
}

int64_t offset_of(const WeightPlace& p, const int64_t* strides) {
  int64_t offset = 0;
  for (int d = 0; d < 5; ++d) offset += p.at[d] * strides[d];
  return offset;
}

// Weights without gaps in memory, in whatever order, can be looked through from end to end.
bool is_dense(const ConvShape& s, const int64_t* strides) {
  int64_t last = 0;
  for (int d = 0; d < 5; ++d) last += (weight_size(s, d) - 1) * strides[d];
  return last + 1 == count_weights(s);
}

// The bits of T's exponent, all of them set in infinities and NaNs alone.
template <class T>
constexpr auto exponent_bits() {
  if constexpr (sizeof(T) == 8) return uint64_t{0x7ff} << 52;
  if constexpr (sizeof(T) == 4) return uint32_t{0x7f800000};
  if constexpr (std::is_same_v<T, Half>) return uint16_t{0x7c00};
  if constexpr (std::is_same_v<T, BFloat16>) return uint16_t{0x7f80};
}

template <class T>
bool is_finite(T x) {
  constexpr auto exponent = exponent_bits<T>();
  using Bits = std::remove_const_t<decltype(exponent)>;
  return (__builtin_bit_cast(Bits, x) & exponent) != exponent;
}

// Counts in elements' own width: the loop becomes one of vectors.
template <class T>
bool all_finite(const T* p, int64_t count) {
  constexpr auto exponent = exponent_bits<T>();
  using Bits = std::remove_const_t<decltype(exponent)>;
  Bits wrong = 0;
  for (int64_t i = 0; i < count; ++i)
    wrong |= (__builtin_bit_cast(Bits, p[i]) & exponent) == exponent ? Bits(1) : Bits(0);
  return wrong == 0;
}

template <class T>
bool finite_weights(const ConvShape& s, const ConvTensor<T>& w) {
  using Element = std::remove_const_t<T>;
  const int64_t n = count_weights(s);
  if (is_dense(s, w.strides)) return all_finite<Element>(w.data, n);
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) finite &= is_finite(w.data[offset_of(place_of(s, i), w.strides)]);
  return finite;
}

template <class T>
bool finite_gradient(const ConvShape& s, const ConvTensor<const T>& grad) {
  const int64_t* st = grad.strides;
  bool finite = true;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.out_channels; ++c)
      for (int64_t z = 0; z < s.output[0]; ++z)
        for (int64_t y = 0; y < s.output[1]; ++y) {
          const T* row = grad.data + n * st[0] + c * st[1] + z * st[2] + y * st[3];
          for (int64_t x = 0; x < s.output[2]; ++x) finite &= is_finite(row[x * st[4]]);
        }
  return finite;
}

// Positions [begin, end) of the result whose tap lies inside of the input.
struct Inside {
  int64_t begin, end, first;  // first: where the tap of position 0 lies
};
Inside inside(const ConvShape& s, int d, int64_t tap) {
  const int64_t first = tap * s.dilation[d] - s.padding[d], step = s.stride[d];
  const int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
  const int64_t end = s.input[d] <= first ? 0 : (s.input[d] - 1 - first) / step + 1;
  return {begin, std::min(end, s.output[d]), first};
}

template <class T>
double sum_at(const ConvShape& s, const ConvTensor<const T>& grad, const ConvTensor<const T>& input,
              const WeightPlace& p) {
  const int64_t group = p.at[0] / (s.out_channels / s.groups);
  const int64_t channel = group * (s.in_channels / s.groups) + p.at[1];
  const Inside z = inside(s, 0, p.at[2]), y = inside(s, 1, p.at[3]), x = inside(s, 2, p.at[4]);
  const int64_t *gs = grad.strides, *is = input.strides;
  double sum = 0;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oz = z.begin; oz < z.end; ++oz)
      for (int64_t oy = y.begin; oy < y.end; ++oy) {
        const T* g = grad.data + n * gs[0] + p.at[0] * gs[1] + oz * gs[2] + oy * gs[3];
        const T* in = input.data + n * is[0] + channel * is[1] +
                      (z.first + oz * s.stride[0]) * is[2] + (y.first + oy * s.stride[1]) * is[3];
        for (int64_t ox = x.begin; ox < x.end; ++ox)
          sum += convert<double>(g[ox * gs[4]]) *
                 convert<double>(in[(x.first + ox * s.stride[2]) * is[4]]);
      }
  return sum;
}

// Where a tap reads along a dimension of `places` elements; with `met` false it reads nothing.
struct Reach {
  int64_t at, size;
  bool met;
  bool inside() const { return met && at >= 0 && at < size; }
};

// Calls body(reach, tap, inside) for every tap of the result at `at`.
template <class Place, class F>
void for_taps(const ConvShape& s, const int64_t* at, const Place& place, F&& body) {
  int64_t tap[3];
  Reach reach[3];
  for (tap[0] = 0; tap[0] < s.kernel[0]; ++tap[0]) {
    reach[0] = place(0, at[0], tap[0]);
    for (tap[1] = 0; tap[1] < s.kernel[1]; ++tap[1]) {
      reach[1] = place(1, at[1], tap[1]);
      for (tap[2] = 0; tap[2] < s.kernel[2]; ++tap[2]) {
        reach[2] = place(2, at[2], tap[2]);
        body(reach, tap, reach[0].inside() && reach[1].inside() && reach[2].inside());
      }
    }
  }
}

// The source's channels of a group, and how weights count them; the same for the result's rows.
struct SourceChannels {
  int64_t count, weight_stride;
};
struct ResultRows {
  int64_t count, group_stride, weight_stride;
};

// Takes the results again that are NaN and have a tap outside of the source. `sizes` are those of
// the result, `place(d, position, tap)` a Reach.
template <class T, class Place>
void recompute_positions(const ConvShape& s, const int64_t* sizes, SourceChannels channels,
                         ResultRows rows, const Place& place, const ConvTensor<const T>& source,
                         const ConvTensor<const T>& weight, const T* bias,
                         const ConvTensor<T>& result) {
  const auto take_again = [&](int64_t image, int64_t row, const int64_t* at) {
    T& out =
        result
            .data[image * result.strides[0] + row * result.strides[1] + at[0] * result.strides[2] +
                  at[1] * result.strides[3] + at[2] * result.strides[4]];
    if (!std::isnan(convert<double>(out))) return;
    const int64_t group = row / rows.count;
    const T* from =
        source.data + image * source.strides[0] + group * channels.count * source.strides[1];
    const T* w = weight.data + group * rows.group_stride + row % rows.count * rows.weight_stride;
    double sum = bias == nullptr ? 0 : convert<double>(bias[row]);
    for_taps(s, at, place, [&](const Reach* reach, const int64_t* tap, bool inside) {
      if (!inside) return;
      int64_t a = 0, b = 0;
      for (int d = 0; d < 3; ++d) {
        a += reach[d].at * source.strides[d + 2];
        b += tap[d] * weight.strides[d + 2];
      }
      for (int64_t c = 0; c < channels.count; ++c)
        sum += convert<double>(from[a + c * source.strides[1]]) *
               convert<double>(w[b + c * channels.weight_stride]);
    });
    out = convert<T>(sum);
  };
  const int64_t positions = sizes[0] * sizes[1] * sizes[2];
  parallel_for(s.batch * positions, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at[3] = {i / sizes[2] / sizes[1] % sizes[0], i / sizes[2] % sizes[1],
                             i % sizes[2]};
      bool outside = false;
      for_taps(s, at, place, [&](const Reach* r, const int64_t*, bool inside) {
        outside |= r[0].met && r[1].met && r[2].met && !inside;
      });
      for (int64_t row = 0; outside && row < rows.count * s.groups; ++row)
        take_again(i / positions, row, at);
    }
  });
}

}  // namespace

template <class T>
void recompute_nonfinite_weight_gradient(const ConvShape& s, const ConvTensor<const T>& grad_output,
                                         const ConvTensor<const T>& input,
                                         const ConvTensor<T>& grad_weight) {
  if (finite_weights(s, grad_weight) || !finite_gradient(s, grad_output)) return;
  parallel_for(count_weights(s), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const WeightPlace p = place_of(s, i);
      T& weight = grad_weight.data[offset_of(p, grad_weight.strides)];
      if (std::isnan(convert<double>(weight)))
        weight = convert<T>(sum_at(s, grad_output, input, p));
    }
  });
}

template <class T>
void recompute_nonfinite_output(const ConvShape& s, const ConvTensor<const T>& input,
                                const ConvTensor<const T>& weight, const T* bias,
                                const ConvTensor<T>& output) {
  if (finite_weights(s, weight)) return;
  const int64_t channels = s.in_channels / s.groups, rows = s.out_channels / s.groups;
  const auto place = [&](int d, int64_t at, int64_t tap) {
    return Reach{at * s.stride[d] - s.padding[d] + tap * s.dilation[d], s.input[d], true};
  };
  recompute_positions(s, s.output, {channels, weight.strides[1]},
                      {rows, rows * weight.strides[0], weight.strides[0]}, place, input, weight,
                      bias, output);
}

template <class T>
void recompute_nonfinite_input_gradient(const ConvShape& s, const ConvTensor<const T>& grad_output,
                                        const ConvTensor<const T>& weight, const T* bias,
                                        const ConvTensor<T>& grad_input) {
  if (finite_weights(s, weight)) return;
  const int64_t channels = s.out_channels / s.groups, rows = s.in_channels / s.groups;
  const auto place = [&](int d, int64_t at, int64_t tap) {
    const int64_t from = at + s.padding[d] - tap * s.dilation[d];
    const bool met = (from % s.stride[d] + s.stride[d]) % s.stride[d] == 0;
    return Reach{met ? from / s.stride[d] : 0, s.output[d], met};
  };
  recompute_positions(s, s.input, {channels, weight.strides[0]},
                      {rows, channels * weight.strides[0], weight.strides[1]}, place, grad_output,
                      weight, bias, grad_input);
}

template <class T>
struct ConvNonfiniteInstance {
  static constexpr auto weight_function = &recompute_nonfinite_weight_gradient<T>;
  static constexpr auto forward_function = &recompute_nonfinite_output<T>;
  static constexpr auto input_function = &recompute_nonfinite_input_gradient<T>;
};
template struct ConvNonfiniteInstance<float>;
template struct ConvNonfiniteInstance<double>;
template struct ConvNonfiniteInstance<Half>;
template struct ConvNonfiniteInstance<BFloat16>;

}  // namespace facula::cpu
