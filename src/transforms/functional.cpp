#include "transforms/functional.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "autograd/engine.h"
#include "autograd/variable.h"
#include "core/fork.h"
#include "dispatch/mutations.h"
#include "dispatch/operator_text.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/shape/slice_scatter.h"
#include "ops/shape/view.h"
#include "ops/shape/view_copy.h"
#include "transforms/interpreters.h"
#include "transforms/replaced_args.h"

namespace facula {

constinit const ExtensionKind functional_kind{.name = "FunctionalTensor"};
namespace {

Tensor wrapper_over(const std::shared_ptr<FunctionalStorage>& storage, const Tensor& value) {
  const Tensor t(Ref<TensorImpl>::take(new_tensor_impl()));
  t->extension = new FunctionalTensor(storage, value);
  t->storage = storage->identity;
  t->dtype = value.dtype();
  t->device = value.device();
  t->layout = value->layout;
  t->layers =
      (value->layers & (backend_layers | Layer::Conjugate | Layer::Negative)) | Layer::Modes;
  t->conj = value->conj;
  t->neg = value->neg;
  t->wrapped_number = value->wrapped_number;
  t->copy_geometry(*value.get());
  t->offset = value->offset;
  return t;
}

// Finds functional storages by their `identity`.
struct Identities {
  ForkSafeMutex mutex{ForkOrder::Tangents};
  std::unordered_map<const Storage*, std::weak_ptr<FunctionalStorage>> storages;
};
Identities& identities() {
  static auto* all = new Identities;
  return *all;
}

std::shared_ptr<FunctionalStorage> storage_over(const Tensor& base) {
  check_strided(base, "functionalize()");
  auto s = std::make_shared<FunctionalStorage>(base);
  const std::lock_guard lock(identities().mutex);
  identities().storages[s->identity.get()] = s;
  return s;
}

}  // namespace

FunctionalStorage::FunctionalStorage(const Tensor& value)
    : base(value),
      original(value),
      identity(Storage::make({DeviceType::Meta, -1}, value->storage->nbytes())) {}

FunctionalStorage::~FunctionalStorage() {
  const std::lock_guard lock(identities().mutex);
  identities().storages.erase(identity.get());
}

std::shared_ptr<FunctionalStorage> functional_storage(const Storage* identity) {
  const std::lock_guard lock(identities().mutex);
  const auto it = identities().storages.find(identity);
  return it == identities().storages.end() ? nullptr : it->second.lock();
}

// A backward pass reads the original base of a storage that the forward pass has emptied: whoever
// freed it fills it again before that pass runs.
const Tensor& FunctionalStorage::value() {
  check(!emptied() || current_pass() >= 0,
        "functionalization: the data of a tensor was read while its storage is resized to 0 bytes");
  return shape();
}

const Tensor& FunctionalStorage::shape() {
  if (unset) {
    base = ops::new_empty_strided(base, base.sizes(), base.strides());
    unset = false;
  }
  return base;
}

// Resizing to 0 bytes drops the values: the base becomes the original one, of which only the
// geometry is used. When the storage gets bytes again, its values are unset.
void FunctionalStorage::resize(size_t bytes) {
  const bool was_empty = emptied();
  identity->resize(bytes);
  size_changed = true;
  if (emptied()) {
    base = original;
    unset = values_changed = false;
    ++generation;
  } else if (was_empty) {
    unset = true;
    ++generation;
  }
}

const Tensor& FunctionalTensor::up_to_date(bool with_values) {
  const Tensor& base = with_values ? storage->value() : storage->shape();
  if (generation == storage->generation) return value;
  value = base;
  for (const ViewStep& s : steps) value = s.view_of(value, !storage->emptied());
  generation = storage->generation;
  return value;
}

void FunctionalTensor::write(const Tensor& fresh) {
  std::vector<Tensor> inner;  // the base of each step
  Tensor at = storage->value();
  for (const ViewStep& s : steps) {
    inner.push_back(at);
    at = s.view_of(at);
  }
  // The steps refer to the base's strides, so a new base must have the same ones.
  const bool moved =
      same_sizes(fresh.sizes(), at.sizes()) && !same_sizes(fresh.strides(), at.strides());
  Tensor now = moved && steps.empty() ? ops::copy(at, fresh) : fresh;
  for (size_t k = steps.size(); k-- > 0;) now = steps[k].put_into(inner[k], now);
  storage->base = now;
  storage->values_changed = true;
  ++storage->generation;
  if (moved && !steps.empty()) return;  // up_to_date() will view the new base, with its strides
  value = steps.empty() ? now : fresh;
  generation = storage->generation;
}

FunctionalTensor* functional_part(const Tensor& t) {
  Extension* e = t->extension;
  return e && e->kind == &functional_kind ? static_cast<FunctionalTensor*>(e) : nullptr;
}

// The identity function in the graph, between two tensors with the same values.
struct PassThrough final : Node {
  explicit PassThrough(const Tensor& to) { next.push_back(gradient_edge(to)); }
  Gradients apply(Gradients grads) override { return grads; }
  std::string name() const override { return "FunctionalBackward0"; }
};

static void lead_gradients(const Tensor& from, const Tensor& to) {
  if (requires_grad(to)) set_history(from, Ref<Node>::take(new PassThrough(to)));
}

Tensor make_functional(const Tensor& value) { return wrapper_over(storage_over(value), value); }

Tensor from_functional(const Tensor& t) {
  FunctionalTensor* f = functional_part(t);
  return f ? f->up_to_date() : t;
}

// The value for operators that read no elements.
static Tensor shape_of_functional(const Tensor& t) {
  FunctionalTensor* f = functional_part(t);
  return f ? f->up_to_date(false) : t;
}

Tensor leave_functional(const Tensor& t) {
  const FunctionalTensor* f = functional_part(t);
  if (!f) return t;
  const Tensor value = shape_of_functional(t);
  if (f->storage->emptied() && value->storage->nbytes() > 0) ops::resize_storage_bytes_(value, 0);
  if (!requires_grad(t)) return value;
  const Tensor out = detached(value);
  lead_gradients(out, t);
  return out;
}

std::vector<Tensor> make_functional_inputs(std::span<const Tensor> inputs) {
  std::map<Storage*, int> users;
  for (const Tensor& t : inputs)
    if (!has_layout_kind(t)) ++users[t->storage.get()];
  std::map<Storage*, std::shared_ptr<FunctionalStorage>> shared;
  std::vector<Tensor> made;
  for (const Tensor& t : inputs) {
    if (transform_wrapper(t))
      throw Error(ErrorKind::NotImplemented,
                  "functionalize(): not implemented inside of vmap() or grad(); apply it "
                  "outside of them");
    if (has_layout_kind(t)) {
      made.push_back(t);
      continue;
    }
    if (users[t->storage.get()] == 1) {
      made.push_back(make_functional(requires_grad(t) ? detached(t) : t));
      lead_gradients(made.back(), t);
      continue;
    }
    // The base covers the whole storage, and each input is a view of it.
    auto& s = shared[t->storage.get()];
    const int64_t n = static_cast<int64_t>(t->storage->nbytes() / t.itemsize());
    if (!s) s = storage_over(ops::as_strided(t, {n}, {1}, 0));
    check(s->base.dtype() == t.dtype(),
          "functionalize(): inputs that share a storage must be of one dtype; got ",
          name(s->base.dtype()), " and ", name(t.dtype()));
    const Tensor w = wrapper_over(s, t);
    ViewStep step;
    step.sizes = IntVec(t.sizes());
    step.strides = IntVec(t.strides());
    step.offset = t.storage_offset();
    functional_part(w)->steps.push_back(step);
    lead_gradients(w, t);
    made.push_back(w);
  }
  return made;
}

namespace {

void write_back(const Tensor& input, const Tensor& functional, WriteBack what) {
  FunctionalTensor* f = functional_part(functional);
  if (!f) return;
  const bool all = what == WriteBack::All;
  if (f->replaced) {
    if (all) ops::set_data(input, leave_functional(functional));
    return;
  }
  const FunctionalStorage& s = *f->storage;
  const auto bytes = static_cast<int64_t>(s.identity->nbytes());
  const bool resized = s.size_changed && bytes != static_cast<int64_t>(input->storage->nbytes());
  if (resized) ops::resize_storage_bytes_(input, bytes);
  if (f->geometry_changed && all)
    ops::as_strided_(input, functional.sizes(), functional.strides(), functional.storage_offset());
  if (s.values_changed && bytes > 0 && (all || resized))
    ops::copy_(input, leave_functional(functional));
}

}  // namespace

void write_back(std::span<const Tensor> inputs, std::span<const Tensor> functional,
                WriteBack what) {
  for (size_t i = 0; i < inputs.size(); ++i) write_back(inputs[i], functional[i], what);
}

// --- the mode

bool any_functional(const OpCall& c) {
  bool found = false;
  for_each_tensor(*c.info, c.args,
                  [&](const Tensor& t, int) { found |= functional_part(t) != nullptr; });
  return found;
}

void run_after_functionalization(OpCall& c) {
  for_each_written(c, [&](const Tensor& t, int) {
    check(!functional_part(t), "functionalize(): ", *c.op,
          " would change a tensor of a function that has ended");
  });
  ReplacedArgs values(c, [](const Tensor& t, int) { return from_functional(t); });
  call(*c.op, values.values(), c.results);
}

namespace {

// --- views

Tensor view_wrapper(const FunctionalTensor& of, const Tensor& value, const ViewStep& step) {
  const Tensor t = wrapper_over(of.storage, value);
  FunctionalTensor* f = functional_part(t);
  f->steps = of.steps;
  f->steps.push_back(step);
  return t;
}

// The functional argument that result k is a view of, or null.
const FunctionalTensor* viewed(const OpCall& c, int k) {
  const int from = c.info->alias_of[k];
  return from >= 0 && c.args[from].is_tensor() ? functional_part(c.tensor(from)) : nullptr;
}

// Tensors of layouts with parts (sparse, nested, quantized) are passed on as they are, since they
// have no views to keep; changes of them are refused.
Tensor wrapped_result(const OpCall& c, const Tensor& value, int k, int item = -1) {
  if (has_layout_kind(value)) return value;
  const FunctionalTensor* f = viewed(c, k);
  if (!f) return make_functional(value);
  ViewStep step = ViewStep::between(f->value, value);
  if (c.info->view) step.call = view_call(c, k, item);
  return view_wrapper(*f, value, step);
}

void wrap_results(OpCall& c) {
  for (int k = 0; k < c.info->results; ++k) {
    Value& v = c.results[k];
    if (v.is_tensor()) set_result(v, wrapped_result(c, v.as_tensor(), k));
    if (v.tag != Tag::TensorList) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : v.as_tensors())
      list.push_back(t.defined() ? wrapped_result(c, t, k, static_cast<int>(list.size())) : t);
    set_result(v, std::move(list));
  }
  if (c.info->view) note_views(c);
}

// --- views that are replaced by copies

std::vector<Tensor> tensors_of(const Value& v) {
  if (v.is_tensor()) return {v.as_tensor()};
  const auto list = v.as_tensors();
  return {list.begin(), list.end()};
}

// A tensor of the same geometry without memory.
Tensor stand_in(const Tensor& t) {
  const Tensor m =
      ops::empty_strided(t.sizes(), t.strides(), t.dtype(), {}, Device{DeviceType::Meta, -1});
  m->conj = t->conj;
  m->neg = t->neg;
  m->layers = m->layers | (t->layers & (LayerSet(Layer::Conjugate) | Layer::Negative));
  return m;
}

// Finds the view operations of a call by running the view operator on tensors without memory.
std::vector<ViewStep> steps_of(const OpCall& c) {
  const ExcludeLayers quiet(LayerSet(Layer::Modes) | Layer::Autograd);
  Tensor from;
  ReplacedArgs stand_ins(c, [&](const Tensor& t, int i) {
    const Tensor made = stand_in(shape_of_functional(t));
    if (i == c.info->alias_of[0]) from = made;
    return made;
  });
  Results<1> views;
  call(*c.op, stand_ins.values(), views.slots);
  std::vector<ViewStep> steps;
  for (const Tensor& view : tensors_of(views.slots[0])) {
    steps.push_back(ViewStep::between(from, view));
    steps.back().copies = true;
  }
  return steps;
}

void copy_values(const OpCall& c, Value* results) {
  ReplacedArgs values(c, [](const Tensor& t, int) { return from_functional(t); });
  const Operator* copying = c.op->partner(Partner::Copy);
  if (copying) return call(*copying, values.values(), results);
  call(*c.op, values.values(), results);
  if (results[0].is_tensor()) {
    set_result(results[0], ops::clone(results[0].as_tensor(), MemoryFormat::Contiguous));
    return;
  }
  std::vector<Tensor> copies;
  for (const Tensor& t : results[0].as_tensors())
    copies.push_back(ops::clone(t, MemoryFormat::Contiguous));
  set_result(results[0], std::move(copies));
}

void run_view_as_copy(OpCall& c, const FunctionalTensor& of) {
  if (of.storage->emptied()) {  // there is nothing to copy
    ReplacedArgs shapes(c, [](const Tensor& t, int) { return shape_of_functional(t); });
    call(*c.op, shapes.values(), c.results);
  } else {
    copy_values(c, c.results);
  }
  const std::vector<ViewStep> steps = steps_of(c);
  const std::vector<Tensor> values = tensors_of(c.results[0]);
  std::vector<Tensor> wrappers;
  for (size_t i = 0; i < values.size(); ++i)
    wrappers.push_back(view_wrapper(of, values[i], steps[i]));
  if (c.results[0].is_tensor())
    set_result(c.results[0], wrappers[0]);
  else
    set_result(c.results[0], std::move(wrappers));
  note_views(c);
}

void run_pure(OpCall& c) {
  ReplacedArgs values(c, [&](const Tensor& t, int) {
    return c.info->view ? shape_of_functional(t) : from_functional(t);
  });
  call(*c.op, values.values(), c.results);
  wrap_results(c);
}

// --- changes of values

// Gives a written tensor a new value, converted to its own dtype and sizes.
void assign(const OpCall& c, const Tensor& to, Tensor fresh) {
  FunctionalTensor* f = functional_part(to);
  check(f, "functionalize(): ", *c.op,
        " would change a tensor that is not an input of the function: "
        "expected it among the inputs");
  if (!same_sizes(fresh.sizes(), to.sizes())) {
    check(c.op->variant == Variant::Out, "output with shape ", str(to.sizes()),
          " doesn't match the broadcast shape ", str(fresh.sizes()));
    check(f->steps.empty(),
          "functionalize(): out= of another shape than a view's is not supported");
    to->set_geometry(fresh.sizes(), fresh.strides());
    to->storage->resize(fresh->storage->nbytes());
    f->geometry_changed = f->storage->size_changed = true;
  }
  check(can_cast(fresh.dtype(), to.dtype()), "result type ", info(fresh.dtype()).legacy_name,
        " can't be cast to the desired output type ", info(to.dtype()).legacy_name);
  if (fresh.dtype() != to.dtype()) fresh = ops::_to_copy(fresh, to.dtype());
  f->write(fresh);
}

void run_as_pure(OpCall& c, const Operator& pure) {
  Results<8> computed;
  {
    ReplacedArgs values(c, [](const Tensor& t, int) { return from_functional(t); });
    call(pure, values.values(), computed.slots);
  }
  store_written(c, computed.slots,
                [&](const Tensor& to, const Tensor& fresh) { assign(c, to, fresh); });
}

// By an operator that returns, after the results, what the call writes to its arguments.
void run_as_returning(OpCall& c, const Operator& returning) {
  Results<8> computed;
  {
    ReplacedArgs values(c, [](const Tensor& t, int) { return from_functional(t); });
    call(returning, values.values(), computed.slots);
  }
  for (int k = 0; k < c.info->results; ++k)
    set_result(c.results[k], take_tensor(computed.slots[k]));
  int next = c.info->results;
  for_each_written(
      c, [&](const Tensor& to, int) { assign(c, to, take_tensor(computed.slots[next++])); });
  wrap_results(c);
}

// For operators without a pure form: runs the call on copies and stores their values.
void run_on_copies(OpCall& c) {
  ReplacedArgs copies(c, [&](const Tensor& t, int i) {
    const Tensor value = from_functional(t);
    return c.info->mutated >> i & 1 ? ops::clone(value) : value;
  });
  call(*c.op, copies.values(), c.results);
  for_each_written_pair(c, copies.values(),
                        [&](const Tensor& to, const Tensor& fresh) { assign(c, to, fresh); });
  wrap_results(c);
}

// --- changes of geometry and storage

void take_geometry(const Tensor& t, const Tensor& value, const ViewStep& step) {
  FunctionalTensor* f = functional_part(t);
  f->steps.push_back(step);
  f->value = value;
  f->geometry_changed = true;
  t->copy_geometry(*value.get());
  t->offset = value->offset;
}

void change_view(OpCall& c, const Operator& view, bool copies) {
  Results<1> computed;
  if (copies) {
    const OpCall as_view{
        .layers = {}, .op = &view, .info = &view.info(), .args = c.args, .results = computed.slots};
    copy_values(as_view, computed.slots);
    const ViewStep step = steps_of(as_view)[0];
    return take_geometry(c.tensor(0), take_tensor(computed.slots[0]), step);
  }
  ReplacedArgs values(c, [](const Tensor& t, int) { return from_functional(t); });
  call(view, values.values(), computed.slots);
  const Tensor value = take_tensor(computed.slots[0]);
  ViewStep step = ViewStep::between(functional_part(c.tensor(0))->value, value);
  OpCall as_view = c;
  as_view.op = &view;
  as_view.info = &view.info();
  step.call = view_call(as_view, 0, -1);
  take_geometry(c.tensor(0), value, step);
}

// The functional storage of a tensor: its own if it is functional, else the one whose identity is
// its storage. The latter are tensors that Python makes to change an UntypedStorage.
std::shared_ptr<FunctionalStorage> storage_under(const Tensor& t) {
  const FunctionalTensor* f = functional_part(t);
  return f ? f->storage : functional_storage(t->storage.get());
}

void resize_bytes(FunctionalStorage& s, int64_t bytes) {
  check(bytes >= 0, "resize_storage_bytes_(): expected a size that is not negative; got ", bytes);
  s.resize(static_cast<size_t>(bytes));
}

// Makes self a tensor over the functional storage of `source`.
void adopt(const Tensor& self, const Tensor& source) {
  const FunctionalTensor* from = functional_part(source);
  check(from,
        "functionalize(): set_() expects a source that is made within the function or an input of "
        "it");
  if (self.is_same(source)) return;
  auto* part = static_cast<FunctionalTensor*>(from->clone());
  part->replaced =
      functional_part(self)->replaced || part->storage != functional_part(self)->storage;
  part->geometry_changed = true;
  delete std::exchange(self->extension, part);
  self->storage = source->storage;
  self->offset = source->offset;
  self->dtype = source->dtype;
  self->device = source->device;
  self->conj = source->conj;
  self->neg = source->neg;
  constexpr LayerSet of_data = backend_layers | Layer::Conjugate | Layer::Negative;
  self->layers = (self->layers - of_data) | (source->layers & of_data);
  self->copy_geometry(*source.get());
}

// A functional tensor over part of a functional storage.
Tensor wrapper_within(const std::shared_ptr<FunctionalStorage>& s, const Tensor& like,
                      const ViewStep& step) {
  const Tensor& base = s->shape();
  check_kind(ErrorKind::NotImplemented, base.dtype() == like.dtype(),
             "functionalize(): set_() to a storage that was made as ", name(base.dtype()),
             ", of a tensor of ", name(like.dtype()), ", is not implemented");
  const Tensor t = wrapper_over(s, step.view_of(base));
  functional_part(t)->steps.push_back(step);
  return t;
}

// The forms of set_() and set_data(), which give a tensor another storage.
void replace_source(const OpCall& c) {
  const Tensor& self = c.tensor(0);
  if (c.info->args == 1) {
    const Tensor none = ops::empty(IntList{0}, self.dtype(), std::nullopt, self.device());
    return adopt(self, make_functional(none));
  }
  std::shared_ptr<FunctionalStorage> storage;
  if (c.arg(1).tag == Tag::Storage)
    storage = functional_storage(c.arg(1).storage);
  else if (functional_part(c.tensor(1)))
    storage = functional_part(c.tensor(1))->storage;
  check(storage != nullptr, "functionalize(): ", *c.op,
        "() expects a source that is made within the function or an input of it");
  const bool whole = c.info->args == 2;
  if (whole && c.arg(1).is_tensor()) return adopt(self, c.tensor(1));
  ViewStep step;
  step.offset = (whole ? 0 : c.arg(2).i) - storage->shape().storage_offset();
  if (whole)
    step.sizes = IntVec{static_cast<int64_t>(storage->identity->nbytes() / self.itemsize())};
  else
    step.sizes = IntVec(c.arg(3).as_ints());
  const IntSpan strides = whole ? IntSpan() : c.arg(4).as_ints();
  step.strides = strides.empty() ? contiguous_strides(step.sizes) : IntVec(strides);
  adopt(self, wrapper_within(storage, self, step));
}

// Enlarges the base, and the storage if it is too small, to `elements` of self's dtype. The new
// elements are uninitialised.
void grow_base(const Tensor& self, int64_t elements) {
  FunctionalStorage& s = *functional_part(self)->storage;
  const Tensor& base = s.value();
  const auto bytes = static_cast<size_t>(base.numel() * base.itemsize());
  const bool alone = functional_part(self)->storage.use_count() == 1;
  const bool whole = base.is_contiguous() && base.storage_offset() == 0 &&
                     bytes >= std::min(s.original->storage->nbytes(), s.identity->nbytes());
  check_kind(
      ErrorKind::NotImplemented, alone && whole,
      "functionalize(): resize_() beyond a storage's end is not implemented for ",
      alone ? "an input that is not all of its storage" : "a storage that several tensors share");
  const size_t needed = static_cast<size_t>(elements * base.itemsize());
  Tensor grown = ops::new_empty(base, {elements});
  if (bytes > 0) grown = ops::slice_scatter(grown, ops::reshape(base, {-1}), 0, 0, base.numel(), 1);
  s.base = grown;
  if (needed > s.identity->nbytes()) {
    s.identity->resize(needed);
    s.size_changed = true;
  }
  s.values_changed = true;
  ++s.generation;
}

// resize_(): makes self a view from its first element on, after enlarging the storage if needed.
void resize(const OpCall& c, bool copies) {
  const Tensor& self = c.tensor(0);
  // Computes the new geometry by calling the operator on a meta tensor.
  const Tensor shape =
      empty_strided_tensor(self.sizes(), self.strides(), self.dtype(), {DeviceType::Meta, -1});
  std::vector<Value> args(c.args, c.args + c.info->args);
  args[0] = pack(shape);
  Results<1> computed;
  call(*c.op, args.data(), computed.slots);
  FunctionalTensor& f = *functional_part(self);
  const auto strided = [](const ViewStep& s) { return s.kind == ViewStep::Kind::Strided; };
  check_kind(ErrorKind::NotImplemented,
             self.dtype() == f.storage->shape().dtype() && std::ranges::all_of(f.steps, strided),
             "functionalize(): resize_() of a view as another dtype is not implemented");
  const int64_t end = self.storage_offset() + extent(shape.sizes(), shape.strides());
  // A view that was copied has lost its offset, unless it begins at the start of the storage.
  const auto begins = [](const ViewStep& s) {
    return s.offset == 0 && same_sizes(s.strides, contiguous_strides(s.sizes));
  };
  check_kind(ErrorKind::NotImplemented, !copies || std::ranges::all_of(f.steps, begins),
             "functionalize(): resize_() of a view is not implemented where views become copies");
  const auto end_of = [](const Tensor& t) {
    return t.storage_offset() + extent(t.sizes(), t.strides());
  };
  if (end > end_of(f.storage->shape())) grow_base(self, end);
  const Tensor& base = f.storage->shape();
  check_kind(ErrorKind::NotImplemented, base.storage_offset() <= self.storage_offset(),
             "functionalize(): resize_() to memory outside of the input is not implemented");
  f.steps.clear();
  ViewStep step;
  step.sizes = IntVec(shape.sizes());
  step.strides = IntVec(shape.strides());
  step.offset = self.storage_offset() - base.storage_offset();
  step.copies = copies;
  const Tensor value = step.view_of(f.storage->value());
  take_geometry(self, value, step);
  f.generation = f.storage->generation;
}

void run_geometry(OpCall& c, bool copies) {
  if (c.op->record->flags & storage_size) {
    const auto storage = storage_under(c.tensor(0));
    if (!storage) return call(*c.op, c.args, c.results);
    return resize_bytes(*storage, c.arg(1).i);
  }
  check(functional_part(c.tensor(0)), "functionalize(): ", *c.op,
        " would change the geometry of a tensor "
        "that is not an input of the function");
  if (const Operator* view = c.op->partner(Partner::View)) return change_view(c, *view, copies);
  if (c.op->record->flags & adopts) return replace_source(c);
  if (c.info->schema.index_of(c.op->record->sizes.list[0]) >= 0) return resize(c, copies);
  throw Error(ErrorKind::NotImplemented, "functionalize(): ", c.op->name(),
              " changes geometry or storage in a way that is not implemented");
}

void run_change(OpCall& c, bool copies) {
  if (c.op->record->flags & geometry_only) return run_geometry(c, copies);
  if (const Operator* pure = pure_form(*c.op)) return run_as_pure(c, *pure);
  if (const Operator* copying = c.op->partner(Partner::Copy)) return run_as_returning(c, *copying);
  run_on_copies(c);
}

}  // namespace

static void check_written_layouts(const OpCall& c) {
  for_each_written(c, [&](const Tensor& t, int) {
    check_kind(ErrorKind::NotImplemented, !has_layout_kind(t), "functionalize(): ", *c.op,
               " would change a tensor of layout ", layout_name(t->layout),
               ": expected a strided one");
  });
}

void FunctionalizeMode::handle(OpCall& c) {
  if (copy_views && c.info->view)
    if (const FunctionalTensor* of = viewed(c, 0)) return run_view_as_copy(c, *of);
  if (!c.info->mutated) return run_pure(c);
  check_written_layouts(c);
  const bool geometry = c.op->record->flags & geometry_only;
  if (!geometry && !any_functional(c)) return call(*c.op, c.args, c.results);
  if (geometry && !storage_under(c.tensor(0))) return call(*c.op, c.args, c.results);
  run_change(c, copy_views);
  bump_written(c);
  give_written(c);
}

}  // namespace facula
