#include "kernels/cpu/conv_repair.h"

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

template <class T>
bool any_nan(const ConvShape& s, const ConvTensor<T>& w) {
  const int64_t n = count_weights(s);
  if (!is_dense(s, w.strides)) {
    for (int64_t i = 0; i < n; ++i)
      if (std::isnan(convert<double>(w.data[offset_of(place_of(s, i), w.strides)]))) return true;
    return false;
  }
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= std::isnan(convert<double>(w.data[i]));
  return found;
}

template <class T>
bool all_finite(const ConvShape& s, const ConvTensor<const T>& grad) {
  const int64_t* st = grad.strides;
  bool finite = true;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.out_channels; ++c)
      for (int64_t z = 0; z < s.output[0]; ++z)
        for (int64_t y = 0; y < s.output[1]; ++y) {
          const T* row = grad.data + n * st[0] + c * st[1] + z * st[2] + y * st[3];
          for (int64_t x = 0; x < s.output[2]; ++x)
            finite &= std::isfinite(convert<double>(row[x * st[4]]));
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

}  // namespace

template <class T>
void repair_weight_gradient(const ConvShape& s, const ConvTensor<const T>& grad_output,
                            const ConvTensor<const T>& input, const ConvTensor<T>& grad_weight) {
  if (!any_nan(s, grad_weight) || !all_finite(s, grad_output)) return;
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
struct ConvRepairInstance {
  static constexpr auto function = &repair_weight_gradient<T>;
};
template struct ConvRepairInstance<float>;
template struct ConvRepairInstance<double>;
template struct ConvRepairInstance<Half>;
template struct ConvRepairInstance<BFloat16>;

}  // namespace facula::cpu
