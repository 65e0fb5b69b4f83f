// The operators that a stored program calls, one after the other.
//
// They are taken down as the binding calls them: above autograd, with composites whole. Calling
// them again on other tensors is therefore the same as running the Python code that called them.
#pragma once
#include <map>
#include <set>

#include "bindings/skip/watches.h"
#include "dispatch/call.h"

namespace facula::python {

// Where a tensor comes from.
struct Slot {
  enum Kind : uint8_t { Input, Held, Made } kind;
  uint32_t index;
};

// A call with its arguments but for the tensors.
struct Step {
  struct Patch {
    int arg;
    int item;  // in a list of tensors; -1 for a tensor by itself
    Slot slot;
  };
  struct List {
    int arg;
    uint32_t length;
  };
  struct Result {
    bool is_list = false;
    uint32_t first = 0, count = 0;  // of the tensors made
  };
  SavedCall call;
  std::vector<Patch> patches;
  std::vector<List> lists;
  std::vector<Result> results;
  std::vector<uint32_t> last_used;  // tensors made that no later step needs
};

// The tensors that a program runs on.
struct Tensors {
  TensorImpl* const* inputs;
  const Watches* held;
  Tensor* made;
  TensorImpl* at(Slot s) const {
    if (s.kind == Slot::Made) return made[s.index].get();
    return s.kind == Slot::Input ? inputs[s.index] : impl_of(held->tensor(s.index));
  }
};

class Steps {
 public:
  // Calls all operators. Throws what they raise, and what signal handlers raise.
  void run(const Tensors& t) const;
  uint32_t made() const { return made_; }
  size_t count() const { return list_.size(); }
  // Whether an error may be met again by running the Python code from its beginning.
  bool can_repeat() const { return !has_effects_; }

 private:
  friend class StepRecorder;
  std::vector<Step> list_;
  uint32_t made_ = 0;
  bool has_effects_ = false;
};

// Takes down the calls of this thread in its scope.
class StepRecorder final : public DispatchMode {
 public:
  StepRecorder() : inner_(*this) {}
  void begin();
  void end();
  void handle(OpCall& c) override;

  // Makes a tensor known.
  void know(const Tensor& t, Slot slot);
  const Slot* slot_of(const TensorImpl* t) const;
  // Whether its geometry follows from that of others, not from data.
  bool has_known_geometry(const TensorImpl* t) const { return !from_data_.contains(t); }
  // Forgets which tensors were used, and whether one was used since, as a tensor and not as the
  // number in it.
  void forget_used() { used_.clear(); }
  bool was_used(const TensorImpl* t) const { return used_.contains(t); }
  // Why what has been called cannot be a program; empty if it can.
  const std::string& failure() const { return failure_; }
  // The program; tensors of `outputs` live to its end.
  Steps finish(const std::vector<Slot>& outputs);

 private:
  // Sees what composites and kernels call in turn.
  struct Inner final : DispatchMode {
    explicit Inner(StepRecorder& o) : outer(o) {}
    void handle(OpCall& c) override;
    StepRecorder& outer;
  };
  void look(const OpCall& c);
  void fail(std::string why);
  bool take_arguments(const OpCall& c, Step& s);
  bool take_tensor_argument(const Tensor& t, int arg, int item, Step& s);
  void take_results(const OpCall& c, Step& s);
  void note_made(const Tensor& t);
  void note_writes(const OpCall& c);
  void forget_dead();

  Inner inner_;
  Steps steps_;
  std::string failure_;
  bool data_read_ = false;  // by the call that is taken down
  bool on_ = false;
  struct Known {
    Tensor tensor;  // so that its address stays taken
    Slot slot;
  };
  std::map<const TensorImpl*, Known> known_;
  std::set<const TensorImpl*> from_data_, used_;
  std::set<const Storage*> outside_;  // memory of inputs and held tensors
};

}  // namespace facula::python
