// Anomaly mode: nodes record where they were made, and gradients are checked for NaN.
#pragma once
#include <atomic>
#include <string>

namespace facula {

struct Node;

// Whether anomaly mode is on, and whether it checks for NaN; written by set_anomaly.
extern constinit std::atomic<bool> anomaly_on, anomaly_checks_nan;
inline bool anomaly_enabled() { return anomaly_on.load(std::memory_order_relaxed); }
void set_anomaly(bool on, bool check_nan);

// Functions of the binding; each may be null.
struct AnomalyHooks {
  // Called for a new node, to keep the traceback. `during` is the node whose backward made it, or
  // null.
  void (*made)(Node& n, Node* during) = nullptr;
  // Called for a node that failed, to print where it was made.
  void (*failed)(Node& n) = nullptr;
  // The source line where the node was made, or an empty text.
  std::string (*line)(const Node& n) = nullptr;
  // The source line that is running.
  std::string (*current_line)() = nullptr;
};
extern constinit std::atomic<const AnomalyHooks*> anomaly_hooks;

void note_made(Node& n);
void note_failed(Node& n);
std::string forward_line(const Node& n);

// The node whose backward is running on this thread, or null.
Node* current_node();

}  // namespace facula
