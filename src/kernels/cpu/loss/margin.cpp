#include "kernels/cpu/loss/margin.h"

#include <algorithm>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

constexpr int64_t samples_per_chunk = 64;

template <class F>
void visit(DType d, const char* kernel, F&& f) {
  dispatch<float, double>(d, kernel, f);
}

Tensor as_type(const Tensor& t, DType d) {
  if (!t.defined()) return t;
  check(t.dtype() == d, "margin losses need a tensor of dtype ", name(d), " here; got ",
        name(t.dtype()));
  return contiguous(t);
}

struct Matrix {
  int64_t samples, classes;
};
Matrix matrix_of(const Tensor& t) {
  return t.dim() == 2 ? Matrix{t.sizes()[0], t.sizes()[1]} : Matrix{1, t.numel()};
}

// Stores one loss for each sample, or their sum or mean.
template <class T, class F>
void store_losses(int64_t samples, int64_t reduction, T* out, F&& loss_of) {
  std::vector<double> losses(static_cast<size_t>(samples));
  parallel_for(samples, samples_per_chunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) losses[static_cast<size_t>(i)] = loss_of(i);
  });
  if (reduction == 0)
    return void(std::transform(losses.begin(), losses.end(), out,
                               [](double v) { return static_cast<T>(v); }));
  double sum = 0;
  for (double v : losses) sum += v;
  *out = static_cast<T>(reduction == 1 && samples > 0 ? sum / static_cast<double>(samples) : sum);
}

// What a gradient of the result is multiplied with.
double share(const Matrix& m, int64_t reduction) {
  const double classes = static_cast<double>(m.classes);
  return reduction == 1 ? 1 / (classes * static_cast<double>(m.samples)) : 1 / classes;
}

// --- one target

template <class T>
struct MarginProblem {
  const T* x;
  const int64_t* target;
  const T* weight;  // of classes; null: all one
  Matrix m;
  int64_t p;
  T margin;

  int64_t class_of(int64_t i) const {
    check(target[i] >= 0 && target[i] < m.classes,
          "multi_margin_loss(): target out of range, 0 to ", m.classes - 1, "; got ", target[i]);
    return target[i];
  }
  T weight_of(int64_t c) const { return weight ? weight[c] : T(1); }
  // How far class c of sample i is inside the margin; not above zero where it costs nothing.
  T depth(int64_t i, int64_t c) const {
    const T* row = x + i * m.classes;
    return margin - row[target[i]] + row[c];
  }
  double loss(int64_t i) const {
    const int64_t own = class_of(i);
    double sum = 0;
    for (int64_t c = 0; c < m.classes; ++c) {
      const T z = depth(i, c);
      if (c == own || !(z > 0)) continue;
      sum += static_cast<double>((p == 1 ? z : z * z) * weight_of(own));
    }
    return sum / static_cast<double>(m.classes);
  }
  void gradient(int64_t i, T scale, T* out) const {
    const int64_t own = class_of(i);
    T* row = out + i * m.classes;
    T pulled = 0;
    for (int64_t c = 0; c < m.classes; ++c) {
      const T z = depth(i, c);
      row[c] = 0;
      if (c == own || !(z > 0)) continue;
      row[c] = (p == 1 ? T(1) : 2 * z) * weight_of(own) * scale;
      pulled -= row[c];
    }
    row[own] = pulled;
  }
};

// --- many targets

// The targets of sample i: up to the first -1.
int64_t count_targets(const int64_t* target, int64_t classes) {
  int64_t n = 0;
  while (n < classes && target[n] >= 0) ++n;
  return n;
}

// Calls f(target class, other class, depth) for every pair inside the margin.
template <class T, class F>
void each_pair(const T* row, const int64_t* target, const T* is_target, int64_t classes, F&& f) {
  const int64_t n = count_targets(target, classes);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t c = 0; c < classes; ++c) {
      const T z = T(1) - row[target[k]] + row[c];
      if (is_target[c] == T(0) && z > 0) f(target[k], c, z);
    }
}

}  // namespace

