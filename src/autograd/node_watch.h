// Functions that see every node that a thread adds to a graph, once the node is complete.
#pragma once
#include "autograd/node.h"
#include "dispatch/call.h"

namespace facula {

// One of a stack, whose top is in the thread's state: workers of the engine take it over.
struct NodeWatcher {
  virtual ~NodeWatcher() = default;
  virtual void see(const Ref<Node>& node) = 0;

  NodeWatcher* outer = nullptr;
};

// The owner keeps the watcher until it is popped.
void push_node_watcher(NodeWatcher* w);
// The innermost one, taken off. RuntimeError when there is none.
NodeWatcher* pop_node_watcher();

void show_to_watchers(const Ref<Node>& node);
// Called for each node with its edges, outputs and saved tensors in place. Watchers run from the
// outermost to the innermost; RuntimeError when one of them makes a node itself.
inline void node_complete(const Ref<Node>& node) {
  if (thread_state.node_watchers) [[unlikely]]
    show_to_watchers(node);
}

}  // namespace facula
