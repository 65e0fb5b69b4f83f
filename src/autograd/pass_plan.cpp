#include "autograd/pass_plan.h"

#include <utility>

namespace facula {

PassPlan::PassPlan(std::span<const Edge> roots, std::span<const Edge> inputs, bool accumulate) {
  discover(roots);
  if (inputs.empty()) {
    for (uint32_t i = 0; i < table.size(); ++i) table[i].needed = true;
  } else {
    mark_inputs(inputs, accumulate);
    count_gradients();
  }
}

bool PassPlan::will_run(const Node& n) const {
  const uint32_t at = table.find(&n);
  return at != NodeTable::none && table[at].needed;
}

// The loop visits nodes that it adds to the table itself.
void PassPlan::discover(std::span<const Edge> roots) {
  for (const Edge& r : roots) table.insert(r.node.get());
  for (uint32_t i = 0; i < table.size(); ++i) {
    const Node* n = table[i].node;
    for (const Edge& e : n->next)
      if (e) ++table[table.insert(e.node.get()).first].dependencies;
  }
}

void PassPlan::mark_inputs(std::span<const Edge> inputs, bool accumulate) {
  std::vector<uint32_t> ends;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t at = table.find(inputs[i].node.get());
    if (at == NodeTable::none) continue;
    ends.push_back(at);
    if (accumulate) {
      table[at].needed = true;
    } else {
      table[at].captured = true;
      captures.push_back({at, inputs[i].output_nr, i});
    }
  }
  mark_paths(std::move(ends));
}

// Marks the nodes from which `ends` can be reached, by following edges backward from them.
void PassPlan::mark_paths(std::vector<uint32_t> ends) {
  // A linked list of predecessors for each node: its first link, and links {predecessor, next
  // link}.
  std::vector<uint32_t> first(table.size(), NodeTable::none);
  std::vector<std::pair<uint32_t, uint32_t>> links;
  for (uint32_t i = 0; i < table.size(); ++i)
    for (const Edge& e : table[i].node->next) {
      if (!e) continue;
      uint32_t& head = first[table.find(e.node.get())];
      links.emplace_back(i, std::exchange(head, static_cast<uint32_t>(links.size())));
    }
  std::vector<bool> seen(table.size());
  while (!ends.empty()) {
    const uint32_t at = ends.back();
    ends.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    for (uint32_t l = first[at]; l != NodeTable::none; l = links[l].second) {
      table[links[l].first].needed = true;
      ends.push_back(links[l].first);
    }
  }
}

// Counts the gradients that each node waits for: only nodes that run send any.
void PassPlan::count_gradients() {
  for (uint32_t i = 0; i < table.size(); ++i) table[i].dependencies = 0;
  for (uint32_t i = 0; i < table.size(); ++i) {
    if (!table[i].needed) continue;
    for (const Edge& e : table[i].node->next)
      if (e) ++table[table.find(e.node.get())].dependencies;
  }
}

}  // namespace facula
