#include "autograd/variable.h"

#include <atomic>
#include <memory>

#include "autograd/copy_slices.h"
#include "autograd/forward.h"
#include "autograd/node_watch.h"

namespace facula {
namespace {

std::atomic<uint64_t> next_hook{1};

// A view whose memory was changed after it got its history, and whose base has one.
bool stale_view(const Tensor& t) {
  const AutogradMeta& m = *t->autograd;
  return m.base.defined() && m.view_version != t->current_version() && requires_grad(m.base);
}

std::string name_of_operation(const std::string& node) {
  return node.substr(0, node.rfind("Backward"));
}

// What a view of a special kind is, for the error when it is changed.
const char* kind_of(ViewKind kind) {
  switch (kind) {
    case ViewKind::MultiOutput:
      return "one of several views that one function returned";
    case ViewKind::Custom:
      return "a view that a custom Function returned, whose backward the change would bypass";
    case ViewKind::Inference:
      return "a view made in inference mode, which has no history to change";
    default:
      return "a view made in no_grad mode, of which nobody knows whether the change is meant to be "
             "recorded";
  }
}

[[noreturn]] void refuse_change(const Tensor& t, bool indirect) {
  const AutogradMeta& m = *t->autograd;
  std::string what = "a tensor";
  if (m.grad_fn) {
    const auto& node = static_cast<const Node&>(*m.grad_fn);
    what = concat("Output ", m.output_nr, " of ", name_of_operation(node.name()));
  }
  throw Error(ErrorKind::Runtime, what, " is a view and ",
              indirect ? "its base or another view of it has been" : "is being",
              " modified inplace, which is forbidden: it is ", kind_of(m.view_kind),
              ". clone() it, or work out of place");
}

// The history of a stale view: the way from its base, taken again.
void renew_history(const Tensor& t) {
  AutogradMeta& m = *t->autograd;
  if (m.view_kind != ViewKind::Default) refuse_change(t, true);
  if (m.replay) {
    const GradMode on(true);
    const Tensor again = m.replay->apply(m.base);
    m.grad_fn = Ref<GraphNode>::share(grad_fn(again).get());
    m.output_nr = again->autograd->output_nr;
  } else {
    auto node = Ref<Node>::take(new ViewOfBase(m.base, t));
    m.grad_fn = Ref<GraphNode>::share(node.get());
    m.output_nr = 0;
    node_complete(node);
  }
  m.view_version = t->current_version();
  t->layers |= Layer::Autograd;
}

// A tensor whose .grad is kept has that done by the node of its present value.
void move_retained(const Tensor& t, const Ref<Node>& node) {
  AutogradMeta& m = *t->autograd;
  if (m.grad_fn) m.grad_fn->forget(t.get());
  node->retain_output(m.output_nr, t.get());
}

}  // namespace

uint64_t new_hook_id() { return next_hook.fetch_add(1); }

bool requires_grad(const Tensor& t) {
  const AutogradMeta* m = t->autograd;
  return m && (m->requires_grad || m->grad_fn || (m->base.defined() && requires_grad(m->base)));
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
          "you can only change requires_grad flags of leaf variables; detach() gives a tensor "
          "without "
          "history");
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
  if (stale_view(t)) renew_history(t);
  auto* node = static_cast<Node*>(m->grad_fn.get());
  // A leaf that was packed and unpacked again carries its accumulation node here.
  if (node && is_accumulator(*node)) return {};
  return Ref<Node>::share(node);
}

