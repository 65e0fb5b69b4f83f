// Tables of devices: what is read of them, and what is refused. What a device does is tested with
// the toy one (tests/python/dispatch/test_toy_device.py).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>

#include "core/device_allocator.h"
#include "core/device_generator.h"
#include "core/device_table.h"
#include "core/error.h"
#include "core/stream.h"

namespace facula {
namespace {

int one() { return 1; }
int take(int, size_t bytes, void** data) {
  *data = std::aligned_alloc(512, bytes);
  return 0;
}
int give_back(int, void* data, size_t) {
  std::free(data);
  return 0;
}
int copy(int, void*, const void*, size_t, int, void*) { return 0; }
int fail(int) { return 42; }

DeviceTable table_named(const char* name) {
  DeviceTable t{};
  t.size = sizeof t;
  t.version = FACULA_DEVICE_TABLE_VERSION;
  t.name = name;
  t.device_count = one;
  t.allocate = take;
  t.release = give_back;
  t.copy = copy;
  t.synchronize = fail;
  return t;
}

// The device of this test program, registered once.
Device plain() {
  static const DeviceType type = [] {
    DeviceTable t = table_named("plain");
    t.size = offsetof(DeviceTable, create_stream);             // an older library's
    t.create_event = [](int, uint32_t, void**) { return 0; };  // beyond its end: not read
    return register_device(t);
  }();
  return {type, 0};
}

std::string refusal(const DeviceTable& t) {
  try {
    register_device(t);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(DeviceTable, BadOnesAreRefused) {
  struct Case {
    const char* fault;
    void (*spoil)(DeviceTable&);
  };
  const Case cases[] = {
      {"built-in", [](DeviceTable& t) { t.name = "cpu"; }},
      {"built-in", [](DeviceTable& t) { t.name = "meta"; }},
      {"with a name", [](DeviceTable& t) { t.name = nullptr; }},
      {"no colon", [](DeviceTable& t) { t.name = "a:b"; }},
      {"registered already", [](DeviceTable& t) { t.name = "plain"; }},
      {"reaches at least", [](DeviceTable& t) { t.size = 8; }},
      {"version 7", [](DeviceTable& t) { t.version = 7; }},
      {"lacks one", [](DeviceTable& t) { t.allocate = nullptr; }},
      {"copy or synchronize", [](DeviceTable& t) { t.copy = nullptr; }},
      {"all entries for streams",
       [](DeviceTable& t) { t.query_stream = [](int, void*) { return 0; }; }},
      {"all entries for pinned",
       [](DeviceTable& t) { t.release_pinned = [](void*) { return 0; }; }},
  };
  plain();
  for (const Case& c : cases) {
    DeviceTable t = table_named("bad");
    c.spoil(t);
    EXPECT_NE(refusal(t).find(c.fault), std::string::npos) << c.fault << ": " << refusal(t);
  }
}

TEST(DeviceTable, IsReadByItsSize) {
  const Device d = plain();
  ASSERT_NE(device_table(d.type), nullptr);
  EXPECT_EQ(device_table(d.type)->create_event, nullptr);
  EXPECT_EQ(device_table(d.type)->size, sizeof(DeviceTable));
}

TEST(DeviceTable, MissingEntriesAreNamed) {
  const Device d = plain();
  const auto kind_and_text = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.kind() == ErrorKind::NotImplemented ? e.what() : "of another kind";
    }
    return "nothing was thrown";
  };
  const auto names = [&](const std::string& text, const char* entry) {
    EXPECT_NE(text.find("'plain'"), std::string::npos) << text;
    EXPECT_NE(text.find(entry), std::string::npos) << text;
  };
  names(kind_and_text([&] { new_stream(d); }), "create_stream");
  names(kind_and_text([&] { DeviceEvent().record({d, 0}); }), "create_event");
  names(kind_and_text([&] { allocate_pinned(d.type, 8); }), "allocate_pinned");
  names(kind_and_text([&] { device_memory_info(d); }), "memory_info");
}

TEST(DeviceTable, CodesBecomeErrors) {
  try {
    synchronize_device(plain());
    FAIL() << "the error of the device was lost";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Accelerator);
    EXPECT_NE(std::string(e.what()).find("code 42"), std::string::npos) << e.what();
  }
}

TEST(DeviceAllocator, SplitsAndMerges) {
  const Device d = plain();
  void* a = device_allocate(d, 1000);
  void* b = device_allocate(d, 1000);
  EXPECT_EQ(static_cast<char*>(b) - static_cast<char*>(a), 1024);
  DeviceMemoryStats s = device_memory_stats(d);
  EXPECT_EQ(s.allocated_bytes[0].current, 2048);
  EXPECT_EQ(s.requested_bytes[0].current, 2000);
  EXPECT_EQ(s.reserved_bytes[0].current, 2 << 20);
  device_release(d, a, 1000);
  EXPECT_EQ(device_allocate(d, 400), a);
  device_release(d, b, 1000);
  device_release(d, a, 400);
  s = device_memory_stats(d);
  EXPECT_EQ(s.allocated_bytes[0].current, 0);
  EXPECT_EQ(s.inactive_split[0].current, 0);
  void* whole = device_allocate(d, 1 << 20);
  EXPECT_EQ(whole, a);  // the parts are one again
  device_release(d, whole, 1 << 20);
  EXPECT_EQ(device_memory_stats(d).segments[0].current, 1);
}

TEST(DeviceGenerator, StateIsSeedAndOffset) {
  DeviceGenerator g(plain(), 5);
  EXPECT_EQ(g.get_state().size(), 16u);
  const auto first = g.reserve(6);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(g.offset(), 8u);
  const auto copy = g.clone();
  EXPECT_EQ(copy->get_state(), g.get_state());
  EXPECT_EQ(g.next_host_seed(), static_cast<DeviceGenerator&>(*copy).next_host_seed());
  g.manual_seed(5);
  EXPECT_EQ(g.offset(), 0u);
  EXPECT_THROW(g.set_offset(3), Error);
  EXPECT_THROW(g.set_state(std::vector<uint8_t>(15)), Error);
}

TEST(DeviceGenerator, IsOfOneDevice) {
  Generator host(1);
  DeviceGenerator g(plain(), 1);
  EXPECT_THROW(generator_for(&host, plain()), Error);
  EXPECT_THROW(generator_for(&g, Device()), Error);
  EXPECT_EQ(&generator_for(&host, Device()), &host);
}

}  // namespace
}  // namespace facula
