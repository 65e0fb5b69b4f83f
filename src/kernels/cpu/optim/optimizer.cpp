#include "kernels/cpu/optim/optimizer.h"

#include <cmath>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/simd/lanes.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int most_tensors = 5;       // a parameter, its gradient and up to three of state
constexpr int64_t per_chunk = 16384;  // elements

double number(const Tensor& t) {
  check(t.numel() == 1, "expected a tensor of one element for a number of an optimizer; got sizes ",
        str(t.sizes()));
  if (t.dtype() == DType::Float32) return static_cast<double>(t.data<float>()[0]);
  return converted(t, DType::Float64).data<double>()[0];
}
double number(const Value& v) {
  return v.is_tensor() ? number(v.as_tensor()) : v.as_scalar().to<double>();
}

void check_lists(const char* op, TensorSpan params, std::initializer_list<TensorSpan> others) {
  for (TensorSpan list : others)
    check(list.size() == params.size(), op, "(): expected lists of one length; got ", params.size(),
          " and ", list.size());
  for (TensorSpan list : others)
    for (size_t i = 0; i < params.size(); ++i)
      check(list[i].defined() && same_sizes(list[i].sizes(), params[i].sizes()) &&
                list[i].dtype() == params[i].dtype(),
            op, "(): expected gradients and states with the shape and dtype of their parameters, ",
            name(params[i].dtype()), str(params[i].sizes()));
}
void check_steps(const char* op, TensorSpan params, TensorSpan steps) {
  check(steps.size() == params.size(), op,
        "(): expected one state_steps tensor per parameter; got ", steps.size(), " for ",
        params.size());
  for (const Tensor& t : steps)
    check(t.defined() && t.numel() == 1, op, "(): expected state_steps of one element each");
}

// The same memory order for all tensors of a parameter, so that they can be walked as flat arrays.
class Flat {
 public:
  void add(const Tensor& t) {
    const bool first = count_ == 0;
    const bool fits = first ? is_dense_non_overlapping(t.sizes(), t.strides())
                            : same_sizes(t.strides(), seen_[0].strides());
    original_[count_] = t;
    seen_[count_] = t;
    if (!fits) {
      seen_[count_] = first ? empty_tensor(t.sizes(), t.dtype())
                            : empty_strided_tensor(t.sizes(), seen_[0].strides(), t.dtype());
      copy(seen_[count_], t);
    }
    ++count_;
  }
  template <class T>
  T* data(int k) const {
    return k < count_ ? seen_[k].data<T>() : nullptr;
  }
  int64_t numel() const { return seen_[0].numel(); }
  void write_back() const {
    for (int k = 0; k < count_; ++k)
      if (!seen_[k].is_same(original_[k])) copy(original_[k], seen_[k]);
  }

 private:
  Tensor original_[most_tensors], seen_[most_tensors];
  int count_ = 0;
};

// Calls body(begin, end) over the elements of a parameter and stores what was worked on in copies.
template <class Body>
void for_elements(const Flat& flat, const Body& body) {
  parallel_for(flat.numel(), per_chunk, body);
  flat.write_back();
}

// A gradient as the rules see it: unscaled (and stored so), with its sign.
template <class T>
struct Gradient {
  using A = accumulate_t<T>;
  T* data;
  bool unscale, negate;
  A scale;

  A operator()(int64_t i) const {
    A g = widen(data[i]);
    if (unscale) {
      g = g / scale;
      data[i] = static_cast<T>(g);
    }
    return negate ? -g : g;
  }
};
template <class T>
Gradient<T> gradient(T* data, bool maximize, const Tensor& grad_scale) {
  const bool scaled = grad_scale.defined();
  return {data, scaled, maximize,
          scaled ? static_cast<accumulate_t<T>>(number(grad_scale)) : accumulate_t<T>(1)};
}

bool overflowed(const Tensor& found_inf) { return found_inf.defined() && number(found_inf) == 1; }

