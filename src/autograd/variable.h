// Tensors as autograd sees them.
#pragma once
#include <mutex>
#include <optional>

#include "autograd/node.h"

namespace facula {

// Whether gradients flow to the tensor: it is a leaf that asks for one, a result, or a view of
// such.
bool requires_grad(const Tensor& t);
// RuntimeError for dtypes without gradients and for non-leaves that would stop requiring them.
void set_requires_grad(const Tensor& t, bool on);
bool is_leaf(const Tensor& t);
// The node that made the tensor, or null. A view whose base was changed gets a new one here.
// RuntimeError where such a view cannot have one.
Ref<Node> grad_fn(const Tensor& t);
// Gives a tensor that nobody else has yet the history that ends at the edge.
Tensor with_edge(Tensor fresh, const Edge& edge);
// Where a gradient of the tensor goes: its grad_fn, or a leaf's accumulation node.
Edge gradient_edge(const Tensor& t);
Ref<Node> grad_accumulator(const Tensor& t);
void retain_grad(const Tensor& t);

// .grad, which a pass on another thread may change at any time.
Tensor read_grad(const Tensor& t);
void write_grad(const Tensor& t, Tensor grad);
// Sets it where it is still `before`; whether it was.
bool replace_grad(const Tensor& t, const Tensor& before, const Tensor& after);
// Adds to the .grad of tensors that keep the gradients of the node's outputs.
void keep_gradients(Node& n, const Gradients& grads);

// The dtype that a gradient of the tensor is cast to; nullopt where it keeps the one it has.
std::optional<DType> grad_dtype(const Tensor& t);
// RuntimeError for tensors with a history, and where .grad has another dtype.
void set_grad_dtype(const Tensor& t, std::optional<DType> dtype);

// Hooks on the gradient of a tensor (an undefined result leaves it as it is), and on a leaf after
// its .grad has grown. `object` is the Python object that the hook owns one reference to; a leaf's
// hook on its gradient must not own any. RuntimeError for tensors that require no grad.
uint64_t add_hook(const Tensor& t, GradientHook hook, void* object = nullptr);
uint64_t add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook,
                                  void* object = nullptr);
void remove_hook(const Tensor& t, uint64_t id);
// A copy of hook i of a leaf; nullopt where there are not so many.
template <class Hook>
std::optional<Hook> leaf_hook(AutogradMeta& m, std::vector<Hook> LeafHooks::* list, size_t i) {
  LeafHooks* hooks = m.leaf_hooks.load(std::memory_order_acquire);
  if (!hooks) return std::nullopt;
  const std::lock_guard guard(m.lock);
  if (i >= (hooks->*list).size()) return std::nullopt;
  return (hooks->*list)[i];
}

// The tensor shares memory but no history (and is not a view for autograd).
Tensor detached(const Tensor& t);
// Takes the tensor's history away. RuntimeError for views.
void detach_in_place(const Tensor& t);

// Rules for changing a tensor in place while a graph is recorded: RuntimeError with PyTorch's text.
void check_inplace(const Tensor& t, bool recording);
// The history of a tensor that was just changed in place by `node`.
void rebase_history(const Tensor& t, const Ref<Node>& node);

}  // namespace facula
