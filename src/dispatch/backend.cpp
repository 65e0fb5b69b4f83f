#include "dispatch/backend.h"

#include <strings.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "core/autograd_meta.h"
#include "core/environment.h"
#include "dispatch/data_sizes.h"
#include "dispatch/operator_text.h"
#include "dispatch/out_dtype.h"
#include "dispatch/running_calls.h"
#include "dispatch/warnings.h"

namespace facula {
namespace {

constinit std::atomic<int> isa_in_force{-1};

int detect_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#if defined(FACULA_HAS_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return 2;
#endif
#if defined(FACULA_HAS_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return 1;
#endif
#endif
  return 0;
}

constexpr const char* isa_names[] = {"DEFAULT", "AVX2", "AVX512"};

// The set that the environment asks for, in our word or PyTorch's; no better one than there is.
int wished_isa() {
  const int best = detect_isa();
  const char* wish = environment_value("FACULA_CPU_CAPABILITY");
  if (!wish) return best;
  for (int i = 0; i < 3; ++i)
    if (strcasecmp(wish, isa_names[i]) == 0) return std::min(i, best);
  std::fprintf(stderr, "facula: FACULA_CPU_CAPABILITY: expected default, avx2 or avx512; got %s\n",
               wish);
  return best;
}

int isa_index() {
  int i = isa_in_force.load(std::memory_order_relaxed);
  if (i < 0) [[unlikely]]
    isa_in_force.store(i = wished_isa(), std::memory_order_relaxed);
  return i;
}

Slot pick(const KernelRef& k) {
  int f = isa_index(), x = f;
  while (f > 0 && !k.function[f]) --f;
  while (x > 0 && !k.context[x]) --x;
  return {.function = k.function[f], .context = const_cast<void*>(k.context[x])};
}

constinit std::atomic<const Slot*> fallbacks[layer_count] = {};

const Operator& builtin(std::atomic<const Operator*>& cache, const char* name) {
  const Operator* op = cache.load(std::memory_order_acquire);
  if (!op) {
    op = find_operator("aten", name, "");
    check(op != nullptr, "the operator aten::", name, " is missing from this build");
    cache.store(op, std::memory_order_release);
  }
  return *op;
}
constinit std::atomic<const Operator*> copy_op{nullptr}, clone_op{nullptr}, resize_op{nullptr};

void copy_into(const Tensor& to, const Tensor& from) {
  Value args[] = {pack(to), pack(from), pack(false)};
  call_nothing(builtin(copy_op, "copy_"), args);
}
Tensor cloned(const Tensor& t) {
  Value args[] = {pack(t), Value()};
  return call_tensor(builtin(clone_op, "clone"), args);
}
// A tensor of out= that does not fit; one with elements may hold what somebody still wants.
void warn_of_resizing(const Tensor& t, IntSpan sizes) {
  if (t.numel() == 0) return;
  warn(concat("An output with one or more elements was resized: it had shape ", str(t.sizes()),
              " and the result has ", str(sizes),
              "; give out= a tensor of that shape, or an empty one (t.resize_(0))"));
}

void resize(const Tensor& t, IntSpan sizes) {
  Value args[] = {pack(t), pack(sizes), Value()};
  call_nothing(builtin(resize_op, "resize_"), args);
}

// --- results

Tensor allocate(const ResultSpec& r, Device device) {
  if (!r.has_strides) return empty_tensor(r.sizes, r.dtype, device);
  return empty_strided_tensor(r.sizes, r.strides, r.dtype, device);
}

void check_no_self_overlap(const Tensor& t) {
  check(t->contiguous || !may_self_overlap(t.sizes(), t.strides()),
        "unsupported operation: a tensor that is written to must hold each element at a place of "
        "its own (use clone() first)");
}

// How a written tensor meets the ones that are read.
Overlap worst_overlap(const OpCall& c, const Tensor& written) {
  Overlap worst = Overlap::None;
  auto look = [&](const Tensor& t) {
    if (!t.defined() || !(t->storage == written->storage)) return;
    worst = std::max(worst, memory_overlap(written, t));
  };
  for (int i = 0; i < c.info->base_args; ++i) {
    const Value& v = c.args[i];
    if (v.is_tensor() && v.tensor != written.get()) look(v.as_tensor());
    if (v.tag == Tag::TensorList) std::ranges::for_each(v.as_tensors(), look);
  }
  return worst;
}

void check_cast(DType from, const Tensor& to) {
  check(can_cast(from, to.dtype()), "result type ", info(from).legacy_name,
        " can't be cast to the desired output type ", info(to.dtype()).legacy_name);
}

// A tensor of out= against the dtype of what it is to hold.
void check_out_dtype(const OpCall& c, DType from, const Tensor& to) {
  const uint32_t flags = c.op->record->flags;
  check(from == to.dtype() || !(flags & exact_out), c.info->schema.name,
        "(): Expected out tensor to have dtype ", name(from), "; got ", name(to.dtype()));
  check(!(flags & real_out) || is_complex(from) || !is_complex(to.dtype()), c.info->schema.name,
        "(): expected out= of real numbers, as the result is; got ", name(to.dtype()));
  check(!(flags & truth_out) || to.dtype() == DType::Bool || to.dtype() == DType::UInt8,
        c.info->schema.name, "(): expected out= of bool or uint8; got ", name(to.dtype()));
  if (!(flags & count_out)) return check_cast(from, to);
  check_kind(ErrorKind::NotImplemented, !is_complex(to.dtype()), c.info->schema.name,
             "(): expected out= of real numbers; got ", name(to.dtype()));
}

// Whether a kernel may write straight into `to`; otherwise it fills a temporary.
bool direct(const OpCall& c, const ResultSpec& r, const Tensor& to) {
  const Overlap met = worst_overlap(c, to);
  check(met != Overlap::Partial,
        "unsupported operation: an input shares a part of its memory with the tensor that is "
        "written to (use clone() first)");
  if (r.dtype != to.dtype() || to->conj || to->neg) return false;
  if (c.op->record->overlaps == Overlaps::None) {
    if (met != Overlap::None) return false;
    for (int i = 0; i < c.info->base_args; ++i)
      if (c.args[i].is_tensor() && c.args[i].tensor == to.get()) return false;
  }
  return c.op->record->out_layout == OutLayout::Any || to.is_contiguous();
}

void prepare_inplace(const OpCall& c, Meta& m) {
  const Tensor& self = c.tensor(0);
  const ResultSpec& r = m.results[0];
  check(same_sizes(r.sizes, self.sizes()), "output with shape ", str(self.sizes()),
        " doesn't match the broadcast shape ", str(r.sizes));
  check_cast(r.dtype, self);
  check_no_self_overlap(self);
}

bool is_input(const OpCall& c, const Tensor& t) {
  const auto same = [&](const Tensor& x) { return x.is_same(t); };
  for (int i = 0; i < c.info->base_args; ++i) {
    const Value& v = c.args[i];
    if (v.is_tensor() && same(v.as_tensor())) return true;
    if (v.tag == Tag::TensorList && std::ranges::any_of(v.as_tensors(), same)) return true;
  }
  return false;
}

// An index that is not given is the current device's: it says nothing.
bool on_one_device(Device a, Device b) {
  return a.type == b.type && (a.index < 0 || b.index < 0 || a.index == b.index);
}

// A tensor that was resized gets the strides that the result would have without out=.
void take_strides(const Tensor& to, IntSpan strides) {
  if (to.numel() == 0 || !to->storage.get() || is_view(to)) return;
  if (is_dense_non_overlapping(to.sizes(), strides)) to->set_geometry(to.sizes(), strides);
}

void prepare_out(const OpCall& c, const ResultSpec& r, const Tensor& to, Device device) {
  check_out_dtype(c, r.dtype, to);
  check(on_one_device(to.device(), device), "out= must be on ", str(device), "; got ",
        str(to.device()));
  if (same_sizes(r.sizes, to.sizes())) return check_no_self_overlap(to);
  check(worst_overlap(c, to) != Overlap::Partial,
        "unsupported operation: an input shares a part of its memory with the tensor that is "
        "written to (use clone() first)");
  // The kernel would read the input with its new sizes.
  check(!is_input(c, to), "unsupported operation: output with shape ", str(to.sizes()),
        " doesn't match the shape ", str(r.sizes),
        " of the result and cannot be resized, because it is an input as well");
  warn_of_resizing(to, r.sizes);
  resize(to, r.sizes);
  if (r.has_strides) take_strides(to, r.strides);
}

// One tensor cannot have the sizes of two results.
void check_apart_from_each_other(const OpCall& c, int first, int results) {
  for (int i = 1; i < results; ++i)
    for (int j = 0; j < i; ++j)
      check(!c.tensor(first + i).is_same(c.tensor(first + j)), c.info->schema.name,
            "(): out= must be different tensors; got the same for results ", j, " and ", i);
}

void run_functional(OpCall& c, Meta& m, const Slot& kernel) {
  const Device device = m.has_device ? m.device : result_device(c);
  if (m.like) {
    set_result(c.results[0], empty_like_contiguous(*m.like, m.results[0].dtype, device));
    if (!device.is_meta()) kernel.function(kernel.context, c);
    return;
  }
  for (int i = 0; i < c.info->results; ++i)
    if (m.results[i].defined) set_result(c.results[i], allocate(m.results[i], device));
  if (!device.is_meta()) kernel.function(kernel.context, c);
}

// The usual write: the whole of a contiguous tensor of the result's dtype and sizes, whose memory
// no other argument has.
bool writes_plainly(const OpCall& c, Meta& m, const Tensor& to, Device device) {
  if (!m.like || !to->contiguous || to->conj || to->neg) return false;
  if (to.dtype() != m.results[0].dtype || !on_one_device(to.device(), device)) return false;
  if (c.op->record->overlaps == Overlaps::None || !same_sizes(m.like->sizes(), to.sizes()))
    return false;
  for (int i = 0; i < c.info->base_args; ++i) {
    const Value& v = c.args[i];
    if (v.tag == Tag::TensorList) return false;
    if (v.is_tensor() && v.tensor != to.get() && v.tensor->storage == to->storage) return false;
  }
  return true;
}

void run_into(OpCall& c, Meta& m, const Slot& kernel) {
  const int n = c.info->results;
  const Device device = m.has_device ? m.device : result_device(c);
  const bool in_place = c.op->variant == Variant::Inplace;
  const int first = in_place ? 0 : c.info->base_args;
  if (writes_plainly(c, m, c.tensor(first), device)) {
    give_written(c);
    if (!device.is_meta()) kernel.function(kernel.context, c);
    return;
  }
  m.settle();
  if (in_place) prepare_inplace(c, m);
  if (!in_place) check_apart_from_each_other(c, first, n);
  for (int i = 0; !in_place && i < n; ++i)
    if (m.results[i].defined) prepare_out(c, m.results[i], c.tensor(first + i), device);
  bool temporary[Meta::most_results] = {};
  for (int i = 0; i < n; ++i) {
    if (!m.results[i].defined) continue;
    const Tensor& to = c.tensor(first + i);
    temporary[i] = !direct(c, m.results[i], to);
    set_result(c.results[i], temporary[i] ? allocate(m.results[i], device) : to);
  }
  if (!device.is_meta()) kernel.function(kernel.context, c);
  for (int i = 0; i < n; ++i) {
    if (!temporary[i]) continue;
    const Tensor& to = c.tensor(first + i);
    copy_into(to, c.results[i].as_tensor());
    set_result(c.results[i], to);
  }
}

void run_structured(OpCall& c, const Slot& kernel) {
  Meta m(c);
  c.op->record->meta(m);
  if (c.op->variant == Variant::Base)
    run_functional(c, m, kernel);
  else
    run_into(c, m, kernel);
}

// --- variants without a kernel of their own

// Operators that find the shape of their result from data read while they write.
void check_apart_from_inputs(const OpCall& c, const Tensor& to) {
  check_no_self_overlap(to);
  check(worst_overlap(c, to) == Overlap::None && !is_input(c, to), c.info->schema.name,
        "(): out= must not share memory with an input; clone() it first");
}

// What the base form computed, into the tensors of out= or of self.
void store_computed(OpCall& c, Value* computed) {
  const bool out = c.op->variant == Variant::Out;
  const bool may_meet_input = out && (c.op->record->flags & shape_from_data);
  store_written(c, computed, [&](const Tensor& to, const Tensor& from) {
    if (may_meet_input) check_apart_from_inputs(c, to);
    const bool fits = same_sizes(from.sizes(), to.sizes());
    check(fits || out, "output with shape ", str(to.sizes()), " doesn't match the broadcast shape ",
          str(from.sizes()));
    out ? check_out_dtype(c, from.dtype(), to) : check_cast(from.dtype(), to);
    if (!fits) {
      warn_of_resizing(to, from.sizes());
      resize(to, from.sizes());
      // Compositions whose results are cast into out= write it in order instead.
      if (c.op->record->flags & exact_out) take_strides(to, from.strides());
    }
    copy_into(to, from);
  });
}

// A factory makes what the tensor of out= holds, so another dtype cannot be asked for.
void check_asked_dtype(const OpCall& c) {
  const int at = c.info->schema.index_of("dtype");
  if (at < 0 || c.args[at].is_none() || !c.args[c.info->base_args].is_tensor()) return;
  const Default& unasked = c.info->schema.args[static_cast<size_t>(at)].default_value;
  const DType asked = c.args[at].dtype, given = c.tensor(c.info->base_args).dtype();
  if (unasked.kind == Default::Word && unasked.i == static_cast<int64_t>(asked)) return;
  check(asked == given, c.info->schema.name, "(): dtype ", name(asked),
        " does not match dtype of out parameter; got ", name(given));
}

// The base form of a factory, for the dtype of out=.
void run_factory_by_base(OpCall& c, const Operator& base, int dtype) {
  Results<8> computed;
  Value args[32];
  std::copy_n(c.args, c.info->base_args, args);
  args[dtype] = pack(c.tensor(c.info->base_args).dtype());
  call(base, args, computed.slots);
  store_computed(c, computed.slots);
}

void run_by_base(OpCall& c, const Operator& base) {
  if (c.op->variant == Variant::Out && c.op->record->flags & factory)
    if (const int at = c.info->schema.index_of("dtype"); at >= 0)
      return run_factory_by_base(c, base, at);
  Results<8> computed;
  if (base.info().mutated) {  // the record is in-place: change a copy
    const int args = base.info().args;
    Value changed[32];
    std::copy_n(c.args, args, changed);
    if (c.args[0].tag == Tag::TensorList) {
      std::vector<Tensor> copies;
      for (const Tensor& t : c.args[0].as_tensors()) copies.push_back(cloned(t));
      changed[0] = pack(std::span<const Tensor>(copies));
      call(base, changed, computed.slots);
      return set_result(c.results[0], std::move(copies));
    }
    const Tensor copy = cloned(c.tensor(0));
    changed[0] = pack(copy);
    call(base, changed, computed.slots);
    if (c.op->variant == Variant::Functional) return set_result(c.results[0], copy);
    set_result(computed.slots[0], copy);
    return store_computed(c, computed.slots);
  }
  call(base, c.args, computed.slots);
  store_computed(c, computed.slots);
}

[[noreturn]] void no_kernel(const OpCall& c, Layer backend) {
  const Device d{device_type_of(backend), -1};
  if (c.op->record->flags & shape_from_data && d.is_meta()) refuse_without_data(c.op->name());
  throw Error(ErrorKind::NotImplemented, "Could not run '", c.op->name(),
              "' with arguments from the '", str(d), "' backend: no kernel is registered for it");
}

// --- after the kernel

// What a kernel of ours writes by way of in-place operators is one change of each argument, not
// several: while one is in scope, changes of what its call mutates are not counted. Kernels from
// elsewhere count as they call.
class OneChange {
 public:
  explicit OneChange(const OpCall* c) : call_(c), outer_(innermost) {
    if (c) innermost = this;
  }
  ~OneChange() { innermost = outer_; }
  OneChange(const OneChange&) = delete;
  static bool covers(const Tensor& t) {
    for (const OneChange* o = innermost; o; o = o->outer_)
      if (o->mutates(t)) return true;
    return false;
  }

