#include "kernels/cpu/reduce/histogram.h"

#include <algorithm>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

template <class T>
struct Axis {
  const T* edges;
  int64_t bins;

  // -1 for what is outside.
  int64_t bin_of(T x) const {
    if (bins < 1 || !(x >= edges[0] && x <= edges[bins])) return -1;
    const int64_t after = std::upper_bound(edges, edges + bins + 1, x) - edges;
    return std::min(after, bins) - 1;
  }
  double width(int64_t bin) const {
    return static_cast<double>(edges[bin + 1]) - static_cast<double>(edges[bin]);
  }
};

template <class T>
int64_t bin_of(const std::vector<Axis<T>>& axes, const T* point) {
  int64_t at = 0;
  for (size_t d = 0; d < axes.size(); ++d) {
    const int64_t bin = axes[d].bin_of(point[d]);
    if (bin < 0) return -1;
    at = at * axes[d].bins + bin;
  }
  return at;
}

template <class T>
void divide_by_volumes(const std::vector<Axis<T>>& axes, std::vector<double>& counts) {
  double total = 0;
  for (double c : counts) total += c;
  for (size_t i = 0; i < counts.size(); ++i) {
    double volume = total;
    int64_t rest = static_cast<int64_t>(i);
    for (size_t d = axes.size(); d-- > 0; rest /= axes[d].bins)
      volume *= axes[d].width(rest % axes[d].bins);
    counts[i] /= volume;
  }
}

}  // namespace

void histogramdd(const Tensor& points, std::span<const Tensor> edges, const Tensor& weight,
                 bool density, const Tensor& out) {
  const Tensor x = contiguous(points), w = weight.defined() ? contiguous(weight) : weight;
  const int64_t n = x.sizes()[0], dims = x.sizes()[1];
  dispatch<FloatingTypes>(x.dtype(), "histogramdd", [&]<class T>(Type<T>) {
    std::vector<Tensor> held;
    std::vector<Axis<T>> axes;
    for (const Tensor& e : edges) {
      held.push_back(contiguous(e));
      axes.push_back({held.back().data<T>(), held.back().numel() - 1});
    }
    std::vector<int64_t> bins(static_cast<size_t>(n));
    parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        bins[static_cast<size_t>(i)] = bin_of(axes, x.data<T>() + i * dims);
    });
    std::vector<double> counts(static_cast<size_t>(out.numel()));
    for (int64_t i = 0; i < n; ++i)
      if (const int64_t at = bins[static_cast<size_t>(i)]; at >= 0)
        counts[static_cast<size_t>(at)] += w.defined() ? static_cast<double>(w.data<T>()[i]) : 1;
    if (density) divide_by_volumes(axes, counts);
    std::transform(counts.begin(), counts.end(), out.data<T>(),
                   [](double c) { return static_cast<T>(c); });
  });
}

}  // namespace facula::cpu
