#include "graph/recorder.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <ranges>

#include "core/pending.h"
#include "dispatch/modes_watch.h"
#include "dispatch/running_calls.h"
#include "graph/schedule.h"
#include "transforms/functional.h"
#include "transforms/replaced_args.h"

namespace facula {
namespace {

// Where put-off calls are cut: what only they hold would be free in a program that is not recorded.
constexpr size_t most_calls = 2000;
constexpr size_t most_touched = size_t{64} << 20;
// Elements of a tensor from which on other Python threads run beside the kernels.
constexpr int64_t large = 32768;

struct Recorders {
  OwnedMutex mutex;
  std::vector<Recorder*> list;
};
// Never destroyed: threads outlive static objects.
Recorders& recorders() {
  static auto* all = new Recorders;
  return *all;
}

Recorder* recorder_here() { return static_cast<Recorder*>(recorder_of_thread); }
// A thread's recorder, which others find on the list.
struct Enlisted {
  Recorder recorder;
  Enlisted() {
    const std::lock_guard lock(recorders().mutex);
    recorders().list.push_back(&recorder);
  }
  ~Enlisted() {
    const std::lock_guard lock(recorders().mutex);
    std::erase(recorders().list, &recorder);
  }
};

thread_local constinit Recorder::Counts counted __attribute__((tls_model("initial-exec"))) = {};

// Takes a mode off the stack; those that a function entered and left on stay.
void take_off(const DispatchMode* mode) {
  if (thread_state.modes == mode) {
    pop_mode();
    return;
  }
  for (DispatchMode* m = thread_state.modes; m; m = m->below)
    if (m->below == mode) m->below = mode->below;
}

// Kernels may call operators, which are not to be recorded, followed or seen by anybody.
class OnlyBackends {
 public:
  OnlyBackends() : exclude_(LayerSet(~0u) - backend_layers) {}

 private:
  const ExcludeLayers exclude_;
};

// Puts the recorder back on the stack, for what a call that runs at once calls in turn.
class StaysOn {
 public:
  explicit StaysOn(DispatchMode* m) { push_mode(m); }
  ~StaysOn() { pop_mode(); }
  StaysOn(const StaysOn&) = delete;
};

// Waiting for another thread that runs put-off calls, which may need the interpreter.
class Running {
 public:
  explicit Running(OwnedMutex& m) : mutex_(m) {
    if (m.try_lock()) return;
    const WithoutInterpreter out;
    m.lock();
  }
  ~Running() { mutex_.unlock(); }
  Running(const Running&) = delete;

