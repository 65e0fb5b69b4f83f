#include "core/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace facula {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool caches = false;
#else
constexpr bool caches = true;
#endif

constexpr size_t mebibyte = size_t{1} << 20;

TEST(Allocator, ZeroBytesAreNull) {
  EXPECT_EQ(cpu_allocate(0), nullptr);
  cpu_free(nullptr, 0);
  cpu_free(nullptr, 100);
}

TEST(Allocator, EverySizeIsAlignedAndItsOwn) {
  struct Live {
    unsigned char* p;
    size_t size;
    unsigned char mark;
  };
  std::vector<Live> live;
  const auto add = [&](size_t size) {
    auto* p = static_cast<unsigned char*>(cpu_allocate(size));
    ASSERT_NE(p, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % cpu_alignment, 0u) << size;
    const auto mark = static_cast<unsigned char>(live.size() * 31 + 7);
    std::memset(p, mark, size);
    live.push_back({p, size, mark});
  };
  for (size_t size = 1; size <= 4096; ++size) add(size);
  for (size_t size = 4096; size <= 2 * mebibyte; size = size * 5 / 4)
    for (size_t near : {size - 1, size, size + 1}) add(near);
  for (const Live& x : live) {
    for (size_t i = 0; i < x.size; ++i) ASSERT_EQ(x.p[i], x.mark) << x.size << " at " << i;
    cpu_free(x.p, x.size);
  }
}

TEST(Allocator, AbsurdSizesAreRefused) {
  const MemoryStats before = cpu_memory_stats();
  for (size_t bytes : {~size_t{0}, ~size_t{0} - 63, size_t{1} << 63, (size_t{1} << 46) + 1}) {
    try {
      cpu_allocate(bytes);
      FAIL() << bytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Runtime);
      EXPECT_NE(std::string(e.what()).find("you tried to allocate " + std::to_string(bytes)),
                std::string::npos);
    }
  }
  EXPECT_EQ(cpu_memory_stats().system_allocations, before.system_allocations);
}

TEST(Allocator, StatisticsFollowUse) {
  cpu_reset_peak_memory_stats();
  const MemoryStats start = cpu_memory_stats();
  EXPECT_EQ(start.peak_allocated, start.allocated);
  void* small = cpu_allocate(256);
  void* large = cpu_allocate(4 * mebibyte);
  const MemoryStats during = cpu_memory_stats();
  EXPECT_EQ(during.allocated - start.allocated, static_cast<int64_t>(256 + 4 * mebibyte));
  EXPECT_EQ(during.allocations - start.allocations, 2);
  EXPECT_GE(during.reserved, during.allocated);
  cpu_free(large, 4 * mebibyte);
  cpu_free(small, 256);
  const MemoryStats end = cpu_memory_stats();
  EXPECT_EQ(end.allocated, start.allocated);
  EXPECT_EQ(end.frees - start.frees, 2);
  EXPECT_EQ(end.peak_allocated, during.allocated);
  cpu_reset_peak_memory_stats();
  EXPECT_EQ(cpu_memory_stats().peak_allocated, end.allocated);
}

TEST(Allocator, LargeBlocksAreReused) {
  if (!caches) GTEST_SKIP() << "the address sanitizer sees each block";
  void* p = cpu_allocate(3 * mebibyte);
  cpu_free(p, 3 * mebibyte);
  const MemoryStats before = cpu_memory_stats();
  for (int i = 0; i < 100; ++i) {
    void* q = cpu_allocate(3 * mebibyte - static_cast<size_t>(i));
    EXPECT_EQ(q, p);
    cpu_free(q, 3 * mebibyte - static_cast<size_t>(i));
  }
  EXPECT_EQ(cpu_memory_stats().system_allocations, before.system_allocations);
}

TEST(Allocator, TheCapBoundsWhatIsKept) {
  if (!caches) GTEST_SKIP() << "the address sanitizer sees each block";
  const size_t cap = cpu_memory_cap();
  EXPECT_GT(cap, 0u);
  cpu_empty_cache();
  set_cpu_memory_cap(8 * mebibyte);
  EXPECT_EQ(cpu_memory_cap(), 8 * mebibyte);
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t i = 1; i <= 6; ++i) blocks.push_back({cpu_allocate(i * mebibyte), i * mebibyte});
  for (auto [p, size] : blocks) {
    cpu_free(p, size);
    EXPECT_LE(cpu_memory_stats().cached, static_cast<int64_t>(8 * mebibyte));
  }
  void* newest = blocks.back().first;
  EXPECT_EQ(cpu_memory_stats().cached, static_cast<int64_t>(6 * mebibyte));
  void* again = cpu_allocate(6 * mebibyte);
  EXPECT_EQ(again, newest) << "the longest unused blocks go first";
  cpu_free(again, 6 * mebibyte);
  set_cpu_memory_cap(0);
  EXPECT_EQ(cpu_memory_stats().cached, 0);
  cpu_free(cpu_allocate(mebibyte), mebibyte);
  EXPECT_EQ(cpu_memory_stats().cached, 0);
  set_cpu_memory_cap(cap);
}

