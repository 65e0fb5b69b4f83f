// The engine: runs a graph backward. This is its door; docs/internals/autograd.md tells the whole.
//
// A backward pass is a GraphTask (graph_task.h), which follows a plan (pass_plan.h) and runs nodes
// (run_node.h). Nodes of the CPU run on the thread that asked; nodes of other devices run on one
// worker per device (workers.h), in the state of the thread that asked (inherited_state.h). A pass
// that starts inside another (from a hook or a Function) runs on the same thread, or on a fresh one
// where the stack has become deep.
#pragma once
#include "autograd/variable.h"

namespace facula {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // grad(): undefined for inputs outside of the graph
  bool accumulate = true;     // into leaves; false for grad()
};

// Gradients of `roots` (each with its cotangent) flow to leaves, or with `inputs` given only to
// those: the result has one gradient per input when accumulate is off. Raises RuntimeError for a
// root or input that requires no grad, and for an input that the graph does not reach.
std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                 std::span<const Tensor> inputs, const BackwardOptions& options);
// The same for edges of the graph.
std::vector<Tensor> run_backward(const std::vector<Edge>& roots, std::span<const Tensor> cotangents,
                                 const std::vector<Edge>& inputs, const BackwardOptions& options);

// Adds two gradients; in place where `into` belongs to nobody else and no graph is recorded.
Tensor accumulate(Tensor into, const Tensor& more);
// A leaf's new .grad. Where there is none yet, `fresh` is taken, and becomes it where nobody else
// holds it and its layout fits; else it is added, in place where no graph is recorded.
Tensor accumulate_leaf(const Tensor& grad, Tensor&& fresh, const Tensor& leaf);
// Whether this thread's new .grads must have their leaf's layout (the default), or may keep that of
// the gradient where it is dense.
bool grad_layout_enforced();
void set_grad_layout_enforced(bool on);

// --- the pass that runs on this thread

// A number of its own for each pass; -1 outside of any.
int64_t current_pass();
bool current_pass_keeps_graph();
// Whether it computes gradients of some inputs alone.
bool current_pass_is_partial();
// Whether the pass runs, or would run, this node. Raises RuntimeError outside of a pass.
bool pass_will_run(Node& n);
// For each edge of the node that runs now, the sum of gradients that its receiver has so far, to be
// added to in place while the node runs; undefined where there is none yet, or where others hold
// it. RuntimeError where no such node runs, or where the pass records a graph or looks for errors.
std::vector<Tensor> gradient_buffers(Node& running);
// Runs `callback` when the pass has finished. Raises RuntimeError outside of a pass.
void queue_callback(std::function<void()> callback);
// Passes may use several threads (the default) or only the one that asks.
bool multithreading_enabled();
void set_multithreading(bool on);

// How the language above lives on threads that the engine makes, and moves its errors between them.
struct ThreadHooks {
  void* (*enter)();  // on a new thread; the result goes to leave
  void (*leave)(void* token);
  void* (*take_error)();  // the error that is set on this thread, or null
  void (*set_error)(void* error);
  void (*drop_error)(void* error);  // lets go of one that nobody is told of
};
extern constinit std::atomic<const ThreadHooks*> thread_hooks;

}  // namespace facula
