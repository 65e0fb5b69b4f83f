// facula's operators on quantized tensors. Most of them either move integers about, and run on
// these, or compute, and run on the floats; results are quantized as the first such argument is.
#include <algorithm>
#include <string>
#include <vector>

#include "dispatch/call.h"
#include "dispatch/layout.h"
#include "dispatch/mutations.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/quantized/quantizer.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

// The arguments of a call with plain tensors in place of quantized ones.
class PlainArguments {
 public:
  using Replace = Tensor (*)(const Tensor&);

  PlainArguments(const OpCall& c, Replace replace) : args_(c.args, c.args + c.info->args) {
    lists_.reserve(args_.size());
    for (Value& v : args_) {
      if (v.is_tensor() && is_quantized(v.as_tensor()))
        v = Value::of_tensor(keep(v.as_tensor(), replace).get());
      if (v.tag == Tag::TensorList) v = plain_list(v, replace);
    }
    check(first_.defined(), c.op->name(), "(): expected a quantized tensor among the arguments");
  }
  // The first quantized tensor.
  const Tensor& first() const { return first_; }
  Value* data() { return args_.data(); }

 private:
  const Tensor& keep(const Tensor& t, Replace replace) {
    if (!first_.defined()) first_ = t;
    kept_.push_back(replace(t));
    return kept_.back();
  }
  Value plain_list(const Value& v, Replace replace) {
    std::vector<Tensor>& list = lists_.emplace_back();
    for (const Tensor& t : v.as_tensors()) list.push_back(is_quantized(t) ? keep(t, replace) : t);
    return pack(std::span<const Tensor>(list));
  }

  std::vector<Value> args_;
  std::vector<Tensor> kept_;
  std::vector<std::vector<Tensor>> lists_;
  Tensor first_;
};

// Runs the operator on plain arguments; `wrap` makes quantized results of those that stand for
// values.
template <class Wrap>
void run_plainly(OpCall& c, PlainArguments& plain, Wrap&& wrap) {
  Results<8> results;
  call(*c.op, plain.data(), results.slots);
  if (c.info->mutated) return give_written(c);
  for (int i = 0; i < c.info->results; ++i) {
    Value& r = results.slots[i];
    if (r.is_tensor()) {
      set_result(c.results[i], wrap(take_tensor(r)));
    } else if (r.tag == Tag::TensorList) {
      std::vector<Tensor> list = take_tensors(r);
      for (Tensor& t : list) t = wrap(t);
      set_result(c.results[i], std::move(list));
    } else {
      set_result_copy(c.results[i], r);
    }
  }
}

void check_whole_bytes(const OpCall& c, const Tensor& t) {
  check_kind(ErrorKind::NotImplemented, per_byte(t.dtype()) == 1, c.op->name(), "(): elements of ",
             name(t.dtype()), " share bytes, and cannot be taken one by one");
}
void check_uniform(const OpCall& c, const Tensor& t) {
  check(!quantizer_of(t).per_channel(), c.op->name(),
        "(): Setting strides is possible only on uniformly quantized tensor; this one is quantized "
        "by channels");
}

Tensor as_integers(const Tensor& t) { return integers_of(t); }
Tensor as_floats(const Tensor& t) { return dequantized(t); }

// --- on the integers

void on_integers(void*, OpCall& c) {
  PlainArguments plain(c, as_integers);
  const Tensor first = plain.first();
  check_whole_bytes(c, first);
  check_uniform(c, first);
  run_plainly(c, plain, [&](const Tensor& t) {
    const bool is_value = t.dtype() == integers_of(first.dtype());
    return is_value ? over_integers(t, first.dtype(), quantizer_of(first)) : t;
  });
}

// A view or a copy whose quantizer may be another one.
template <class F>
void with_quantizer(OpCall& c, F&& quantizer) {
  PlainArguments plain(c, as_integers);
  const Tensor first = plain.first();
  check_whole_bytes(c, first);
  run_plainly(c, plain,
              [&](const Tensor& t) { return over_integers(t, first.dtype(), quantizer(t)); });
}