 private:
  OwnedMutex& mutex_;
};

class Inside {
 public:
  explicit Inside(int& depth) : depth_(depth) { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;

 private:
  int& depth_;
};

// Whether a result is no tensor: what Python may look at.
bool gives_numbers(const OpInfo& info) {
  return std::ranges::any_of(info.schema.results,
                             [](const Argument& r) { return r.type.kind != TypeKind::Tensor; });
}

// Whether the call may write memory that its schema does not say is new.
bool writes_memory(const OpCall& c) {
  return c.info->mutated || c.op->record->flags & runs_when_called;
}

// A kernel may first read its arguments in its threads, where nothing pending can be computed.
void compute_arguments(const OpCall& c) {
  if (!c.op->record->cpu) return;
  for_each_tensor(*c.info, c.args, [](const Tensor& t, int) {
    if (t->storage && t->storage->is_pending()) compute_pending(*t->storage);
  });
}

PendingCall pending_of(const OpCall& c, const Slot& kernel) {
  PendingCall p{SavedCall(*c.op, c.args), c.info, kernel, c.compute, c.layers};
  if (!p.writes()) p.result_count = c.info->results;
  for (int i = 0; i < p.result_count; ++i)
    if (c.results[i].is_tensor()) p.results[static_cast<size_t>(i)] = c.results[i].as_tensor();
  if (c.op->record->cpu.describes_loop) p.describe();
  return p;
}

// The dtypes that kernels compute in: of others many kernels know nothing, which they say as they
// run.
bool is_common(DType d) {
  constexpr auto bit = [](DType t) { return uint64_t{1} << static_cast<int>(t); };
  constexpr uint64_t common = bit(DType::Float32) | bit(DType::Float64) | bit(DType::Float16) |
                              bit(DType::BFloat16) | bit(DType::Int8) | bit(DType::Int16) |
                              bit(DType::Int32) | bit(DType::Int64) | bit(DType::UInt8) |
                              bit(DType::Bool) | bit(DType::Complex64) | bit(DType::Complex128);
  return common >> static_cast<int>(d) & 1;
}

bool is_plain(const TensorImpl& t) {
  return !t.extension && t.storage && t.device.is_cpu() && t.layout == Layout::Strided &&
         is_common(t.dtype);
}

// Only the list refers to what the call makes.
bool is_dead(const PendingCall& p) {
  if (p.writes()) return false;
  return std::ranges::all_of(p.made(), [](const Tensor& t) {
    return !t.defined() ||
           (reaching_references(*t.get()) == 1 && reaching_references(*t->storage) == 1);
  });
}

void compute_by_others(const Storage& s) {
  Recorders& all = recorders();
  std::vector<Recorder*> list;
  const std::lock_guard lock(all.mutex);
  for (Recorder* r : all.list) {
    if (r != recorder_here()) r->finish();
    if (!s.is_pending()) return;
  }
}

void compute(const Storage& s) {
  if (Recorder* own = recorder_here()) {
    own->tell_break("Python reads the memory of a tensor");
    own->finish();
  }
  if (s.is_pending()) compute_by_others(s);
}

void finish_own() {
  Recorder* own = recorder_here();
  if (!own) return;
  own->tell_break("Python asks for values or memory");
  own->finish();
}

uint32_t references(const TensorImpl& t) {
  const Recorder* own = recorder_here();
  return own ? own->references(t) : 0;
}

constinit const PendingWork work{compute, finish_own, references};

}  // namespace

bool Recorder::open(BreakHook on_break) {
  if (recorder_of_thread || thread_state.modes) return false;
  pending_work.store(&work, std::memory_order_release);
  thread_local Enlisted enlisted;
  Recorder* own = &enlisted.recorder;
  own->on_break_ = on_break;
  open_recorders.fetch_add(1);
  recorder_of_thread = own;
  push_mode(own);
  return true;
}

void Recorder::close() {
  check(recorder_of_thread != nullptr, "no recorder is open on this thread");
  take_off(recorder_of_thread);
  Recorder* own = recorder_here();
  struct Leave {
    ~Leave() {
      recorder_of_thread = nullptr;
      open_recorders.fetch_sub(1);
    }
  } const leave;
  own->finish();
}

bool Recorder::is_open() { return recorder_of_thread != nullptr; }

Recorder::Counts Recorder::counts() { return counted; }

bool Recorder::is_ours(const Storage& s) const {
  const std::lock_guard lock(list_);
  const auto makes = [&](const PendingCall& p) {
    return std::ranges::any_of(
        p.made(), [&](const Tensor& t) { return t.defined() && t->storage.get() == &s; });
  };
  return std::any_of(calls_.rbegin(), calls_.rend(), makes) ||
         std::ranges::any_of(changed_, [&](const Ref<Storage>& r) { return r.get() == &s; });
}

// Whether waiting cannot pay: nothing is put off that the call touches, and there are few elements.
// Where breaks are told, what Python reads must be seen, so all wait.
bool Recorder::is_small(const OpCall& c) const {
  if (on_break_) return false;
  const int64_t least = least_deferred.load(std::memory_order_relaxed);
  bool small = true;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    small = small && t->numel < least && !(t->storage && t->storage->is_pending());
  });
  if (!small || !c.info->mutated) return small;
  const std::lock_guard lock(list_);
  return calls_.empty();  // pending calls may read what this one writes
}

// Whether the call has a kernel that never joins a group, as products have: putting it off saves
// nothing, and what it needs had to be computed before it in any case.
bool Recorder::joins_nothing(const OpCall& c) const {
  const KernelRef& kernel = c.op->record->cpu;
  return !on_break_ && kernel && !kernel.describes_loop;
}

// Memory that others may write without asking is read when the program reads it.
bool Recorder::can_wait(const OpCall& c) const {
  bool can = !c.layers.has(Layer::Subclass) && !c.layers.has(Layer::Layout);
  const bool others = open_recorders.load(std::memory_order_relaxed) > 1;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    if (!can || !is_plain(*t.get())) return void(can = false);
    const Storage& s = *t->storage;
    if (s.is_pending())
      can = !others || is_ours(s);
    else
      can = s.has_memory() && !s.is_foreign();
  });
  return can;
}

uint32_t Recorder::references(const TensorImpl& t) const {
  uint32_t found = 0;
  const std::lock_guard lock(list_);
  for (auto p = calls_.rbegin(); p != calls_.rend(); ++p) {
    for_each_tensor(*p->info, p->saved.args(),
                    [&](const Tensor& each, int) { found += each.get() == &t; });
    for (const Tensor& made : p->made())
      if (made.get() == &t) return found + 1;  // nothing before it knows the tensor
  }
  return found;
}

