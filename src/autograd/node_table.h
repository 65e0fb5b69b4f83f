// The state of each node in a backward pass: a hash table over a vector in order of discovery.
#pragma once
#include <vector>

#include "autograd/node.h"

namespace facula {

class NodeTable {
 public:
  struct State {
    Node* node;
    Gradients grads = {};
    int32_t dependencies = 0;
    bool needed = false;    // the pass runs it
    bool captured = false;  // grad() returns its gradient
    bool queued = false;
  };
  static constexpr uint32_t none = UINT32_MAX;

  NodeTable() : slots_(64, none) {}
  size_t size() const { return states_.size(); }
  State& operator[](uint32_t i) { return states_[i]; }
  const State& operator[](uint32_t i) const { return states_[i]; }

  uint32_t find(const Node* n) const { return slots_[slot_of(n)]; }
  // Returns the node's index, and whether it is new.
  std::pair<uint32_t, bool> insert(Node* n) {
    uint32_t& slot = slots_[slot_of(n)];
    if (slot != none) return {slot, false};
    const auto index = static_cast<uint32_t>(states_.size());
    slot = index;
    states_.push_back({n});
    if (2 * states_.size() > slots_.size()) grow();
    return {index, true};
  }

 private:
  size_t slot_of(const Node* n) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(n) >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
    while (slots_[at] != none && states_[slots_[at]].node != n) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(2 * slots_.size(), none);
    for (uint32_t i = 0; i < states_.size(); ++i) slots_[slot_of(states_[i].node)] = i;
  }

  std::vector<State> states_;
  std::vector<uint32_t> slots_;
};

}  // namespace facula
