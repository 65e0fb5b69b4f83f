// What runs for every operator that the toy has no kernel for: the CPU's.
#include <deque>

#include "core/device_generator.h"
#include "device.h"
#include "dispatch/backend.h"
#include "dispatch/operator.h"

namespace toy {
namespace {

using namespace facula;

std::atomic<int64_t> fallback_calls{0};
DeviceType type;

// Arguments go to the CPU, the operator runs there, results and changes come back.

const Operator& aten(const char* name, const char* overload = "") {
  const Operator* op = find_operator("aten", name, overload);
  check(op != nullptr, "toy: this build has no operator aten::", name);
  return *op;
}

Tensor moved(const Tensor& t, Device to) {
  if (!t.defined()) return t;
  Value args[] = {pack(t), {}, {}, pack(to), {}, pack(false), {}};
  return call_tensor(aten("_to_copy"), args);
}
void copy_into(const Tensor& to, const Tensor& from) {
  Value args[] = {pack(to), pack(from), pack(false)};
  call_nothing(aten("copy_"), args);
}

// The arguments of a call with everything of the toy device replaced by the CPU's.
struct OnCpu {
  explicit OnCpu(const OpCall& c) : args(c.args, c.args + c.info->args) {
    for (Value& v : args) replace(v);
    for (size_t i = 0; i < args.size(); ++i)
      if (c.info->schema.args[i].type.kind == TypeKind::Generator) args[i] = numbers(args[i]);
  }
  void replace(Value& v) {
    if (v.tag == Tag::Device && v.device.type == type) {
      note(v.device);
      v = pack(Device{});
    }
    if (v.is_tensor()) v = pack(kept.emplace_back(taken(v.as_tensor())));
    if (v.tag != Tag::TensorList) return;
    auto& list = lists.emplace_back();
    for (const Tensor& t : v.as_tensors()) list.push_back(taken(t));
    v = pack(std::span<const Tensor>(list));
  }
  // Random numbers follow from the state of the device's generator.
  Value numbers(const Value& given) {
    auto& g =
        given.is_none() ? default_generator(home) : static_cast<DeviceGenerator&>(*given.generator);
    check(g.device() == home, "Expected a generator of ", str(home), " but found one of ",
          str(g.device()));
    host = std::make_unique<Generator>(g.next_host_seed());
    return pack(host.get());
  }
  Tensor taken(const Tensor& t) {
    if (t.defined()) note(t.device());
    return moved(t, Device{});
  }
  void note(Device d) {
    if (d.type == type) home = with_index(d);
  }

  Device home = with_index({type, -1});  // of the results
  std::vector<Value> args;
  std::deque<Tensor> kept;
  std::deque<std::vector<Tensor>> lists;
  std::unique_ptr<Generator> host;
};

void put_back(const OpCall& c, const OnCpu& there) {
  for (int i = 0; i < c.info->args; ++i) {
    if (!(c.info->mutated >> i & 1)) continue;
    const Value& mine = c.args[i];
    const Value& other = there.args[static_cast<size_t>(i)];
    if (mine.is_tensor()) copy_into(mine.as_tensor(), other.as_tensor());
    if (mine.tag != Tag::TensorList) continue;
    for (size_t k = 0; k < mine.length; ++k) copy_into(mine.tensors[k], other.tensors[k]);
  }
}

void take_result(Value& from, Value& to, Device home) {
  if (from.tag == Tag::TensorList) {
    std::vector<Tensor> list;
    for (const Tensor& t : take_tensors(from)) list.push_back(moved(t, home));
    return set_result(to, std::move(list));
  }
  if (from.is_tensor()) return set_result(to, moved(take_tensor(from), home));
  if (from.is_number()) set_result(to, from.as_scalar());
}

void run_on_cpu(void*, OpCall& c) {
  ++fallback_calls;
  OnCpu there(c);
  Results<8> computed;
  call(*c.op, there.args.data(), computed.slots);
  put_back(c, there);
  for (int k = 0; k < c.info->results; ++k)
    if (c.info->alias_of[k] < 0) take_result(computed.slots[k], c.results[k], there.home);
}

}  // namespace

void register_fallback(DeviceType t) {
  type = t;
  set_backend_fallback(backend_layer(type), run_on_cpu, nullptr);
}

}  // namespace toy

extern "C" {
int64_t toy_fallback_calls() { return toy::fallback_calls; }
void toy_use_fallback(bool on) {
  facula::set_backend_fallback(facula::backend_layer(toy::type), on ? toy::run_on_cpu : nullptr,
                               nullptr);
}
}