// view() keeps channels where their dimension keeps its place and size.
void same_quantizer(void*, OpCall& c) {
  const Quantizer q = quantizer_of(c.tensor(0));
  with_quantizer(c, [&](const Tensor&) { return q; });
}

void clone(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  if (per_byte(self.dtype()) == 1) return same_quantizer(nullptr, c);
  set_result(c.results[0], over_bytes(ops::clone(integers_of(self)), self.sizes(), self.dtype(),
                                      quantizer_of(self)));
}

void unsqueeze(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  Quantizer q = quantizer_of(self);
  if (wrap_dim(c.args[1].i, self.dim() + 1) <= q.axis) ++q.axis;
  with_quantizer(c, [&](const Tensor&) { return q; });
}

Quantizer of_one_channel(const Quantizer& q, int64_t channel) {
  check_kind(ErrorKind::NotImplemented, q.scheme == QScheme::PerChannelAffine,
             "indexing of tensors quantized with float zero points");
  Quantizer one;
  one.scale = ops::item(ops::select(q.scales, 0, channel)).to<double>();
  one.zero_point = ops::item(ops::select(q.zero_points, 0, channel)).to<int64_t>();
  return one;
}

void select(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  Quantizer q = quantizer_of(self);
  if (q.per_channel()) {
    const int64_t dim = wrap_index(c.args[1].i, self.dim());
    if (dim == q.axis) {
      const int64_t n = self.size(dim), i = c.args[2].i;
      check_kind(ErrorKind::Index, i >= -n && i < n, "select(): index ", i,
                 " out of range for tensor of size ", str(self.sizes()), " at dimension ", dim);
      q = of_one_channel(q, i < 0 ? i + n : i);
    } else if (dim < q.axis) {
      --q.axis;
    }
  }
  with_quantizer(c, [&](const Tensor&) { return q; });
}

void slice(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  const Quantizer q = quantizer_of(self);
  const int64_t dim = wrap_index(c.args[1].i, self.dim());
  with_quantizer(c, [&](const Tensor&) {
    if (!q.per_channel() || dim != q.axis) return q;
    const auto part = [&](const Tensor& of_channels) {
      Value args[5] = {pack(of_channels), pack(int64_t{0}), c.args[2], c.args[3], c.args[4]};
      return ops::clone(call_tensor(*c.op, args));
    };
    Quantizer some = q;
    some.scales = part(q.scales);
    some.zero_points = part(q.zero_points);
    return some.scales.numel() == 1 ? of_one_channel(some, 0) : some;
  });
}

// --- through floats

Tensor quantized_like(const Tensor& t, const Tensor& like) {
  return t.dtype() == DType::Float32 ? quantize(t, like.dtype(), quantizer_of(like)) : t;
}

void through_floats(void*, OpCall& c) {
  PlainArguments plain(c, as_floats);
  const Tensor first = plain.first();
  check_uniform(c, first);
  run_plainly(c, plain, [&](const Tensor& t) { return quantized_like(t, first); });
}

// The integer of zero is the least that is left.
void relu(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  if (per_byte(self.dtype()) > 1 || quantizer_of(self).per_channel())
    return through_floats(nullptr, c);
  const IntegerRange r = range_of(self.dtype());
  const Quantizer q = quantizer_of(self);
  const int64_t zero = std::clamp(q.zero_point, r.least, r.greatest);
  set_result(c.results[0], over_integers(ops::clamp_min(integers_of(self), zero), self.dtype(), q));
}

// Comparisons, and what gives numbers: channels do not matter.
void values_only(void*, OpCall& c) {
  PlainArguments plain(c, as_floats);
  run_plainly(c, plain, [](const Tensor& t) { return t; });
}

