// What one step does to the gates of one sequence, forward and backward, for each kind of
// recurrent cell. Rows are of the hidden size h; a cell keeps `width` of them for each step.
#pragma once
#include "kernels/cpu/simd/isa.h"
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
  A *state, *cell;                // in: gradients from later steps; out: gradients for earlier ones
  A *input_gates, *hidden_gates;  // of the two products; one where the cell does not part them
};

template <class A>
[[gnu::noinline]] void add_rows(A* __restrict to, const A* from, int64_t n) {
  if (!from) return;
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}
template <class A>
[[gnu::noinline]] void sigmoid_rows(A* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = scalar::math::sigmoid(x[i]);
}
template <class A>
[[gnu::noinline]] void tanh_rows(A* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = scalar::math::tanh_by_parts(x[i]);
}

// Loops over all of a row stand in functions of their own: parameters alone are known not to
// overlap, and only then loops are vectorised.

// Gates input, forget, cell, output; then the new cell and state.
template <class A>
struct LstmCell {
  static constexpr int64_t gates = 4, width = 6;
  static constexpr bool parts_products = false;

  static void forward(const CellStep<A>& s) {
    const int64_t h = s.h;
    A* kept = s.kept;
    add_rows(kept, s.input_bias, gates * h);
    add_rows(kept, s.hidden_bias, gates * h);
    sigmoid_rows(kept, 2 * h);
    tanh_rows(kept + 2 * h, h);
    sigmoid_rows(kept + 3 * h, h);
    renew_cell(h, kept, kept + h, kept + 2 * h, s.cell, kept + 4 * h);
    renew_state(h, kept + 3 * h, s.cell, s.state, kept + 5 * h);
  }

  static void backward(const CellGradient<A>& s) {
    const int64_t h = s.h;
    const A* kept = s.kept;
    A* to = s.input_gates;
    from_state(h, kept + 3 * h, kept + 4 * h, s.state, s.grad, s.cell, to + 3 * h);
    from_cell(h, kept, kept + h, kept + 2 * h, s.cell_before, s.cell, to, to + h, to + 2 * h);
  }

 private:
  [[gnu::noinline]] static void renew_cell(int64_t h, const A* in, const A* forget, const A* fresh,
                                           A* __restrict cell, A* __restrict kept) {
    for (int64_t i = 0; i < h; ++i) kept[i] = cell[i] = forget[i] * cell[i] + in[i] * fresh[i];
  }
  [[gnu::noinline]] static void renew_state(int64_t h, const A* open, const A* cell,
                                            A* __restrict state, A* __restrict kept) {
    for (int64_t i = 0; i < h; ++i)
      kept[i] = state[i] = open[i] * scalar::math::tanh_by_parts(cell[i]);
  }
  // The output gate's gradient, and what the cell gets by way of the state.
  [[gnu::noinline]] static void from_state(int64_t h, const A* open, const A* now, const A* state,
                                           const A* grad, A* __restrict cell, A* __restrict to) {
    for (int64_t i = 0; i < h; ++i) {
      const A squashed = scalar::math::tanh_by_parts(now[i]), g = state[i] + grad[i], o = open[i];
      cell[i] += g * o * (A(1) - squashed * squashed);
      to[i] = g * squashed * o * (A(1) - o);
    }
  }
  [[gnu::noinline]] static void from_cell(int64_t h, const A* in, const A* forget, const A* fresh,
                                          const A* before, A* __restrict cell, A* __restrict to_in,
                                          A* __restrict to_forget, A* __restrict to_fresh) {
    for (int64_t i = 0; i < h; ++i) {
      const A c = cell[i], a = in[i], f = forget[i], n = fresh[i];
      to_in[i] = c * n * a * (A(1) - a);
      to_forget[i] = c * before[i] * f * (A(1) - f);
      to_fresh[i] = c * a * (A(1) - n * n);
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
    A* kept = s.kept;
    add_rows(kept, s.input_bias, gates * h);
    add_rows(kept, s.hidden_bias, 2 * h);
    add_rows(kept, s.hidden, 2 * h);
    sigmoid_rows(kept, 2 * h);
    for (int64_t i = 0; i < h; ++i) kept[3 * h + i] = s.hidden[2 * h + i];
    if (s.hidden_bias) add_rows(kept + 3 * h, s.hidden_bias + 2 * h, h);
    renew_gate(h, kept, kept + 3 * h, kept + 2 * h);
    renew_state(h, kept + h, kept + 2 * h, s.state, kept + 4 * h);
  }

  static void backward(const CellGradient<A>& s) {
    const int64_t h = s.h;
    const A* kept = s.kept;
    A *to = s.input_gates, *hidden = s.hidden_gates;
    from_state(h, kept + h, kept + 2 * h, s.before, s.grad, s.state, to + h, to + 2 * h);
    from_gate(h, kept, kept + 3 * h, to + 2 * h, to, hidden + 2 * h);
    for (int64_t i = 0; i < 2 * h; ++i) hidden[i] = to[i];
  }

 private:
  [[gnu::noinline]] static void renew_gate(int64_t h, const A* reset, const A* recalled,
                                           A* __restrict fresh) {
    for (int64_t i = 0; i < h; ++i)
      fresh[i] = scalar::math::tanh_by_parts(fresh[i] + reset[i] * recalled[i]);
  }
  [[gnu::noinline]] static void renew_state(int64_t h, const A* update, const A* fresh,
                                            A* __restrict state, A* __restrict kept) {
    for (int64_t i = 0; i < h; ++i)
      kept[i] = state[i] = fresh[i] + update[i] * (state[i] - fresh[i]);
  }
  // The gradients of update and new gate; what the state before gets past the gates.
  [[gnu::noinline]] static void from_state(int64_t h, const A* update, const A* fresh,
                                           const A* before, const A* grad, A* __restrict state,
                                           A* __restrict to_update, A* __restrict to_fresh) {
    for (int64_t i = 0; i < h; ++i) {
      const A g = state[i] + grad[i], z = update[i], n = fresh[i];
      to_update[i] = g * (before[i] - n) * z * (A(1) - z);
      to_fresh[i] = g * (A(1) - z) * (A(1) - n * n);
      state[i] = g * z;
    }
  }
  [[gnu::noinline]] static void from_gate(int64_t h, const A* reset, const A* recalled,
                                          const A* inner, A* __restrict to_reset,
                                          A* __restrict to_recalled) {
    for (int64_t i = 0; i < h; ++i) {
      const A r = reset[i], g = inner[i];
      to_reset[i] = g * recalled[i] * r * (A(1) - r);
      to_recalled[i] = g * r;
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
    from_state(s.h, s.kept, s.grad, s.state, s.input_gates);
  }

 private:
  [[gnu::noinline]] static void from_state(int64_t h, const A* y, const A* grad, const A* state,
                                           A* __restrict to) {
    for (int64_t i = 0; i < h; ++i) {
      const A g = state[i] + grad[i];
      to[i] = Relu ? (y[i] > A(0) ? g : A(0)) : g * (A(1) - y[i] * y[i]);
    }
  }
};

}  // namespace facula::cpu::FACULA_ISA
