// Threads that share leaves, graphs, views and the library's locks, and forks in their midst.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "autograd/engine.h"
#include "autograd/variable.h"
#include "autograd/workers.h"
#include "core/fork.h"
#include "core/locks.h"
#include "core/random.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/exp_log.h"
#include "ops/random/factories.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

constexpr int threads = 4;

void on_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  std::atomic<int> ready{0};
  for (int n = 0; n < threads; ++n)
    all.emplace_back([&, n] {
      ++ready;
      while (ready < threads) std::this_thread::yield();
      body(n);
    });
  for (std::thread& t : all) t.join();
}

Tensor leaf(double value, int64_t n = 50) {
  const Tensor t = ops::full(IntList{n}, value, DType::Float64);
  set_requires_grad(t, true);
  return t;
}
void backward(const Tensor& of, bool retain = false) {
  const Tensor roots[] = {of};
  const Tensor cotangents[] = {ops::ones_like(of)};
  BackwardOptions o;
  o.retain_graph = retain;
  run_backward(roots, cotangents, {}, o);
}
double first(const Tensor& t) { return t.data<double>()[0]; }

TEST(AutogradThreads, ShareALeafFromItsFirstUseOn) {
  for (int round = 0; round < 20; ++round) {
    const Tensor w = leaf(1);
    on_threads([&](int) {
      for (int i = 0; i < 10; ++i) backward(ops::mul(w, 2));
    });
    EXPECT_EQ(first(read_grad(w)), 2 * threads * 10);
  }
}

TEST(AutogradThreads, RunOneGraph) {
  const Tensor w = leaf(1);
  const Tensor y = ops::sum(ops::mul(ops::exp(w), w));
  on_threads([&](int) {
    for (int i = 0; i < 20; ++i) backward(y, true);
  });
  EXPECT_NEAR(first(read_grad(w)), 2 * std::exp(1.0) * threads * 20, 1e-9);
}

TEST(AutogradThreads, ResetAGradThatGrows) {
  const Tensor w = leaf(1);
  on_threads([&](int n) {
    for (int i = 0; i < 100; ++i) {
      if (n == 0)
        write_grad(w, i % 2 ? Tensor() : ops::zeros_like(w));
      else
        backward(ops::mul(w, 2));
      const Tensor seen = read_grad(w);
      if (seen.defined()) {
        EXPECT_EQ(seen.sizes()[0], 50);
      }
    }
  });
}

TEST(AutogradThreads, DropTensorsThatKeepTheirGrad) {
  const Tensor w = leaf(1);
  const Ref<Node> node = [&] {
    const Tensor y = ops::mul(w, 3);
    return grad_fn(y);
  }();
  on_threads([&](int n) {
    for (int i = 0; i < 200; ++i) {
      if (n < 2) {
        // Another tensor that is the node's output, as unpacking makes them.
        const Tensor y = with_edge(ops::full(IntList{50}, 1.0, DType::Float64), {node, 0});
        retain_grad(y);
      } else {
        keep_gradients(*node, {ops::ones(IntList{50}, DType::Float64)});
      }
    }
  });
  EXPECT_TRUE(!node->has_hooks() || node->hooks().retained.empty());
}

TEST(AutogradThreads, RenewTheHistoryOfOneView) {
  for (int round = 0; round < 50; ++round) {
    const Tensor base = ops::mul(leaf(1), 2);
    const Tensor view = ops::slice(base, 0, 1, 10);
    ops::mul_(base, 3);
    Node* seen[threads];
    on_threads([&](int n) { seen[n] = gradient_edge(view).node.get(); });
    for (Node* s : seen) EXPECT_EQ(s, seen[0]);
  }
}

