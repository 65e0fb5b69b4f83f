// The toy's kernels: two of its own for contiguous float32, and a fallback that borrows the CPU's.
#include <cstring>
#include <deque>

#include "core/device_generator.h"
#include "core/stream.h"
#include "device.h"
#include "dispatch/backend.h"
#include "dispatch/operator.h"
#include "queue.h"

namespace toy {
namespace {

using namespace facula;

std::atomic<int64_t> native_calls{0}, fallback_calls{0};
DeviceType type;

// Gives work to the current stream of a device.
void give(Device d, Work work) {
  queue_of(d.index, stream_handle(current_stream(d))).give(std::move(work));
}

// --- kernels of the toy's own: they are only given to the stream

bool is_simple(const Value& v) {
  if (v.is_number()) return v.tag != Tag::Complex;
  return v.is_tensor() && v.as_tensor().device().type == type &&
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
  const Tensor& out = c.results[0].as_tensor();
  const Value& b = c.arg(1);
  const float* x = c.tensor(0).data<float>();
  const float* y = b.is_tensor() ? b.as_tensor().data<float>() : nullptr;
  const float number = y ? 0 : b.as_scalar().to<float>();
  // Memory that is let go of meanwhile is used again by later work of the same stream alone.
  give(out.device(), [=, to = out.data<float>(), n = out.numel()] {
    for (int64_t i = 0; i < n; ++i) on_host(to)[i] = f(on_host(x)[i], y ? on_host(y)[i] : number);
  });
}

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
  put_in(*op, backend_layer(type), kernel, nullptr);
}

// --- strided copies

// One that has been given to a stream outlives the caller's lists.
struct Copy {
  explicit Copy(const facula_strided_copy& c)
      : given(c),
        sizes(c.sizes, c.sizes + c.dims),
        to(c.to_strides, c.to_strides + c.dims),
        from(c.from_strides, c.from_strides + c.dims) {}

  template <class T, class F>
  void walk(size_t d, T* t, const F* f) const {
    if (d == sizes.size()) {
      *t = static_cast<T>(*f);
      return;
    }
    for (int64_t i = 0; i < sizes[d]; ++i) walk(d + 1, t + i * to[d], f + i * from[d]);
  }
  template <class T, class F>
  void run() const {
    walk(0, on_host(static_cast<T*>(given.to)), on_host(static_cast<const F*>(given.from)));
  }

  facula_strided_copy given;
  std::vector<int64_t> sizes, to, from;
};

template <class T>
Work same_type(Copy copy) {
  return [copy = std::move(copy)] { copy.run<T, T>(); };
}

Work work_of(const facula_strided_copy& c) {
  const auto to = static_cast<DType>(c.to_dtype), from = static_cast<DType>(c.from_dtype);
  Copy copy(c);
  if (to == DType::Float32 && from == DType::Float64)
    return [copy = std::move(copy)] { copy.run<float, double>(); };
  if (to == DType::Float64 && from == DType::Float32)
    return [copy = std::move(copy)] { copy.run<double, float>(); };
  if (to != from) return nullptr;
  switch (itemsize(to)) {
    case 1:
      return same_type<uint8_t>(std::move(copy));
    case 2:
      return same_type<uint16_t>(std::move(copy));
    case 4:
      return same_type<uint32_t>(std::move(copy));
    case 8:
      return same_type<uint64_t>(std::move(copy));
  }
  return nullptr;
}

}  // namespace

int copy_strided(int index, const facula_strided_copy* copy, void* stream) {
  Work work = copy->conjugate || copy->negate ? nullptr : work_of(*copy);
  if (!work) return FACULA_DEVICE_NOT_SUPPORTED;
  queue_of(index, stream).give(std::move(work));
  return 0;
}

void register_kernels(DeviceType t) {
  type = t;
  put_in_kernel("add", add);
  put_in_kernel("mul", mul);
  set_backend_fallback(backend_layer(type), run_on_cpu, nullptr);
}

}  // namespace toy

extern "C" {
int64_t toy_native_calls() { return toy::native_calls; }
int64_t toy_fallback_calls() { return toy::fallback_calls; }
void toy_use_fallback(bool on) {
  facula::set_backend_fallback(facula::backend_layer(toy::type), on ? toy::run_on_cpu : nullptr,
                               nullptr);
}
}
