#include "graph/units.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "transforms/replaced_args.h"

namespace facula {
namespace {

struct Notes {
  bool on = false;
  std::vector<Unit> units;
};
thread_local Notes notes;

uint64_t bytes_of(const Tensor& t) { return static_cast<uint64_t>(t->numel) * itemsize(t.dtype()); }

// Adds what a call reads and writes by itself; returns the sum.
uint64_t add_traffic(const PendingCall& p, Unit& to) {
  uint64_t read = 0, written = 0;
  for_each_tensor(*p.info, p.saved.args(), [&](const Tensor& t, int arg) {
    (is_written(*p.info, arg) ? written : read) += bytes_of(t);
  });
  for (const Tensor& t : p.made())
    if (t.defined()) written += bytes_of(t);
  to.bytes_read += read;
  to.bytes_written += written;
  return read + written;
}

void name(const PendingCall& p, Unit& unit) {
  unit.calls.emplace_back(p.saved.op()->name());
  if (unit.calls.size() == 1 && p.result_count > 0)
    unit.sizes.assign(p.results[0].sizes().begin(), p.results[0].sizes().end());
}

}  // namespace

void note_units(bool on) {
  notes.on = on;
  notes.units.clear();
}
bool notes_units() { return notes.on; }
std::vector<Unit> take_units() { return std::exchange(notes.units, {}); }

int64_t steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

Unit unit_of(const PendingCall& p) {
  Unit unit;
  name(p, unit);
  unit.bytes_alone = add_traffic(p, unit);
  return unit;
}

Unit unit_of(RowGroup& group) {
  Unit unit, alone;
  group.for_each_call([&](const PendingCall& p) {
    name(p, unit);
    unit.bytes_alone += add_traffic(p, alone);
  });
  std::vector<const TensorImpl*> seen;
  group.for_each_access([&](const Tensor& t, bool written) {
    if (!written && std::ranges::find(seen, t.get()) != seen.end()) return;
    seen.push_back(t.get());
    (written ? unit.bytes_written : unit.bytes_read) += bytes_of(t);
  });
  return unit;
}

void note_unit(Unit unit, int64_t start) {
  unit.start = start;
  unit.nanoseconds = steady_now() - start;
  notes.units.push_back(std::move(unit));
}

}  // namespace facula
