// The two stacks of modes: one below autograd, for user modes, functionalization, tracing and fake
// tensors, and one above it.
#include "transforms/functional.h"
#include "transforms/inner_mode.h"
#include "transforms/layers.h"

namespace facula {
namespace {

struct ModeStack {
  DispatchMode** top;
  Layer layer;
};

void set_top(const ModeStack& s, DispatchMode* m) {
  *s.top = m;
  if (m)
    thread_state.include |= s.layer;
  else
    thread_state.include -= s.layer;
}

// Removes the top mode for a scope.
class WithoutTopMode {
 public:
  explicit WithoutTopMode(const ModeStack& s) : stack_(s), mode_(*s.top) {
    set_top(s, mode_->below);
  }
  // Onto what is the stack by then: the handler may have taken off modes below.
  ~WithoutTopMode() {
    mode_->below = *stack_.top;
    set_top(stack_, mode_);
  }
  WithoutTopMode(const WithoutTopMode&) = delete;
  DispatchMode& mode() { return *mode_; }

 private:
  ModeStack stack_;
  DispatchMode* mode_;
};

void handle_top(OpCall& c, const ModeStack& s) {
  // The last mode may have been popped after this call computed its layers.
  if (!*s.top) return redispatch(c, s.layer);
  WithoutTopMode without(s);
  without.mode().handle(c);
}

ModeStack pre_autograd_stack() {
  return {&thread_state.pre_autograd_modes, Layer::PreAutogradTrace};
}

}  // namespace

void modes_layer(OpCall& c) {
  if (!thread_state.modes && any_functional(c)) return run_after_functionalization(c);
  const bool on_subclass = c.layers.has(Layer::Subclass);
  if (on_subclass && dynamic_cast<InnerMode*>(thread_state.modes))
    return redispatch(c, Layer::Modes);
  handle_top(c, {&thread_state.modes, Layer::Modes});
}
void pre_autograd_layer(OpCall& c) { handle_top(c, pre_autograd_stack()); }

void push_pre_autograd_mode(DispatchMode* m) {
  m->below = thread_state.pre_autograd_modes;
  set_top(pre_autograd_stack(), m);
}

DispatchMode* pop_pre_autograd_mode() {
  DispatchMode* m = thread_state.pre_autograd_modes;
  check(m != nullptr, "pop_pre_autograd_mode(): the stack of modes above autograd is empty");
  set_top(pre_autograd_stack(), m->below);
  return m;
}

}  // namespace facula
