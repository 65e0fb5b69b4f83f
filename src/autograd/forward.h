// Forward-mode differentiation: each call computes the tangents of its results.
//
// The autograd layer does this after the backend ran, by the first way that applies: for views, the
// same view of the tangent; the record's forward rule; for linear operators, the operator applied
// to the tangents; the sum of local derivatives times tangents; and last, the vjp rules. Those are
// linear in the cotangent u, so the derivative of <vjp(u), t> with respect to u is the tangent for
// the input tangent t.
#pragma once
#include <vector>

#include "autograd/node.h"
#include "dispatch/call.h"

namespace facula {

// Whether calls on this thread compute tangents now.
inline bool forward_mode_on() {
  return forward_levels.load(std::memory_order_relaxed) > 0 && thread_state.forward_grad_enabled &&
         !thread_state.computing_tangent && !thread_state.inference;
}

// The tensor's tangent, which a view may take from its base; undefined if there is none.
Tensor tangent_of(const Tensor& t);
bool has_tangent(const Tensor& t);
// Sets the tangent of a tensor, in the tensor's own layout; replaces an existing one.
void set_tangent(const Tensor& t, Tensor tangent);

// Gives `to`, which shares its values with `from`, the same tangent.
void copy_tangent(const Tensor& from, const Tensor& to);

// --- dual levels, of which there is at most one at a time

// RuntimeError if a level is active already.
void enter_dual_level();
// Ends the level and drops its tangents.
void exit_dual_level();
bool dual_level_on();
// A view of the primal with the given tangent. RuntimeError if the tangent has another shape, or if
// either tensor already has a tangent.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// A view of the tensor without a tangent, and the tangent, which may be undefined.
std::pair<Tensor, Tensor> unpack_dual(const Tensor& t);

// --- forward mode for one call of the autograd layer

class ForwardPass {
 public:
  using Tensors = std::vector<Tensor>;
  // Before the backend runs: saves what the tangents will need. Does nothing if no argument has
  // one.
  explicit ForwardPass(const OpCall& c) {
    if (forward_mode_on()) begin(c);
  }
  // After the backend ran: computes the tangents of the results.
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
  uint32_t duals_ = 0;              // one bit for each argument with a tangent
  const Operator* base_ = nullptr;  // the variant of the operator that writes nothing
  std::vector<Tensors> tangents_;   // of each argument: one, or one for each element of a list
  SavedCall args_;                  // the arguments before the call, for a rule
  Ref<OpNode> node_;
};

}  // namespace facula
