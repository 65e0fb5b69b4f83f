// One direction of one recurrent layer over whole sequences as one operator, and its derivative.
#include "ops/rnn/layer.h"

#include <algorithm>

#include "core/checked.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/rnn/rnn.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/trigonometric.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/rnn/parts.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

using rnn::Mode;
using rnn::State;

constexpr const char* op = "mkldnn_rnn_layer(): ";
constexpr const char* gates_of = "mkldnn_rnn_layer(): the number of gates";

void check_sizes(const Tensor& t, IntSpan wanted, const char* name) {
  check(same_sizes(t.sizes(), wanted), op, name, " must have sizes ", str(wanted), "; got ",
        str(t.sizes()));
}

// Rows of all steps together.
int64_t check_steps(const Tensor& input, IntSpan batch_sizes) {
  if (batch_sizes.empty()) {
    check(input.dim() == 3, op, "input must be (steps, batch, inputs); got shape ",
          str(input.sizes()));
    check(input.size(0) > 0, op, "expected at least one step; got input of shape ",
          str(input.sizes()));
    return checked_mul(input.size(0), input.size(1), "mkldnn_rnn_layer(): the number of rows");
  }
  check(input.dim() == 2, op, "packed input must be (rows, inputs); got shape ",
        str(input.sizes()));
  int64_t rows = 0, before = batch_sizes[0];
  for (int64_t n : batch_sizes) {
    check(n > 0 && n <= before, op, "batch_sizes must be positive and not grow; got ",
          str(batch_sizes));
    rows = checked_add(rows, n, "mkldnn_rnn_layer(): the sum of batch_sizes");
    before = n;
  }
  check(rows == input.size(0), op, "input must have a row for each of ", rows,
        " elements of batch_sizes; got ", input.size(0));
  return rows;
}

void check_operands(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh, const Tensor& hx,
                    const Tensor& cx, IntSpan batch_sizes, Mode mode) {
  check(mode >= Mode::Relu && mode <= Mode::Gru, op, "mode must be from 0 to 3; got ",
        static_cast<int64_t>(mode));
  check(is_floating(input.dtype()), op, "input must be floating point; got ", name(input.dtype()));
  check(hx.dim() == 2, op, "hx_ must be (batch, hidden); got shape ", str(hx.sizes()));
  const int64_t h = hx.size(1), all = checked_mul(cpu::rnn_shape(mode).gates, h, gates_of);
  const int64_t batch = batch_sizes.empty() ? input.size(1) : batch_sizes[0];
  check_sizes(hx, IntList{batch, h}, "hx_");
  if (mode == Mode::Lstm) check_sizes(cx, IntList{batch, h}, "cx_");
  check_sizes(w_ih, IntList{all, input.size(-1)}, "weight0");
  check_sizes(w_hh, IntList{all, h}, "weight1");
  for (const Tensor* t : {&w_ih, &w_hh, &hx, mode == Mode::Lstm ? &cx : &hx})
    check(t->dtype() == input.dtype(), op, "input, weights and states must have one dtype; got ",
          name(input.dtype()), " and ", name(t->dtype()));
}

void meta_layer(Meta& m, const Tensor& input, const Tensor& w_ih, const Tensor& w_hh,
                const Tensor& b_ih, const Tensor& b_hh, const Tensor& hx, const Tensor& cx, bool,
                IntSpan batch_sizes, int64_t mode_number, int64_t hidden, int64_t, bool has_biases,
                bool, bool, bool train) {
  const auto mode = static_cast<Mode>(mode_number);
  const int64_t rows = check_steps(input, batch_sizes);
  check_operands(input, w_ih, w_hh, hx, cx, batch_sizes, mode);
  const int64_t h = hx.size(1), all = checked_mul(cpu::rnn_shape(mode).gates, h, gates_of);
  check(hidden == h, op, "hidden_size must be that of hx_, ", h, "; got ", hidden);
  if (has_biases) {
    check_sizes(b_ih, IntList{all}, "weight2");
    check_sizes(b_hh, IntList{all}, "weight3");
  }
  IntVec sizes(input.sizes());
  sizes[sizes.size() - 1] = h;
  m.result(0, sizes, input.dtype());
  m.result(1, hx.sizes(), input.dtype());
  const int64_t none[] = {0};
  m.result(2, mode == Mode::Lstm ? hx.sizes() : IntSpan(none), input.dtype());
  const int64_t each = input.dtype() == DType::Float64 ? 8 : 4;
  const char* what = "mkldnn_rnn_layer(): the workspace";
  const int64_t kept = checked_mul(cpu::rnn_shape(mode).width * each, h, what);
  m.result(3, IntList{train ? checked_mul(rows, kept, what) : 0}, DType::UInt8);
}