 private:
  static bool share_version(const Tensor& a, const Tensor& b) {
    return a.is_same(b) || (a->shared_version && a->shared_version == b->shared_version);
  }
  bool mutates(const Tensor& t) const {
    for (uint32_t bits = call_->info->mutated; bits; bits &= bits - 1) {
      const Value& v = call_->args[std::countr_zero(bits)];
      if (v.is_tensor() && share_version(v.as_tensor(), t)) return true;
      if (v.tag == Tag::TensorList)
        for (const Tensor& each : v.as_tensors())
          if (each.defined() && share_version(each, t)) return true;
    }
    return false;
  }

  static thread_local constinit const OneChange* innermost
      __attribute__((tls_model("initial-exec")));
  const OpCall* const call_;
  const OneChange* const outer_;
};
thread_local constinit const OneChange* OneChange::innermost = nullptr;

void bump_version(const Tensor& t, const Operator& op) {
  if (t->inference || OneChange::covers(t)) return;
  t.get()->bump_version();
  note_mutation(*t.get(), &op);
}

void bump_versions(const OpCall& c) {
  if (c.op->record->flags & no_version_bump) return;
  for_each_written(c, [&](const Tensor& t, int) { bump_version(t, *c.op); });
}

// Raises before anything is written.
void check_inference(const OpCall& c) {
  if (thread_state.inference) return;
  for_each_written(c, [](const Tensor& t, int) {
    check(!t->inference,
          "Inplace update to inference tensor outside InferenceMode is not allowed; clone() it "
          "first");
  });
}

void finish(OpCall& c) {
  if (c.info->mutated) {
    give_written(c);
    bump_versions(c);
  }
  if (c.info->view) note_views(c);
  if (thread_state.inference)
    for (int k = 0; k < c.info->results; ++k)
      if (c.results[k].is_tensor() && c.info->alias_of[k] < 0)
        c.results[k].tensor->inference = true;
}

void check_one_device(const OpCall& c) {
  if (c.op->record->flags & cross_device) return;
  const Tensor* first = nullptr;
  auto look = [&](const Tensor& t, int arg) {
    // Numbers may come from the CPU, but none goes there.
    const bool number = t.dim() == 0 && t.device().is_cpu() && !is_written(*c.info, arg);
    if (number) return;
    if (!first) first = &t;
    check(on_one_device(first->device(), t.device()),
          "Expected all tensors to be on the same device, but found at least two devices, ",
          str(first->device()), " and ", str(t.device()), "! (when checking argument for argument ",
          c.info->schema.args[static_cast<size_t>(arg)].name, " in method ", c.info->schema.name,
          ")");
  };
  for (int i = 0; i < c.info->args; ++i) {
    if (c.args[i].is_tensor()) look(c.tensor(i), i);
    if (c.args[i].tag == Tag::TensorList)
      for (const Tensor& t : c.args[i].as_tensors())
        if (t.defined()) look(t, i);
  }
}

// Plain calls are on the CPU, or on meta, of which there is one each.
bool may_mix_devices(LayerSet backends) {
  return backends != LayerSet(Layer::CPU) && backends != LayerSet(Layer::Meta);
}

const Slot* registered(const Operator* op, Layer backend) {
  return op ? op->slots[static_cast<int>(backend)].load(std::memory_order_acquire) : nullptr;
}

// A kernel that makes its results may have filled them by in-place operators.
void forget_kernel_writes(OpCall& c) {
  for (int k = 0; k < c.info->results; ++k) {
    if (c.info->alias_of[k] >= 0 || !c.results[k].is_tensor()) continue;
    const Tensor& t = c.results[k].as_tensor();
    if (t->current_version() && !is_input(c, t)) t.get()->reset_version();
  }
}

// The kernel that the record brings for this backend.
Slot own_kernel(const Operator& op, Layer backend) {
  const OpRecord& r = *op.record;
  if (backend == Layer::CPU && r.cpu) return pick(r.cpu);
  if (const Slot* s = op.composite_slot.load(std::memory_order_acquire)) return *s;
  if (r.any) return pick(r.any);
  return {};
}

// Whether all that calls give is what they change, not results beside it.
bool is_inplace(const OpInfo& info) {
  return info.mutated && (info.results == 0 || info.alias_of[0] >= 0);
}

// Whether the call is of a variant of a record that is in-place itself: it changes a copy.
bool is_variant_of_inplace(const Operator& op) {
  if (op.variant == Variant::Base) return false;
  const Operator* base = op.variant_of(Variant::Base);
  return base && is_inplace(base->info());
}

void choose_and_run(OpCall& c, Layer backend) {
  const Operator& op = *c.op;
  if (op.variant == Variant::Out && op.record->flags & factory) check_asked_dtype(c);
  if (const Slot* s = registered(&op, backend)) {
    if (s->structured) return run_structured(c, *s);
    return s->function(s->context, c);
  }
  const Slot kernel = own_kernel(op, backend);
  const bool structured = backend == Layer::Meta ? op.record->meta != nullptr
                                                 : kernel.function && is_structured(*op.record);
  if (structured && !is_variant_of_inplace(op)) return run_structured(c, kernel);
  if (op.variant != Variant::Base) {
    if (const Operator* base = op.variant_of(Variant::Base)) return run_by_base(c, *base);
  }
  if (kernel.function) {
    kernel.function(kernel.context, c);
    // What a kernel from elsewhere returns may be no new tensor.
    if (!op.composite_slot.load(std::memory_order_relaxed)) forget_kernel_writes(c);
    return;
  }
  if (const Slot* s = fallbacks[static_cast<int>(backend)].load(std::memory_order_acquire))
    return s->function(s->context, c);
  no_kernel(c, backend);
}

}  // namespace

