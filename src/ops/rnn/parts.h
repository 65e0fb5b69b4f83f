// Recurrent layers made of other operators, step by step: what runs where the fused layer does not
// serve, and what the fused layer's second derivatives are made of.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "kernels/cpu/rnn/rnn.h"

namespace facula::rnn {

using Mode = cpu::RnnMode;

// Of one direction of one layer; biases and the projection may be undefined.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};
// The cell is an LSTM's alone.
struct State {
  Tensor h, c;
};
// What one step computes: its gates after their functions, and the state that comes of them.
struct Step {
  std::vector<Tensor> gates;
  State after;
};
struct LayerResult {
  Tensor output;
  State last;
};

// The products of the input (..., inputs) with its weights.
Tensor input_gates(const Tensor& input, const Weights& w);
// One step of the sequences (batch, gates) from a state (batch, h).
Step step(Mode mode, const Tensor& input_gates, const State& before, const Weights& w);

// The state that a step of `rows` sequences starts from: shorter sequences are dropped from the
// end, and longer ones come in with their initial state.
State fitted(const State& state, const State& initial, int64_t rows);
State head(const State& state, int64_t rows);

// Input (steps, batch, inputs), or the rows of all steps with their numbers.
std::vector<Tensor> steps_of(const Tensor& rows, IntSpan batch_sizes);
LayerResult layer(Mode mode, const Tensor& input, IntSpan batch_sizes, const State& initial,
                  const Weights& w, bool reverse);

// Lengths or batch sizes as a list. RuntimeError unless t is 1-D, int64 and on the CPU.
IntVec list_of(const Tensor& t, const char* op);
// RuntimeError unless the sizes are positive, do not grow, and there are rows enough.
void check_batch_sizes(IntSpan sizes, int64_t rows, const char* op);

}  // namespace facula::rnn