void meta_backward(Meta& m, const Tensor& input, const Tensor& w_ih, const Tensor& w_hh,
                   const Tensor& hx, const Tensor& cx, const Tensor&, const Tensor&, const Tensor&,
                   bool, IntSpan batch_sizes, int64_t mode_number, const Tensor&,
                   std::span<const bool> mask) {
  const auto mode = static_cast<Mode>(mode_number);
  check_steps(input, batch_sizes);
  check_operands(input, w_ih, w_hh, hx, cx, batch_sizes, mode);
  const int64_t all[] = {w_ih.size(0)};
  const IntSpan sizes[] = {input.sizes(), w_ih.sizes(), w_hh.sizes(), all,
                           all,           hx.sizes(),   hx.sizes()};
  for (int i = 0; i < 7; ++i)
    if (mask[static_cast<size_t>(i)]) m.result(i, sizes[i], input.dtype());
}

// --- the derivative

struct StepGradient {
  Tensor input_gates, hidden_gates;
  State before;  // what goes to the state before by other ways than hidden_gates
};

Tensor sigmoid_slope(const Tensor& y) { return ops::mul(y, ops::rsub(y, 1)); }
Tensor tanh_slope(const Tensor& y) { return ops::rsub(ops::mul(y, y), 1); }
Tensor columns(std::initializer_list<Tensor> parts) {
  return ops::cat(std::vector<Tensor>(parts), 1);
}

StepGradient lstm_gradient(const rnn::Step& s, const State& before, const State& grad) {
  const Tensor &in = s.gates[0], &forget = s.gates[1], &fresh = s.gates[2], &open = s.gates[3];
  const Tensor squashed = ops::tanh(s.after.c);
  const Tensor c = ops::add(grad.c, ops::mul(ops::mul(grad.h, open), tanh_slope(squashed)));
  const Tensor gates = columns({ops::mul(ops::mul(c, fresh), sigmoid_slope(in)),
                                ops::mul(ops::mul(c, before.c), sigmoid_slope(forget)),
                                ops::mul(ops::mul(c, in), tanh_slope(fresh)),
                                ops::mul(ops::mul(grad.h, squashed), sigmoid_slope(open))});
  return {gates, gates, {{}, ops::mul(c, forget)}};
}

StepGradient gru_gradient(const rnn::Step& s, const State& before, const State& grad) {
  const Tensor &reset = s.gates[0], &update = s.gates[1], &fresh = s.gates[2],
               &recalled = s.gates[3];
  const Tensor inner = ops::mul(ops::mul(grad.h, ops::rsub(update, 1)), tanh_slope(fresh));
  const Tensor of_reset = ops::mul(ops::mul(inner, recalled), sigmoid_slope(reset));
  const Tensor of_update =
      ops::mul(ops::mul(grad.h, ops::sub(before.h, fresh)), sigmoid_slope(update));
  return {columns({of_reset, of_update, inner}),
          columns({of_reset, of_update, ops::mul(inner, reset)}),
          {ops::mul(grad.h, update), {}}};
}

StepGradient step_gradient(Mode mode, const rnn::Step& s, const State& before, const State& grad) {
  if (mode == Mode::Lstm) return lstm_gradient(s, before, grad);
  if (mode == Mode::Gru) return gru_gradient(s, before, grad);
  const Tensor &y = s.gates[0],
               slope = mode == Mode::Relu ? ops::to(ops::gt(y, 0), y.dtype()) : tanh_slope(y);
  const Tensor gates = ops::mul(grad.h, slope);
  return {gates, gates, {}};
}

// Replaces the gradient of the first rows.
Tensor with_head(const Tensor& all, const Tensor& head) {
  if (!all.defined() || all.size(0) == head.size(0)) return head;
  const int64_t n = head.size(0);
  return ops::cat(std::vector<Tensor>{head, ops::slice(all, 0, n, all.size(0), 1)}, 0);
}

Tensor or_zeros(const Tensor& grad, const Tensor& like) {
  return grad.defined() ? grad : ops::zeros_like(like);
}

// The layer's gradients made of public operators, which can be differentiated again.
class GradientByParts {
 public:
  explicit GradientByParts(Backward& b)
      : b_(b),
        mode_(static_cast<Mode>(b.integer("mode"))),
        input_(b["input"]),
        weights_{b["weight0"], b["weight1"], {}, {}, {}},
        initial_{b["hx_"], mode_ == Mode::Lstm ? b["cx_"] : Tensor()} {
    if (b.flag("has_biases")) {
      weights_.b_ih = b["weight2"];
      weights_.b_hh = b["weight3"];
    }
  }

  void run() {
    recall();
    go_back();
    set_gradients();
  }

 private:
  IntSpan batch_sizes() const { return b_.ints("batch_sizes"); }

  // Steps in the order in which they ran.
  void recall() {
    order_ = rnn::steps_of(rnn::input_gates(input_, weights_), batch_sizes());
    if (b_.flag("reverse")) std::reverse(order_.begin(), order_.end());
    State state = rnn::head(initial_, order_.front().size(0));
    for (const Tensor& gates : order_) {
      before_.push_back(rnn::fitted(state, initial_, gates.size(0)));
      steps_.push_back(rnn::step(mode_, gates, before_.back(), weights_));
      state = steps_.back().after;
    }
  }

  std::vector<Tensor> output_gradients() {
    if (!b_.grad(0).defined()) return std::vector<Tensor>(order_.size());
    std::vector<Tensor> grads = rnn::steps_of(b_.grad(0), batch_sizes());
    if (b_.flag("reverse")) std::reverse(grads.begin(), grads.end());
    return grads;
  }

