#include "kernels/cpu/fft/line_pairs.h"

#include <algorithm>
#include <cstdlib>

namespace facula::cpu {

LinePairs::LinePairs(const Tensor& from, const Tensor& to, int64_t dim)
    : from_step_(from.strides()[dim]), to_step_(to.strides()[dim]) {
  for (int64_t d = 0; d < from.dim(); ++d) {
    if (d == dim || from.sizes()[d] == 1) continue;
    dims_.push_back({from.sizes()[d], from.strides()[d], to.strides()[d]});
    count_ *= from.sizes()[d];
  }
  std::ranges::stable_sort(dims_, std::less{}, [](const Dim& d) { return std::abs(d.from); });
  size_t last = 0;
  for (size_t k = 1; k < dims_.size(); ++k) {
    Dim& inner = dims_[last];
    const Dim outer = dims_[k];
    const bool goes_on = outer.from == inner.from * inner.size && outer.to == inner.to * inner.size;
    if (goes_on)
      inner.size *= outer.size;
    else
      dims_[++last] = outer;
  }
  if (!dims_.empty()) dims_.resize(last + 1);
}

LinePairs::Run LinePairs::run(int64_t first, int64_t most) const {
  Run found{0, 0, 1};
  starts(first, 1, &found.from, &found.to);
  if (!dims_.empty()) found.count = std::min(most, dims_[0].size - first % dims_[0].size);
  return found;
}

void LinePairs::starts(int64_t first, int64_t n, int64_t* from, int64_t* to) const {
  if (dims_.empty()) {
    std::fill_n(from, n, 0);
    std::fill_n(to, n, 0);
    return;
  }
  const Dim& inner = dims_[0];
  for (int64_t done = 0; done < n;) {
    int64_t outer = (first + done) / inner.size, a = 0, b = 0;
    const int64_t at = first + done - outer * inner.size, run = std::min(n - done, inner.size - at);
    for (size_t k = 1; k < dims_.size(); ++k) {
      const Dim& d = dims_[k];
      a += outer % d.size * d.from;
      b += outer % d.size * d.to;
      outer /= d.size;
    }
    for (int64_t i = 0; i < run; ++i) {
      from[done + i] = a + (at + i) * inner.from;
      to[done + i] = b + (at + i) * inner.to;
    }
    done += run;
  }
}

}  // namespace facula::cpu