const char* isa_name() { return isa_names[isa_index()]; }
Isa current_isa() { return static_cast<Isa>(isa_index()); }

void set_isa(Isa isa) {
  check(static_cast<int>(isa) <= detect_isa(),
        "set_isa(): this build or processor lacks the instruction set asked for");
  isa_in_force.store(static_cast<int>(isa));
}

void set_backend_fallback(Layer backend, KernelFn f, void* context) {
  fallbacks[static_cast<int>(backend)].store(f ? new Slot{.function = f, .context = context}
                                               : nullptr);
}

Device result_device(const OpCall& c) {
  const Tensor* any = nullptr;
  for (int i = 0; i < c.info->base_args; ++i) {
    const Value& v = c.args[i];
    if (v.is_tensor()) {
      if (v.tensor->ndim > 0 || !v.tensor->device.is_cpu()) return v.tensor->device;
      if (!any) any = &v.as_tensor();
    }
    if (v.tag == Tag::TensorList)
      for (const Tensor& t : v.as_tensors())
        if (t.defined()) return t.device();
  }
  if (c.info->device_arg >= 0 && c.args[c.info->device_arg].tag == Tag::Device)
    return c.args[c.info->device_arg].device;
  return any ? any->device() : thread_state.default_device;
}

void allocate_results(OpCall& c) {
  check(is_structured(*c.op->record), *c.op, "(): this operator has no shape rule");
  Meta m(c);
  c.op->record->meta(m);
  m.settle();
  const Device device = m.has_device ? m.device : result_device(c);
  for (int i = 0; i < c.info->results; ++i)
    if (m.results[i].defined) set_result(c.results[i], allocate(m.results[i], device));
}

