#include "kernels/cpu/loss/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {

int64_t CtcBatch::longest() const {
  return label_counts.empty() ? 0 : *std::max_element(label_counts.begin(), label_counts.end());
}

namespace {

template <class T>
constexpr T nothing = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c))
template <class T>
T log_sum(T a, T b, T c = nothing<T>) {
  const T most = std::max({a, b, c});
  if (most == nothing<T>) return most;
  return std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most)) + most;
}

// One sample: its labels with a blank before, between and after them make `places` places.
template <class T>
struct Sample {
  const T* log_probs;  // of step 0
  int64_t step, places, steps, blank;
  const int64_t* labels;
  T* log_alpha;
  int64_t row;  // places that the widest sample has

  int64_t label(int64_t place) const { return place % 2 ? labels[place / 2] : blank; }
  T log_prob(int64_t t, int64_t place) const { return log_probs[t * step + label(place)]; }
  // A label may follow the one before it without a blank where they differ.
  bool may_skip(int64_t place) const { return place >= 2 && label(place) != label(place - 2); }
  T& alpha(int64_t t, int64_t place) const { return log_alpha[t * row + place]; }

  T loss() const {
    if (steps == 0) return places == 1 ? T(0) : std::numeric_limits<T>::infinity();
    alpha(0, 0) = log_prob(0, 0);
    if (places > 1) alpha(0, 1) = log_prob(0, 1);
    for (int64_t t = 1; t < steps; ++t)
      for (int64_t s = 0; s < places; ++s) {
        const T one = s > 0 ? alpha(t - 1, s - 1) : nothing<T>,
                two = may_skip(s) ? alpha(t - 1, s - 2) : nothing<T>;
        alpha(t, s) = log_sum(alpha(t - 1, s), one, two) + log_prob(t, s);
      }
    return -log_sum(alpha(steps - 1, places - 1),
                    places > 1 ? alpha(steps - 1, places - 2) : nothing<T>);
  }

  // Adds log(exp(beta) exp(alpha)) of every place to its label's entry, step by step from the end.
  void collect(std::vector<T>& beta, std::vector<T>& next, T* into, int64_t classes) const {
    for (int64_t t = steps - 1; t >= 0; --t) {
      T* sums = into + t * classes;
      for (int64_t s = 0; s < places; ++s) {
        const size_t i = static_cast<size_t>(s);
        if (t == steps - 1) {
          beta[i] = s >= places - 2 ? log_prob(t, s) : nothing<T>;
        } else {
          const T one = s + 1 < places ? next[i + 1] : nothing<T>;
          const T two = s + 2 < places && may_skip(s + 2) ? next[i + 2] : nothing<T>;
          beta[i] = log_sum(next[i], one, two) + log_prob(t, s);
        }
        T& sum = sums[label(s)];
        sum = log_sum(sum, alpha(t, s) + beta[i]);
      }
      std::swap(beta, next);
    }
  }
};

struct Layout {
  int64_t steps, samples, classes, row;
};
Layout layout_of(const Tensor& log_probs, const CtcBatch& batch) {
  return {log_probs.sizes()[0], log_probs.sizes()[1], log_probs.sizes()[2],
          2 * batch.longest() + 1};
}

template <class T>
Sample<T> sample(const Tensor& log_probs, const CtcBatch& batch, const Tensor& log_alpha,
                 const Layout& l, int64_t n) {
  const size_t i = static_cast<size_t>(n);
  return {log_probs.data<T>() + n * l.classes,
          l.samples * l.classes,
          2 * batch.label_counts[i] + 1,
          batch.steps[i],
          batch.blank,
          batch.labels.data() + batch.starts[i],
          log_alpha.data<T>() + n * l.steps * l.row,
          l.row};
}

template <class F>
void visit(DType d, const char* kernel, F&& f) {
  dispatch<float, double>(d, kernel, f);
}

}  // namespace

void ctc_loss(const Tensor& log_probs, const CtcBatch& batch, const Tensor& loss,
              const Tensor& log_alpha) {
  const Tensor from = contiguous(log_probs);
  const Layout l = layout_of(from, batch);
  visit(from.dtype(), "ctc_loss_cpu", [&]<class T>(Type<T>) {
    std::fill_n(log_alpha.data<T>(), log_alpha.numel(), nothing<T>);
    parallel_for(l.samples, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        loss.data<T>()[n] = sample<T>(from, batch, log_alpha, l, n).loss();
    });
  });
}

void ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const CtcBatch& batch,
                       const Tensor& loss, const Tensor& log_alpha, bool zero_infinity,
                       const Tensor& out) {
  const Tensor from = contiguous(log_probs), alpha = contiguous(log_alpha), g = contiguous(grad),
               losses = contiguous(loss);
  const Layout l = layout_of(from, batch);
  visit(from.dtype(), "ctc_loss_backward_cpu", [&]<class T>(Type<T>) {
    std::fill_n(out.data<T>(), out.numel(), T(0));
    parallel_for(l.samples, 1, [&](int64_t begin, int64_t end) {
      std::vector<T> beta(static_cast<size_t>(l.row)), next(static_cast<size_t>(l.row));
      std::vector<T> sums(static_cast<size_t>(l.steps * l.classes));
      for (int64_t n = begin; n < end; ++n) {
        const T value = losses.data<T>()[n], scale = g.data<T>()[n];
        if (zero_infinity && value == std::numeric_limits<T>::infinity()) continue;
        const Sample<T> s = sample<T>(from, batch, alpha, l, n);
        std::fill(sums.begin(), sums.end(), nothing<T>);
        s.collect(beta, next, sums.data(), l.classes);
        for (int64_t t = 0; t < s.steps; ++t)
          for (int64_t c = 0; c < l.classes; ++c) {
            // alpha and beta both hold the step's own log probability: once is taken off.
            const int64_t at = (t * l.samples + n) * l.classes + c;
            const T own = from.data<T>()[at],
                    posterior = sums[static_cast<size_t>(t * l.classes + c)] + value - own;
            out.data<T>()[at] = (std::exp(own) - std::exp(posterior)) * scale;
          }
      }
    });
  });
}

}  // namespace facula::cpu
