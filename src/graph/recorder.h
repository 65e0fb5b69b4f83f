// The recorder behind compile(): while one is open on a thread, kernels are put off.
//
// A call runs through every layer above - autograd makes its nodes, versions count, shape rules
// raise where they would - but at the end results are headers over pending storage, and the kernel
// waits in a list. The list runs when somebody asks for pending memory, when a call cannot wait
// that writes, and when the recorder closes. Hence a compiled function is its own Python code,
// with the same values and errors, and what runs in between may be fused (graph/rows.h).
#pragma once
#include <string_view>
#include <vector>

#include "core/locks.h"
#include "graph/pending_call.h"
#include "transforms/inner_mode.h"

namespace facula {

class Recorder final : public InnerMode {
 public:
  // Called before put-off calls run because the program needs a value: a break, with its reason.
  using BreakHook = void (*)(std::string_view reason);
  // Opens the recorder of this thread. False where there is one already, and where modes are on
  // the stack, which are to see calls as they are made.
  static bool open(BreakHook on_break = nullptr);
  // Runs what is left and closes it.
  static void close();
  // Whether one is open on this thread.
  static bool is_open();

  void handle(OpCall& c) override;
  // Runs all that was put off. Whatever a kernel raises leaves what follows it uncomputed.
  void finish();
  // How many references to a tensor put-off calls hold.
  uint32_t references(const TensorImpl& t) const;
  // Tells the hook of a break, unless it is a call of an operator that reads what is pending.
  void tell_break(std::string_view reason);

  struct Counts {
    uint64_t recorded = 0, run_at_once = 0, dropped = 0, fused = 0, groups = 0, runs = 0;
  };
  // Of this thread, since it began.
  static Counts counts();

 private:
  bool is_small(const OpCall& c) const;
  bool joins_nothing(const OpCall& c) const;
  bool can_wait(const OpCall& c) const;
  bool is_ours(const Storage& s) const;
  bool waits_for_nothing(const OpCall& c, const PendingCall& p) const;
  static void run_alone(const OpCall& c, PendingCall& p);
  void put_off(const OpCall& c, PendingCall&& p);
  void run_at_once(OpCall& c);
  static void drop_dead(std::vector<PendingCall>& calls);
  bool holds_much(const OpCall& c);

  BreakHook on_break_ = nullptr;
  int depth_ = 0;          // of calls that it handles
  OwnedMutex running_;     // held while put-off calls run, in their order
  mutable SpinLock list_;  // guards calls_ and changed_
  std::vector<PendingCall> calls_;
  std::vector<PendingCall> calls_run_;  // those that run now
  std::vector<Ref<Storage>> changed_;   // that had memory before pending calls wrote to them
  size_t touched_ = 0;                  // bytes of inputs
  bool large_ = false;                  // a call takes long
};

}  // namespace facula