void check_devices(const OpCall& c) {
  if (may_mix_devices(c.layers & backend_layers)) [[unlikely]]
    check_one_device(c);
}

namespace {

void run_alone(OpCall& c, Layer backend) {
  check_devices(c);
  if (c.info->mutated) {
    check_inference(c);
    const Slot* put = registered(c.op, backend);
    const bool ours = put ? put->structured : !c.op->composite_slot.load(std::memory_order_relaxed);
    {
      const OneChange change(ours ? &c : nullptr);
      choose_and_run(c, backend);
    }
    return finish(c);
  }
  choose_and_run(c, backend);
  if (c.info->view | static_cast<uint32_t>(thread_state.inference)) finish(c);
}

// The same while other threads may change what the arguments lie over.
[[gnu::noinline]] void run_beside_others(OpCall& c, Layer backend) {
  if ((c.op->record->flags & geometry_only) && c.args[0].is_tensor()) {
    const bool from_storage = c.info->args > 1 && c.args[1].tag == Tag::Storage;
    const TensorChange change(*c.args[0].tensor, from_storage ? c.args[1].storage : nullptr);
    return run_alone(c, backend);
  }
  const RunningCall running(c.args, c.info->args);
  run_alone(c, backend);
}

}  // namespace

void run_backend(OpCall& c, Layer backend) {
  if (calls_may_race()) [[unlikely]]
    return run_beside_others(c, backend);
  run_alone(c, backend);
}

