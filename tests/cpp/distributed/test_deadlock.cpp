// Circles of waits.
#include <gtest/gtest.h>

#include "distributed/deadlock.h"

namespace facula::distributed {
namespace {

std::vector<int32_t> threads_of(const std::vector<const Wait*>& circle) {
  std::vector<int32_t> threads;
  for (const Wait* w : circle) threads.push_back(w->thread);
  return threads;
}

std::vector<Wait> waits_of(const std::vector<std::pair<int32_t, std::vector<int32_t>>>& edges) {
  std::vector<Wait> waits;
  for (const auto& [thread, awaited] : edges) {
    Wait& w = waits.emplace_back();
    w.thread = thread;
    w.awaited = awaited;
  }
  return waits;
}

using Threads = std::vector<int32_t>;

TEST(Deadlock, FindsTheShortestCircleOfAThread) {
  const auto waits = waits_of({{1, {2, 3}}, {2, {4}}, {3, {1}}, {4, {1}}, {5, {1}}});
  EXPECT_EQ(threads_of(find_circle(waits, 1)), (Threads{1, 3}));
  EXPECT_EQ(threads_of(find_circle(waits, 2)), (Threads{2, 4, 1}));
  EXPECT_TRUE(find_circle(waits, 5).empty());
  EXPECT_TRUE(find_circle(waits, 9).empty());
}

TEST(Deadlock, AThreadMayWaitInTwoGroupsAndForUnknownOnes) {
  const auto waits = waits_of({{1, {0}}, {1, {2}}, {2, {0, 1}}});
  EXPECT_EQ(threads_of(find_circle(waits, 1)), (Threads{1, 2}));
  EXPECT_TRUE(find_circle(waits, 0).empty());
}

TEST(Deadlock, ManyThatWaitForManyAreSearchedOnce) {
  std::vector<std::pair<int32_t, std::vector<int32_t>>> edges{{1, {}}};
  for (int32_t i = 2; i <= 200; ++i) {
    edges[0].second.push_back(i);
    auto& others = edges.emplace_back(i, std::vector<int32_t>{}).second;
    for (int32_t j = 2; j <= 200; ++j)
      if (j != i) others.push_back(j);
  }
  EXPECT_TRUE(find_circle(waits_of(edges), 1).empty());
}

}  // namespace
}  // namespace facula::distributed
