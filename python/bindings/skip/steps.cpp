#include "bindings/skip/steps.h"

#include <algorithm>

#include "core/inline_vector.h"
#include "dispatch/mutations.h"
#include "graph/pending_call.h"
#include "transforms/layers.h"

namespace facula::python {
namespace {

// Arguments that are the same at each call, or tensors.
bool is_plain(const Value& v) {
  switch (v.tag) {
    case Tag::Generator:
    case Tag::Storage:
    case Tag::ValueList:
    case Tag::Object:
    case Tag::Tuple:
    case Tag::Dict:
      return false;
    default:
      return true;
  }
}

bool gives_tensors(const OpInfo& info) {
  return std::ranges::all_of(info.schema.results,
                             [](const Argument& r) { return r.type.kind == TypeKind::Tensor; });
}

// Whether the call's results have sizes that its arguments' geometry does not tell.
bool reads_data(const OpCall& c) {
  const OpRecord& r = *c.op->record;
  if (r.flags & shape_from_data || !gives_tensors(*c.info)) return true;
  for (int i = 0; i < c.info->args; ++i) {
    if (c.args[i].tag != Tag::TensorList) continue;
    for (const Tensor& t : c.args[i].as_tensors())
      if (t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::UInt8)) return true;
  }
  return false;
}

// The values of a call that runs: those of the step with its tensors put in.
class Arguments {
 public:
  Arguments(const Step& s, const Tensors& from) {
    const int n = s.call.size();
    for (int i = 0; i < n; ++i) values_.push_back(s.call.args()[i]);
    size_t room = 0;
    for (const Step::List& l : s.lists) room += l.length;
    lists_.reserve(room);
    for (const Step::List& l : s.lists) {
      Value& v = values_[static_cast<size_t>(l.arg)];
      v = Value();
      v.tag = Tag::TensorList;
      v.length = l.length;
      v.tensors = reinterpret_cast<const Tensor*>(lists_.end());
      for (uint32_t k = 0; k < l.length; ++k) lists_.push_back(nullptr);
    }
    for (const Step::Patch& p : s.patches) {
      Value& v = values_[static_cast<size_t>(p.arg)];
      if (p.item < 0)
        v = Value::of_tensor(from.at(p.slot));
      else
        const_cast<TensorImpl**>(reinterpret_cast<TensorImpl* const*>(v.tensors))[p.item] =
            from.at(p.slot);
    }
  }
  Value* values() { return values_.begin(); }

 private:
  InlineVector<Value, 12> values_;
  InlineVector<TensorImpl*, 8> lists_;
};

class ResultRoom {
 public:
  explicit ResultRoom(size_t n) {
    for (size_t i = 0; i < n; ++i) slots_.push_back({});
  }
  ResultRoom(const ResultRoom&) = delete;
  ~ResultRoom() {
    for (Value& v : slots_) facula::clear(v);
  }
  Value* slots() { return slots_.begin(); }

 private:
  InlineVector<Value, 3> slots_;
};

void store_results(const Step& s, Value* slots, Tensor* made) {
  for (size_t i = 0; i < s.results.size(); ++i) {
    const Step::Result& r = s.results[i];
    if (r.is_list) {
      std::vector<Tensor> list = take_tensors(slots[i]);
      check(list.size() == r.count, "a stored program gave another number of tensors");
      std::ranges::move(list, made + r.first);
    } else if (r.count) {
      made[r.first] = take_tensor(slots[i]);
      check(made[r.first].defined(), "a stored program gave no tensor");
    }
  }
}

}  // namespace

void Steps::run(const Tensors& t) const {
  for (const Step& s : list_) {
    if (PyErr_CheckSignals() < 0) [[unlikely]]
      throw_python();
    Arguments args(s, t);
    ResultRoom results(s.results.size());
    call(*s.call.op(), args.values(), results.slots());
    store_results(s, results.slots(), t.made);
    for (const uint32_t i : s.last_used) t.made[i].reset();
  }
}

// --- taking down

void StepRecorder::begin() {
  push_pre_autograd_mode(this);
  on_ = true;
}

void StepRecorder::end() {
  if (!on_) return;
  on_ = false;
  if (thread_state.pre_autograd_modes == this) pop_pre_autograd_mode();
}

void StepRecorder::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void StepRecorder::know(const Tensor& t, Slot slot) {
  known_.insert_or_assign(t.get(), Known{t, slot});
  if (slot.kind != Slot::Made && t->storage) outside_.insert(t->storage.get());
}

const Slot* StepRecorder::slot_of(const TensorImpl* t) const {
  const auto found = known_.find(t);
  return found == known_.end() ? nullptr : &found->second.slot;
}

void StepRecorder::look(const OpCall& c) {
  data_read_ |= reads_data(c);
  if (c.op->record->flags & (random | runs_when_called)) steps_.has_effects_ = true;
}