void run_kernel(OpCall& c, const Slot& kernel) {
  const RunningCall running(c.args, c.info->args);
  if (c.info->mutated) check_inference(c);
  kernel.function(kernel.context, c);
  forget_kernel_writes(c);
  finish(c);
}

namespace {

// Calls whose kernel may run later: it has a rule for what it writes, and draws no random numbers,
// whose order other code may rely on.
bool may_run_later(const OpCall& c) {
  const OpRecord& r = *c.op->record;
  constexpr uint32_t no = random | shape_from_data | geometry_only | runs_when_called;
  if (!r.meta || !r.cpu || r.flags & no || c.op->variant == Variant::Functional) return false;
  if ((c.layers & backend_layers) != LayerSet(Layer::CPU) || c.layers.has(Layer::Layout))
    return false;
  return !registered(c.op, Layer::CPU);
}

// As run_into(), where the kernel writes straight into what was given.
bool prepare_into(OpCall& c, Meta& m) {
  const int n = c.info->results;
  const bool in_place = c.op->variant == Variant::Inplace;
  const int first = in_place ? 0 : c.info->base_args;
  if (writes_plainly(c, m, c.tensor(first), {})) return true;
  m.settle();
  for (int i = 0; i < n; ++i) {
    const ResultSpec& r = m.results[i];
    if (!r.defined || !c.args[first + i].is_tensor()) return false;
    const Tensor& to = c.tensor(first + i);
    if (!same_sizes(r.sizes, to.sizes()) || r.dtype != to.dtype() || !to->contiguous) return false;
    if (worst_overlap(c, to) == Overlap::Partial || !direct(c, r, to)) return false;
  }
  return true;
}

}  // namespace