TEST(Allocator, EmptyCacheReturnsIdleChunks) {
  if (!caches) GTEST_SKIP() << "the address sanitizer sees each block";
  cpu_empty_cache();
  const int64_t before = cpu_memory_stats().reserved;
  std::vector<void*> blocks;
  for (int i = 0; i < 5000; ++i) blocks.push_back(cpu_allocate(1536));
  EXPECT_GE(cpu_memory_stats().reserved, before + 5000 * 1536 - (1 << 19));
  void* kept = blocks[2500];
  std::memset(kept, 77, 1536);
  for (void* p : blocks)
    if (p != kept) cpu_free(p, 1536);
  cpu_empty_cache();
  EXPECT_LE(cpu_memory_stats().reserved, before + (1 << 19)) << "one chunk stays for one block";
  EXPECT_EQ(static_cast<char*>(kept)[1535], 77);
  cpu_free(kept, 1536);
  cpu_empty_cache();
  EXPECT_LE(cpu_memory_stats().reserved, before);
}

// A one-way belt of blocks between threads.
class Belt {
 public:
  void put(void* p) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(p);
    ready_.notify_one();
  }
  void* take() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !blocks_.empty(); });
    void* p = blocks_.back();
    blocks_.pop_back();
    return p;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<void*> blocks_;
};

TEST(Allocator, BlocksFreedElsewhereComeBack) {
  if (!caches) GTEST_SKIP() << "the address sanitizer sees each block";
  constexpr int rounds = 200'000;
  Belt belt;
  Belt back;
  for (int i = 0; i < 100; ++i) back.put(&back);  // tickets: at most 100 blocks are on their way
  const int64_t before = cpu_memory_stats().reserved;
  std::thread consumer([&] {
    for (int i = 0; i < rounds; ++i) {
      cpu_free(belt.take(), 320);
      back.put(&back);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    back.take();
    belt.put(cpu_allocate(320));
  }
  consumer.join();
  EXPECT_LE(cpu_memory_stats().reserved - before, static_cast<int64_t>(2 * mebibyte));
}

TEST(Allocator, ThreadsThatEndLeaveNothingBehind) {
  const MemoryStats before = cpu_memory_stats();
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      std::vector<void*> blocks;
      for (int j = 0; j < 200; ++j) blocks.push_back(cpu_allocate(1024));
      for (void* p : blocks) cpu_free(p, 1024);
    }).join();
  }
  const MemoryStats after = cpu_memory_stats();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.allocations - before.allocations, 200 * 200);
  EXPECT_EQ(after.frees - before.frees, 200 * 200);
  EXPECT_LE(after.reserved - before.reserved, static_cast<int64_t>(2 * mebibyte));
}

struct FreesLate {
  void* p = nullptr;
  ~FreesLate() {
    cpu_free(p, 128);
    cpu_free(cpu_allocate(200), 200);
  }
};

TEST(Allocator, ThreadLocalDestructorsMayFree) {
  const MemoryStats before = cpu_memory_stats();
  std::thread([] {
    static thread_local FreesLate late;  // made first, so destroyed after the free lists
    late.p = nullptr;
    late.p = cpu_allocate(128);
  }).join();
  const MemoryStats after = cpu_memory_stats();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.frees - before.frees, 2);
}

TEST(Allocator, RandomUseByManyThreads) {
  const int64_t before = cpu_memory_stats().allocated;
  std::mutex mutex;
  std::vector<std::pair<unsigned char*, size_t>> shared;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 20'000; ++i) {
      const size_t size = size_t{1} << (random() % 18) | (random() % 64);
      auto* p = static_cast<unsigned char*>(cpu_allocate(size));
      p[0] = p[size - 1] = static_cast<unsigned char>(size);
      std::pair<unsigned char*, size_t> mine{p, size};
      {
        const std::lock_guard lock(mutex);
        shared.push_back(mine);
        if (shared.size() < 100) continue;
        std::swap(shared[random() % shared.size()], shared.back());
        mine = shared.back();
        shared.pop_back();
      }
      ASSERT_EQ(mine.first[0], static_cast<unsigned char>(mine.second));
      ASSERT_EQ(mine.first[mine.second - 1], static_cast<unsigned char>(mine.second));
      cpu_free(mine.first, mine.second);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (auto& t : threads) t.join();
  for (auto [p, size] : shared) cpu_free(p, size);
  EXPECT_EQ(cpu_memory_stats().allocated, before);
}

TEST(Allocator, ForkWhileOtherThreadsAllocate) {
  if (!caches) GTEST_SKIP() << "the address sanitizer's own allocator hangs in such a child";
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 3; ++t) {
    busy.emplace_back([&stop, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      while (!stop) {
        std::vector<std::pair<void*, size_t>> blocks;
        for (int i = 0; i < 300; ++i) {
          const size_t size = 1 + random() % 100'000;
          blocks.push_back({cpu_allocate(size), size});
        }
        for (auto [p, size] : blocks) cpu_free(p, size);
      }
    });
  }
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (size_t size = 1; size < 300'000; size += 997) {
        void* p = cpu_allocate(size);
        std::memset(p, 1, size);
        cpu_free(p, size);
      }
      cpu_empty_cache();
      cpu_memory_stats();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  for (auto& t : busy) t.join();
}

}  // namespace
}  // namespace facula
