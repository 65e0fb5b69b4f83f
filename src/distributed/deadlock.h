// Ranks of this machine that wait for each other in a circle: in a collective for one that waits
// for a message, or in two groups for each other. None of them will ever come.
//
// Threads are what waits: a rank calls from one, mostly, and one that waits calls nothing else.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace facula::distributed {

class Arena;

// A thread, in any process, that waits for others.
struct Wait {
  int32_t thread = 0;
  std::vector<int32_t> awaited;  // the threads that are to call something; 0 where nobody knows
  uint64_t stamp = 0;            // differs as soon as something has happened
  Arena* group = nullptr;
  int rank = 0;             // of the group
  bool is_message = false;  // or a collective
};

// Looks for a circle that one wait is in. A circle counts when nothing has moved in it for a
// second.
class CircleWatch {
 public:
  // Called several times a second; `waited_ms` is for how long `thread` has waited. Breaks all
  // groups of a circle, with a line for each wait.
  void look(int32_t thread, int64_t waited_ms);

 private:
  uint64_t stamp_ = 0;
  int64_t since_ms_ = 0, looked_ms_ = 0;
};

// The waits of a circle that `thread` is in, if there is one, beginning with its own.
std::vector<const Wait*> find_circle(const std::vector<Wait>& waits, int32_t thread);

// The groups of this process, whose ranks are looked at.
void note_arena(Arena* arena);
void forget_arena(Arena* arena);

}  // namespace facula::distributed
