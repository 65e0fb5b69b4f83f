#include "distributed/deadlock.h"

#include <algorithm>
#include <mutex>

#include "distributed/arena.h"

namespace facula::distributed {
namespace {

constexpr int64_t begin_ms = 300, between_ms = 100, still_ms = 1000;

struct Arenas {
  std::mutex mutex;
  std::vector<Arena*> all;
};
Arenas& arenas() {
  static auto* found = new Arenas;  // stays for groups that end with the process
  return *found;
}

// Goes on from the last wait of the path; true when the path leads back to its beginning.
bool follow(const std::vector<Wait>& waits, std::vector<const Wait*>& path) {
  for (const int32_t thread : path.back()->awaited) {
    if (thread == 0) continue;
    if (thread == path.front()->thread) return true;
    for (const Wait& next : waits) {
      const bool known = std::any_of(path.begin(), path.end(),
                                     [&](const Wait* w) { return w->thread == next.thread; });
      if (next.thread != thread || known) continue;
      path.push_back(&next);
      if (follow(waits, path)) return true;
      path.pop_back();
    }
  }
  return false;
}

}  // namespace

std::vector<const Wait*> find_circle(const std::vector<Wait>& waits, int32_t thread) {
  for (const Wait& wait : waits) {
    if (wait.thread != thread || thread == 0) continue;
    std::vector<const Wait*> path{&wait};
    if (follow(waits, path)) return path;
  }
  return {};
}

void note_arena(Arena* arena) {
  const std::lock_guard lock(arenas().mutex);
  arenas().all.push_back(arena);
}

void forget_arena(Arena* arena) {
  const std::lock_guard lock(arenas().mutex);
  std::erase(arenas().all, arena);
}

void CircleWatch::look(int32_t thread, int64_t waited_ms) {
  if (waited_ms < begin_ms || waited_ms - looked_ms_ < between_ms) return;
  looked_ms_ = waited_ms;
  const std::lock_guard lock(arenas().mutex);
  std::vector<Wait> waits;
  for (Arena* arena : arenas().all) arena->add_waits(waits);
  const auto circle = find_circle(waits, thread);
  uint64_t stamp = circle.size();
  std::string text = "ranks wait for each other:";
  for (const Wait* wait : circle) {
    stamp = (stamp ^ wait->stamp) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(wait->thread);
    text += concat("\n  ", wait->text);
  }
  if (circle.empty() || stamp != stamp_) {
    stamp_ = stamp;
    since_ms_ = waited_ms;
    return;
  }
  if (waited_ms - since_ms_ < still_ms) return;
  for (const Wait* wait : circle) wait->group->put_error(text);
}

}  // namespace facula::distributed