  void go_back() {
    const std::vector<Tensor> outputs = output_gradients();
    state_ = {or_zeros(b_.grad(1), initial_.h), Tensor()};
    if (mode_ == Mode::Lstm) state_.c = or_zeros(b_.grad(2), initial_.c);
    for (size_t k = order_.size(); k-- > 0;) {
      State grad = rnn::head(state_, order_[k].size(0));
      if (outputs[k].defined()) grad.h = ops::add(grad.h, outputs[k]);
      const StepGradient g = step_gradient(mode_, steps_[k], before_[k], grad);
      Tensor h = ops::mm(g.hidden_gates, weights_.w_hh);
      if (g.before.h.defined()) h = ops::add(h, g.before.h);
      state_.h = with_head(state_.h, h);
      if (g.before.c.defined()) state_.c = with_head(state_.c, g.before.c);
      input_gates_.push_back(g.input_gates);
      hidden_gates_.push_back(g.hidden_gates);
    }
  }

  // Rows in the order of the input's: the gradients were made from the last step on.
  Tensor in_order(std::vector<Tensor> parts, bool backwards) {
    if (backwards != b_.flag("reverse")) std::reverse(parts.begin(), parts.end());
    return ops::cat(parts, 0);
  }

  void set_gradients() {
    const Tensor inputs = in_order(input_gates_, true), hidden = in_order(hidden_gates_, true);
    const Tensor x = ops::reshape(input_, {-1, input_.size(-1)});
    std::vector<Tensor> before;
    for (const State& s : before_) before.push_back(s.h);
    b_.set("input", ops::reshape(ops::mm(inputs, weights_.w_ih), IntVec(input_.sizes())));
    b_.set("weight0", ops::mm(ops::t(inputs), x));
    b_.set("weight1", ops::mm(ops::t(hidden), in_order(before, false)));
    if (b_.flag("has_biases")) {
      b_.set("weight2", ops::sum(inputs, IntList{0}));
      b_.set("weight3", ops::sum(hidden, IntList{0}));
    }
    b_.set("hx_", state_.h);
    if (mode_ == Mode::Lstm) b_.set("cx_", state_.c);
  }

  Backward& b_;
  const Mode mode_;
  const Tensor input_;
  rnn::Weights weights_;
  const State initial_;
  std::vector<Tensor> order_;
  std::vector<State> before_;
  std::vector<rnn::Step> steps_;
  State state_;
  std::vector<Tensor> input_gates_, hidden_gates_;  // the last step's first
};

void layer_gradient(Backward& b) {
  const Tensor workspace = b.result(3);
  if (thread_state.grad_enabled || workspace.numel() == 0) return GradientByParts(b).run();
  const bool lstm = b.integer("mode") == static_cast<int64_t>(Mode::Lstm),
             biases = b.flag("has_biases");
  const bool mask[] = {b.needs("input"),
                       b.needs("weight0"),
                       b.needs("weight1"),
                       biases && b.needs("weight2"),
                       biases && b.needs("weight3"),
                       b.needs("hx_"),
                       lstm && b.needs("cx_")};
  auto [input, w_ih, w_hh, b_ih, b_hh, hx, cx] = ops::_rnn_layer_backward(
      b["input"], b["weight0"], b["weight1"], b["hx_"], b["cx_"], b.grad(0), b.grad(1), b.grad(2),
      b.flag("reverse"), b.ints("batch_sizes"), b.integer("mode"), workspace, mask);
  b.set("input", input);
  b.set("weight0", w_ih);
  b.set("weight1", w_hh);
  b.set("weight2", b_ih);
  b.set("weight3", b_hh);
  b.set("hx_", hx);
  if (lstm) b.set("cx_", cx);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(mkldnn_rnn_layer){
    .schema =
        "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor "
        "weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int "
        "hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool "
        "train) -> (Tensor, Tensor, Tensor, Tensor)",
    .doc =
        "One direction of a recurrent layer over (steps, batch, inputs), or packed rows: outputs, "
        "last states, workspace.",
    .forms = function | out,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_layer>,
    .cpu = cpu::rnn_layer_kernel,
    .derivatives = {vjp(
        names("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"), layer_gradient,
        saves("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_", "result3"))},
    .not_differentiable = names("result3"),
    .hole = "vmap: samples are done one by one",
};
OP(_rnn_layer_backward){
    .schema =
        "_rnn_layer_backward(Tensor input, Tensor weight0, Tensor weight1, Tensor hx_, Tensor cx_, "
        "Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int[] "
        "batch_sizes, int mode, Tensor workspace, bool[7] output_mask) -> (Tensor, Tensor, Tensor, "
        "Tensor, Tensor, Tensor, Tensor)",
    .doc = "Gradients of mkldnn_rnn_layer by input, weights, biases and initial states.",
    .forms = hidden,
    .meta = typed_meta<meta_backward>,
    .cpu = cpu::rnn_layer_backward_kernel,
    .hole = "the layer's rule is made of other operators where it is differentiated again",
};
