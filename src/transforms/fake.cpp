#include "transforms/fake.h"

#include "autograd/variable.h"
#include "dispatch/backend.h"
#include "dispatch/mutations.h"
#include "transforms/replaced_args.h"

namespace facula {

constinit const ExtensionKind fake_kind{.name = "FakePart"};
namespace {

constexpr Device meta_device{DeviceType::Meta, -1};

// A tensor over the same storage that is on another device.
Tensor header_on(const Tensor& t, Device device) {
  Tensor h = alias_tensor(t);
  delete h->extension;
  h->extension = nullptr;
  h->device = device;
  h->layers = (t->layers - backend_layers - LayerSet(Layer::Autograd)) | backend_layer(device.type);
  h->wrapped_number = t->wrapped_number;
  return h;
}

Tensor fake_over(const Tensor& on_meta, Device device) {
  Tensor f = header_on(on_meta, device);
  f->extension = new FakePart;
  return f;
}

Tensor as_meta(const Tensor& t, const OpCall& c, bool allow_real) {
  if (is_fake(t)) return header_on(t, meta_device);
  check_strided(t, "FakeTensorMode");  // also on meta, since a fake tensor has its own extension
  if (t.is_meta()) return t;
  const bool number = t->wrapped_number || (t.dim() == 0 && t.device().is_cpu());
  check_kind(ErrorKind::Assertion, allow_real || number,
             "Please convert all Tensors to FakeTensors first or "
             "instantiate FakeTensorMode with 'allow_non_fake_inputs'. Found in ",
             c.op->name());
  return header_on(make_fake(t), meta_device);
}

// Replaces device arguments by meta, so that factories allocate nothing.
void send_to_meta(const OpCall& c, ReplacedArgs& args) {
  const int at = c.info->device_arg;
  if (at < 0) return;
  const bool factory_call = c.args[at].tag == Tag::Device || c.info->tensor_args == 0;
  if (factory_call) args.set(at, pack(meta_device));
}

// Copies the new geometry to written arguments, and returns those for results that are arguments.
void take_back(OpCall& c, ReplacedArgs& args) {
  for_each_written_pair(c, args.values(), [](const Tensor& to, const Tensor& from) {
    if (to.is_same(from)) return;
    to->copy_geometry(*from.get());
    to->offset = from->offset;
    to->storage = from->storage;
    to->dtype = from->dtype;
  });
  bump_written(c);
  give_written(c);
}

// The original argument that a meta result is, or an undefined tensor if it is a new one.
Tensor argument_of(const OpCall& c, const ReplacedArgs& args, const Tensor& result) {
  for (int i = 0; i < c.info->args; ++i)
    if (args[i].is_tensor() && args[i].tensor == result.get()) return c.tensor(i);
  return {};
}

Tensor faked(const OpCall& c, const ReplacedArgs& args, const Tensor& result, Device device) {
  if (Tensor same = argument_of(c, args, result); same.defined()) return same;
  return fake_over(result, device);
}

void fake_results(OpCall& c, const ReplacedArgs& args, Device device) {
  for (int k = 0; k < c.info->results; ++k) {
    Value& v = c.results[k];
    if (v.is_tensor()) set_result(v, faked(c, args, Tensor(v.as_tensor()), device));
    if (v.tag != Tag::TensorList) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : v.as_tensors())
      list.push_back(t.defined() ? faked(c, args, t, device) : t);
    set_result(v, std::move(list));
  }
}

Device device_of_results(const OpCall& c) {
  const int at = c.info->device_arg;
  if (at >= 0 && c.args[at].tag == Tag::Device) return c.args[at].device;
  return result_device(c);
}

}  // namespace

Tensor make_fake(const Tensor& t) { return is_fake(t) ? t : fake_like(t); }

Tensor fake_like(const Tensor& t) {
  check_strided(t, "FakeTensorMode");
  const Tensor f(Ref<TensorImpl>::take(new_tensor_impl()));
  f->storage = Storage::make(meta_device, t->storage->nbytes());
  f->dtype = t.dtype();
  f->device = t.device();
  f->layout = t->layout;
  f->layers = t->layers & (backend_layers | Layer::Conjugate | Layer::Negative);
  f->conj = t->conj;
  f->neg = t->neg;
  f->wrapped_number = t->wrapped_number;
  f->copy_geometry(*t.get());
  f->offset = t->offset;
  f->extension = new FakePart;
  if (requires_grad(t)) set_requires_grad(f, true);
  return f;
}

void FakeMode::handle(OpCall& c) {
  const Device device = device_of_results(c);
  ReplacedArgs args(c, [&](const Tensor& t, int) { return as_meta(t, c, allow_real); });
  send_to_meta(c, args);
  call(*c.op, args.values(), c.results);
  fake_results(c, args, device);
  if (c.info->mutated) take_back(c, args);
  if (c.info->view) note_views(c);
}

}  // namespace facula
