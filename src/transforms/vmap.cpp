// The vmap layer: uses the record's batching rule, else runs a composite's operators, else loops
// over the samples.
#include "core/random.h"
#include "dispatch/batch.h"
#include "dispatch/batch_families.h"
#include "dispatch/mutations.h"
#include "dispatch/operator_text.h"
#include "ops/create/copy.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "transforms/batch_loop.h"
#include "transforms/interpreters.h"
#include "transforms/replaced_args.h"

namespace facula {

struct Batch::Kept {
  std::deque<Tensor> tensors;
  std::deque<std::vector<Tensor>> lists;
  std::deque<IntVec> ints;
};

namespace {

const TransformWrapper* batched_at(const Tensor& t, int64_t level) {
  const TransformWrapper* w = transform_wrapper(t);
  return w && w->level == level ? w : nullptr;
}

Tensor expanded(const Tensor& t, int64_t n) {
  IntVec sizes(t.sizes());
  sizes.insert(0, n);
  return ops::expand(t, sizes);
}

}  // namespace

Batch::Batch(const OpCall& c, int64_t level, int64_t n)
    : call_(c), level_(level), size_(n), kept_(new Kept) {
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int i) {
    if (batched_at(t, level)) batched_ |= 1u << i;
  });
  for (int i = 0; i < c.info->args; ++i) {
    values_[i] = c.args[i];
    if (!batched(i)) continue;
    if (values_[i].is_tensor()) {
      set(i, Tensor(batched_at(c.tensor(i), level)->value));
      continue;
    }
    // If one element of a list is batched, all get the batch dimension, which makes rules simpler.
    std::vector<Tensor> list;
    const WithoutTop below;
    for (const Tensor& t : c.args[i].as_tensors()) {
      const TransformWrapper* w = t.defined() ? batched_at(t, level) : nullptr;
      list.push_back(w ? Tensor(w->value) : t.defined() ? expanded(t, n) : t);
    }
    set(i, std::move(list));
  }
}

Batch::~Batch() { delete kept_; }

int Batch::arg(Name n) const {
  const std::vector<Argument>& args = info().schema.args;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name_hash == n.hash) return static_cast<int>(i);
  return -1;
}

void Batch::set(int i, Tensor t) { values_[i] = pack(kept_->tensors.emplace_back(std::move(t))); }
void Batch::set(int i, std::vector<Tensor> list) {
  values_[i] = pack(std::span<const Tensor>(kept_->lists.emplace_back(std::move(list))));
}
void Batch::set(int i, IntVec v) {
  values_[i] = pack(IntSpan(kept_->ints.emplace_back(std::move(v))));
}

void Batch::expand(int i) {
  if (batched(i) || !values_[i].is_tensor()) return;
  set(i, expanded(tensor(i), size_));
  batched_ |= 1u << i;
}

void Batch::loop() { run_loop(*this, call_, false); }
void Batch::run() { call(*call_.op, values_, results_.slots); }

void Batch::set_result(int k, Tensor t) { facula::set_result(results_.slots[k], std::move(t)); }
void Batch::set_result(int k, std::vector<Tensor> list) {
  facula::set_result(results_.slots[k], std::move(list));
}

void Batch::finish(Value* results) {
  const auto wrapped = [this](const Tensor& t) {
    // What a kernel leaves empty, because nobody asked for it, it leaves so for each example.
    const bool nothing = t.dim() == 1 && t.numel() == 0 && size_ > 0;
    if (nothing) return wrap_for_level(expanded(t, size_), level_, true);
    // A mode's handler below may have returned anything.
    check(t.dim() > 0 && t.sizes()[0] == size_, call_.op->name(),
          "(): expected a result for each of the ", size_, " examples of vmap(); got shape ",
          str(t.sizes()));
    return wrap_for_level(t, level_, true);
  };
  for (int k = 0; k < info().results; ++k) {
    Value& v = results_.slots[k];
    const int from = written_argument(info(), k);
    if (from >= 0 && call_.args[from].is_tensor()) {
      facula::set_result(results[k], call_.tensor(from));
    } else if (v.is_tensor()) {
      facula::set_result(results[k], wrapped(v.as_tensor()));
    } else if (v.tag == Tag::TensorList) {
      std::vector<Tensor> list;
      for (const Tensor& t : v.as_tensors()) list.push_back(t.defined() ? wrapped(t) : t);
      facula::set_result(results[k], std::move(list));
    } else {
      clear(results[k]);
      std::swap(results[k], v);
    }
  }
}