bool Recorder::holds_much(const OpCall& c) {
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    if (!t->storage->is_pending()) touched_ += t->storage->nbytes();
    large_ |= t->numel > large;
  });
  return touched_ > most_touched || calls_.size() >= most_calls;
}

// Whether the call joins no group after all, and needs nothing that is put off: waiting would only
// keep its arguments alive.
bool Recorder::waits_for_nothing(const OpCall& c, const PendingCall& p) const {
  if (on_break_ || p.joins() || p.writes()) return false;
  bool nothing = true;
  for_each_tensor(*c.info, c.args,
                  [&](const Tensor& t, int) { nothing = nothing && !t->storage->is_pending(); });
  return nothing;
}

void Recorder::run_alone(const OpCall& c, PendingCall& p) {
  ++counted.run_at_once;
  bool is_large = false;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) { is_large |= t->numel > large; });
  const OnlyBackends only;
  const ComputesPending computing;
  std::optional<WithoutInterpreter> beside_others;
  if (is_large) beside_others.emplace();
  p.run();
}

void Recorder::put_off(const OpCall& c, PendingCall&& p) {
  ++counted.recorded;
  const std::lock_guard lock(list_);
  for_each_written(c, [&](const Tensor& t, int) {
    if (t->storage->is_pending()) return;
    changed_.push_back(t->storage);
    t->storage->set_pending();
  });
  calls_.push_back(std::move(p));
}

void Recorder::tell_break(std::string_view reason) {
  if (on_break_ && depth_ == 0) on_break_(reason);
}

void Recorder::run_at_once(OpCall& c) {
  ++counted.run_at_once;
  if (gives_numbers(*c.info)) tell_break(concat(c.op->name(), " gives a number to Python"));
  const Inside inside(depth_);
  if (writes_memory(c)) finish();
  compute_arguments(c);
  const StaysOn on(this);
  redispatch(c, Layer::Modes);
}

void Recorder::handle(OpCall& c) {
  if (!thread_state.modes && any_functional(c)) return run_after_functionalization(c);
  Slot kernel;
  if (is_small(c)) {
    ++counted.run_at_once;
    return redispatch(c, Layer::Modes);
  }
  if (c.info->view && !c.info->mutated) {
    const StaysOn on(this);
    return redispatch(c, Layer::Modes);
  }
  if (c.info->results > PendingCall::most_results || !can_wait(c)) return run_at_once(c);
  if (joins_nothing(c)) {
    ++counted.run_at_once;
    if (writes_memory(c)) finish();  // pending calls may read it
    compute_arguments(c);
    return redispatch(c, Layer::Modes);
  }
  if (!prepare_call(c, pending_tensor, kernel)) return run_at_once(c);
  PendingCall p = pending_of(c, kernel);
  if (waits_for_nothing(c, p)) {
    run_alone(c, p);
    return finish_call(c);
  }
  const bool cut = holds_much(c);
  put_off(c, std::move(p));
  finish_call(c);
  if (cut) finish();
}

// What is dead by now is not computed; its arguments may be dead then, too.
void Recorder::drop_dead(std::vector<PendingCall>& calls) {
  for (PendingCall& p : calls | std::views::reverse) {
    if (!is_dead(p)) continue;
    ++counted.dropped;
    p = {};
  }
}

void Recorder::finish() {
  const Running running(running_);
  std::vector<Ref<Storage>> changed;
  bool leave_interpreter;
  if (!calls_run_.empty()) return;  // asked for by what runs now
  {
    const std::lock_guard lock(list_);
    if (calls_.empty()) return;
    calls_run_.swap(calls_);
    changed.swap(changed_);
    touched_ = 0;
    leave_interpreter = std::exchange(large_, false);
  }
  struct Settle {
    ~Settle() {
      for (const Ref<Storage>& s : changed)
        if (s) s->settle();
      calls.clear();
    }
    const std::vector<Ref<Storage>>& changed;
    std::vector<PendingCall>& calls;
  } const settle{changed, calls_run_};
  ++counted.runs;
  const OnlyBackends only;
  const ComputesPending computing;
  drop_dead(calls_run_);
  std::optional<WithoutInterpreter> beside_others;
  if (leave_interpreter) beside_others.emplace();
  Schedule schedule;
  for (PendingCall& p : calls_run_)
    if (p.info) schedule.add(p);
  const Schedule::Counts counts = schedule.run(changed);
  counted.fused += counts.fused;
  counted.groups += counts.groups;
}

}  // namespace facula
