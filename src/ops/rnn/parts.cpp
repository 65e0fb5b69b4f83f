#include "ops/rnn/parts.h"

#include <algorithm>

#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/trigonometric.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/cat.h"
#include "ops/shape/split.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula::rnn {
namespace {

// The functions of gates keep their dtype.
void check_gates(const Tensor& gates) {
  check(is_differentiable(gates.dtype()),
        "recurrent cells: gates must be floating point or complex; got ", name(gates.dtype()));
}

Step lstm_step(const Tensor& input_gates, const State& before, const Weights& w) {
  const Tensor gates = ops::add(ops::linear(before.h, w.w_hh, w.b_hh), input_gates);
  check_gates(gates);
  const std::vector<Tensor> parts = ops::unsafe_chunk(gates, 4, 1);
  const Tensor in = ops::sigmoid(parts[0]), forget = ops::sigmoid(parts[1]),
               fresh = ops::tanh(parts[2]), open = ops::sigmoid(parts[3]);
  const Tensor c = ops::add(ops::mul(forget, before.c), ops::mul(in, fresh));
  Tensor h = ops::mul(open, ops::tanh(c));
  if (w.w_hr.defined()) h = ops::matmul(h, ops::t(w.w_hr));
  return {{in, forget, fresh, open}, {h, c}};
}

Step gru_step(const Tensor& input_gates, const State& before, const Weights& w) {
  check_gates(input_gates);
  const std::vector<Tensor> x = ops::unsafe_chunk(input_gates, 3, 1);
  const std::vector<Tensor> h = ops::unsafe_chunk(ops::linear(before.h, w.w_hh, w.b_hh), 3, 1);
  const Tensor reset = ops::sigmoid(ops::add(h[0], x[0])),
               update = ops::sigmoid(ops::add(h[1], x[1]));
  const Tensor fresh = ops::tanh(ops::add(x[2], ops::mul(h[2], reset)));
  const Tensor after = ops::add(ops::mul(ops::sub(before.h, fresh), update), fresh);
  return {{reset, update, fresh, h[2]}, {after, {}}};
}

Step plain_step(bool relu, const Tensor& input_gates, const State& before, const Weights& w) {
  const Tensor gates = ops::add(ops::linear(before.h, w.w_hh, w.b_hh), input_gates);
  const Tensor h = relu ? ops::relu(gates) : ops::tanh(gates);
  return {{h}, {h, {}}};
}

Tensor rows(const Tensor& t, int64_t begin, int64_t end) {
  return t.defined() ? ops::narrow(t, 0, begin, end - begin) : t;
}

// Appends the states of sequences that have ended to those of the sequences that go on.
State joined(const State& last, std::vector<State> ended) {
  if (ended.empty()) return last;
  ended.push_back(last);
  std::reverse(ended.begin(), ended.end());
  std::vector<Tensor> h, c;
  for (const State& s : ended) {
    h.push_back(s.h);
    if (s.c.defined()) c.push_back(s.c);
  }
  return {ops::cat(h, 0), c.empty() ? Tensor() : ops::cat(c, 0)};
}

}  // namespace

Tensor input_gates(const Tensor& input, const Weights& w) {
  return ops::linear(input, w.w_ih, w.b_ih);
}

Step step(Mode mode, const Tensor& input_gates, const State& before, const Weights& w) {
  if (mode == Mode::Lstm) return lstm_step(input_gates, before, w);
  if (mode == Mode::Gru) return gru_step(input_gates, before, w);
  return plain_step(mode == Mode::Relu, input_gates, before, w);
}

State head(const State& state, int64_t count) {
  if (state.h.size(0) == count) return state;
  return {rows(state.h, 0, count), rows(state.c, 0, count)};
}

State fitted(const State& state, const State& initial, int64_t count) {
  const int64_t have = state.h.size(0);
  if (count <= have) return head(state, count);
  const State more = {rows(initial.h, have, count), rows(initial.c, have, count)};
  const auto both = [](const Tensor& a, const Tensor& b) {
    return a.defined() ? ops::cat(std::vector<Tensor>{a, b}, 0) : a;
  };
  return {both(state.h, more.h), both(state.c, more.c)};
}

std::vector<Tensor> steps_of(const Tensor& all, IntSpan batch_sizes) {
  return batch_sizes.empty() ? ops::unbind(all, 0)
                             : ops::split_with_sizes(all, IntVec(batch_sizes), 0);
}

LayerResult layer(Mode mode, const Tensor& input, IntSpan batch_sizes, const State& initial,
                  const Weights& w, bool reverse) {
  std::vector<Tensor> steps = steps_of(input_gates(input, w), batch_sizes);
  if (reverse) std::reverse(steps.begin(), steps.end());
  std::vector<Tensor> outputs;
  std::vector<State> ended;
  State state = head(initial, steps.front().size(0));
  for (const Tensor& gates : steps) {
    const int64_t count = gates.size(0), have = state.h.size(0);
    if (count < have) ended.push_back({rows(state.h, count, have), rows(state.c, count, have)});
    state = step(mode, gates, fitted(state, initial, count), w).after;
    outputs.push_back(state.h);
  }
  if (reverse) std::reverse(outputs.begin(), outputs.end());
  const Tensor output = batch_sizes.empty() ? ops::stack(outputs, 0) : ops::cat(outputs, 0);
  return {output, joined(state, std::move(ended))};
}

}  // namespace facula::rnn