namespace {

// --- in-place and out= variants, by the base variant

void check_writable(const OpCall& c, int64_t level) {
  for_each_written(c, [&](const Tensor& t, int) {
    check(batched_at(t, level), "vmap: ", *c.op,
          " would write a batch into a tensor that has none: self is not "
          "vmapped over, an argument is; use the out-of-place form");
  });
}

void run_pure_and_copy(OpCall& c, const Operator& pure) {
  Results<8> computed;
  call(pure, c.args, computed.slots);
  store_written(c, computed.slots,
                [](const Tensor& to, const Tensor& fresh) { ops::copy_(to, fresh); });
}

// squeeze_ and the like: runs the view operator and gives the wrapper its result as the new value.
void change_geometry(OpCall& c) {
  const Operator* view = c.op->partner(Partner::View);
  if (!view)
    throw Error(ErrorKind::NotImplemented, "vmap: ", c.op->name(),
                "() on a batched tensor is not implemented");
  Results<1> computed;
  call(*view, c.args, computed.slots);
  const Tensor changed = take_tensor(computed.slots[0]);
  transform_wrapper(c.tensor(0))->value = transform_wrapper(changed)->value;
  refresh_wrapper(c.tensor(0));
  set_result(c.results[0], c.tensor(0));
}

BatchRule rule_of(const OpCall& c) {
  if (c.op->record->batch) return c.op->record->batch;
  return c.op->record->flags & pointwise ? &batch::pointwise : nullptr;
}

// --- random numbers

void check_randomness(Randomness r) {
  check(r != Randomness::Error,
        "vmap: called random operation with randomness='error'; pass 'same' or 'different', or "
        "draw outside of vmap");
}

// Randomness "different" without batched arguments: draws for all samples at once.
void draw_for_each(Batch& b, const OpCall& c) {
  const int at = c.info->schema.index_of(c.op->record->sizes.list[0]);
  if (at >= 0 && b.value(at).tag == Tag::IntList) {
    IntVec sizes(b.value(at).as_ints());
    sizes.insert(0, b.size());
    b.set(at, std::move(sizes));
    return b.run();
  }
  check(!c.info->mutated, "vmap: ", *c.op,
        " cannot fill a tensor without a batch with different numbers "
        "for each sample");
  run_loop(b, c, false);
}

void run_random(Batch& b, OpCall& c, const Interpreter& top) {
  check_randomness(top.randomness);
  if (top.randomness == Randomness::Same) return run_loop(b, c, true);
  if (!b.any_batched()) return draw_for_each(b, c);
  check_writable(c, top.level);
  const BatchRule rule = rule_of(c);
  return rule ? rule(b) : run_loop(b, c, false);
}

// --- which way

bool is_geometry_only(const OpCall& c) { return c.op->record->flags & geometry_only; }

void run_rule(Batch& b, OpCall& c, BatchRule rule) {
  const WithoutTop below;
  if (rule) return rule(b);
  const bool view = c.info->view && c.info->results == 1 && c.args[c.info->alias_of[0]].is_tensor();
  // Views without a rule go by their sizes, strides and offset.
  return view ? batch::view_geometry(b) : run_loop(b, c, false);
}

// Raises where Python wants one bool of a batched tensor, as `if` does.
void check_no_decision(const OpCall& c, int64_t level) {
  const std::vector<Argument>& results = c.info->schema.results;
  if (results.size() != 1 || results[0].type.kind != TypeKind::Bool) return;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) {
    check(!batched_at(t, level), "vmap: ", *c.op,
          "() gives a bool, which cannot decide for all samples at once");
  });
}

// Runs a call without batched arguments on the level below.
void run_unbatched(OpCall& c) {
  const WithoutTop below;
  call(*c.op, c.args, c.results);
}

}  // namespace

void vmap_layer(OpCall& c) {
  const Interpreter& top = *thread_state.interpreters;
  check_no_decision(c, top.level);
  if (c.info->implicit && !c.op->record->batch) return run_composite(c);
  Batch b(c, top.level, top.batch_size);
  if (c.op->record->flags & random) {
    if (!b.any_batched() && top.randomness == Randomness::Same) return run_unbatched(c);
    // The operators of a composite draw the numbers themselves.
    const bool in_parts = b.any_batched() && top.randomness == Randomness::Different && !rule_of(c);
    if (in_parts && has_composite_kernel(*c.op)) return run_composite(c);
    {
      const WithoutTop below;
      run_random(b, c, top);
    }
    return b.finish(c.results);
  }
  if (!b.any_batched()) return run_unbatched(c);
  check_writable(c, top.level);
  if (is_geometry_only(c)) return change_geometry(c);
  const BatchRule rule = rule_of(c);
  if (c.op->variant != Variant::Base && rule != &batch::pointwise)
    if (const Operator* pure = pure_form(*c.op)) return run_pure_and_copy(c, *pure);
  if (!rule && has_composite_kernel(*c.op)) return run_composite(c);
  run_rule(b, c, rule);
  b.finish(c.results);
  for_each_written(c, [](const Tensor& t, int) { refresh_wrapper(t); });
}

}  // namespace facula