// --- Adam

template <class A>
struct AdamNumbers {
  A keep, step_size, decay, new_average, beta2, new_square, root_correction, eps;
};

template <bool Decoupled, bool Amsgrad, class T>
void adam(const Flat& flat, const AdamNumbers<accumulate_t<T>>& n, bool maximize,
          const Tensor& grad_scale) {
  using A = accumulate_t<T>;
  const Gradient<T> grad = gradient(flat.data<T>(1), maximize, grad_scale);
  T *param = flat.data<T>(0), *avg = flat.data<T>(2), *square = flat.data<T>(3),
    *top = flat.data<T>(4);
  for_elements(flat, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      A p = widen(param[i]), g = grad(i);
      if constexpr (Decoupled)
        p = p * n.keep;
      else
        g = g + p * n.decay;
      const A m = widen(avg[i]) + (g - widen(avg[i])) * n.new_average;
      const A v = widen(square[i]) * n.beta2 + g * g * n.new_square;
      avg[i] = static_cast<T>(m);
      square[i] = static_cast<T>(v);
      A most = v;
      if constexpr (Amsgrad) {
        most = widen(top[i]) > v ? widen(top[i]) : v;
        top[i] = static_cast<T>(most);
      }
      param[i] =
          static_cast<T>(p - n.step_size * m / (std::sqrt(most) / n.root_correction + n.eps));
    }
  });
}

struct AdamSettings {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize;
};

template <bool Decoupled>
void adam_lists(const char* op, TensorSpan params, TensorSpan grads, TensorSpan avgs,
                TensorSpan squares, TensorSpan maxima, TensorSpan steps, const AdamSettings& s,
                const Tensor& grad_scale, const Tensor& found_inf) {
  check_lists(op, params, {grads, avgs, squares});
  if (s.amsgrad) check_lists(op, params, {maxima});
  check_steps(op, params, steps);
  if (overflowed(found_inf)) return;
  for (size_t k = 0; k < params.size(); ++k) {
    const double count = number(steps[k]);
    const double correction1 = 1 - std::pow(s.beta1, count),
                 correction2 = 1 - std::pow(s.beta2, count);
    Flat flat;
    for (const TensorSpan& list : {params, grads, avgs, squares}) flat.add(list[k]);
    if (s.amsgrad) flat.add(maxima[k]);
    dispatch<FloatingTypes>(params[k].dtype(), op, [&]<class T>(Type<T>) {
      using A = accumulate_t<T>;
      auto narrow = [](double v) { return static_cast<A>(v); };
      const AdamNumbers<A> n = {narrow(1 - s.lr * s.weight_decay),
                                narrow(s.lr / correction1),
                                narrow(s.weight_decay),
                                narrow(1 - s.beta1),
                                narrow(s.beta2),
                                narrow(1 - s.beta2),
                                narrow(std::sqrt(correction2)),
                                narrow(s.eps)};
      if (s.amsgrad)
        adam<Decoupled, true, T>(flat, n, s.maximize, grad_scale);
      else
        adam<Decoupled, false, T>(flat, n, s.maximize, grad_scale);
    });
  }
}

}  // namespace

void fused_adam(TensorSpan params, TensorSpan grads, TensorSpan avgs, TensorSpan squares,
                TensorSpan maxima, TensorSpan steps, const Value& lr, double beta1, double beta2,
                double weight_decay, double eps, bool amsgrad, bool maximize,
                const Tensor& grad_scale, const Tensor& found_inf) {
  adam_lists<false>("_fused_adam_", params, grads, avgs, squares, maxima, steps,
                    {number(lr), beta1, beta2, weight_decay, eps, amsgrad, maximize}, grad_scale,
                    found_inf);
}
void fused_adamw(TensorSpan params, TensorSpan grads, TensorSpan avgs, TensorSpan squares,
                 TensorSpan maxima, TensorSpan steps, const Value& lr, double beta1, double beta2,
                 double weight_decay, double eps, bool amsgrad, bool maximize,
                 const Tensor& grad_scale, const Tensor& found_inf) {
  adam_lists<true>("_fused_adamw_", params, grads, avgs, squares, maxima, steps,
                   {number(lr), beta1, beta2, weight_decay, eps, amsgrad, maximize}, grad_scale,
                   found_inf);
}

