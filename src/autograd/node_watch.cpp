#include "autograd/node_watch.h"

#include <utility>
#include <vector>

namespace facula {
namespace {

thread_local constinit bool watching = false;

class Watching {
 public:
  Watching() { watching = true; }
  ~Watching() { watching = false; }
  Watching(const Watching&) = delete;
};

}  // namespace

void push_node_watcher(NodeWatcher* w) { w->outer = std::exchange(thread_state.node_watchers, w); }

NodeWatcher* pop_node_watcher() {
  NodeWatcher* top = thread_state.node_watchers;
  check(top != nullptr, "no node creation hook is on the stack");
  thread_state.node_watchers = top->outer;
  return top;
}

void show_to_watchers(const Ref<Node>& node) {
  check(!watching,
        "a node creation hook must not make nodes of its own, only look at the one it "
        "is given; it made a ",
        node->name());
  std::vector<NodeWatcher*> inward;
  for (NodeWatcher* w = thread_state.node_watchers; w; w = w->outer) inward.push_back(w);
  const Watching scope;
  for (; !inward.empty(); inward.pop_back()) inward.back()->see(node);
}

}  // namespace facula
