#include "autograd/variable.h"

#include <atomic>

#include "autograd/copy_slices.h"
#include "autograd/forward.h"

namespace facula {
namespace {

std::atomic<uint64_t> next_hook{1};

const char* kind_of(ViewKind k) {
  return k == ViewKind::MultiOutput || k == ViewKind::MultiOutputNoGrad
             ? "is an output of a function that returns multiple views"
             : "was created in no_grad mode";
}

}  // namespace

uint64_t new_hook_id() { return next_hook.fetch_add(1); }

// A view whose base was given a history since the view was made.
static bool stale_view(const Tensor& t) {
  const AutogradMeta& m = *t->autograd;
  return m.base.defined() && m.view_version != t->current_version() && requires_grad(m.base);
}

bool requires_grad(const Tensor& t) {
  const AutogradMeta* m = t->autograd;
  return m && (m->requires_grad || m->grad_fn || stale_view(t));
}

void set_requires_grad(const Tensor& t, bool on) {
  if (on) {
    check(is_differentiable(t.dtype()),
          "only Tensors of floating point and complex dtype can require gradients");
    check(!t->inference || thread_state.inference,
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  } else if (!t->autograd) {
    return;
  }
  if (!is_leaf(t)) {
    check(on,
          "you can only change requires_grad flags of leaf variables. If you want to use a computed "
          "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    return;
  }
  autograd_meta(t).requires_grad = on;
  if (on)
    t->layers |= Layer::Autograd;
  else if (!is_view(t) && !has_tangent(t))
    t->layers -= Layer::Autograd;
}

bool is_leaf(const Tensor& t) { return !t->autograd || !grad_fn(t); }

Ref<Node> grad_fn(const Tensor& t) {
  AutogradMeta* m = t->autograd;
  if (!m) return {};
  if (stale_view(t)) {
    auto node = Ref<Node>::take(new ViewOfBase(m->base, t));
    m->grad_fn = Ref<GraphNode>::share(node.get());
    m->output_nr = 0;
    m->view_version = t->current_version();
    t->layers |= Layer::Autograd;
  }
  return Ref<Node>::share(static_cast<Node*>(m->grad_fn.get()));
}

Ref<Node> grad_accumulator(const Tensor& t) {
  AutogradMeta& m = autograd_meta(t);
  GraphNode* there = m.accumulator.load(std::memory_order_acquire);
  if (there && there->try_retain()) return Ref<Node>::take(static_cast<Node*>(there));
  auto* made = new AccumulateGrad(t);
  m.accumulator.store(made, std::memory_order_release);
  return Ref<Node>::take(made);
}

Edge gradient_edge(const Tensor& t) {
  if (Ref<Node> n = grad_fn(t)) return {n, t->autograd->output_nr};
  if (!requires_grad(t)) return {};
  return {grad_accumulator(t), 0};
}

void set_history(const Tensor& t, const Ref<Node>& node) {
  AutogradMeta& m = autograd_meta(t);
  m.output_nr = static_cast<uint32_t>(node->outputs.size());
  m.grad_fn = Ref<GraphNode>::share(node.get());
  m.view_version = t->current_version();
  node->outputs.push_back({IntVec(t.sizes()), t.dtype(), t.device()});
  t->layers |= Layer::Autograd;
}

void retain_grad(const Tensor& t) {
  check(requires_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf(t) || t->autograd->retains_grad) return;
  t->autograd->retains_grad = true;
  grad_fn(t)->retained.emplace_back(t->autograd->output_nr, t.get());
}

uint64_t add_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) {
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  const uint64_t id = new_hook_id();
  if (Ref<Node> n = grad_fn(t))
    n->tensor_hooks.push_back({id, t->autograd->output_nr, std::move(hook)});
  else
    t->autograd->hooks.push_back({id, std::move(hook)});
  return id;
}

uint64_t add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook) {
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  check(is_leaf(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  const uint64_t id = new_hook_id();
  t->autograd->post_accumulate_hooks.push_back({id, std::move(hook)});
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  if (!t->autograd) return;
  auto same = [id](const auto& h) { return h.id == id; };
  std::erase_if(t->autograd->hooks, same);
  std::erase_if(t->autograd->post_accumulate_hooks, same);
  if (Ref<Node> n = grad_fn(t)) std::erase_if(n->tensor_hooks, same);
}

Tensor detached(const Tensor& t) {
  Tensor d = alias_tensor(t);
  d->shared_version = t->share_version();
  d->wrapped_number = t->wrapped_number;
  d->inference = t->inference;
  copy_tangent(t, d);
  return d;
}

void check_inplace(const Tensor& t, bool recording) {
  if (!recording || !t->autograd) return;
  const AutogradMeta& m = *t->autograd;
  if (m.base.defined()) {
    const bool multi = m.view_kind == ViewKind::MultiOutput || m.view_kind == ViewKind::MultiOutputNoGrad;
    check(!(multi && (requires_grad(t) || requires_grad(m.base))), "Output ", m.output_nr,
          " of a view operation ", kind_of(m.view_kind),
          " and is being modified inplace. This view is the output of a function that returns multiple "
          "views. Such functions do not allow the output views to be modified inplace. You should replace "
          "the inplace operation by an out-of-place one.");
    check(!(m.view_kind == ViewKind::NoGrad && requires_grad(m.base)),
          "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given "
          "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
          "moving both the view and the inplace either both inside the no_grad block (if you don't want the "
          "inplace to be tracked) or both outside (if you want the inplace to be tracked).");
    check(!(is_leaf(m.base) && requires_grad(m.base)),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  check(!(requires_grad(t) && is_leaf(t)),
        "a leaf Variable that requires grad is being used in an in-place operation.");
}

void rebase_history(const Tensor& t, const Ref<Node>& node) {
  if (!is_view(t)) return set_history(t, node);
  const Tensor base = t->autograd->base;
  node->outputs.push_back({IntVec(t.sizes()), t.dtype(), t.device()});
  set_history(base, Ref<Node>::take(new CopySlices(base, t, node)));
  t->autograd->view_version = t->current_version() - 1;  // stale: takes its history from the base
  t->layers |= Layer::Autograd;
  grad_fn(t);
}

}  // namespace facula