void multi_margin_loss(const Tensor& self, const Tensor& target, int64_t p, double margin,
                       const Tensor& weight, int64_t reduction, const Tensor& out) {
  visit(self.dtype(), "multi_margin_loss_cpu_kernel", [&]<class T>(Type<T>) {
    const Tensor x = contiguous(self), t = as_type(target, DType::Int64),
                 w = as_type(weight, self.dtype());
    const MarginProblem<T> problem{
        x.data<T>(), t.data<int64_t>(),     w.defined() ? w.data<T>() : nullptr, matrix_of(x),
        p,           static_cast<T>(margin)};
    store_losses(problem.m.samples, reduction, out.data<T>(),
                 [&](int64_t i) { return problem.loss(i); });
  });
}

void multi_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                int64_t p, double margin, const Tensor& weight, int64_t reduction,
                                const Tensor& out) {
  visit(self.dtype(), "multi_margin_loss_backward_cpu_kernel", [&]<class T>(Type<T>) {
    const Tensor x = contiguous(self), t = as_type(target, DType::Int64),
                 w = as_type(weight, self.dtype());
    const Tensor g = as_type(grad, self.dtype());
    const MarginProblem<T> problem{
        x.data<T>(), t.data<int64_t>(),     w.defined() ? w.data<T>() : nullptr, matrix_of(x),
        p,           static_cast<T>(margin)};
    const T scale = static_cast<T>(share(problem.m, reduction));
    parallel_for(problem.m.samples, samples_per_chunk, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        problem.gradient(i, scale * g.data<T>()[reduction == 0 ? i : 0], out.data<T>());
    });
  });
}

void multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction,
                            const Tensor& out, const Tensor& is_target) {
  visit(self.dtype(), "multilabel_margin_loss_forward_out_frame", [&]<class T>(Type<T>) {
    const Tensor x = contiguous(self), t = as_type(target, DType::Int64);
    const Matrix m = matrix_of(x);
    const int64_t* to = t.data<int64_t>();
    for (int64_t i = 0; i < t.numel(); ++i)
      check(to[i] >= -1 && to[i] < m.classes,
            "multilabel_margin_loss(): target out of range, -1 to ", m.classes - 1, "; got ",
            to[i]);
    T* marks = is_target.data<T>();
    std::fill_n(marks, is_target.numel(), T(0));
    store_losses(m.samples, reduction, out.data<T>(), [&](int64_t i) {
      const int64_t row = i * m.classes, n = count_targets(to + row, m.classes);
      for (int64_t k = 0; k < n; ++k) marks[row + to[row + k]] = 1;
      double sum = 0;
      each_pair(x.data<T>() + row, to + row, marks + row, m.classes,
                [&](int64_t, int64_t, T z) { sum += static_cast<double>(z); });
      return sum / static_cast<double>(m.classes);
    });
  });
}

void multilabel_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                     int64_t reduction, const Tensor& is_target,
                                     const Tensor& out) {
  visit(self.dtype(), "multilabel_margin_loss_backward_out_frame", [&]<class T>(Type<T>) {
    const Tensor x = contiguous(self), t = as_type(target, DType::Int64),
                 marks = as_type(is_target, self.dtype());
    const Tensor g = as_type(grad, self.dtype());
    const Matrix m = matrix_of(x);
    const int64_t* to = t.data<int64_t>();
    for (int64_t i = 0; i < t.numel(); ++i)
      check(to[i] >= -1 && to[i] < m.classes,
            "multilabel_margin_loss_backward(): target out of range, -1 to ", m.classes - 1,
            "; got ", to[i]);
    const T scale = static_cast<T>(share(m, reduction));
    std::fill_n(out.data<T>(), out.numel(), T(0));
    parallel_for(m.samples, samples_per_chunk, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i * m.classes;
        T* into = out.data<T>() + row;
        const T step = scale * g.data<T>()[reduction == 0 ? i : 0];
        each_pair(x.data<T>() + row, to + row, marks.data<T>() + row, m.classes,
                  [&](int64_t own, int64_t other, T) {
                    into[own] -= step;
                    into[other] += step;
                  });
      }
    });
  });
}

}  // namespace facula::cpu
