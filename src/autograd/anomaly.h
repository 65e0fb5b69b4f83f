// Anomaly mode: nodes remember where they were made, and gradients are searched for NaN.
#pragma once
#include <atomic>
#include <string>

namespace facula {

struct Node;

// Both are read on every node; set_anomaly writes them.
extern constinit std::atomic<bool> anomaly_on, anomaly_checks_nan;
inline bool anomaly_enabled() { return anomaly_on.load(std::memory_order_relaxed); }
void set_anomaly(bool on, bool check_nan);

// What the language above does about a node; each may be null.
struct AnomalyHooks {
  // A node is being made: keep the traceback, and the node whose backward makes it (or null).
  void (*made)(Node& n, Node* during) = nullptr;
  // The node failed: say where it was made.
  void (*failed)(Node& n) = nullptr;
  // The source line where the node was made, or an empty text.
  std::string (*line)(const Node& n) = nullptr;
  // The source line that runs now.
  std::string (*current_line)() = nullptr;
};
extern constinit std::atomic<const AnomalyHooks*> anomaly_hooks;

void note_made(Node& n);
void note_failed(Node& n);
std::string forward_line(const Node& n);

// The node whose backward runs on this thread, or null.
Node* current_node();

}  // namespace facula
