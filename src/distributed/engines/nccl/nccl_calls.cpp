#include "distributed/engines/nccl/nccl_calls.h"

#include <algorithm>
#include <optional>

#include "core/half.h"
#include "distributed/call_text.h"

namespace facula::distributed {
namespace {

constexpr int first_version_with_float8 = 22400;

bool reduces(Call c) {
  return c == Call::AllReduce || c == Call::Reduce || c == Call::ReduceScatter ||
         c == Call::Barrier;
}

std::optional<NcclType> type_of(DType d) {
  switch (d) {
    case DType::Int8:
      return NcclType::Int8;
    case DType::UInt8:
    case DType::Bool:
      return NcclType::UInt8;
    case DType::Int32:
      return NcclType::Int32;
    case DType::UInt32:
      return NcclType::UInt32;
    case DType::Int64:
      return NcclType::Int64;
    case DType::UInt64:
      return NcclType::UInt64;
    case DType::Float16:
      return NcclType::Float16;
    case DType::Float32:
      return NcclType::Float32;
    case DType::Float64:
      return NcclType::Float64;
    case DType::BFloat16:
      return NcclType::BFloat16;
    case DType::Float8E4M3:
      return NcclType::Float8e4m3;
    case DType::Float8E5M2:
      return NcclType::Float8e5m2;
    default:
      return std::nullopt;
  }
}

// Elements as NCCL takes them: complex numbers are two, and what is only moved may be bytes.
struct Elements {
  NcclType type = NcclType::UInt8;
  int64_t each = 1;
};

Elements elements_of(const CallRecord& r) {
  if (reduces(r.call)) return {*type_of(real_of(r.dtype)), is_complex(r.dtype) ? 2 : 1};
  return {NcclType::UInt8, static_cast<int64_t>(itemsize(r.dtype))};
}

std::optional<NcclOp> op_of(Reduction reduction, DType dtype) {
  const bool is_bool = dtype == DType::Bool;  // 0 or 1: a sum of them is "any", a product "all"
  switch (reduction) {
    case Reduction::Sum:
      return is_bool ? NcclOp::Max : NcclOp::Sum;
    case Reduction::Product:
      return is_bool ? NcclOp::Min : NcclOp::Product;
    case Reduction::Max:
      return NcclOp::Max;
    case Reduction::Min:
      return NcclOp::Min;
    case Reduction::Avg:
      return NcclOp::Avg;
    default:
      return std::nullopt;
  }
}

// A factor in the dtype of what it multiplies.
union Factor {
  Half half;
  BFloat16 bfloat;
  float single;
  double number;
};

Factor factor_in(DType dtype, double value) {
  Factor f{};
  if (dtype == DType::Float16) f.half = Half(static_cast<float>(value));
  if (dtype == DType::BFloat16) f.bfloat = BFloat16(static_cast<float>(value));
  if (dtype == DType::Float32) f.single = static_cast<float>(value);
  if (dtype == DType::Float64) f.number = value;
  return f;
}

// Whether parts lie one behind the other.
template <class P>
bool are_one(const std::vector<P>& parts, int64_t bytes) {
  const auto* first = static_cast<const std::byte*>(parts[0]);
  for (size_t r = 1; r < parts.size(); ++r)
    if (parts[r] != first + static_cast<int64_t>(r) * bytes) return false;
  return true;
}

int64_t bytes_of(const CallRecord& r) { return r.count * static_cast<int64_t>(itemsize(r.dtype)); }

}  // namespace

void check_call(const NcclLibrary& nccl, const Collective& call) {
  const CallRecord& r = call.record;
  if (!reduces(r.call)) return;
  const DType dtype = real_of(r.dtype);
  check(type_of(dtype).has_value(), name_of(r.call), "(): expected a dtype that NCCL reduces; got ",
        name(r.dtype));
  check(!is_float8(dtype) || nccl.version >= first_version_with_float8, name_of(r.call),
        "(): expected NCCL 2.24 or later for ", name(r.dtype), "; got ", nccl.version_text());
  if (r.reduction == Reduction::PremulSum) {
    check(is_floating(dtype) && !is_float8(dtype), name_of(r.call),
          "(): expected float16, bfloat16, float32 or float64 for PREMUL_SUM over NCCL; got ",
          name(r.dtype));
    return;
  }
  check(op_of(r.reduction, dtype).has_value(), name_of(r.call),
        "(): expected SUM, AVG, PRODUCT, MIN, MAX or PREMUL_SUM over NCCL; got ",
        name_of(r.reduction));
  check(!is_complex(r.dtype) || r.reduction == Reduction::Sum || r.reduction == Reduction::Avg,
        name_of(r.call), "(): expected SUM or AVG for complex numbers over NCCL; got ",
        name_of(r.reduction));
  check(dtype != DType::Bool || r.reduction != Reduction::Avg, name_of(r.call),
        "(): expected numbers for AVG; got bool");
}

NcclLauncher::~NcclLauncher() {
  for (const NcclOp op : made_) nccl_.destroy_op(op, comm_);
}

void NcclLauncher::note(NcclResult result) {
  const bool fine = result == NcclResult::Success || result == NcclResult::InProgress;
  if (!fine && result_ == NcclResult::Success) result_ = result;
}

void NcclLauncher::prepare(const Collective& call) {
  if (call.record.reduction != Reduction::PremulSum || !reduces(call.record.call)) return;
  const DType dtype = real_of(call.record.dtype);
  Factor factor = factor_in(dtype, call.factor);
  NcclOp op{};
  const NcclResult result = nccl_.make_premul_sum(&op, &factor, *type_of(dtype), 1, comm_);
  note(result);
  if (result == NcclResult::Success) made_.push_back(op);
}

void NcclLauncher::send(const void* data, int64_t count, const Collective& call, int peer) {
  const Elements e = elements_of(call.record);
  if (count > 0)
    note(nccl_.send(data, static_cast<size_t>(count * e.each), e.type, peer, comm_, stream_));
}

void NcclLauncher::receive(void* data, int64_t count, const Collective& call, int peer) {
  const Elements e = elements_of(call.record);
  if (count > 0)
    note(nccl_.receive(data, static_cast<size_t>(count * e.each), e.type, peer, comm_, stream_));
}

void NcclLauncher::all_gather(const Collective& call) {
  const Elements e = elements_of(call.record);
  const auto n = static_cast<size_t>(call.record.count * e.each);
  if (are_one(call.outputs, bytes_of(call.record)))
    return note(nccl_.all_gather(call.inputs[0], call.outputs[0], n, e.type, comm_, stream_));
  for (int r = 0; r < static_cast<int>(call.outputs.size()); ++r) {
    void* to = call.outputs[static_cast<size_t>(r)];
    note(nccl_.broadcast(r == rank_ ? call.inputs[0] : to, to, n, e.type, r, comm_, stream_));
  }
}

void NcclLauncher::reduce_scatter(const Collective& call) {
  const Elements e = elements_of(call.record);
  const auto n = static_cast<size_t>(call.record.count * e.each);
  const bool made = call.record.reduction == Reduction::PremulSum;
  const NcclOp op = made ? made_[used_++] : *op_of(call.record.reduction, call.record.dtype);
  if (are_one(call.inputs, bytes_of(call.record)))
    return note(
        nccl_.reduce_scatter(call.inputs[0], call.outputs[0], n, e.type, op, comm_, stream_));
  for (int r = 0; r < static_cast<int>(call.inputs.size()); ++r)
    note(nccl_.reduce(call.inputs[static_cast<size_t>(r)], call.outputs[0], n, e.type, op, r, comm_,
                      stream_));
}

void NcclLauncher::give(const Collective& call) {
  const CallRecord& r = call.record;
  const auto ranks = static_cast<int>(std::max(call.inputs.size(), call.outputs.size()));
  const auto in = [&](int i) { return call.inputs[static_cast<size_t>(i)]; };
  const auto out = [&](int i) { return call.outputs[static_cast<size_t>(i)]; };
  const Elements e = elements_of(r);
  const auto n = static_cast<size_t>(r.count * e.each);
  const auto op = [&] {
    return r.reduction == Reduction::PremulSum ? made_[used_++] : *op_of(r.reduction, r.dtype);
  };
  switch (r.call) {
    case Call::Barrier:
    case Call::AllReduce:
      return note(nccl_.all_reduce(in(0), out(0), n, e.type, op(), comm_, stream_));
    case Call::Reduce:
      return note(nccl_.reduce(in(0), out(0), n, e.type, op(), r.root, comm_, stream_));
    case Call::Broadcast:
      return note(nccl_.broadcast(out(0), out(0), n, e.type, r.root, comm_, stream_));
    case Call::AllGather:
      return all_gather(call);
    case Call::ReduceScatter:
      return reduce_scatter(call);
    case Call::Gather:
      send(in(0), r.count, call, r.root);
      for (int i = 0; rank_ == r.root && i < ranks; ++i) receive(out(i), r.count, call, i);
      return;
    case Call::Scatter:
      for (int i = 0; rank_ == r.root && i < ranks; ++i) send(in(i), r.count, call, i);
      return receive(out(0), r.count, call, r.root);
    case Call::AllToAll:
      for (int i = 0; i < ranks; ++i) {
        send(in(i), call.sent[static_cast<size_t>(i)], call, i);
        receive(out(i), call.received[static_cast<size_t>(i)], call, i);
      }
      return;
    case Call::Send:
      return send(in(0), r.count, call, r.root);
    case Call::Receive:
      return receive(out(0), r.count, call, r.root);
    default:
      throw Error(ErrorKind::Runtime, "NCCL: expected a collective or a message");
  }
}

}  // namespace facula::distributed
