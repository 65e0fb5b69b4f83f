#include "core/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace facula {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool forks = false;  // the thread sanitizer cannot start threads after a fork
#else
constexpr bool forks = true;
#endif

class Threads : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = num_threads();
};

using Ranges = std::set<std::pair<int64_t, int64_t>>;

Ranges chunks_with(int threads, int64_t n, int64_t grain) {
  set_num_threads(threads);
  std::mutex mutex;
  Ranges seen;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(seen.insert({begin, end}).second) << begin;
  });
  return seen;
}

TEST_F(Threads, ChunksDependOnTheProblemOnly) {
  for (int64_t n : {1, 2, 7, 8, 9, 64, 1000}) {
    for (int64_t grain : {1, 3, 8, 999, 1000}) {
      Ranges expected;
      for (int64_t b = 0; b < n; b += grain) expected.insert({b, std::min(b + grain, n)});
      for (int threads : {1, 2, 3, 8}) EXPECT_EQ(chunks_with(threads, n, grain), expected);
    }
  }
}

TEST_F(Threads, EmptyAndExtremeSizes) {
  EXPECT_TRUE(chunks_with(2, 0, 1).empty());
  EXPECT_TRUE(chunks_with(2, -5, 1).empty());
  EXPECT_EQ(chunks_with(2, 3, 0).size(), 3u);
  EXPECT_EQ(chunks_with(2, 3, -1).size(), 3u);
  constexpr int64_t huge = INT64_MAX;
  EXPECT_EQ(chunks_with(2, huge, huge / 2),
            (Ranges{{0, huge / 2}, {huge / 2, huge / 2 * 2}, {huge / 2 * 2, huge}}));
}

TEST_F(Threads, EveryItemOnceUnderStress) {
  set_num_threads(4);
  std::vector<int> hits(10007);
  for (int round = 1; round <= 2000; ++round) {
    const int64_t grain = 1 + round * 37 % 5000;
    parallel_for(static_cast<int64_t>(hits.size()), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    ASSERT_EQ(std::accumulate(hits.begin(), hits.end(), int64_t{0}), int64_t{10007} * round);
  }
}

TEST_F(Threads, ASecondThreadTakesPart) {
  set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return ids.size();
  };
  parallel_for(2, 1, [&](int64_t, int64_t) {
    {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    while (count() < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  EXPECT_EQ(ids.size(), 2u);
}

TEST_F(Threads, NestedLoopsRunSerially) {
  set_num_threads(4);
  EXPECT_FALSE(in_parallel_region());
  std::atomic<int64_t> inner{0};
  parallel_for(8, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(in_parallel_region());
    const auto id = std::this_thread::get_id();
    parallel_for(100, 10, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), id);
      inner += end - begin;
    });
  });
  EXPECT_FALSE(in_parallel_region());
  EXPECT_EQ(inner, 800);
}

TEST_F(Threads, FirstExceptionByChunkOrder) {
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      try {
        parallel_for(64, 1, [&](int64_t begin, int64_t) {
          if (begin >= 17) throw std::runtime_error(std::to_string(begin));
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "17");
      }
      EXPECT_FALSE(in_parallel_region());
    }
  }
  EXPECT_EQ(chunks_with(4, 10, 1).size(), 10u) << "the pool must work after an exception";
}

TEST_F(Threads, SeveralCallersAtOnce) {
  set_num_threads(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round)
        parallel_for(1000, 10, [&](int64_t begin, int64_t end) { total += end - begin; });
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(total, 4 * 300 * 1000);
}

TEST_F(Threads, AForkedChildGetsAFreshPool) {
  if (!forks) GTEST_SKIP() << "the sanitizer cannot follow";
  set_num_threads(2);
  EXPECT_EQ(chunks_with(2, 100, 1).size(), 100u);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int64_t> total{0};
    for (int round = 0; round < 50; ++round)
      parallel_for(1000, 10, [&](int64_t begin, int64_t end) { total += end - begin; });
    _exit(total == 50'000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Threads, ForkWhileAnotherThreadIsInALoop) {
  if (!forks) GTEST_SKIP() << "the sanitizer cannot follow";
  set_num_threads(2);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    std::atomic<int64_t> sink{0};
    while (!stop) parallel_for(1000, 10, [&](int64_t b, int64_t e) { sink += e - b; });
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::atomic<int64_t> total{0};
      parallel_for(1000, 10, [&](int64_t begin, int64_t end) { total += end - begin; });
      _exit(total == 1000 ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
}

#if defined(__SSE2__)
TEST_F(Threads, WorkersTakeTheCallersFloatMode) {
  set_num_threads(2);
  const unsigned before = _mm_getcsr();
  for (unsigned mode : {before | 0x8040u, before & ~0x8040u}) {
    _mm_setcsr(mode);
    std::atomic<int> wrong{0};
    for (int round = 0; round < 100; ++round) {
      parallel_for(64, 1, [&](int64_t, int64_t) {
        wrong += ((_mm_getcsr() ^ mode) & 0x8040u) != 0;
        std::this_thread::sleep_for(std::chrono::microseconds(1));
      });
    }
    EXPECT_EQ(wrong, 0);
  }
  _mm_setcsr(before);
}
#endif

TEST_F(Threads, CountMustBePositive) {
  for (int n : {0, -1}) {
    try {
      set_num_threads(n);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    }
  }
  set_num_threads(5);
  EXPECT_EQ(num_threads(), 5);
  EXPECT_GE(before_, 1);
}

TEST_F(Threads, GrainShrinksWithTheCostOfAnItem) {
  EXPECT_GE(parallel_grain(1), parallel_grain(10));
  EXPECT_GE(parallel_grain(INT64_MAX), 1);
  EXPECT_GE(parallel_grain(0), 1);
  EXPECT_LE(parallel_grain(10), 100'000) << "a nanosecond an item must not need 0.1 ms of work";
}

}  // namespace
}  // namespace facula
