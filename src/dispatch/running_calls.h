// Prevents a tensor's memory or geometry from being replaced while a call on another thread uses
// it.
//
// While every thread holds the GIL when it runs a call, this cannot happen. Threads that release
// the GIL are counted (unlocked_threads); while there are any, each running call registers its
// arguments (RunningCall). Code that replaces a tensor's memory or geometry holds a TensorChange.
// It holds the GIL, since calls under the GIL need not be registered, and waits until no other
// thread's call uses the tensor or its storage. Registering takes two plain stores; the memory
// barriers are on the side of TensorChange, which is rare.
#pragma once
#include <atomic>

#include "core/pending.h"
#include "dispatch/value.h"

namespace facula {

struct ThreadCalls;

// The number of threads that run without the GIL. It is increased only under the GIL, so a thread
// that holds the GIL and reads 0 can rely on it.
extern constinit std::atomic<int> unlocked_threads;
inline bool calls_may_race() { return unlocked_threads.load(std::memory_order_relaxed) > 0; }

// Registers arguments as in use by this thread for a scope, which they must outlive.
class RunningCall {
 public:
  RunningCall(const Value* args, int count) : args_(args), count_(count) {
    if (calls_may_race()) enter();
  }
  ~RunningCall() {
    if (thread_) leave();
  }
  RunningCall(const RunningCall&) = delete;

 private:
  friend class TensorChange;
  void enter();
  void leave();
  bool must_wait() const;
  void wait();

  const Value* args_;
  int count_;
  RunningCall* below_ = nullptr;   // the enclosing call of this thread
  ThreadCalls* thread_ = nullptr;  // null if nothing is registered
};

// Gives this thread exclusive use of a tensor and its storage for a scope: waits for running calls
// that use them, and makes new ones wait. Two changes that would deadlock, each inside a call that
// the other waits for, raise RuntimeError.
class TensorChange {
 public:
  // `other`: a second storage that the change affects.
  explicit TensorChange(const TensorImpl& t, const Storage* other = nullptr)
      : tensor_(&t), storage_(other) {
    finish_pending_work();
    if (calls_may_race()) begin();
  }
  explicit TensorChange(const Storage& s) : storage_(&s) {
    finish_pending_work();
    if (calls_may_race()) begin();
  }
  ~TensorChange() {
    if (thread_) end();
  }
  TensorChange(const TensorChange&) = delete;

 private:
  friend class RunningCall;
  void begin();
  void end();
  enum class Way : uint8_t { Free, Blocked, Never };
  Way look();
  bool concerns(const Value& v, const ThreadCalls* reader) const;
  bool concerns(const RunningCall& c, const ThreadCalls* reader) const;
  bool concerns(const Storage* s) const;
  bool meets(const TensorChange& other) const;
  static bool is_changed(const TensorImpl* t, const ThreadCalls* reader);

  const TensorImpl* tensor_ = nullptr;
  const Storage* storage_ = nullptr;
  const Storage* of_tensor_ = nullptr;  // the tensor's when the change was granted
  ThreadCalls* thread_ = nullptr;
  TensorChange* next_ = nullptr;
  bool took_interpreter_ = false;
  bool granted_ = false;
};

// The same as RunningCall for code that reads one tensor or storage by itself.
class InUse {
 public:
  explicit InUse(const Tensor& t) : InUse(Value::of_tensor(t.get())) {}
  explicit InUse(Storage& s) : InUse(pack(&s)) {}
  InUse(const InUse&) = delete;

 private:
  explicit InUse(Value v) : value_(v), call_(&value_, 1) {}
  const Value value_;
  const RunningCall call_;
};

// Functions of the binding for the GIL: a wait for other threads releases it, a change takes it.
struct InterpreterLock {
  void* (*let_go)();  // returns null if the thread did not hold it
  void (*take_back)(void* state);
  bool (*take)();  // false if the thread holds it already
  void (*give)();
};
extern std::atomic<const InterpreterLock*> interpreter_lock;
// Lets go of it for a scope in which this thread waits for others, which may need it to get on.
class WithoutInterpreter {
 public:
  WithoutInterpreter();
  ~WithoutInterpreter();
  WithoutInterpreter(const WithoutInterpreter&) = delete;

 private:
  const InterpreterLock* lock_;
  void* state_ = nullptr;
};

}  // namespace facula
