// The autograd state of tensors: requires_grad, grad_fn, .grad, hooks and in-place changes.
#pragma once
#include <mutex>
#include <optional>

#include "autograd/node.h"

namespace facula {

// Whether gradients flow to the tensor: it is a leaf that requires grad, or has a grad_fn.
bool requires_grad(const Tensor& t);
// RuntimeError for dtypes without gradients, and for turning it off on a tensor that is no leaf.
void set_requires_grad(const Tensor& t, bool on);
bool is_leaf(const Tensor& t);
// The node that made the tensor, or null. A view whose base was changed gets a new node here, or
// RuntimeError if it cannot have one.
Ref<Node> grad_fn(const Tensor& t);
// Sets the grad_fn of a new tensor to the node of the edge.
Tensor with_edge(Tensor fresh, const Edge& edge);
// The edge for gradients of the tensor: to its grad_fn, or to a leaf's AccumulateGrad.
Edge gradient_edge(const Tensor& t);
Ref<Node> grad_accumulator(const Tensor& t);
void retain_grad(const Tensor& t);

// Read and write .grad, which a backward pass on another thread may change at any time.
Tensor read_grad(const Tensor& t);
void write_grad(const Tensor& t, Tensor grad);
// Sets .grad if it is still `before`; returns whether it was.
bool replace_grad(const Tensor& t, const Tensor& before, const Tensor& after);
// Stores gradients in the .grad of the node's outputs that have retain_grad().
void keep_gradients(Node& n, const Gradients& grads);

// The dtype that gradients of the tensor are cast to; nullopt if they are not cast.
std::optional<DType> grad_dtype(const Tensor& t);
// RuntimeError if the tensor has a grad_fn, or if .grad has another dtype.
void set_grad_dtype(const Tensor& t, std::optional<DType> dtype);

// add_hook: a hook on the gradient of a tensor; an undefined result leaves the gradient unchanged.
// add_post_accumulate_hook: a hook on a leaf, called after .grad was updated. `object` is the
// Python object that the hook owns a reference to; a gradient hook of a leaf must not own one.
// RuntimeError if the tensor does not require grad.
uint64_t add_hook(const Tensor& t, GradientHook hook, void* object = nullptr);
uint64_t add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook,
                                  void* object = nullptr);
void remove_hook(const Tensor& t, uint64_t id);
// A copy of hook i of a leaf; nullopt past the end.
template <class Hook>
std::optional<Hook> leaf_hook(AutogradMeta& m, std::vector<Hook> LeafHooks::* list, size_t i) {
  LeafHooks* hooks = m.leaf_hooks.load(std::memory_order_acquire);
  if (!hooks) return std::nullopt;
  const std::lock_guard guard(m.lock);
  if (i >= (hooks->*list).size()) return std::nullopt;
  return (hooks->*list)[i];
}

// A tensor over the same memory without a grad_fn, which autograd does not treat as a view.
Tensor detached(const Tensor& t);
// Removes the tensor's grad_fn. RuntimeError for views.
void detach_in_place(const Tensor& t);

// RuntimeError with PyTorch's text if the tensor may not be changed in place while a graph is
// recorded.
void check_inplace(const Tensor& t, bool recording);
// Sets the grad_fn of a tensor that `node` has just changed in place.
void rebase_history(const Tensor& t, const Ref<Node>& node);

}  // namespace facula
