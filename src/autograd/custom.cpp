#include "autograd/custom.h"

#include <cxxabi.h>

#include <algorithm>

#include "autograd/node_watch.h"
#include "dispatch/mutations.h"
#include "ops/create/creation.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

bool contains(const std::vector<Tensor>& list, const Tensor& t) {
  return std::ranges::any_of(list, [&](const Tensor& o) { return o.is_same(t); });
}

// A view of an input, which gets the operation's node as its grad_fn.
Tensor view_of_input(const Tensor& t, ViewKind kind) {
  const GradMode off(false);
  Tensor v = ops::view(t, t.sizes());
  if (is_view(v)) v->autograd->view_kind = kind;
  return v;
}

class Attaching {
 public:
  Attaching(const Ref<Node>& node, const CustomResults& r,
            const std::function<void(const char*)>& warn)
      : node_(node), r_(r), warn_(warn) {}

  Tensor attach(const Tensor& t) {
    if (!t.defined()) return placeholder(t);
    const bool changed = contains(r_.dirty, t), input = contains(r_.inputs, t);
    const bool differentiable = node_ && is_differentiable(t.dtype()) && !contains(r_.constant, t);
    if (changed) {
      t.get()->bump_version();
      note_mutation(*t.get(), nullptr);
    }
    if (!differentiable) return placeholder(input && !changed ? detached_view(t) : t);
    if (changed) return attach_changed(t, input);
    if (input) return with_history(view_of_input(t, ViewKind::Custom));
    if (is_view(t)) t->autograd->view_kind = several() ? ViewKind::MultiOutput : ViewKind::Custom;
    return with_history(t);
  }

 private:
  bool several() const {
    return std::ranges::count_if(r_.outputs, [](const Tensor& t) { return t.defined(); }) > 1;
  }
  Tensor detached_view(const Tensor& t) const {
    return requires_grad(t) ? detached(t) : view_of_input(t, ViewKind::Default);
  }
  Tensor placeholder(const Tensor& t) {
    if (node_)
      node_->outputs.push_back(t.defined() ? OutputMeta{IntVec(t.sizes()), t.dtype(), t.device()}
                                           : OutputMeta());
    return t;
  }
  Tensor with_history(const Tensor& t) {
    set_history(t, node_);
    return t;
  }
  Tensor attach_changed(const Tensor& t, bool input) {
    if (!input && warn_) warn_("mark_dirty(): a tensor among those marked is no input");
    check(!(t->autograd && t->autograd->requires_grad && is_leaf(t)),
          "a leaf Variable that requires grad has been used in an in-place operation.");
    check(!(is_view(t) && several()),
          "a Function that changes a view in place must return that one tensor alone; clone() the "
          "view "
          "first, or split the Function in two");
    {
      const GradMode on(true);
      check_inplace(t, true);
    }
    rebase_history(t, node_);
    return t;
  }

  const Ref<Node>& node_;
  const CustomResults& r_;
  const std::function<void(const char*)>& warn_;
};

}  // namespace

std::vector<Tensor> attach_results(const Ref<Node>& node, const CustomResults& results,
                                   const std::function<void(const char*)>& warn) {
  for (const Tensor& t : results.dirty)
    check(contains(results.outputs, t),
          "mark_dirty(): inputs that are changed in place must be among the outputs");
  std::vector<Tensor> made;
  Attaching attaching(node, results, warn);
  for (const Tensor& t : results.outputs) made.push_back(attaching.attach(t));
  return made;
}

std::string type_text(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string full = text ? text : type.name();
  std::free(text);
  const size_t colon = full.rfind("::");
  return colon == std::string::npos ? full : full.substr(colon + 2);
}

// Unpacks copies, since another thread may release the node meanwhile.
std::vector<Tensor> FunctionContext::saved() const {
  node_->lock.lock();
  const bool released = released_;
  const std::vector<SavedTensor> kept = saved_;
  node_->lock.unlock();
  check(!released,
        "Trying to backward through the graph a second time: its saved tensors are gone; keep them "
        "with "
        "retain_graph=True");
  std::vector<Tensor> list;
  for (const SavedTensor& t : kept)
    list.push_back(t.defined() ? t.unpack(Ref<Node>::share(node_), *node_) : Tensor());
  return list;
}

FunctionNode::FunctionNode(std::string name, Backward backward)
    : name_(std::move(name)), backward_(backward) {
  context.node_ = this;
}

bool FunctionNode::begin(std::vector<Tensor> inputs) {
  bool any = false;
  for (const Tensor& t : inputs) {
    const bool needs = t.defined() && requires_grad(t);
    context.needs_.push_back(needs);
    any |= needs;
  }
  context.results_.inputs = std::move(inputs);
  const bool recording = any && thread_state.grad_enabled;
  if (!recording) return false;
  for (const Tensor& t : context.results_.inputs)
    next.push_back(t.defined() ? gradient_edge(t) : Edge());
  return true;
}

std::vector<Tensor> FunctionNode::end(std::vector<Tensor> results, bool recording) {
  const auto self = Ref<Node>::share(this);
  CustomResults& r = context.results_;
  r.outputs = std::move(results);
  const std::vector<Tensor> made = attach_results(recording ? self : Ref<Node>(), r);
  if (recording)
    for (const Tensor& t : context.to_save_) {
      const auto at = std::ranges::find_if(
          r.outputs, [&](const Tensor& o) { return t.defined() && o.is_same(t); });
      const bool output = at != r.outputs.end();
      const Tensor kept = output ? made[static_cast<size_t>(at - r.outputs.begin())] : t;
      context.saved_.push_back(kept.defined() ? SavedTensor(kept, output) : SavedTensor());
    }
  if (recording) node_complete(self);
  // Keeps only the saved tensors after the call.
  context.to_save_.clear();
  r = {};
  return made;
}

Gradients FunctionNode::apply(Gradients grads) {
  grads.resize(outputs.size());
  if (context.materialize_)
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined() && outputs[i].dtype != DType::Undefined)
        grads[i] = ops::zeros(outputs[i].sizes, outputs[i].dtype, std::nullopt, outputs[i].device);
  Gradients out = backward_(context, grads);
  check(out.size() >= next.size(), "function ", name_,
        " returned an incorrect number of gradients (expected ", next.size(), ", got ", out.size(),
        ")");
  for (size_t i = 0; i < next.size(); ++i)
    if (!next[i]) out[i].reset();
  return out;
}

void FunctionNode::release_saved() {
  std::vector<SavedTensor> freed;  // destroyed after unlocking, since that may run other code
  const std::lock_guard guard(lock);
  if (context.saved_.empty()) return;
  freed.swap(context.saved_);
  context.released_ = true;
}

}  // namespace facula
