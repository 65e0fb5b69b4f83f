// What a backward pass is going to do, found out before it begins.
#pragma once
#include <span>
#include <vector>

#include "autograd/node_table.h"

namespace facula {

// The nodes that the roots reach, how many gradients each of them waits for, and which of them run.
class PassPlan {
 public:
  // A gradient that grad() hands out: that of an output of a node, which need not run for it.
  struct Capture {
    uint32_t node, output_nr;
    size_t index;  // among the inputs
  };

  // Without inputs all nodes run. With inputs those run that lie on a path to one of them; and the
  // inputs themselves where gradients are accumulated into them, while otherwise they are captured.
  PassPlan(std::span<const Edge> roots, std::span<const Edge> inputs, bool accumulate);

  NodeTable table;
  std::vector<Capture> captures;
  bool will_run(const Node& n) const;

 private:
  void discover(std::span<const Edge> roots);
  void mark_inputs(std::span<const Edge> inputs, bool accumulate);
  void mark_paths(std::vector<uint32_t> ends);
  void count_gradients();
};

}  // namespace facula
