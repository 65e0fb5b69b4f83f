#include "autograd/layer.h"

#include <algorithm>

#include "autograd/forward.h"
#include "autograd/node_watch.h"
#include "autograd/variable.h"
#include "dispatch/mutations.h"

namespace facula {
namespace {

// The arguments that require grad, one bit for each.
uint32_t requiring(const OpCall& c) {
  uint32_t bits = 0;
  for (uint32_t left = c.info->tensor_args | c.info->list_args; left; left &= left - 1) {
    const int i = std::countr_zero(left);
    const Value& v = c.args[i];
    bool any = v.is_tensor() && requires_grad(v.as_tensor());
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors()) any |= t.defined() && requires_grad(t);
    if (any) bits |= 1u << i;
  }
  return bits;
}

uint32_t with_derivative(const OpInfo& info, uint32_t args) {
  uint32_t bits = 0;
  for (; args; args &= args - 1) {
    const int i = std::countr_zero(args);
    if (info.derivative_of[i] >= 0) bits |= 1u << i;
    check(info.derivative_of[i] != -2, info.schema.name, "(): argument '", info.schema.args[i].name,
          "' has no derivative and must not require grad");
  }
  return bits;
}

// The node of an operator without a derivative that was applied to tensors that require grad; it
// raises in backward.
struct NoDerivative final : Node {
  // It needs edges to its inputs, or the engine would not run it for gradients of those.
  explicit NoDerivative(const OpCall& c) : op_(c.info->schema.name) {
    auto link = [&](const Tensor& t) {
      if (t.defined() && requires_grad(t)) next.push_back(gradient_edge(t));
    };
    for (int i = 0; i < c.info->args; ++i) {
      const Value& v = c.args[i];
      if (v.is_tensor()) link(v.as_tensor());
      if (v.tag == Tag::TensorList) std::ranges::for_each(v.as_tensors(), link);
    }
  }
  Gradients apply(Gradients) override {
    throw Error(ErrorKind::Runtime, "derivative for ", op_, " is not implemented");
  }
  std::string name() const override { return "torch::autograd::NotImplemented"; }

 private:
  std::string op_;
};

template <class F>
void for_each_result(const OpCall& c, F&& f) {
  for (int k = 0; k < c.info->results; ++k) {
    Value& v = c.results[k];
    if (v.is_tensor()) f(v.as_tensor(), k);
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors())
        if (t.defined()) f(t, k);
  }
}

void check_mutated(const OpCall& c, bool recording) {
  for (uint32_t bits = c.info->mutated; bits; bits &= bits - 1) {
    const Value& v = c.args[std::countr_zero(bits)];
    if (v.is_tensor()) check_inplace(v.as_tensor(), recording);
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors())
        if (t.defined()) check_inplace(t, recording && requires_grad(t));
  }
}

void check_out(const OpCall& c, uint32_t needing) {
  if (c.op->variant != Variant::Out || !needing) return;
  // Operators without differentiable results, such as comparisons, are allowed.
  const bool follows = c.info->differentiable && c.info->differentiable_results;
  if (follows || (c.op->record->flags & factory)) refuse_out_gradient(c);
}

// Adds result k to the node's outputs. Every result must be added, also one that is undefined:
// rules refer to gradients by the number of the result.
void add_output(const OpCall& c, int k, const Tensor& t, const Ref<Node>& node) {
  if (!t.defined()) return void(node->outputs.push_back({}));
  const int from = c.info->alias_of[k];
  const bool changed = from >= 0 && (c.info->mutated >> from & 1);
  const bool differentiable =
      (c.info->differentiable_results >> k & 1) && is_differentiable(t.dtype());
  if (changed) return rebase_history(t, node);
  // An inference tensor here is a view of another one; it gets no grad_fn.
  if (differentiable && !t->inference) return set_history(t, node);
  node->outputs.emplace_back(t.sizes(), t.dtype(), t.device());
}

void set_histories(const OpCall& c, Ref<Node> node) {
  // The common case is one new result, which takes over this reference to the node.
  const bool fresh = c.info->results == 1 && c.info->alias_of[0] < 0 && c.results[0].is_tensor();
  if (fresh && (c.info->differentiable_results & 1) &&
      is_differentiable(c.results[0].tensor->dtype))
    return set_history(c.results[0].as_tensor(), std::move(node));
  for (int k = 0; k < c.info->results; ++k) {
    const Value& v = c.results[k];
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors()) add_output(c, k, t, node);
    else
      add_output(c, k, v.is_tensor() ? v.as_tensor() : Tensor(), node);
  }
}

// False for the node of an in-place change of a view: it is part of the base's CopySlices node.
bool is_in_graph(const OpCall& c, const Node& node) {
  bool any = false;
  for_each_result(
      c, [&](const Tensor& t, int) { any |= t->autograd && t->autograd->grad_fn.get() == &node; });
  return any;
}

void run_below(OpCall& c) {
  const BelowAutograd guard;
  redispatch(c, Layer::Autograd);
}

bool any_differentiable_result(const OpCall& c) {
  bool any = false;
  for_each_result(c, [&](const Tensor& t, int k) {
    any |= (c.info->differentiable_results >> k & 1) && is_differentiable(t.dtype());
  });
  return any;
}

}  // namespace

void autograd_layer(OpCall& c) {
  if (thread_state.inference) return run_below(c);
  const uint32_t needing = thread_state.grad_enabled ? requiring(c) : 0;
  // For example a view of a tensor without gradients, which has autograd state only for its base.
  if (!needing && !c.info->mutated && forward_levels.load(std::memory_order_relaxed) == 0)
    return run_below(c);
  // Operators that change only the storage, such as resize_, have rules of their own.
  const bool storage_only = (c.op->record->flags & no_version_bump) != 0;
  const bool tracked = c.info->differentiable || c.info->differentiable_results;
  if (c.info->mutated && !storage_only && tracked)
    check_mutated(c, needing != 0 && c.op->variant != Variant::Out);
  check_out(c, needing);
  const bool out = c.op->variant == Variant::Out;
  const uint32_t wanted = out ? 0 : with_derivative(*c.info, needing);
  ForwardPass forward(c);
  if (!wanted) {
    run_below(c);
    forward.finish(c);
    const bool replaces = !c.info->mutated || c.op->variant == Variant::Inplace;
    if (needing && !c.info->differentiable && replaces && any_differentiable_result(c)) {
      const auto none = Ref<Node>::take(new NoDerivative(c));
      set_histories(c, none);
      node_complete(none);
    }
    return;
  }
  auto node = Ref<OpNode>::take(new OpNode(c, wanted));
  run_below(c);
  const bool saves = node->saves_results(), needed = saves || thread_state.node_watchers;
  set_histories(c, Ref<Node>::take(needed ? Ref<OpNode>(node).leak() : node.leak()));
  forward.finish(c);
  if (saves) node->save_results(c);
  if (thread_state.node_watchers && is_in_graph(c, *node)) [[unlikely]]
    node_complete(Ref<Node>::share(node.get()));
}

}  // namespace facula