void fused_sgd(TensorSpan params, TensorSpan grads, TensorSpan buffers, double weight_decay,
               double momentum, const Value& lr, double dampening, bool nesterov, bool maximize,
               bool is_first_step, const Tensor& grad_scale, const Tensor& found_inf) {
  const char* op = "_fused_sgd_";
  const bool moving = momentum != 0;
  check_lists(op, params, {grads});
  if (moving) check_lists(op, params, {buffers});
  if (overflowed(found_inf)) return;
  const double rate = number(lr);
  for (size_t k = 0; k < params.size(); ++k) {
    Flat flat;
    flat.add(params[k]);
    flat.add(grads[k]);
    if (moving) flat.add(buffers[k]);
    dispatch<FloatingTypes>(params[k].dtype(), op, [&]<class T>(Type<T>) {
      using A = accumulate_t<T>;
      const Gradient<T> grad = gradient(flat.data<T>(1), maximize, grad_scale);
      T *param = flat.data<T>(0), *buffer = flat.data<T>(2);
      const A decay = static_cast<A>(weight_decay), step = static_cast<A>(rate),
              keep = static_cast<A>(momentum), fresh = static_cast<A>(1 - dampening);
      // One loop for each way to move, so that each vectorises.
      const auto run = [&]<bool Moving, bool First, bool Nesterov>() {
        for_elements(flat, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const A p = widen(param[i]);
            A g = grad(i) + p * decay;
            if constexpr (Moving) {
              const A b = First ? g : widen(buffer[i]) * keep + g * fresh;
              buffer[i] = static_cast<T>(b);
              g = Nesterov ? g + b * keep : b;
            }
            param[i] = static_cast<T>(p - g * step);
          }
        });
      };
      if (!moving) return run.template operator()<false, false, false>();
      if (is_first_step)
        return nesterov ? run.template operator()<true, true, true>()
                        : run.template operator()<true, true, false>();
      nesterov ? run.template operator()<true, false, true>()
               : run.template operator()<true, false, false>();
    });
  }
}

void fused_adagrad(TensorSpan params, TensorSpan grads, TensorSpan sums, TensorSpan steps,
                   const Value& lr, double lr_decay, double weight_decay, double eps, bool maximize,
                   const Tensor& grad_scale, const Tensor& found_inf) {
  const char* op = "_fused_adagrad_";
  check_lists(op, params, {grads, sums});
  check_steps(op, params, steps);
  if (overflowed(found_inf)) return;
  for (size_t k = 0; k < params.size(); ++k) {
    const double rate = number(lr) / (1 + (number(steps[k]) - 1) * lr_decay);
    Flat flat;
    for (const TensorSpan& list : {params, grads, sums}) flat.add(list[k]);
    dispatch<FloatingTypes>(params[k].dtype(), op, [&]<class T>(Type<T>) {
      using A = accumulate_t<T>;
      const Gradient<T> grad = gradient(flat.data<T>(1), maximize, grad_scale);
      T *param = flat.data<T>(0), *sum = flat.data<T>(2);
      const A decay = static_cast<A>(weight_decay), step = static_cast<A>(rate),
              least = static_cast<A>(eps);
      for_elements(flat, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const A p = widen(param[i]), g = grad(i) + p * decay;
          const A total = widen(sum[i]) + g * g;
          sum[i] = static_cast<T>(total);
          param[i] = static_cast<T>(p - step * g / (std::sqrt(total) + least));
        }
      });
    });
  }
}

}  // namespace facula::cpu::FACULA_ISA
