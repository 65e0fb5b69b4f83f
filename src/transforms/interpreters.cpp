#include "transforms/interpreters.h"

#include "autograd/forward.h"
#include "autograd/variable.h"
#include "dispatch/mutations.h"
#include "dispatch/operator_text.h"
#include "ops/shape/view.h"
#include "transforms/layers.h"
#include "transforms/replaced_args.h"

namespace facula {

constinit const ExtensionKind wrapper_kind{.name = "TransformWrapper"};
namespace {

std::atomic<int64_t> next_level{1};
constexpr int64_t deepest = 1024;  // a level is a unique number times this, plus the depth

void set_top(Interpreter* top) {
  thread_state.interpreters = top;
  if (top)
    thread_state.include |= Layer::Transforms;
  else
    thread_state.include -= Layer::Transforms;
}

bool alive(int64_t level) {
  for (const Interpreter* i = thread_state.interpreters; i; i = i->below)
    if (i->level == level) return true;
  return false;
}

int64_t push(Interpreter i) {
  const int64_t depth = thread_state.interpreters ? depth_of_level(current_level()) + 1 : 1;
  check(depth < deepest, "function transforms are nested more than ", deepest - 1, " deep");
  i.level = next_level.fetch_add(1) * deepest + depth;
  i.below = thread_state.interpreters;
  i.grad_enabled = thread_state.grad_enabled;
  i.autograd_excluded = thread_state.exclude.has(Layer::Autograd);
  i.forward_grad_enabled = thread_state.forward_grad_enabled;
  i.computing_tangent = thread_state.computing_tangent;
  if (i.kind != Interpreter::Kind::Vmap) thread_state.computing_tangent = false;
  set_top(new Interpreter(i));
  return i.level;
}

bool is_dead(const Tensor& t) {
  const TransformWrapper* w = transform_wrapper(t);
  return w && !alive(w->level);
}

// Unwraps tensors of grad levels that have ended. Tensors of vmap levels that have ended are
// invalid.
Tensor without_dead_levels(const Tensor& t, const OpCall& c) {
  Tensor now = t;
  while (is_dead(now)) {
    const TransformWrapper* w = transform_wrapper(now);
    check(!w->batched, *c.op,
          "(): a tensor of a vmap() that has ended was used: values must leave "
          "vmap() as results of the function that is mapped");
    now = Tensor(w->value);
  }
  return now;
}

bool any_dead(const OpCall& c) {
  bool found = false;
  for_each_tensor(*c.info, c.args, [&](const Tensor& t, int) { found |= is_dead(t); });
  return found;
}

const TransformWrapper* wrapper_at(const Tensor& t, int64_t level) {
  const TransformWrapper* w = transform_wrapper(t);
  return w && w->level == level ? w : nullptr;
}

void run_with(OpCall& c, ReplacedArgs& args, void (*next)(OpCall&)) {
  Value* const given = c.args;
  c.args = args.values();
  next(c);
  c.args = given;
}

// --- a grad level: autograd runs on its wrappers, then LevelExit goes one level down

void check_mutates_own(const OpCall& c, int64_t level) {
  for_each_written(c, [&](const Tensor& t, int) {
    check(wrapper_at(t, level), "grad: ", *c.op,
          " would change a tensor that the transformed function "
          "captured; pass it as an argument instead");
  });
}

// Wraps tensors of lower levels, so that autograd does not see the grad_fn that they have there.
Tensor at_level(const Tensor& t, int64_t level) {
  if (wrapper_at(t, level) || !t->autograd) return t;
  return wrap_for_level(t, level, false);
}

void run_autograd(OpCall& c) {
  const bool follows = thread_state.grad_enabled || forward_mode_on();
  const bool records = follows && !thread_state.exclude.has(Layer::Autograd);
  c.layers = records ? LayerSet(Layer::LevelExit) | Layer::Autograd : LayerSet(Layer::LevelExit);
  redispatch(c, Layer::Transforms);
}

void grad_layer(OpCall& c) {
  const int64_t level = thread_state.interpreters->level;
  if (c.info->mutated) check_mutates_own(c, level);
  ReplacedArgs args(c, [&](const Tensor& t, int) { return at_level(t, level); });
  run_with(c, args, run_autograd);
}

// --- results of LevelExit

void note_changed(OpCall& c) {
  for_each_written(c, [](const Tensor& t, int) { refresh_wrapper(t); });
  bump_written(c);
  give_written(c);
}

// Wraps a result; a view gets the storage of the argument that it is a view of.
Tensor wrapped_result(const OpCall& c, const Tensor& value, int k, int64_t level) {
  Tensor t = wrap_for_level(value, level, false);
  const int from = c.info->alias_of[k];
  if (from >= 0 && c.args[from].is_tensor()) t->storage = c.tensor(from)->storage;
  return t;
}

void wrap_result(OpCall& c, int k, int64_t level) {
  Value& v = c.results[k];
  if (written_argument(*c.info, k) >= 0) return;
  if (v.is_tensor()) return set_result(v, wrapped_result(c, v.as_tensor(), k, level));
  if (v.tag != Tag::TensorList) return;
  std::vector<Tensor> list;
  for (const Tensor& t : v.as_tensors())
    list.push_back(t.defined() ? wrapped_result(c, t, k, level) : t);
  set_result(v, std::move(list));
}

}  // namespace

Randomness randomness_by_name(std::string_view name) {
  if (name == "error") return Randomness::Error;
  if (name == "different") return Randomness::Different;
  check(name == "same",
        "Only allowed values for randomness are 'error', 'different', or 'same'. Got ", name);
  return Randomness::Same;
}

TransformWrapper* transform_wrapper(const Tensor& t) {
  Extension* e = t->extension;
  return e && e->kind == &wrapper_kind ? static_cast<TransformWrapper*>(e) : nullptr;
}

int64_t push_vmap(int64_t batch_size, Randomness randomness) {
  Interpreter i{Interpreter::Kind::Vmap};
  i.batch_size = batch_size;
  i.randomness = randomness;
  return push(i);
}

int64_t push_grad() { return push({Interpreter::Kind::Grad}); }

int64_t push_jvp() {
  const int64_t level = push({Interpreter::Kind::Jvp});
  thread_state.forward_grad_enabled = true;
  add_forward_level(1);
  return level;
}

void pop_interpreter(int64_t level) {
  Interpreter* top = thread_state.interpreters;
  check(top && top->level == level, "pop_interpreter(): expected level ", level,
        " on top of the stack; got ", current_level());
  set_top(top->below);
  if (top->kind != Interpreter::Kind::Vmap) thread_state.computing_tangent = top->computing_tangent;
  if (top->kind == Interpreter::Kind::Jvp) {
    thread_state.forward_grad_enabled = top->forward_grad_enabled;
    add_forward_level(-1);
  }
  delete top;
}

int64_t depth_of_level(int64_t level) { return level % deepest; }

Interpreter* take_interpreters() {
  Interpreter* top = thread_state.interpreters;
  set_top(nullptr);
  return top;
}

void put_interpreters(Interpreter* top) { set_top(top); }

int64_t current_level() {
  return thread_state.interpreters ? thread_state.interpreters->level : -1;
}

WithoutTop::WithoutTop()
    : top_(thread_state.interpreters),
      grad_enabled_(thread_state.grad_enabled),
      computing_tangent_(thread_state.computing_tangent) {
  check(top_, "expected a function transform to be on; got none");
  set_top(top_->below);
  if (top_->kind == Interpreter::Kind::Vmap) return;
  thread_state.computing_tangent = top_->computing_tangent;
  thread_state.grad_enabled = grad_enabled_ && top_->grad_enabled;
  thread_state.exclude -= Layer::Autograd;
  if (top_->autograd_excluded) thread_state.exclude |= Layer::Autograd;
}

WithoutTop::~WithoutTop() {
  thread_state.interpreters = top_;
  thread_state.grad_enabled = grad_enabled_;
  thread_state.computing_tangent = computing_tangent_;
}

void refresh_wrapper(const Tensor& t) {
  const TransformWrapper* w = transform_wrapper(t);
  if (!w) return;
  const size_t skip = w->batched ? 1 : 0;
  t->set_geometry(w->value.sizes().subspan(skip), w->value.strides().subspan(skip));
  t->offset = w->value.storage_offset();
}

Tensor wrap_for_level(const Tensor& value, int64_t level, bool batched) {
  if (batched) check_strided(value, "vmap()");
  const Tensor t(Ref<TensorImpl>::take(new_tensor_impl()));
  t->extension = new TransformWrapper(value, level, batched);
  t->storage = Storage::make({DeviceType::Meta, -1}, value->storage->nbytes());
  t->dtype = value.dtype();
  t->device = value.device();
  t->layout = value->layout;
  t->layers = (value->layers & backend_layers) | Layer::Transforms;
  t->conj = value->conj;
  t->neg = value->neg;
  t->wrapped_number = value->wrapped_number && !batched;
  refresh_wrapper(t);
  return t;
}

Tensor add_batch_dim(const Tensor& t, int64_t dim, int64_t level) {
  const int64_t d = wrap_dim(dim, t.dim());
  IntVec order{d};
  for (int64_t k = 0; k < t.dim(); ++k)
    if (k != d) order.push_back(k);
  const WithoutTop below;
  return wrap_for_level(d == 0 ? t : ops::permute(t, order), level, true);
}

Tensor remove_batch_dim(const Tensor& t, int64_t level, int64_t batch_size, int64_t dim) {
  const WithoutTop below;
  const TransformWrapper* w = wrapper_at(t, level);
  Tensor value = w ? w->value : t;
  if (!w) {
    IntVec sizes(t.sizes());
    sizes.insert(0, batch_size);
    value = ops::expand(t, sizes);
  }
  const int64_t d = wrap_dim(dim, value.dim());
  if (d == 0) return value;
  IntVec order;
  for (int64_t k = 1; k < value.dim(); ++k) order.push_back(k);
  order.insert(static_cast<size_t>(d), 0);
  return ops::permute(value, order);
}

Tensor wrap_for_grad(const Tensor& t, int64_t level) { return wrap_for_level(t, level, false); }

Tensor unwrap_for_grad(const Tensor& t, int64_t level) {
  const TransformWrapper* w = wrapper_at(t, level);
  return w ? Tensor(w->value) : t;
}

Tensor make_dual_at_level(const Tensor& primal, const Tensor& tangent) {
  const Interpreter* top = thread_state.interpreters;
  if (!top) return make_dual(primal, tangent);
  const int64_t level = top->level;
  if (top->kind != Interpreter::Kind::Vmap) {
    const Tensor p = wrapper_at(primal, level) ? primal : wrap_for_level(primal, level, false);
    return make_dual(p, at_level(tangent, level));
  }
  const bool batched = wrapper_at(primal, level) || wrapper_at(tangent, level);
  const int64_t n = top->batch_size;
  const Tensor p = batched ? remove_batch_dim(primal, level, n, 0) : primal;
  const Tensor t = batched ? remove_batch_dim(tangent, level, n, 0) : tangent;
  const WithoutTop below;
  const Tensor dual = make_dual_at_level(p, t);
  return batched ? wrap_for_level(dual, level, true) : dual;
}

std::pair<Tensor, Tensor> unpack_dual_at_level(const Tensor& t) {
  const Interpreter* top = thread_state.interpreters;
  if (!top) return unpack_dual(t);
  const int64_t level = top->level;
  if (top->kind != Interpreter::Kind::Vmap)
    return wrapper_at(t, level) ? unpack_dual(t) : std::pair<Tensor, Tensor>(t, {});
  const TransformWrapper* w = wrapper_at(t, level);
  const WithoutTop below;
  auto [primal, tangent] = unpack_dual_at_level(w ? Tensor(w->value) : t);
  if (!w || !tangent.defined()) return {t, tangent};
  return {wrap_for_level(primal, level, true), wrap_for_level(tangent, level, true)};
}

Tensor innermost_value(const Tensor& t) {
  Tensor now = t;
  while (const TransformWrapper* w = transform_wrapper(now)) now = Tensor(w->value);
  return now;
}

void transforms_layer(OpCall& c) {
  if (any_dead(c)) {
    ReplacedArgs args(c, [&](const Tensor& t, int) { return without_dead_levels(t, c); });
    return run_with(c, args, call_again);
  }
  const Interpreter* top = thread_state.interpreters;
  if (!top) return redispatch(c, Layer::Transforms);
  return top->kind == Interpreter::Kind::Vmap ? vmap_layer(c) : grad_layer(c);
}

void level_exit_layer(OpCall& c) {
  const int64_t level = thread_state.interpreters->level;
  {
    ReplacedArgs args(c, [&](const Tensor& t, int) { return unwrap_for_grad(t, level); });
    const WithoutTop below;
    call(*c.op, args.values(), c.results);
  }
  if (c.info->mutated) note_changed(c);
  for (int k = 0; k < c.info->results; ++k) wrap_result(c, k, level);
  if (c.info->view) note_views(c);
}

}  // namespace facula
