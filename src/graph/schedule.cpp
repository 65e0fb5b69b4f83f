#include "graph/schedule.h"

#include <algorithm>

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
  const int count = static_cast<int>(units_.size());
  const int end = std::max(first, std::max(0, count - most_looked_at));
  if (p.joins())
    for (int i = count - 1; i >= end; --i)
      if (Unit& u = units_[static_cast<size_t>(i)]; !u.call && u.group.add(p)) return i;
  Unit& u = units_.emplace_back();
  if (!u.group.add(p)) u.call = &p;
  return count;
}

void Schedule::note(const PendingCall& p, int unit) {
  for_each_use(p, [&](const Storage* s, bool written) {
    int& last = written ? uses_[s].write : uses_[s].read;
    last = std::max(last, unit);
  });
}

void Schedule::add(PendingCall& p) { note(p, place(p, last_in_the_way(p))); }

Schedule::Counts Schedule::run() {
  Counts counts;
  for (Unit& u : units_) {
    if (u.call) {
      u.call->run();
      *u.call = {};
      continue;
    }
    const size_t together = u.group.run();
    counts.fused += together;
    counts.groups += together > 0;
  }
  return counts;
}

}  // namespace facula
