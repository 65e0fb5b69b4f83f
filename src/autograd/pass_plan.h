// The plan of a backward pass, made before it begins.
#pragma once
#include <span>
#include <vector>

#include "autograd/node_table.h"

namespace facula {

// The nodes that are reachable from the roots, how many gradients each waits for, and which run.
class PassPlan {
 public:
  // A gradient that grad() returns: that of one output of a node. The node itself need not run.
  struct Capture {
    uint32_t node, output_nr;
    size_t index;  // among the inputs
  };

  // Without inputs all nodes run. With inputs only nodes on a path to one of them run, and with
  // `accumulate` the inputs' own nodes too; without it, gradients of the inputs are captured.
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
