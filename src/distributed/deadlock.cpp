#include "distributed/deadlock.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

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

}  // namespace

// A search in breadth that meets each wait once: many ranks may wait for many.
std::vector<const Wait*> find_circle(const std::vector<Wait>& waits, int32_t thread) {
  constexpr int unseen = -2, first = -1;
  if (thread == 0) return {};
  std::unordered_multimap<int32_t, int> of_thread;
  for (size_t i = 0; i < waits.size(); ++i) of_thread.emplace(waits[i].thread, static_cast<int>(i));
  std::vector<int> before(waits.size(), unseen), found;  // what led to a wait; those to go on from
  const auto meet = [&](int32_t t, int from) {
    const auto [begin, end] = of_thread.equal_range(t);
    for (auto it = begin; it != end; ++it) {
      if (before[static_cast<size_t>(it->second)] != unseen) continue;
      before[static_cast<size_t>(it->second)] = from;
      found.push_back(it->second);
    }
  };
  meet(thread, first);
  for (size_t next = 0; next < found.size(); ++next) {
    const int at = found[next];
    for (const int32_t awaited : waits[static_cast<size_t>(at)].awaited) {
      if (awaited != thread) {
        if (awaited != 0) meet(awaited, at);
        continue;
      }
      std::vector<const Wait*> circle;
      for (int i = at; i != first; i = before[static_cast<size_t>(i)])
        circle.push_back(&waits[static_cast<size_t>(i)]);
      std::ranges::reverse(circle);
      return circle;
    }
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
  std::set<uint64_t> seen;  // ranks that are threads see the same groups
  for (Arena* arena : arenas().all)
    if (seen.insert(arena->key()).second) arena->add_waits(waits);
  auto circle = find_circle(waits, thread);
  // All who find it tell it in one order, as several may break its groups at once.
  const auto thread_of = [](const Wait* w) { return w->thread; };
  std::ranges::rotate(circle, std::ranges::min_element(circle, {}, thread_of));
  uint64_t stamp = circle.size();
  for (const Wait* wait : circle)
    stamp = (stamp ^ wait->stamp) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(wait->thread);
  if (circle.empty() || stamp != stamp_) {
    stamp_ = stamp;
    since_ms_ = waited_ms;
    return;
  }
  if (waited_ms - since_ms_ < still_ms) return;
  std::string text = "ranks wait for each other:";
  for (const Wait* wait : circle) text += concat("\n  ", wait->group->text_of_wait(*wait));
  for (const Wait* wait : circle) wait->group->put_error(text);
}

}  // namespace facula::distributed
