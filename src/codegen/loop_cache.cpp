#include "codegen/loop_cache.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "codegen/disk_cache.h"
#include "codegen/loop_compiler.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/fork.h"
#include "dispatch/record.h"

namespace facula::loop_cache {
namespace {

struct Entry {
  CompiledLoop code = nullptr;
  uint32_t seen = 0;
  bool asked = false;  // for code
};
struct Job {
  std::string key;
  FusedLoop loop;
  Entry* entry;
};

// Never destroyed: its thread may still compile when the process ends.
struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries;
  std::deque<Job> jobs;
  std::condition_variable changed;
  bool running = false;      // the thread is
  Entry* at_work = nullptr;  // what the thread compiles
  bool asked_library = false;
  std::string library;  // given by the package
  const LoopCompiler* compiler = nullptr;
  Counts counts;
  std::string error;
  uint32_t sightings = 2;
};
Cache& cache() {
  static auto* one = new Cache;
  return *one;
}

// --- the library

std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&cache), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Where FACULA_COMPILER_LIBRARY says, or beside the core library.
std::string library_path() {
  const char* asked = environment_value("FACULA_COMPILER_LIBRARY");
  return asked ? asked : own_folder() + "libfacula_compiler.so";
}

const LoopCompiler* open_library(const std::string& path, std::string& error) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    error = why ? why : "dlopen failed";
    return nullptr;
  }
  const auto get = reinterpret_cast<GetLoopCompiler>(dlsym(library, "facula_loop_compiler"));
  const LoopCompiler* found = get ? get() : nullptr;
  if (found && found->version == LoopCompiler::expected) return found;
  error = concat(path, " was built for another version of facula");
  return nullptr;
}

const char* isa_namespace() {
  static constexpr const char* names[] = {"base", "avx2", "avx512"};
  return names[static_cast<int>(current_isa())];
}

// --- the thread

CompiledLoop make(const LoopCompiler& compiler, const Job& job, Counts& counts,
                  std::string& error) {
  const std::string isa = isa_namespace();
  const std::string key = concat(compiler.name, "\n", isa, "\n", job.key);
  const std::string symbol = "facula_loop_" + disk_cache::name_of(key);
  if (const auto stored = disk_cache::read(key))
    if (CompiledLoop code = compiler.load(*stored, symbol, error)) {
      ++counts.loaded;
      return code;
    }
  const std::string object = compiler.compile(job.loop, isa.c_str(), symbol, error);
  if (object.empty()) return nullptr;
  disk_cache::write(key, object);
  CompiledLoop code = compiler.load(object, symbol, error);
  counts.compiled += code != nullptr;
  return code;
}

CompiledLoop make_or_tell(const LoopCompiler& compiler, const Job& job, Counts& counts,
                          std::string& error) noexcept {
  try {
    return make(compiler, job, counts, error);
  } catch (const std::exception& e) {
    error = e.what();
    return nullptr;
  }
}

// The library, opened at the first job.
const LoopCompiler* compiler_of(Cache& c, std::unique_lock<std::mutex>& lock) {
  if (std::exchange(c.asked_library, true)) return c.compiler;
  const std::string path = c.library.empty() ? library_path() : c.library;
  std::string error;
  lock.unlock();
  const LoopCompiler* found = open_library(path, error);
  if (found) std::atexit(stop);
  lock.lock();
  c.compiler = found;
  c.counts.available = found != nullptr;
  c.error = error;
  if (!found) find_compiled_loop.store(nullptr);
  return found;
}

void compile_jobs() {
  // Behind the threads that compute. Of this thread alone, on Linux.
  setpriority(PRIO_PROCESS, 0, 10);
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  while (!c.jobs.empty()) {
    const Job job = std::move(c.jobs.front());
    c.jobs.pop_front();
    c.at_work = job.entry;
    if (const LoopCompiler* compiler = compiler_of(c, lock)) {
      Counts counted;
      std::string error;
      lock.unlock();
      CompiledLoop code = make_or_tell(*compiler, job, counted, error);
      lock.lock();
      c.counts.compiled += counted.compiled;
      c.counts.loaded += counted.loaded;
      c.counts.failed += code == nullptr;
      if (!code) c.error = error;
      job.entry->code = code;
    }
    c.at_work = nullptr;
    c.changed.notify_all();
  }
  c.running = false;
  c.changed.notify_all();
}

void start_thread(Cache& c) {
  if (c.running) return;
  c.running = true;
  std::thread(compile_jobs).detach();
}

// A fork waits for the loop that is being compiled, some hundredths of a second: LLVM's own locks
// would stay taken in the child. The child has no thread; what was queued is asked for again there.
void before_fork(ForkHandler&) {
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  c.changed.wait(lock, [&] { return !c.at_work; });
  lock.release();
}
void in_parent(ForkHandler&) { cache().mutex.unlock(); }
void in_child(ForkHandler&) {
  Cache& c = cache();
  for (const Job& job : c.jobs) job.entry->asked = false;
  c.jobs.clear();
  c.running = false;
  new (&c.changed) std::condition_variable;
  c.mutex.unlock();
}
constinit ForkHandler fork_handler(ForkOrder::SharedMemory, before_fork, in_parent, in_child);

CompiledLoop find(const FusedLoop& loop) {
  Cache& c = cache();
  std::string key = loop.key();
  const std::lock_guard lock(c.mutex);
  std::unique_ptr<Entry>& entry = c.entries[key];
  if (!entry) entry = std::make_unique<Entry>();
  if (entry->code) {
    ++c.counts.used;
    return entry->code;
  }
  if (entry->asked || ++entry->seen < c.sightings) return nullptr;
  entry->asked = true;
  c.jobs.push_back({std::move(key), loop, entry.get()});
  start_thread(c);
  return nullptr;
}

}  // namespace

void install() {
  static const bool once = [] {
    const char* off = environment_value("FACULA_COMPILER");
    if (off && std::string_view(off) == "0") return false;
    fork_handler.enlist();
    find_compiled_loop.store(&find);
    return true;
  }();
  (void)once;
}

bool has_library() {
  return environment_value("FACULA_COMPILER_LIBRARY") ||
         ::access(library_path().c_str(), R_OK) == 0;
}

void set_library(const char* path) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.library = path;
}

void wait() {
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  c.changed.wait(lock, [&] { return c.jobs.empty() && !c.at_work; });
}

void stop() {
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  find_compiled_loop.store(nullptr);
  c.jobs.clear();
  c.changed.wait(lock, [&] { return !c.at_work; });
}

Counts counts() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  return c.counts;
}

std::string last_error() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  return c.error;
}

void set_sightings(uint32_t n) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.sightings = n;
}

}  // namespace facula::loop_cache