// Functions with a known range have a fixed quantizer: all of the integers serve the range.
Quantizer over_range(DType d, double low, double high) {
  const IntegerRange r = range_of(d);
  Quantizer q;
  q.scale = (high - low) / (static_cast<double>(r.greatest - r.least) + 1);
  q.zero_point = r.least - static_cast<int64_t>(low / q.scale);
  return q;
}
void onto_unit(void*, OpCall& c) {
  PlainArguments plain(c, as_floats);
  const DType d = plain.first().dtype();
  run_plainly(c, plain, [&](const Tensor& t) { return quantize(t, d, over_range(d, 0, 1)); });
}
void onto_unit_ball(void*, OpCall& c) {
  PlainArguments plain(c, as_floats);
  const DType d = plain.first().dtype();
  run_plainly(c, plain, [&](const Tensor& t) { return quantize(t, d, over_range(d, -1, 1)); });
}

// --- memory

Tensor quantized_as(const Tensor& values, const Tensor& like) {
  const Tensor floats = ops::to(values, DType::Float32);
  return quantize(ops::contiguous(ops::expand(floats, like.sizes())), like.dtype(),
                  quantizer_of(like));
}

void copy_(void*, OpCall& c) {
  const Tensor &self = c.tensor(0), &src = c.tensor(1);
  if (!is_quantized(self)) {
    ops::copy_(self, dequantized(src));
  } else if (!is_quantized(src)) {
    check(src.dtype() == DType::Float32,
          "Quantized copy only works with kFloat as source Tensor; got ", name(src.dtype()));
    ops::copy_(integers_of(self), integers_of(quantized_as(src, self)));
  } else {
    check(self.dtype() == src.dtype(), "copy_(): expected quantized tensors of one dtype; got ",
          name(self.dtype()), " and ", name(src.dtype()));
    const Quantizer q = quantizer_of(src);
    check_channels(q, self.sizes(), "quantization");
    ops::copy_(integers_of(self), integers_of(src));
    set_quantizer(self, q);
  }
  give_written(c);
}

void fill_(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  Value args[2] = {pack(self), c.args[1]};
  const Tensor floats = ops::empty(self.sizes(), DType::Float32);
  args[0] = pack(floats);
  call_nothing(*c.op, args);
  ops::copy_(integers_of(self), integers_of(quantized_as(floats, self)));
  give_written(c);
}

void empty_like(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  const DType d = c.args[1].is_none() ? self.dtype() : c.args[1].dtype;
  check(is_quantized(d),
        "Creation of quantized tensor requires quantized dtype like torch.quint8; "
        "got ",
        name(d));
  const MemoryFormat f = c.args[5].is_none() ? MemoryFormat::Preserve : c.args[5].memory_format;
  const bool keeps =
      f == MemoryFormat::Preserve && is_dense_non_overlapping(self.sizes(), self.strides());
  const IntVec strides =
      keeps ? IntVec(self.strides())
            : strides_for(self.sizes(), f == MemoryFormat::Preserve ? MemoryFormat::Contiguous : f);
  set_result(c.results[0], empty_quantized(self.sizes(), strides, d, quantizer_of(self)));
}

// A tensor like self, of one value.
void filled_like(const OpCall& c, const Value& value) {
  const Tensor& self = c.tensor(0);
  const Tensor floats = ops::full(self.sizes(), value.as_scalar(), DType::Float32);
  set_result(c.results[0], quantized_as(floats, self));
}
void full_like(void*, OpCall& c) { filled_like(c, c.args[1]); }
void ones_like(void*, OpCall& c) { filled_like(c, Value::of_int(1)); }

void to_copy(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  check(c.args[1].is_none() || is_quantized(c.args[1].dtype),
        "Creation of quantized tensor requires quantized dtype like torch.quint8; dequantize() "
        "gives floats");
  check(c.args[1].is_none() || c.args[1].dtype == self.dtype(),
        "to(): a quantized tensor's dtype cannot be changed; got ", name(self.dtype()));
  if (!c.args[3].is_none() && !c.args[3].device.is_cpu())
    throw Error(ErrorKind::NotImplemented, "quantized tensors are on the CPU alone; got device ",
                str(c.args[3].device));
  if (per_byte(self.dtype()) > 1)
    return set_result(c.results[0], over_bytes(ops::clone(integers_of(self)), self.sizes(),
                                               self.dtype(), quantizer_of(self)));
  const Tensor integers = c.args[6].is_none()
                              ? ops::clone(integers_of(self))
                              : ops::clone(integers_of(self), c.args[6].memory_format);
  set_result(c.results[0], over_integers(integers, self.dtype(), quantizer_of(self)));
}

