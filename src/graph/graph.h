// The graph of a program: calls of operators in order, over numbered values.
#pragma once
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "dispatch/owned_value.h"

namespace facula::graph {

using ValueId = int;  // -1: None

using Constant = OwnedValue;  // what is no tensor: number, string, list of integers, ...

struct ValueRef {
  ValueId id;
};
using ValueRefs = std::vector<ValueId>;  // a list of tensors
using Argument = std::variant<Constant, ValueRef, ValueRefs>;
using Result = std::variant<ValueRef, ValueRefs>;

struct Node {
  const Operator* op;
  std::vector<Argument> args;  // all of the schema's
  std::vector<Result> results;
};

struct Graph {
  std::vector<ValueId> inputs;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
  std::map<ValueId, Tensor> constants;  // tensors that are neither inputs nor results
  ValueId next_id = 0;

  ValueId new_value() { return next_id++; }
  // One line for each node: "%3 = aten::add.Tensor(%1, %2, alpha=1)".
  std::string str() const;
  // Runs the nodes in order. RuntimeError where the number of inputs differs.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;
  // Removes nodes that nothing uses, unless they write, or draw random numbers.
  void eliminate_dead_code();
  // RuntimeError when a value is used before it is made, or made twice.
  void check_valid() const;
};

std::string str(const Node& n);

}  // namespace facula::graph
