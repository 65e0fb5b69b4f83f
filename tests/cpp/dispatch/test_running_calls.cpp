// Changes of tensors wait for calls of other threads, and counters are shared once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/error.h"
#include "dispatch/running_calls.h"

namespace facula {
namespace {

using std::chrono::milliseconds;

// For a scope, threads count as ones without their interpreter's lock.
struct Racing {
  Racing() { ++unlocked_threads; }
  ~Racing() { --unlocked_threads; }
};

Tensor numbers(int64_t n) { return empty_tensor(IntSpan(&n, 1), DType::Float32); }

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(RunningCalls, a_change_waits_for_a_call_that_reads_the_tensor) {
  const Racing racing;
  const Tensor t = numbers(4);
  std::atomic<bool> running{false}, ended{false};
  std::thread reader([&] {
    const InUse reading(t);
    running = true;
    std::this_thread::sleep_for(milliseconds(50));
    ended = true;
  });
  wait_for(running);
  {
    const TensorChange change(*t.get());
    EXPECT_TRUE(ended);
  }
  reader.join();
}

TEST(RunningCalls, a_change_of_a_storage_waits_for_readers_of_any_tensor_over_it) {
  const Racing racing;
  const Tensor t = numbers(4), view = alias_tensor(t);
  std::atomic<bool> running{false}, ended{false};
  std::thread reader([&] {
    const InUse reading(view);
    running = true;
    std::this_thread::sleep_for(milliseconds(50));
    ended = true;
  });
  wait_for(running);
  {
    const TensorChange change(*t->storage);
    EXPECT_TRUE(ended);
  }
  reader.join();
}

TEST(RunningCalls, a_call_waits_for_a_change) {
  const Racing racing;
  const Tensor t = numbers(4);
  std::atomic<bool> ended{false}, read{false};
  std::thread reader;
  {
    const TensorChange change(*t.get());
    reader = std::thread([&] {
      const InUse reading(t);
      EXPECT_TRUE(ended);
      read = true;
    });
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(read);
    ended = true;
  }
  reader.join();
}

TEST(RunningCalls, calls_on_other_tensors_and_of_the_same_thread_do_not_hinder) {
  const Racing racing;
  const Tensor t = numbers(4), other = numbers(4);
  std::atomic<bool> running{false}, changed{false};
  std::thread reader([&] {
    const InUse reading(other);
    running = true;
    wait_for(changed);
  });
  wait_for(running);
  {
    const InUse own(t);
    const TensorChange change(*t.get());
    changed = true;
  }
  reader.join();
}

TEST(RunningCalls, changes_that_wait_for_each_other_raise) {
  const Racing racing;
  const Tensor t = numbers(4);
  std::atomic<int> listed{0}, raised{0};
  const auto change_inside_of_a_call = [&] {
    const InUse reading(t);
    ++listed;
    while (listed < 2) std::this_thread::yield();
    try {
      const TensorChange change(*t.get());
    } catch (const Error&) {
      ++raised;
    }
  };
  std::thread a(change_inside_of_a_call), b(change_inside_of_a_call);
  a.join();
  b.join();
  EXPECT_EQ(raised, 1);
}

TEST(RunningCalls, many_threads) {
  const Racing racing;
  const Tensor t = numbers(4);
  std::atomic<int> inside{0};
  std::atomic<bool> mixed{false};
  const auto read = [&] {
    for (int i = 0; i < 3000; ++i) {
      const InUse reading(t);
      ++inside;
      mixed = mixed || inside >= 1000;
      --inside;
    }
  };
  const auto change = [&] {
    for (int i = 0; i < 3000; ++i) {
      const TensorChange change(*t.get());
      mixed = mixed || inside.fetch_add(1000) != 0;
      inside -= 1000;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(read);
    threads.emplace_back(change);
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(mixed);
}

TEST(Versions, threads_that_share_a_counter_first_get_the_same_one) {
  for (int round = 0; round < 200; ++round) {
    const Tensor t = numbers(4);
    t->bump_version();
    std::atomic<int> ready{0};
    std::vector<VersionCounter*> found(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        found[i] = t->share_version().get();
      });
    for (std::thread& thread : threads) thread.join();
    for (const VersionCounter* f : found) EXPECT_EQ(f, found[0]);
    EXPECT_EQ(t->current_version(), 1u);
  }
}

}  // namespace
}  // namespace facula
