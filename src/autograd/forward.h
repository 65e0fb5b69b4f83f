// Forward mode: tangents travel with tensors, a call at a time.
//
// The autograd layer computes the tangents of a call's results after the backend ran, in this
// order: a view of the tangent for views; the record's own rule; the operator itself for linear
// records; the sum of local derivatives times tangents; else the transpose of the record's vjp
// rows, which are linear in the cotangent: with g = vjp(u), the derivative of <g, t> by u is the
// tangent.
#pragma once
#include <vector>

#include "autograd/node.h"
#include "dispatch/call.h"

namespace facula {

// Whether tangents are followed on this thread now.
inline bool forward_mode_on() {
  return forward_levels.load(std::memory_order_relaxed) > 0 && thread_state.forward_grad_enabled &&
         !thread_state.computing_tangent && !thread_state.inference;
}

// The tangent, also one that a view takes from its base; undefined where there is none.
Tensor tangent_of(const Tensor& t);
bool has_tangent(const Tensor& t);
// Gives a tensor its tangent, laid out as the tensor is; one that it has already is overwritten.
void set_tangent(const Tensor& t, Tensor tangent);

// Another header over the same values has the same tangent.
void copy_tangent(const Tensor& from, const Tensor& to);

// --- the user's one level

// RuntimeError when a level is on already.
void enter_dual_level();
// Ends the level: tangents of it are gone.
void exit_dual_level();
bool dual_level_on();
// A view of the primal that has a tangent. RuntimeError for tangents of another shape, and where
// one of the two has a tangent already.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// The tensor without its tangent, and the tangent (undefined: none).
std::pair<Tensor, Tensor> unpack_dual(const Tensor& t);

// --- what the autograd layer does for one call

class ForwardPass {
 public:
  using Tensors = std::vector<Tensor>;
  // Before the backend runs: keeps what tangents will need. Does nothing where no argument has one.
  explicit ForwardPass(const OpCall& c) {
    if (forward_mode_on()) begin(c);
  }
  // Afterwards: gives results their tangents.
  void finish(OpCall& c) {
    if (duals_) compute(c);
  }

 private:
  void begin(const OpCall& c);
  void compute(OpCall& c);
  Tensors tangents_of_results(const OpCall& c);
  Tensor owned(const Tensor& tangent) const;
  Tensors by_same_operator(const OpCall& c);
  Tensors by_rule(const OpCall& c);
  Tensors by_local_derivatives(const OpCall& c);
  Tensors by_transpose(const OpCall& c);

  enum class Way : uint8_t { None, SameOperator, Rule, Local, Transpose };
  Way way_of(const OpCall& c) const;

  Way way_ = Way::None;
  uint32_t duals_ = 0;              // arguments with tangents, a bit each
  const Operator* base_ = nullptr;  // the form of the operator that changes nothing
  std::vector<Tensors> tangents_;   // of each argument: one, or one for each element of a list
  SavedCall args_;                  // as they were, for a rule
  Ref<OpNode> node_;
};

}  // namespace facula