void equal(void*, OpCall& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  const bool same = is_quantized(a) && is_quantized(b) && a.dtype() == b.dtype() &&
                    same_sizes(a.sizes(), b.sizes()) && quantizer_of(a) == quantizer_of(b) &&
                    ops::equal(integers_of(a), integers_of(b));
  set_result(c.results[0], same);
}

void resize_(void*, OpCall& c) {
  const Tensor& self = c.tensor(0);
  check_whole_bytes(c, self);
  check(!quantizer_of(self).per_channel(),
        "resize_(): only per-tensor affine quantized tensors can be resized");
  const Tensor integers = integers_of(self);
  Value args[3] = {pack(integers), c.args[1], c.args[2]};
  call_nothing(*c.op, args);
  self->set_geometry(integers.sizes(), integers.strides());
  give_written(c);
}

// Views work on the integers; the rest has no kernel.
void other(void*, OpCall& c) {
  if (c.info->view) return on_integers(nullptr, c);
  run_without_kernel(c, quantized_kind());
}

struct KernelRow {
  KernelFn function;
  std::vector<const char*> operators;  // "name.overload"
};

const std::vector<KernelRow>& rows() {
  static const std::vector<KernelRow> all = {
      {on_integers,
       {"index_select",
        "index.Tensor",
        "repeat",
        "flip",
        "roll",
        "gather",
        "take",
        "sort",
        "sort.stable",
        "topk",
        "max",
        "min",
        "max.dim",
        "min.dim",
        "amax",
        "amin",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d"}},
      {same_quantizer, {"view", "_unsafe_view", "_reshape_alias"}},
      {through_floats,
       {"cat",
        "stack",
        "mean",
        "mean.dim",
        "hardtanh",
        "leaky_relu",
        "elu",
        "clamp",
        "clamp_min",
        "clamp_max",
        "threshold",
        "masked_fill.Scalar",
        "avg_pool2d",
        "avg_pool3d",
        "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
        "upsample_bilinear2d",
        "constant_pad_nd",
        "reflection_pad1d",
        "reflection_pad2d",
        "hardswish",
        "gelu"}},
      {values_only,
       {"eq.Tensor", "eq.Scalar", "ne.Tensor", "ne.Scalar", "lt.Tensor", "lt.Scalar", "le.Tensor",
        "le.Scalar", "gt.Tensor", "gt.Scalar", "ge.Tensor", "ge.Scalar", "_local_scalar_dense"}},
      {relu, {"relu"}},
      {onto_unit, {"sigmoid", "hardsigmoid"}},
      {onto_unit_ball, {"tanh"}},
      {clone, {"clone"}},
      {unsqueeze, {"unsqueeze"}},
      {select, {"select.int"}},
      {slice, {"slice.Tensor"}},
      {copy_, {"copy_"}},
      {fill_, {"fill_.Scalar", "fill_.Tensor"}},
      {empty_like, {"empty_like"}},
      {full_like, {"full_like"}},
      {ones_like, {"ones_like"}},
      {to_copy, {"_to_copy"}},
      {equal, {"equal"}},
      {resize_, {"resize_"}},
  };
  return all;
}

}  // namespace

void add_quantized_kernels(const ExtensionKind& kind) {
  for (const KernelRow& row : rows())
    for (const char* text : row.operators) {
      const std::string full = text;
      const size_t dot = full.find('.');
      const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
      if (Operator* op = find_operator("aten", full.substr(0, dot), overload))
        put_in_layout(*op, kind, any_device, row.function, nullptr);
    }
  set_layout_fallback(kind, other, nullptr);
}

}  // namespace facula
