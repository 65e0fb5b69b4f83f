// Callbacks for every node that a thread adds to a graph (node_creation_hook).
#pragma once
#include "autograd/node.h"
#include "dispatch/call.h"

namespace facula {

// A callback on a stack, whose top is in ThreadState, so that workers of the engine inherit it.
struct NodeWatcher {
  virtual ~NodeWatcher() = default;
  virtual void see(const Ref<Node>& node) = 0;

  NodeWatcher* outer = nullptr;
};

// The caller keeps the watcher alive until it is popped.
void push_node_watcher(NodeWatcher* w);
// Removes and returns the innermost one. RuntimeError if there is none.
NodeWatcher* pop_node_watcher();

void show_to_watchers(const Ref<Node>& node);
// Called for each node once its edges, outputs and saved tensors are set. Watchers run from the
// outermost to the innermost; RuntimeError if one of them makes a node itself.
inline void node_complete(const Ref<Node>& node) {
  if (thread_state.node_watchers) [[unlikely]]
    show_to_watchers(node);
}

}  // namespace facula