bool prepare_call(OpCall& c, MakeResult make, Slot& kernel) {
  if (!may_run_later(c)) return false;
  if (c.info->mutated) check_inference(c);
  Meta m(c);
  c.op->record->meta(m);
  if (m.has_device && !m.device.is_cpu()) return false;
  kernel = pick(c.op->record->cpu);
  if (c.op->variant != Variant::Base) {
    if (!prepare_into(c, m)) return false;
    give_written(c);
    return true;
  }
  if (c.info->mutated) {  // an in-place record's rule has looked at the arguments
    if (!is_inplace(*c.info)) return false;
    give_written(c);
    return true;
  }
  if (m.like) {
    set_result(c.results[0], make(m.like->sizes(), nullptr, m.results[0].dtype));
    return true;
  }
  for (int i = 0; i < c.info->results; ++i) {
    const ResultSpec& r = m.results[i];
    const IntSpan strides = r.strides;
    if (r.defined)
      set_result(c.results[i], make(r.sizes, r.has_strides ? &strides : nullptr, r.dtype));
  }
  return true;
}

void finish_call(OpCall& c) {
  if (c.info->mutated || c.info->view || thread_state.inference) finish(c);
}

bool has_composite_kernel(const Operator& op) {
  return op.record->composite != Composite::No ||
         op.composite_slot.load(std::memory_order_acquire) != nullptr;
}

void run_composite(OpCall& c) {
  const Operator& op = *c.op;
  // The kernel of a composite over lists serves its in-place variant too.
  const bool own =
      op.variant == Variant::Base || (op.variant == Variant::Inplace && (c.info->list_args & 1));
  if (!own)
    if (const Operator* base = op.variant_of(Variant::Base)) return run_by_base(c, *base);
  const Slot* put = op.composite_slot.load(std::memory_order_acquire);
  const Slot kernel = put ? *put : pick(op.record->any);
  check_kind(ErrorKind::NotImplemented, kernel.function != nullptr, op,
             "(): expected a kernel for it; none is registered");
  kernel.function(kernel.context, c);
  if (c.info->mutated) give_written(c);
}

void Meta::result_like(int i, const Tensor& t, DType dtype) {
  if (t.is_contiguous()) return result(i, t.sizes(), dtype);
  if (is_dense_non_overlapping(t.sizes(), t.strides()))
    return result(i, t.sizes(), dtype, t.strides());
  const Tensor* inputs[] = {&t};
  result(i, t.sizes(), dtype, elementwise_strides(t.sizes(), inputs));
}

}  // namespace facula
