// Keeps calls that read tensors apart from changes of what tensors lie over.
//
// While a thread holds its interpreter's lock, nobody changes a tensor under the call it runs.
// Threads that work without that lock count themselves (UnlockedThread), and while there are any,
// a running call is listed with its arguments (RunningCall). Whoever gives a tensor other memory or
// geometry (TensorChange) holds the interpreter's lock, since whoever has that lock reads tensors
// without listing a call, and waits until no other thread's call uses the tensor or its storage.
// Listing a call takes two plain stores: the price of their order is paid by changes.
#pragma once
#include <atomic>

#include "dispatch/value.h"

namespace facula {

struct ThreadCalls;

// Threads that work without the interpreter's lock. Counted up by whoever holds the lock, so the
// count is 0 all the time that a holder sees it so.
extern constinit std::atomic<int> unlocked_threads;
inline bool calls_may_race() { return unlocked_threads.load(std::memory_order_relaxed) > 0; }

// For a scope, the arguments are in use on this thread. They outlive the scope.
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
  RunningCall* below_ = nullptr;   // the call of this thread inside of which this one runs
  ThreadCalls* thread_ = nullptr;  // null where nothing can race
};

// For a scope, no other thread's call uses the tensor or its storage: it waits for those that run,
// and those that begin wait for the end of the scope. Changes that wait for each other, each from
// inside a call that the other waits for, raise RuntimeError.
class TensorChange {
 public:
  // `other`: a storage that the change touches beside the tensor's own.
  explicit TensorChange(const TensorImpl& t, const Storage* other = nullptr)
      : tensor_(&t), storage_(other) {
    if (calls_may_race()) begin();
  }
  explicit TensorChange(const Storage& s) : storage_(&s) {
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

// The interpreter's lock: a wait for other threads lets go of it, a change takes it.
struct InterpreterLock {
  void* (*let_go)();  // null when the thread did not hold it
  void (*take_back)(void* state);
  bool (*take)();  // false when the thread holds it already
  void (*give)();
};
extern std::atomic<const InterpreterLock*> interpreter_lock;

}  // namespace facula
