// A device in a library of its own: opened at run time, it registers the device "toy", whose memory
// the host cannot read, kernels for a few operators, and a fallback that borrows the CPU's kernels.
// Uses the headers of core/ and dispatch/ alone.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "dispatch/backend.h"
#include "dispatch/operator.h"

namespace {

using namespace facula;

std::atomic<int64_t> bytes_in_use{0}, native_calls{0}, fallback_calls{0};
Device toy;

// --- memory. Device addresses are host addresses plus an offset that no host address has, so that
// a read of device memory by the host's code is a fault and not a passing test.

constexpr uintptr_t offset = uintptr_t{1} << 62;

void* on_device(void* p) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) + offset);
}
template <class T>
T* on_host(T* p) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) - offset);
}

void* allocate(size_t bytes, int) {
  void* p = std::malloc(bytes);
  if (!p) return nullptr;
  bytes_in_use += static_cast<int64_t>(bytes);
  return on_device(p);
}
void release(void* data, size_t bytes, int) {
  bytes_in_use -= static_cast<int64_t>(bytes);
  std::free(on_host(data));
}
int copy_from_host(void* device, const void* host, size_t bytes, int) {
  std::memcpy(on_host(device), host, bytes);
  return 0;
}
int copy_to_host(void* host, const void* device, size_t bytes, int) {
  std::memcpy(host, on_host(device), bytes);
  return 0;
}
int copy_within(void* to, const void* from, size_t bytes, int) {
  std::memmove(on_host(to), on_host(from), bytes);
  return 0;
}
int device_count() { return 2; }
int current_device() { return 0; }

const DeviceTable table = [] {
  DeviceTable t;
  t.name = "toy";
  t.allocate = allocate;
  t.release = release;
  t.copy_from_host = copy_from_host;
  t.copy_to_host = copy_to_host;
  t.copy_within = copy_within;
  t.device_count = device_count;
  t.current_device = current_device;
  return t;
}();

// --- the fallback: arguments to the CPU, the operator there, results and changes back

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
  }
  void replace(Value& v) {
    if (v.tag == Tag::Device && v.device.type == toy.type) {
      note(v.device);
      v = pack(Device{});
    }
    if (v.is_tensor()) v = pack(kept.emplace_back(taken(v.as_tensor())));
    if (v.tag != Tag::TensorList) return;
    auto& list = lists.emplace_back();
    for (const Tensor& t : v.as_tensors()) list.push_back(taken(t));
    v = pack(std::span<const Tensor>(list));
  }
  Tensor taken(const Tensor& t) {
    if (t.defined()) note(t.device());
    return moved(t, Device{});
  }
  void note(Device d) {
    if (d.type == toy.type && d.index >= 0) home = d;
  }

  Device home = toy;  // of the results
  std::vector<Value> args;
  std::deque<Tensor> kept;
  std::deque<std::vector<Tensor>> lists;
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

// --- kernels of the toy's own: contiguous float32 of one shape; the rest goes to the fallback

bool is_simple(const Value& v) {
  if (v.is_number()) return v.tag != Tag::Complex;
  return v.is_tensor() && v.as_tensor().device().type == toy.type &&
         v.as_tensor().dtype() == DType::Float32 && v.as_tensor().is_contiguous();
}
bool are_simple(const Value& a, const Value& b) {
  if (!a.is_tensor() || !is_simple(a) || !is_simple(b)) return false;
  return b.is_number() || same_sizes(a.as_tensor().sizes(), b.as_tensor().sizes());
}

template <class F>
void binary(OpCall& c, F f) {
  ++native_calls;
  allocate_results(c);
  const Value& b = c.arg(1);
  const float* x = on_host(c.tensor(0).data<float>());
  const float* y = b.is_tensor() ? on_host(b.as_tensor().data<float>()) : nullptr;
  const float number = y ? 0 : b.as_scalar().to<float>();
  float* out = on_host(c.results[0].as_tensor().data<float>());
  for (int64_t i = 0; i < c.tensor(0).numel(); ++i) out[i] = f(x[i], y ? y[i] : number);
}

void add(void* context, OpCall& c) {
  if (!are_simple(c.arg(0), c.arg(1))) return run_on_cpu(context, c);
  const float alpha = c.arg(2).as_scalar().to<float>();
  binary(c, [alpha](float a, float b) { return a + alpha * b; });
}
void mul(void* context, OpCall& c) {
  if (!are_simple(c.arg(0), c.arg(1))) return run_on_cpu(context, c);
  binary(c, [](float a, float b) { return a * b; });
}

void put_in_kernel(const char* name, KernelFn kernel) {
  Operator* op = find_operator("aten", name, "Tensor");
  check(op != nullptr, "toy: this build has no operator aten::", name, ".Tensor");
  put_in(*op, backend_layer(toy.type), kernel, nullptr);
}

[[maybe_unused]] const bool registered = [] {
  toy = {register_device(table), 0};
  put_in_kernel("add", add);
  put_in_kernel("mul", mul);
  set_backend_fallback(backend_layer(toy.type), run_on_cpu, nullptr);
  return true;
}();

}  // namespace

// What the tests look at.
extern "C" {
int64_t toy_bytes_in_use() { return bytes_in_use; }
int64_t toy_native_calls() { return native_calls; }
int64_t toy_fallback_calls() { return fallback_calls; }
void toy_use_fallback(bool on) {
  set_backend_fallback(backend_layer(toy.type), on ? run_on_cpu : nullptr, nullptr);
}
}