void StepRecorder::Inner::handle(OpCall& c) {
  outer.look(c);
  push_pre_autograd_mode(this);
  struct Pop {
    ~Pop() { pop_pre_autograd_mode(); }
  } const pop;
  redispatch(c, Layer::PreAutogradTrace);
}

// Lets go of results that nobody else can reach, so that a reading needs no more memory than a
// call.
void StepRecorder::forget_dead() {
  std::erase_if(known_, [&](const auto& known) {
    if (known.second.slot.kind != Slot::Made) return false;
    if (reaching_references(*known.first) > 1) return false;
    from_data_.erase(known.first);
    return true;
  });
}

void StepRecorder::handle(OpCall& c) {
  forget_dead();
  Step s;
  data_read_ = false;
  look(c);
  if (!gives_tensors(*c.info)) fail(concat(c.op->name(), " gives a number to Python"));
  const bool taken = failure_.empty() && take_arguments(c, s);
  {
    push_pre_autograd_mode(&inner_);
    struct Pop {
      ~Pop() { pop_pre_autograd_mode(); }
    } const pop;
    redispatch(c, Layer::PreAutogradTrace);
  }
  if (!taken) return;
  note_writes(c);
  take_results(c, s);
  steps_.list_.push_back(std::move(s));
}

bool StepRecorder::take_tensor_argument(const Tensor& t, int arg, int item, Step& s) {
  const auto found = known_.find(t.get());
  if (found == known_.end()) {
    fail("a tensor of unknown origin is used");
    return false;
  }
  if (!TensorFacts::describe(*t.get())) {
    fail("a tensor of a special kind is used");
    return false;
  }
  data_read_ |= from_data_.contains(t.get());
  used_.insert(t.get());
  s.patches.push_back({arg, item, found->second.slot});
  return true;
}

bool StepRecorder::take_arguments(const OpCall& c, Step& s) {
  for (int i = 0; i < c.info->args; ++i) {
    const Value& v = c.args[i];
    if (!is_plain(v)) {
      fail(concat(c.op->name(), " takes an argument that is no tensor and no number"));
      return false;
    }
    if (v.is_tensor() && !take_tensor_argument(v.as_tensor(), i, -1, s)) return false;
    if (v.tag != Tag::TensorList) continue;
    s.lists.push_back({i, v.length});
    for (uint32_t k = 0; k < v.length; ++k)
      if (v.tensors[k].defined() && !take_tensor_argument(v.tensors[k], i, static_cast<int>(k), s))
        return false;
  }
  s.call = SavedCall(*c.op, c.args, 0);
  return true;
}

// What others can see written cannot be written twice.
void StepRecorder::note_writes(const OpCall& c) {
  for_each_written(c, [&](const Tensor& t, int) {
    if (!t->storage || outside_.contains(t->storage.get())) steps_.has_effects_ = true;
  });
}

void StepRecorder::note_made(const Tensor& t) {
  if (data_read_) from_data_.insert(t.get());
  const uint32_t at = steps_.made_++;
  // A result that is an argument keeps the place that it had.
  if (!known_.contains(t.get())) know(t, {Slot::Made, at});
}

void StepRecorder::take_results(const OpCall& c, Step& s) {
  for (int i = 0; i < c.info->results; ++i) {
    const Value& v = c.results[i];
    Step::Result r;
    r.first = steps_.made_;
    if (v.is_tensor()) {
      r.count = 1;
      note_made(v.as_tensor());
    } else if (v.tag == Tag::TensorList) {
      if (data_read_) fail(concat(c.op->name(), " gives as many tensors as data say"));
      r.is_list = true;
      r.count = v.length;
      for (const Tensor& t : v.as_tensors()) {
        check(t.defined(), "a list of results has a gap");
        note_made(t);
      }
    }
    s.results.push_back(r);
  }
}

Steps StepRecorder::finish(const std::vector<Slot>& outputs) {
  const size_t n = steps_.list_.size();
  std::vector<size_t> last(steps_.made_, 0);
  for (size_t at = 0; at < n; ++at) {
    for (const Step::Result& r : steps_.list_[at].results)
      for (uint32_t i = r.first; i < r.first + r.count; ++i) last[i] = at;
    for (const Step::Patch& p : steps_.list_[at].patches)
      if (p.slot.kind == Slot::Made) last[p.slot.index] = at;
  }
  for (const Slot& o : outputs)
    if (o.kind == Slot::Made) last[o.index] = n;
  for (uint32_t i = 0; i < steps_.made_; ++i)
    if (last[i] < n) steps_.list_[last[i]].last_used.push_back(i);
  known_.clear();
  return std::move(steps_);
}

}  // namespace facula::python
