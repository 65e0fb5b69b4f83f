// What one step does to the gates of one sequence, forward and backward, for each kind of
// recurrent cell. Rows are of the hidden size h; a cell keeps `width` of them for each step.
#pragma once
#include "kernels/cpu/isa.h"
#include "kernels/scalar/math.h"

namespace facula::cpu::FACULA_ISA {

// A step of one sequence on its way forward. `kept` holds the product with the input and becomes
// what backward needs; `hidden` is the product with the state where a cell wants it apart.
template <class A>
struct CellStep {
  int64_t h;
  A* kept;
  const A* hidden;
  const A *input_bias, *hidden_bias;  // null: none
  A *cell, *state;                    // both updated; cell is of an LSTM alone
};

// The same backward: gradients of the step's gates from those of its result.
template <class A>
struct CellGradient {
  int64_t h;
  const A* kept;
  const A *before, *cell_before;  // the state and the cell that the step started from
  const A* grad;                  // of the output at this step
  A *state, *cell;                // gradients that come from later steps; go on to earlier ones
  A *input_gates, *hidden_gates;  // of the two products; one where the cell does not part them
};

template <class A>
void add_rows(A* __restrict to, const A* from, int64_t n) {
  if (!from) return;
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}
template <class A>
void sigmoid_rows(A* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = scalar::math::sigmoid(x[i]);
}
template <class A>
void tanh_rows(A* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = scalar::math::tanh(x[i]);
}

// Gates input, forget, cell, output; then the new cell and state.
template <class A>
struct LstmCell {
  static constexpr int64_t gates = 4, width = 6;
  static constexpr bool parts_products = false;

  static void forward(const CellStep<A>& s) {
    const int64_t h = s.h;
    add_rows(s.kept, s.input_bias, gates * h);
    add_rows(s.kept, s.hidden_bias, gates * h);
    sigmoid_rows(s.kept, 2 * h);
    tanh_rows(s.kept + 2 * h, h);
    sigmoid_rows(s.kept + 3 * h, h);
    const A *in = s.kept, *forget = in + h, *candidate = in + 2 * h, *open = in + 3 * h;
    A* __restrict kept_cell = s.kept + 4 * h, * __restrict kept_state = s.kept + 5 * h, * __restrict cell = s.cell, * __restrict state = s.state;
    for (int64_t i = 0; i < h; ++i) {
      const A c = forget[i] * cell[i] + in[i] * candidate[i];
      kept_cell[i] = cell[i] = c;
      kept_state[i] = state[i] = open[i] * scalar::math::tanh(c);
    }
  }

  static void backward(const CellGradient<A>& s) {
    const int64_t h = s.h;
    const A *in = s.kept, *forget = in + h, *candidate = in + 2 * h, *open = in + 3 * h,
            *now = in + 4 * h, *before = s.cell_before, *grad = s.grad, *state = s.state;
    A* __restrict cell = s.cell, * __restrict to = s.input_gates;
    for (int64_t i = 0; i < h; ++i) {
      const A squashed = scalar::math::tanh(now[i]), g = state[i] + grad[i];
      const A o = open[i], c = cell[i] + g * o * (A(1) - squashed * squashed);
      const A a = in[i], f = forget[i], n = candidate[i];
      to[i] = c * n * a * (A(1) - a);
      to[h + i] = c * before[i] * f * (A(1) - f);
      to[2 * h + i] = c * a * (A(1) - n * n);
      to[3 * h + i] = g * squashed * o * (A(1) - o);
      cell[i] = c * f;
    }
  }
};

// Gates reset, update, new; the state's part of the new one, before the reset; the new state.
template <class A>
struct GruCell {
  static constexpr int64_t gates = 3, width = 5;
  static constexpr bool parts_products = true;

  static void forward(const CellStep<A>& s) {
    const int64_t h = s.h;
    const A* hidden = s.hidden;
    A* __restrict reset = s.kept, * __restrict update = reset + h, * __restrict fresh = reset + 2 * h, * __restrict recalled = reset + 3 * h, * __restrict state = s.state;
    add_rows(reset, s.input_bias, gates * h);
    add_rows(reset, s.hidden_bias, 2 * h);
    add_rows(reset, hidden, 2 * h);
    sigmoid_rows(reset, 2 * h);
    for (int64_t i = 0; i < h; ++i) recalled[i] = hidden[2 * h + i];
    if (s.hidden_bias) add_rows(recalled, s.hidden_bias + 2 * h, h);
    for (int64_t i = 0; i < h; ++i)
      fresh[i] = scalar::math::tanh(fresh[i] + reset[i] * recalled[i]);
    A* __restrict kept_state = s.kept + 4 * h;
    for (int64_t i = 0; i < h; ++i)
      kept_state[i] = state[i] = fresh[i] + update[i] * (state[i] - fresh[i]);
  }

  static void backward(const CellGradient<A>& s) {
    const int64_t h = s.h;
    const A *reset = s.kept, *update = reset + h, *fresh = reset + 2 * h, *recalled = reset + 3 * h,
            *before = s.before, *grad = s.grad;
    A* __restrict state = s.state, * __restrict to = s.input_gates, * __restrict hidden = s.hidden_gates;
    for (int64_t i = 0; i < h; ++i) {
      const A g = state[i] + grad[i], r = reset[i], z = update[i], n = fresh[i];
      const A inner = g * (A(1) - z) * (A(1) - n * n);
      const A of_reset = inner * recalled[i] * r * (A(1) - r);
      const A of_update = g * (before[i] - n) * z * (A(1) - z);
      to[i] = hidden[i] = of_reset;
      to[h + i] = hidden[h + i] = of_update;
      to[2 * h + i] = inner;
      hidden[2 * h + i] = inner * r;
      state[i] = g * z;
    }
  }
};

// One gate, through tanh or relu, which is the new state.
template <class A, bool Relu>
struct PlainCell {
  static constexpr int64_t gates = 1, width = 1;
  static constexpr bool parts_products = false;

  static void forward(const CellStep<A>& s) {
    add_rows(s.kept, s.input_bias, s.h);
    add_rows(s.kept, s.hidden_bias, s.h);
    if constexpr (Relu)
      for (int64_t i = 0; i < s.h; ++i) s.kept[i] = s.kept[i] < A(0) ? A(0) : s.kept[i];
    else
      tanh_rows(s.kept, s.h);
    for (int64_t i = 0; i < s.h; ++i) s.state[i] = s.kept[i];
  }

  static void backward(const CellGradient<A>& s) {
    const A *y = s.kept, *grad = s.grad, *state = s.state;
    A* __restrict to = s.input_gates;
    for (int64_t i = 0; i < s.h; ++i) {
      const A g = state[i] + grad[i];
      to[i] = Relu ? (y[i] > A(0) ? g : A(0)) : g * (A(1) - y[i] * y[i]);
    }
  }
};

}  // namespace facula::cpu::FACULA_ISA
