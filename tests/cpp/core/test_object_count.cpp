// The watched reference count: when the binding is told, and what it may do.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "core/refcount.h"

namespace facula {
namespace {

// Stands in for the binding; the mutex for the GIL.
struct Told {
  int shared = 0, dropped = 0, destroyed = 0;
  bool watch_on = true;
};
Told told;
std::mutex gil;

struct Thing : ObjectCounted {};
void destroy(Thing* t) {
  ++told.destroyed;
  delete t;
}

const PythonHooks hooks{[](const ObjectCounted&) {
                          const std::lock_guard hold(gil);
                          ++told.shared;
                        },
                        [](const ObjectCounted& c) {
                          const std::lock_guard hold(gil);
                          const auto left = c.release_shared(told.watch_on);
                          told.dropped += left == ObjectCounted::Left::Object;
                          return left == ObjectCounted::Left::Nobody;
                        }};

class ObjectCount : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = python_hooks.exchange(&hooks);
    told = {};
  }
  void TearDown() override { python_hooks.store(before_); }

 private:
  const PythonHooks* before_ = nullptr;
};

TEST_F(ObjectCount, UnwatchedTellsNobody) {
  auto a = Ref<Thing>::take(new Thing);
  Ref<Thing> b = a, c = b;
  EXPECT_EQ(a->use_count(), 3u);
  b.reset();
  c.reset();
  a.reset();
  EXPECT_EQ(told.shared + told.dropped, 0);
  EXPECT_EQ(told.destroyed, 1);
}

TEST_F(ObjectCount, WatchedTellsTheStepsBetweenOneAndTwo) {
  auto object = Ref<Thing>::take(new Thing);
  EXPECT_EQ(object->watch(), 1u);
  Ref<Thing> b = object;
  EXPECT_EQ(told.shared, 1);
  Ref<Thing> c = b;
  c.reset();
  EXPECT_EQ(told.shared + told.dropped, 1);
  b.reset();
  EXPECT_EQ(told.dropped, 1);
  EXPECT_TRUE(object->is_watched());
  EXPECT_TRUE(object->release_object());
  delete object.leak();
}

TEST_F(ObjectCount, WatchSaysHowManyThereAre) {
  auto a = Ref<Thing>::take(new Thing);
  const Ref<Thing> b = a;
  EXPECT_EQ(a->watch(), 2u);
  EXPECT_EQ(a->use_count(), 2u);
  EXPECT_TRUE(a->unwatch());
  EXPECT_FALSE(a->unwatch());
}

TEST_F(ObjectCount, AFlipNeedsASecondOwner) {
  told.watch_on = false;
  auto object = Ref<Thing>::take(new Thing);
  EXPECT_FALSE(object->watch_if_shared());
  EXPECT_FALSE(object->is_watched());
  Ref<Thing> b = object;
  EXPECT_TRUE(object->watch_if_shared());
  b.reset();
  EXPECT_EQ(told.dropped, 1);
  EXPECT_FALSE(object->is_watched());
  object.reset();
  EXPECT_EQ(told.destroyed, 1);
}

TEST_F(ObjectCount, TheLastReferenceMayBeCppsOwn) {
  auto object = Ref<Thing>::take(new Thing);
  Ref<Thing> b = object;
  object->watch();
  EXPECT_FALSE(object->release_object());
  object.leak();
  b.reset();
  EXPECT_EQ(told.dropped, 0);
  EXPECT_EQ(told.destroyed, 1);
}

TEST_F(ObjectCount, ThreadsThatCopyAndDropKeepTheBalance) {
  auto object = Ref<Thing>::take(new Thing);
  object->watch();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&object] {
      for (int i = 0; i < 20000; ++i) {
        const Ref<Thing> a = object, b = a;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(told.shared, told.dropped);
  EXPECT_EQ(object->use_count(), 1u);
  EXPECT_EQ(told.destroyed, 0);
}

}  // namespace
}  // namespace facula
