// The engine, which runs backward passes. docs/internals/autograd.md explains it as a whole.
//
// A backward pass is a GraphTask (graph_task.h), which follows a plan (pass_plan.h) and runs nodes
// (run_node.h). CPU nodes run on the calling thread; nodes of other devices run on one worker
// thread per device (workers.h), with the calling thread's state (inherited_state.h). A pass that
// starts inside another, from a hook or a Function, runs on the same thread, or on a new one if the
// stack has become deep.
#pragma once
#include "autograd/variable.h"

namespace facula {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // for grad(): inputs outside of the graph get undefined gradients
  bool accumulate = true;     // whether gradients are added to .grad; false for grad()
};

// Computes gradients of `roots`, each with its cotangent, with respect to `inputs`, or to all
// leaves if no inputs are given. Returns one gradient per input if `accumulate` is off.
// RuntimeError for a root or input that does not require grad, and for an input that the graph does
// not reach.
std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                 std::span<const Tensor> inputs, const BackwardOptions& options);
// The same for edges of the graph.
std::vector<Tensor> run_backward(const std::vector<Edge>& roots, std::span<const Tensor> cotangents,
                                 const std::vector<Edge>& inputs, const BackwardOptions& options);

// Adds two gradients, in place if nobody else holds `into` and no graph is recorded.
Tensor accumulate(Tensor into, const Tensor& more);
// Returns a leaf's new .grad. If there is none yet, that is `fresh`, or a copy of it if others hold
// it or its layout does not fit. Otherwise `fresh` is added, in place if no graph is recorded.
Tensor accumulate_leaf(const Tensor& grad, Tensor&& fresh, const Tensor& leaf);
// Whether a new .grad must have the strides of its leaf (the default), or may keep those of a dense
// gradient. For this thread.
bool grad_layout_enforced();
void set_grad_layout_enforced(bool on);

// --- the backward pass that is running on this thread

// A number that identifies the pass; -1 outside of any.
int64_t current_pass();
bool current_pass_keeps_graph();
// Whether it was given `inputs`.
bool current_pass_is_partial();
// Whether the node belongs to the nodes that the pass runs. RuntimeError outside of a pass.
bool pass_will_run(Node& n);
// For each edge of the node that is running: the gradient that its receiver has accumulated so far,
// which the node may add to in place. Undefined if there is none yet or if others hold it.
// RuntimeError if the node is not running, and in a pass that records a graph or checks for NaN.
std::vector<Tensor> gradient_buffers(Node& running);
// Runs `callback` at the end of the pass. RuntimeError outside of a pass.
void queue_callback(std::function<void()> callback);
// Whether passes may use several threads (the default) or only the calling one.
bool multithreading_enabled();
void set_multithreading(bool on);

// Functions of the binding that prepare the engine's threads for Python, and carry Python errors
// from one thread to another.
struct ThreadHooks {
  void* (*enter)();  // called on a new thread; its result is passed to leave
  void (*leave)(void* token);
  void* (*take_error)();  // removes and returns this thread's error, or returns null
  void (*set_error)(void* error);
  void (*drop_error)(void* error);  // frees an error that is not reported
};
extern constinit std::atomic<const ThreadHooks*> thread_hooks;

}  // namespace facula
