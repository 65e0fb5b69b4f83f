#include "dispatch/mutations.h"

#include <memory>

namespace facula {
namespace {

constexpr uint32_t kept = 512;  // a power of two

struct Ring {
  Mutation entries[kept];
  uint32_t next = 0;
};
// By pointer: threads that change nothing pay nothing.
thread_local constinit Ring* ring __attribute__((tls_model("initial-exec"))) = nullptr;

Ring& own_ring() {
  thread_local const std::unique_ptr<Ring> owner = std::make_unique<Ring>();
  return *(ring = owner.get());
}

const void* counter_of(const TensorImpl& t) {
  return t.shared_version ? static_cast<const void*>(t.shared_version.get()) : &t;
}

}  // namespace

void refuse_out_gradient(const OpCall& c) {
  throw Error(ErrorKind::Runtime, c.info->schema.name,
              "(): functions with out=... arguments don't support automatic differentiation, but "
              "one of the arguments requires grad.");
}

void give_written(OpCall& c) {
  for (int k = 0; k < c.info->results; ++k) {
    const int from = written_argument(*c.info, k);
    if (from < 0 || !c.args[from].is_tensor()) continue;
    Value& slot = c.results[k];
    if (slot.is_tensor() && slot.tensor == c.args[from].tensor) continue;
    if (slot.spare == lends_argument)
      slot = Value::of_tensor(c.args[from].tensor);
    else
      set_result(slot, c.tensor(from));
  }
}

void bump_written(const OpCall& c) {
  if (c.op->record->flags & no_version_bump) return;
  for_each_written(c, [](const Tensor& t, int) {
    if (!t->inference) t->bump_version();
  });
}

void check_written_length(const OpCall& c, int arg, size_t computed) {
  check(c.args[arg].length == computed, c.info->schema.name,
        "(): ", c.info->schema.args[static_cast<size_t>(arg)].name, "= must be a list of ",
        computed, " tensors; got ", c.args[arg].length);
}

constinit std::atomic<SourceLine> source_line{nullptr};

void note_mutation(const TensorImpl& t, const Operator* op) {
  Ring& r = ring ? *ring : own_ring();
  Mutation& m = r.entries[r.next++ & (kept - 1)];
  m.counter = counter_of(t);
  m.version = t.current_version();
  m.op = op;
  const SourceLine line = source_line.load(std::memory_order_relaxed);
  if (line || !m.line.empty()) [[unlikely]]
    m.line = line ? line() : std::string();
}

const Mutation* find_mutation(const TensorImpl& t, uint32_t version) {
  if (!ring) return nullptr;
  for (uint32_t back = 1; back <= kept; ++back) {
    const Mutation& m = ring->entries[(ring->next - back) & (kept - 1)];
    if (m.version == version && (m.counter == counter_of(t) || m.counter == &t)) return &m;
  }
  return nullptr;
}

}  // namespace facula