TEST(AutogradThreads, HooksComeAndGo) {
  const Tensor w = leaf(1);
  const Tensor y = ops::mul(w, 2);
  on_threads([&](int n) {
    for (int i = 0; i < 50; ++i) {
      if (n > 0) {
        backward(y, true);
        continue;
      }
      const uint64_t a = add_hook(w, [](const Tensor&) { return Tensor(); });
      const uint64_t b = add_hook(y, [](const Tensor&) { return Tensor(); });
      const uint64_t c = add_post_accumulate_hook(w, [](const Tensor&) {});
      for (const uint64_t id : {a, b, c}) {
        remove_hook(w, id);
        remove_hook(y, id);
      }
    }
  });
}

TEST(AutogradThreads, CountVersions) {
  // Without elements, which threads may not write at once; a view, so that there is a counter.
  const Tensor x = ops::zeros(IntList{0}, DType::Float64);
  const Tensor view = ops::slice(x, 0, 0, 0);
  const uint32_t before = x->current_version();
  on_threads([&](int n) {
    for (int i = 0; i < 100; ++i) ops::fill_(n % 2 ? x : view, 1);
  });
  EXPECT_EQ(x->current_version(), before + 100 * threads);
}

TEST(Locks, AnOwnedMutexIsItsOwnersAgain) {
  OwnedMutex m;
  int count = 0;
  on_threads([&](int) {
    for (int i = 0; i < 1000; ++i) {
      const std::lock_guard outer(m);
      const std::lock_guard inner(m);
      ++count;
    }
  });
  EXPECT_EQ(count, 1000 * threads);
}

// The status of a child that runs `body`; -1 where it does not end.
int in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A thread that runs `body` until the end of the scope.
class Beside {
 public:
  explicit Beside(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          while (!stop_) body();
        }) {}
  ~Beside() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(Fork, LocksOfObjectsAreFreeInTheChild) {
  const uint32_t generation = fork_generation();
  OwnedMutex owned;
  SpinLock spin;
  std::atomic<bool> held{false}, go{false};
  std::thread holder([&] {
    const std::lock_guard a(owned);
    const std::lock_guard b(spin);
    held = true;
    while (!go) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  const int status = in_child([&] {
    const std::lock_guard a(owned);
    const std::lock_guard b(spin);
    if (fork_generation() != generation + 1) _exit(2);
  });
  go = true;
  holder.join();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fork_generation(), generation);
}

TEST(Fork, WaitsForGenerators) {
  Generator g(1);
  const Beside drawing([&] {
    const std::lock_guard lock(g.mutex());
    std::vector<uint32_t> words(5000);
    g.fill32(words.data(), 5000);
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(in_child([&] {
                g.manual_seed(5);
                const std::unique_ptr<Generator> other = g.clone();
                if (g.next32() != other->next32()) _exit(2);
              }),
              0);
}

TEST(Fork, SeveralThreadsAtOnce) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer takes a child's threads for those that its parent had";
#endif
  on_threads([](int) {
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(in_child([] {
                  const Tensor t = ops::randn(IntList{100000});
                  if (ops::add(t, t).numel() != 100000) _exit(2);
                }),
                0);
  });
}

TEST(Fork, ChildrenHaveWorkersOfTheirOwn) {
  const Device device{DeviceType::Meta, 0};
  std::atomic<bool> ran{false};
  run_on_worker(device, [&] { ran = true; });
  while (!ran) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              std::atomic<bool> again{false};
              run_on_worker(device, [&] { again = true; });
              while (!again) std::this_thread::yield();
            }),
            0);
}

TEST(Fork, LeavesOfBusyThreadsWorkInTheChild) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer's own allocator hangs in such a child";
#endif
  const Tensor w = leaf(1, 20000);
  const Tensor y = ops::sum(ops::mul(w, 2));
  const Beside one([&] { backward(y, true); });
  const Beside two([&] { backward(y, true); });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(in_child([&] {
                backward(y, true);
                write_grad(w, {});
                backward(y, true);
                if (first(read_grad(w)) != 2) _exit(2);
              }),
              0);
}

}  // namespace
}  // namespace facula
