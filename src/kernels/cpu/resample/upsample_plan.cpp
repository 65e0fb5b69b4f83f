#include "kernels/cpu/resample/upsample_plan.h"

#include <algorithm>
#include <cmath>

namespace facula::cpu {
namespace {

bool antialiased(Filter f) { return f == Filter::AaLinear || f == Filter::AaCubic; }
bool nearest(Filter f) { return f == Filter::Nearest || f == Filter::NearestExact; }

// Input elements for each output element.
template <class A>
A step_of(const Resampling& how, int axis, int64_t input, int64_t output) {
  if (how.align_corners)
    return output > 1 ? static_cast<A>(input - 1) / static_cast<A>(output - 1) : A(0);
  const std::optional<double>& given = how.scales[axis];
  if (given && *given > 0) return static_cast<A>(1.0 / *given);
  return static_cast<A>(input) / static_cast<A>(output);
}

template <class A>
struct AxisWriter {
  ResampleAxis<A> axis;
  int64_t *count, *index;
  A* weight;

  AxisWriter(int64_t output, int64_t taps) {
    axis.taps = taps;
    axis.memory[0] = empty_tensor(IntVec{output}, DType::Int64);
    axis.memory[1] = empty_tensor(IntVec{output * taps}, DType::Int64);
    axis.memory[2] = empty_tensor(IntVec{output * taps}, dtype_of<A>);
    axis.count = count = axis.memory[0].template data<int64_t>();
    axis.index = index = axis.memory[1].template data<int64_t>();
    axis.weight = weight = axis.memory[2].template data<A>();
    std::fill_n(count, output, taps);
  }
  void set(int64_t i, int64_t tap, int64_t from, A w) {
    index[i * axis.taps + tap] = from;
    weight[i * axis.taps + tap] = w;
  }
};

// A position beyond what an integer holds counts as far away.
template <class A>
int64_t whole(A position) {
  return static_cast<int64_t>(std::clamp<A>(position, A(-1e15), A(1e15)));
}

// PyTorch computes these positions in float whatever the data's type.
int64_t nearest_index(const Resampling& how, int axis, int64_t i, int64_t input, int64_t output) {
  const float step = step_of<float>(how, axis, input, output);
  if (how.filter == Filter::NearestExact)
    return std::min(whole(std::floor(static_cast<float>((static_cast<double>(i) + 0.5) * step))),
                    input - 1);
  if (output == input) return i;
  if (output == 2 * input) return i >> 1;
  return std::min(whole(std::floor(static_cast<float>(i) * step)), input - 1);
}

template <class A>
ResampleAxis<A> nearest_axis(const Resampling& how, int axis, int64_t input, int64_t output) {
  AxisWriter<A> to(output, 1);
  for (int64_t i = 0; i < output; ++i)
    to.set(i, 0, std::max<int64_t>(nearest_index(how, axis, i, input, output), 0), A(1));
  return to.axis;
}

template <class A>
A source_position(const Resampling& how, A step, int64_t i) {
  if (how.align_corners) return step * static_cast<A>(i);
  const A x = step * (static_cast<A>(i) + A(0.5)) - A(0.5);
  return how.filter == Filter::Linear && x < 0 ? A(0) : x;
}

template <class A>
ResampleAxis<A> linear_axis(const Resampling& how, int axis, int64_t input, int64_t output) {
  AxisWriter<A> to(output, 2);
  const A step = step_of<A>(how, axis, input, output);
  for (int64_t i = 0; i < output; ++i) {
    if (input == output) {  // exactly itself, whatever the scale
      to.set(i, 0, i, A(1));
      to.set(i, 1, i, A(0));
      continue;
    }
    const A x = source_position(how, step, i);
    const int64_t first = std::min(whole(x), input - 1);
    const A rest = std::clamp<A>(x - static_cast<A>(first), A(0), A(1));
    to.set(i, 0, first, A(1) - rest);
    to.set(i, 1, std::min(first + 1, input - 1), rest);
  }
  return to.axis;
}

// Keys' cubic: a piece around the sample and one beyond its neighbours.
template <class A>
A cubic_weight(A x, A a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

template <class A>
ResampleAxis<A> cubic_axis(const Resampling& how, int axis, int64_t input, int64_t output) {
  AxisWriter<A> to(output, 4);
  const A step = step_of<A>(how, axis, input, output), a = A(-0.75);
  for (int64_t i = 0; i < output; ++i) {
    const A x = source_position(how, step, i);
    const int64_t first = std::min(whole(std::floor(x)), input - 1);
    const A rest = std::clamp<A>(x - static_cast<A>(first), A(0), A(1));
    const A weights[4] = {cubic_weight(rest + 1, a), cubic_weight(rest, a),
                          cubic_weight(1 - rest, a), cubic_weight(2 - rest, a)};
    for (int64_t t = 0; t < 4; ++t)
      to.set(i, t, std::clamp<int64_t>(first - 1 + t, 0, input - 1), weights[t]);
  }
  return to.axis;
}

template <class A>
A filter_weight(Filter f, A x) {
  if (f == Filter::AaCubic) return cubic_weight(x, A(-0.5));
  return std::max<A>(A(1) - std::abs(x), A(0));
}

// A filter over the inputs that it reaches, its weights scaled so that they sum to one.
template <class A>
ResampleAxis<A> filtered_axis(const Resampling& how, int axis, int64_t input, int64_t output) {
  const A step = step_of<A>(how, axis, input, output),
          width = how.filter == Filter::AaCubic ? A(4) : A(2);
  const bool widened = step >= 1;
  const A support = widened ? width * A(0.5) * step : width * A(0.5),
          squeeze = widened ? A(1) / step : A(1);
  check(
      support < A(1e9),
      "interpolate(): expected a scale that leaves a filter of sensible size; got one element for ",
      step);
  const int64_t taps =
      std::min(static_cast<int64_t>(std::ceil(support)) * 2 + 1, std::max<int64_t>(input, 1));
  AxisWriter<A> to(output, taps);
  for (int64_t i = 0; i < output; ++i) {
    const A center = step * (static_cast<A>(i) + A(0.5));
    const int64_t first = std::clamp<int64_t>(whole(center - support + A(0.5)), 0, input);
    const int64_t last = std::min(whole(center + support + A(0.5)), input);
    const int64_t n = std::clamp<int64_t>(last - first, 0, taps);
    A sum = 0;
    for (int64_t t = 0; t < n; ++t) {
      const A w =
          filter_weight(how.filter, (static_cast<A>(t + first) - center + A(0.5)) * squeeze);
      to.set(i, t, first + t, w);
      sum += w;
    }
    for (int64_t t = 0; t < n && sum != 0; ++t) to.weight[i * taps + t] /= sum;
    to.count[i] = n;
  }
  return to.axis;
}

template <class A>
ResampleAxis<A> same_axis() {
  AxisWriter<A> to(1, 1);
  to.set(0, 0, 0, A(1));
  return to.axis;
}

}  // namespace

template <class A>
ResampleAxis<A> resample_axis(const Resampling& how, int axis, int64_t input, int64_t output) {
  if (axis < 3 - how.spatial) return same_axis<A>();
  if (nearest(how.filter)) return nearest_axis<A>(how, axis, input, output);
  if (antialiased(how.filter)) return filtered_axis<A>(how, axis, input, output);
  return how.filter == Filter::Cubic ? cubic_axis<A>(how, axis, input, output)
                                     : linear_axis<A>(how, axis, input, output);
}
template ResampleAxis<float> resample_axis<float>(const Resampling&, int, int64_t, int64_t);
template ResampleAxis<double> resample_axis<double>(const Resampling&, int, int64_t, int64_t);

namespace {

// Taps that the border folded onto one element become one.
void merge_repeats(const ResampleAxis<double>& axis, int64_t output) {
  int64_t* count = axis.memory[0].data<int64_t>();
  int64_t* index = axis.memory[1].data<int64_t>();
  double* weight = axis.memory[2].data<double>();
  for (int64_t i = 0; i < output; ++i) {
    int64_t* at = index + i * axis.taps;
    double* w = weight + i * axis.taps;
    int64_t kept = 0;
    for (int64_t t = 1; t < count[i]; ++t) {
      if (at[t] == at[kept]) {
        w[kept] += w[t];
        continue;
      }
      ++kept;
      at[kept] = at[t];
      w[kept] = w[t];
    }
    count[i] = kept + 1;
  }
}

}  // namespace

ByteAxis byte_axis(const Resampling& how, int axis, int64_t input, int64_t output) {
  ByteAxis b;
  b.axis = resample_axis<double>(how, axis, input, output);
  if (how.filter == Filter::Cubic) merge_repeats(b.axis, output);
  double greatest = 0;
  for (int64_t i = 0; i < output; ++i)
    for (int64_t t = 0; t < b.axis.count[i]; ++t)
      greatest = std::max(greatest, b.axis.weight[i * b.axis.taps + t]);
  // As many bits as 16-bit weights can have.
  while (b.precision < 22 &&
         std::floor(0.5 + greatest * static_cast<double>(1 << (b.precision + 1))) < (1 << 15))
    ++b.precision;
  b.memory = empty_tensor(IntVec{output * b.axis.taps}, DType::Int32);
  int32_t* to = b.memory.data<int32_t>();
  for (int64_t i = 0; i < output; ++i)
    for (int64_t t = 0; t < b.axis.count[i]; ++t) {
      const double w = b.axis.weight[i * b.axis.taps + t] * static_cast<double>(1 << b.precision);
      to[i * b.axis.taps + t] = static_cast<int32_t>(w < 0 ? w - 0.5 : w + 0.5);
    }
  b.weight = to;
  return b;
}

}  // namespace facula::cpu
