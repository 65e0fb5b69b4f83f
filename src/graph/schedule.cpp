#include "graph/schedule.h"

#include <algorithm>

#include "graph/units.h"
#include "transforms/replaced_args.h"

namespace facula {
namespace {

// f(storage, whether it is written) for all that the call reads and writes.
template <class F>
void for_each_use(const PendingCall& p, F&& f) {
  for_each_tensor(*p.info, p.saved.args(),
                  [&](const Tensor& t, int arg) { f(t->storage.get(), is_written(*p.info, arg)); });
  for (const Tensor& t : p.made())
    if (t.defined()) f(t->storage.get(), true);
}

}  // namespace

// The last unit before which the call must not run.
int Schedule::last_in_the_way(const PendingCall& p) const {
  int last = -1;
  for_each_use(p, [&](const Storage* s, bool written) {
    const auto it = uses_.find(s);
    if (it == uses_.end()) return;
    last = std::max(last, it->second.write);
    if (written) last = std::max(last, it->second.read);
  });
  return last;
}

// The unit that takes the call: a group from `first` on, or a new one.
int Schedule::place(PendingCall& p, int first) {
  const int count = static_cast<int>(steps_.size());
  const int end = std::max(first, std::max(0, count - most_looked_at));
  if (p.joins())
    for (int i = count - 1; i >= end; --i)
      if (Step& u = steps_[static_cast<size_t>(i)]; !u.call && u.group.add(p)) return i;
  Step& u = steps_.emplace_back();
  if (!u.group.add(p)) u.call = &p;
  return count;
}

void Schedule::note(const PendingCall& p, int step) {
  for_each_use(p, [&](const Storage* s, bool written) {
    int& last = written ? uses_[s].write : uses_[s].read;
    last = std::max(last, step);
  });
}

void Schedule::add(PendingCall& p) { note(p, place(p, last_in_the_way(p))); }

// Storages in the order of the last steps that use them.
class Schedule::LastUses {
 public:
  LastUses(const Schedule& schedule, std::vector<Ref<Storage>>& changed) {
    for (Ref<Storage>& s : changed)
      if (const auto it = schedule.uses_.find(s.get()); it != schedule.uses_.end())
        uses_.push_back({std::max(it->second.write, it->second.read), &s});
    std::ranges::sort(uses_, {}, &Use::step);
  }
  // A step has run.
  void after(int step) {
    for (; next_ < uses_.size() && uses_[next_].step <= step; ++next_) {
      (*uses_[next_].storage)->settle();
      *uses_[next_].storage = {};
    }
  }

 private:
  struct Use {
    int step;
    Ref<Storage>* storage;
  };
  std::vector<Use> uses_;
  size_t next_ = 0;
};

Schedule::Counts Schedule::run(std::vector<Ref<Storage>>& changed) {
  LastUses uses(*this, changed);
  if (notes_units()) return run_noting(uses);
  Counts counts;
  int step = 0;
  for (Step& u : steps_) {
    if (u.call) {
      u.call->run();
      *u.call = {};
    } else {
      const size_t together = u.group.run();
      counts.fused += together;
      counts.groups += together > 0;
    }
    uses.after(step++);
  }
  return counts;
}

// The same with notes of what runs.
Schedule::Counts Schedule::run_noting(LastUses& uses) {
  Counts counts;
  int step = -1;
  for (Step& u : steps_) {
    uses.after(step++);
    const int64_t start = steady_now();
    if (u.call) {
      Unit unit = unit_of(*u.call);
      u.call->run();
      note_unit(std::move(unit), start);
      *u.call = {};
      continue;
    }
    Unit unit = unit_of(u.group);
    std::vector<Unit> alone;
    u.group.for_each_call([&](const PendingCall& p) { alone.push_back(unit_of(p)); });
    const size_t together = u.group.run();
    counts.fused += together;
    counts.groups += together > 0;
    if (together) {
      note_unit(std::move(unit), start);
      continue;
    }
    for (size_t i = 0; i < alone.size(); ++i)
      note_unit(std::move(alone[i]), i == 0 ? start : steady_now());
  }
  return counts;
}

}  // namespace facula