Ref<Node> grad_accumulator(const Tensor& t) {
  AutogradMeta& m = autograd_meta(t);
  GraphNode* there = m.accumulator.load(std::memory_order_acquire);
  if (!there) {
    auto made = std::make_unique<AccumulateGrad>(t);
    // Another thread may be faster.
    if (m.accumulator.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
      there = made.release();
  }
  return static_cast<AccumulateGrad*>(there)->refer();
}

Edge gradient_edge(const Tensor& t) {
  if (Ref<Node> n = grad_fn(t)) return {std::move(n), t->autograd->output_nr};
  if (!requires_grad(t)) return {};
  if (GraphNode* unpacked = t->autograd->grad_fn.get())
    return {Ref<Node>::share(static_cast<Node*>(unpacked)), 0};
  return {grad_accumulator(t), 0};
}

void set_history(const Tensor& t, Ref<Node> node) {
  AutogradMeta& m = autograd_meta(t);
  m.output_nr = static_cast<uint32_t>(node->outputs.size());
  if (m.retains_grad) [[unlikely]]
    move_retained(t, node);
  m.view_version = t->current_version();
  node->outputs.emplace_back(t.sizes(), t.dtype(), t.device());
  m.grad_fn = Ref<GraphNode>::take(node.leak());
  t->layers |= Layer::Autograd;
}

void retain_grad(const Tensor& t) {
  check(requires_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
  const Ref<Node> node = grad_fn(t);
  if (!node || t->autograd->retains_grad) return;
  t->autograd->retains_grad = true;
  node->retain_output(t->autograd->output_nr, t.get());
}

std::optional<DType> grad_dtype(const Tensor& t) {
  if (!t->autograd) return t.dtype();
  if (const Ref<Node> node = grad_fn(t)) {
    const OutputMeta& m = node->outputs[t->autograd->output_nr];
    if (m.any_dtype) return std::nullopt;
    return m.dtype;
  }
  const DType asked = t->autograd->grad_dtype;
  if (asked == any_grad_dtype) return std::nullopt;
  return asked == DType::Undefined ? t.dtype() : asked;
}

void set_grad_dtype(const Tensor& t, std::optional<DType> dtype) {
  check(is_leaf(t), "grad_dtype can only be set on leaf tensors.");
  AutogradMeta& m = autograd_meta(t);
  check(!dtype || !m.grad.defined() || m.grad.dtype() == *dtype,
        "Tensor.grad_dtype: expected the dtype of the gradient that is there, ",
        m.grad.defined() ? name(m.grad.dtype()) : "", ", or .grad to be None; got ",
        dtype ? name(*dtype) : "");
  m.grad_dtype = dtype.value_or(any_grad_dtype);
  if (GraphNode* there = m.accumulator.load(std::memory_order_acquire))
    static_cast<AccumulateGrad*>(there)->take_geometry();
}

uint64_t add_hook(const Tensor& t, GradientHook hook, void* object) {
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  if (Ref<Node> n = grad_fn(t))
    return n->add_tensor_hook(t->autograd->output_nr, std::move(hook), object);
  const uint64_t id = new_hook_id();
  autograd_meta(t).hooks.push_back({id, std::move(hook)});
  return id;
}

uint64_t add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook,
                                  void* object) {
  check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  check(is_leaf(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  const uint64_t id = new_hook_id();
  autograd_meta(t).post_accumulate_hooks.push_back({id, std::move(hook), object});
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  if (!t->autograd) return;
  auto same = [id](const auto& h) { return h.id == id; };
  std::erase_if(t->autograd->hooks, same);
  std::erase_if(t->autograd->post_accumulate_hooks, same);
  if (Ref<Node> n = grad_fn(t)) n->remove_hook(id);
}

Tensor detached(const Tensor& t) {
  Tensor d = alias_tensor(t);
  d->shared_version = t->share_version();
  d->wrapped_number = t->wrapped_number;
  d->inference = t->inference;
  copy_tangent(t, d);
  return d;
}

void detach_in_place(const Tensor& t) {
  check(!is_view(t), "detach_(): a view cannot be detached in place; use detach()");
  if (!t->autograd) return;
  AutogradMeta& m = *t->autograd;
  if (m.grad_fn) m.grad_fn->forget(t.get());
  m.retains_grad = m.requires_grad = false;
  m.output_nr = 0;
  const Ref<GraphNode> old = std::move(m.grad_fn);
  t->layers -= Layer::Autograd;
}

void check_inplace(const Tensor& t, bool recording) {
  if (!recording || !t->autograd || !thread_state.grad_enabled) return;
  const AutogradMeta& m = *t->autograd;
  if (m.base.defined()) {
    if (m.view_kind != ViewKind::Default) refuse_change(t, false);
    check(!(requires_grad(t) && is_leaf(m.base)),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  check(!(requires_grad(t) && is_leaf(t)),
        "a leaf Variable that requires grad is being used in an in-place operation.");
}

void rebase_history(const Tensor& t, const Ref<Node>& node) {
  if (!is_view(t)) return set_history(t, node);
  const Tensor base = t->autograd->base;
  node->outputs.push_back({IntVec(t.sizes()), t.dtype(), t.device()});
  const auto whole = Ref<Node>::take(new CopySlices(base, t, node));
  set_history(base, whole);
  t->autograd->view_version = t->current_version() - 1;  // stale: takes its history from the base
  t->layers |= Layer::Autograd;
  const Ref<Node> renewed = grad_fn(t);
  if (t->autograd->retains_grad) move_retained(t, renewed);
  node_complete(whole);
}

}  // namespace facula
