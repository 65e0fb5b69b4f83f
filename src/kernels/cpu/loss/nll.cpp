#include "kernels/cpu/loss/nll.h"

#include <vector>

#include "core/scalar.h"
#include "core/threads.h"
#include "kernels/cpu/loop/contiguous.h"
#include "kernels/cpu/loop/convert.h"

namespace facula::cpu {
namespace {

constexpr int64_t per_chunk = 2048;

struct Problem {
  int64_t classes, inner, count;  // count: how many targets
  int64_t ignored;
  const uint8_t* bytes = nullptr;
  const int64_t* longs = nullptr;

  int64_t target(int64_t i) const { return longs ? longs[i] : bytes[i]; }
  // Whether a target counts; IndexError for a class that does not exist.
  bool counts(int64_t c) const {
    if (c == ignored) return false;
    check_index(c >= 0 && c < classes, "Target ", c, " is out of bounds.");
    return true;
  }
};

// Where the elements of neighbouring targets stand, without a division for each.
class Places {
 public:
  Places(const Problem& p, int64_t first)
      : inner_(p.inner),
        step_(p.classes * p.inner),
        image_(first / p.inner * step_),
        within_(first % p.inner) {}
  // The element of class c.
  int64_t operator[](int64_t c) const { return image_ + c * inner_ + within_; }
  void next() {
    if (++within_ < inner_) return;
    within_ = 0;
    image_ += step_;
  }

 private:
  int64_t inner_, step_, image_, within_;
};

Problem problem(const Tensor& self, const Tensor& target, int64_t ignored) {
  Problem p;
  p.classes = self.size(self.dim() == 1 ? 0 : 1);
  p.inner = 1;
  for (int64_t d = 2; d < self.dim(); ++d) p.inner *= self.size(d);
  if (p.inner == 0) p.inner = 1;  // nobody asks where then, but chunks begin somewhere
  p.count = target.numel();
  p.ignored = ignored;
  if (target.dtype() == DType::Int64)
    p.longs = target.data<int64_t>();
  else
    p.bytes = target.data<uint8_t>();
  return p;
}

struct Sums {
  double loss = 0, weight = 0;
};

template <class T>
Sums forward_chunk(const Problem& p, const T* x, const T* weight, T* each, int64_t begin,
                   int64_t end) {
  Sums sums;
  Places place(p, begin);
  for (int64_t i = begin; i < end; ++i, place.next()) {
    const int64_t c = p.target(i);
    const bool counts = p.counts(c);
    const double w = !counts ? 0 : weight ? static_cast<double>(weight[c]) : 1;
    const double v = counts ? -static_cast<double>(x[place[c]]) * w : 0;
    if (each) each[i] = convert<T>(v);
    sums.loss += v;
    sums.weight += w;
  }
  return sums;
}

template <class T>
void forward(const Problem& p, const T* x, const T* weight, int64_t reduction, T* output,
             T* total) {
  T* each = reduction == 0 ? output : nullptr;
  Sums sums;
  if (p.count <= per_chunk) {
    sums = forward_chunk(p, x, weight, each, 0, p.count);
  } else {
    std::vector<Sums> parts(static_cast<size_t>((p.count + per_chunk - 1) / per_chunk));
    parallel_for(p.count, per_chunk, [&](int64_t begin, int64_t end) {
      parts[static_cast<size_t>(begin / per_chunk)] = forward_chunk(p, x, weight, each, begin, end);
    });
    for (const Sums& part : parts) {
      sums.loss += part.loss;
      sums.weight += part.weight;
    }
  }
  *total = convert<T>(reduction == 0 ? 0.0 : sums.weight);
  if (reduction != 0) *output = convert<T>(reduction == 1 ? sums.loss / sums.weight : sums.loss);
}

template <class T>
void backward(const Problem& p, const T* grad, int64_t grad_step, const T* weight, double scale,
              T* out) {
  parallel_for(p.count, per_chunk, [&](int64_t begin, int64_t end) {
    Places place(p, begin);
    for (int64_t i = begin; i < end; ++i, place.next()) {
      const int64_t c = p.target(i);
      if (!p.counts(c)) continue;
      const double w = weight ? static_cast<double>(weight[c]) : 1;
      out[place[c]] = convert<T>(-static_cast<double>(grad[i * grad_step]) * w * scale);
    }
  });
}

template <class F>
void visit(DType d, const char* kernel, F&& f) {
  dispatch<FloatingTypes>(d, kernel, f);
}

Tensor as_type(const Tensor& t, DType d) {
  if (!t.defined()) return t;
  check(t.dtype() == d, "expected scalar type ", name(d), " but found ", name(t.dtype()));
  return contiguous(t);
}

}  // namespace

void nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
              int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  visit(self.dtype(), self.dim() > 2 ? "nll_loss2d_forward_out_frame" : "nll_loss_out_frame",
        [&]<class T>(Type<T>) {
          const ContiguousTensor x(self), t(target);
          const Tensor w = as_type(weight, self.dtype());
          forward<T>(problem(*x, *t, ignore_index), x->data<T>(),
                     w.defined() ? w.data<T>() : nullptr, reduction, output.data<T>(),
                     total_weight.data<T>());
        });
}

void nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignore_index,
                       const Tensor& total_weight, const Tensor& out) {
  fill(out, 0);
  visit(self.dtype(), "nll_loss_backward_out_frame", [&]<class T>(Type<T>) {
    const Tensor t = contiguous(target), g = contiguous(grad), w = as_type(weight, self.dtype());
    double scale = 1;
    if (reduction == 1) scale = 1 / static_cast<double>(*total_weight.data<T>());
    backward<T>(problem(out, t, ignore_index), g.data<T>(), reduction == 0 ? 1 : 0,
                w.defined() ? w.data<T>() : nullptr, scale, out.data<T>());
  });
}

}  // namespace facula::cpu
