// Elements repeated, turned round, or cut to a triangle or diagonal.
#include "ops/shape/repeat.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "core/threads.h"
#include "dispatch/data_sizes.h"
#include "dispatch/out_dtype.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/index/indexed.h"
#include "ops/index/scatter.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/batch.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_copy.h"
#include "ops/shape/view_dims.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

// --- repeat

IntVec padded_with_ones(IntSpan sizes, size_t ndim) {
  IntVec all(ndim, 1);
  for (size_t d = 0; d < sizes.size(); ++d) all[ndim - sizes.size() + d] = sizes[d];
  return all;
}

void meta_repeat(Meta& m, const Tensor& self, IntSpan repeats) {
  check(static_cast<int64_t>(repeats.size()) >= self.dim(),
        "repeat(): repeats must have a number for each of self's ", self.dim(), " dimensions; got ",
        repeats.size());
  for (int64_t r : repeats)
    check(r >= 0, "Trying to create tensor with negative dimension ", r, ": ", str(repeats));
  IntVec sizes = padded_with_ones(self.sizes(), repeats.size());
  for (size_t d = 0; d < repeats.size(); ++d)
    check(!__builtin_mul_overflow(sizes[d], repeats[d], &sizes[d]),
          "repeat(): the size of dimension ", d, " overflows");
  m.result(0, sizes, self.dtype());
}
// Every dimension of the result is seen as two: repetition, then position.
void repeat(const Tensor& self, IntSpan repeats, const Tensor& out) {
  if (out.numel() == 0) return;
  const IntVec own = padded_with_ones(self.sizes(), repeats.size());
  const size_t extra = own.size() - self.sizes().size();
  IntVec sizes, to, from;
  for (size_t d = 0; d < own.size(); ++d) {
    sizes.push_back(repeats[d]);
    to.push_back(own[d] * out.strides()[d]);
    from.push_back(0);
    sizes.push_back(own[d]);
    to.push_back(out.strides()[d]);
    from.push_back(d < extra ? 0 : self.strides()[d - extra]);
  }
  cpu::copy(alias_tensor(out, sizes, to, out.storage_offset()),
            alias_tensor(self, sizes, from, self.storage_offset()));
}
Tensor repeat_gradient(Backward& b) {
  const IntSpan repeats = b.ints("repeats"), self = b.sizes("self");
  const IntVec own = padded_with_ones(self, repeats.size());
  IntVec sizes, summed;
  for (size_t d = 0; d < own.size(); ++d) {
    summed.push_back(static_cast<int64_t>(2 * d));
    sizes.push_back(repeats[d]);
    sizes.push_back(own[d]);
  }
  if (sizes.empty()) return b.grad();
  const Tensor sum = ops::sum(ops::reshape(b.grad(), sizes), std::optional<IntList>(summed), false);
  return same_sizes(sum.sizes(), self) ? sum : ops::reshape(sum, self);
}
Tensor tile(const Tensor& self, IntSpan dims) {
  const size_t n = std::max(dims.size(), self.sizes().size());
  return ops::repeat(self, padded_with_ones(dims, n));
}

// --- repeat_interleave

void check_repeats(const Tensor& repeats) {
  check(repeats.dim() == 1, "repeat_interleave(): repeats must have 1 dimension; got ",
        repeats.dim());
  check(repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32,
        "repeats has to be Long or Int tensor");
}
void meta_repeat_interleave(Meta& m, const Tensor& repeats, std::optional<int64_t> output_size) {
  check_repeats(repeats);
  const int64_t total = output_size ? *output_size : size_from_data(m.op_name());
  m.result(0, IntList{total}, repeats.dtype());
}
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  check_repeats(repeats);
  const Tensor counts = cpu::contiguous(cpu::converted(repeats, DType::Int64));
  const int64_t* count = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    check(count[i] >= 0, "repeats can not be negative");
    check(!__builtin_add_overflow(total, count[i], &total),
          "repeat_interleave(): the size of the result overflows");
  }
  check(!output_size || *output_size == total,
        "repeat_interleave(): output_size must be the sum of repeats, ", total);
  const Tensor out = empty_tensor({&total, 1}, repeats.dtype());
  dispatch<int64_t, int32_t>(repeats.dtype(), "repeat_interleave_cpu", [&]<class T>(Type<T>) {
    T* to = out.data<T>();
    for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, count[i], static_cast<T>(i));
  });
  return out;
}
Tensor repeat_interleave_tensor(const Tensor& self, const Tensor& repeats,
                                std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  const Tensor input = dim ? self : ops::flatten(self);
  const int64_t d = wrap_dim(dim.value_or(0), input.dim()), n = input.dim() ? input.sizes()[d] : 1;
  check(repeats.dim() <= 1, "repeat_interleave(): repeats must have at most 1 dimension; got ",
        repeats.dim());
  const bool one = repeats.dim() == 0 || repeats.sizes()[0] == 1;
  check(one || repeats.sizes()[0] == n,
        "repeat_interleave(): repeats must have one element or input's size in dimension ", d, ", ",
        n, "; got ", repeats.dim() ? repeats.sizes()[0] : 1);
  const Tensor counts = one ? ops::expand(ops::reshape(repeats, {1}), {n}) : repeats;
  return ops::index_select(input, d, ops::repeat_interleave(counts, output_size));
}
Tensor repeat_interleave_int(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                             std::optional<int64_t> output_size) {
  check(repeats >= 0, "Repeats must be non-negative");
  const Tensor input = dim ? self : ops::flatten(self);
  const int64_t d = wrap_dim(dim.value_or(0), input.dim());
  const Tensor rows = input.dim() ? input : ops::unsqueeze(input, 0);
  IntVec sizes(rows.sizes());
  sizes.insert(d + 1, repeats);
  const int64_t length =
      checked_mul(rows.sizes()[d], repeats, "repeat_interleave(): the size of the result");
  check(output_size.value_or(length) == length, "repeat_interleave: Invalid output_size, expected ",
        length, " but got ", output_size.value_or(length));
  return ops::flatten(
      ops::clone(ops::expand(ops::unsqueeze(rows, d + 1), sizes), MemoryFormat::Contiguous), d,
      d + 1);
}

// --- flip, roll, rot90

void meta_flip(Meta& m, const Tensor& self, IntSpan dims) {
  geometry::wrap_dims(dims, self.dim());
  m.result_like(0, self, self.dtype());
}
void flip(const Tensor& self, IntSpan dims, const Tensor& out) {
  if (out.numel() == 0) return;
  IntVec strides(self.strides());
  int64_t at = self.storage_offset();
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, self.dim());
    if (self.dim() == 0) continue;
    at += (self.sizes()[w] - 1) * strides[w];
    strides[w] = -strides[w];
  }
  cpu::copy(out, alias_tensor(self, self.sizes(), strides, at));
}
Tensor fliplr(const Tensor& self) {
  check(self.dim() >= 2, "Input must be >= 2-d.");
  return ops::flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  check(self.dim() >= 1, "Input must be >= 1-d.");
  return ops::flip(self, IntList{0});
}

void meta_roll(Meta& m, const Tensor& self, IntSpan shifts, IntSpan dims) {
  check(!shifts.empty(), "`shifts` required");
  check(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
        "roll(): shifts and dims must have the same length; got ", shifts.size(), " and ",
        dims.size());
  for (int64_t d : dims) {
    check_index(self.dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
    wrap_dim(d, self.dim());
  }
  m.result(0, self.sizes(), self.dtype());
}
Tensor part(const Tensor& t, int64_t dim, int64_t begin, int64_t length) {
  IntVec sizes(t.sizes());
  sizes[dim] = length;
  return alias_tensor(t, sizes, t.strides(), t.storage_offset() + begin * t.strides()[dim]);
}
// Each dimension falls into two parts that change places.
void roll_into(const Tensor& to, const Tensor& from, std::span<const int64_t> shifts,
               std::span<const int64_t> dims) {
  if (from.numel() == 0) return;
  if (dims.empty()) return cpu::copy(to, from);
  const int64_t d = dims[0], n = from.sizes()[d], head = (shifts[0] % n + n) % n;
  roll_into(part(to, d, head, n - head), part(from, d, 0, n - head), shifts.subspan(1),
            dims.subspan(1));
  roll_into(part(to, d, 0, head), part(from, d, n - head, head), shifts.subspan(1),
            dims.subspan(1));
}
void roll(const Tensor& self, IntSpan shifts, IntSpan dims, const Tensor& out) {
  if (out.numel() == 0) return;
  if (dims.empty()) {
    const int64_t n = self.numel(), zero = 0, one = 1;
    const Tensor from = cpu::contiguous(self);
    return roll_into(alias_tensor(out, {&n, 1}, {&one, 1}, out.storage_offset()),
                     alias_tensor(from, {&n, 1}, {&one, 1}, from.storage_offset()), shifts,
                     {&zero, 1});
  }
  // Shifts of a dimension that is named twice add up.
  IntVec each, where;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = wrap_dim(dims[k], self.dim()), n = self.sizes()[d];
    const auto found = std::ranges::find(where, d);
    if (found == where.end()) {
      where.push_back(d);
      each.push_back(shifts[k] % n);
    } else {
      each[static_cast<size_t>(found - where.begin())] += shifts[k] % n;
    }
  }
  roll_into(out, self, each, where);
}

// The shifts that undo roll(): below the dimension's size, since the least number has no negative.
IntVec shifts_back(Backward& b) {
  const IntSpan sizes = b.sizes("self"), dims = b.ints("dims");
  const int64_t numel = checked_numel(sizes), ndim = static_cast<int64_t>(sizes.size());
  IntVec back;
  for (int64_t shift : b.ints("shifts")) {
    const size_t k = back.size();
    const int64_t n = dims.empty() ? numel : sizes[static_cast<size_t>(wrap_dim(dims[k], ndim))];
    back.push_back(-(shift % std::max<int64_t>(n, 1)));
  }
  return back;
}

Tensor rot90(const Tensor& self, int64_t k, IntSpan dims) {
  check(dims.size() == 2, "rot90(): dims must be two dimensions; got ", dims.size());
  check(self.dim() >= 2, "rot90(): self must have at least 2 dimensions; got ", self.dim());
  const int64_t n = self.dim();
  check(wrap_dim(dims[0], n) != wrap_dim(dims[1], n),
        "rot90(): dims must be two different dimensions; got ", dims[0], " and ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return ops::transpose(ops::flip(self, {dims[1]}), dims[0], dims[1]);
    case 2:
      return ops::flip(self, dims);
    case 3:
      return ops::transpose(ops::flip(self, {dims[0]}), dims[0], dims[1]);
    default:
      return ops::clone(self, MemoryFormat::Contiguous);
  }
}

// --- triangles

void meta_triangle(Meta& m, const Tensor& self, int64_t) {
  check(self.dim() >= 2, m.op_name(), "(): self must have at least 2 dimensions; got ", self.dim());
  m.result(0, self.sizes(), self.dtype());
}

// Zeroes `n` elements.
void clear(char* to, int64_t n, int64_t step, size_t itemsize) {
  if (step == 1) {
    std::memset(to, 0, static_cast<size_t>(n) * itemsize);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    std::memset(to + i * step * static_cast<int64_t>(itemsize), 0, itemsize);
}

// The result starts as self; what lies outside the triangle becomes zero.
template <bool lower>
void triangle(const Tensor& self, int64_t k, const Tensor& out) {
  indexed::start_from(self, out);
  if (out.numel() == 0) return;
  const size_t n = out.sizes().size();
  const int64_t rows = out.sizes()[n - 2], columns = out.sizes()[n - 1],
                step = out.strides()[n - 1];
  const int64_t grain = std::max<int64_t>(1, 32768 / columns);
  parallel_for(out.numel() / columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = out.storage_offset() + (i % rows) * out.strides()[n - 2], rest = i / rows;
      for (size_t d = n - 2; d-- > 0; rest /= out.sizes()[d])
        at += rest % out.sizes()[d] * out.strides()[d];
      const __int128 edge = static_cast<__int128>(i % rows) + k;  // the diagonal's column
      const int64_t cut =
          static_cast<int64_t>(std::clamp<__int128>(lower ? edge + 1 : edge, 0, columns));
      const int64_t first = lower ? cut : 0, count = lower ? columns - cut : cut;
      if (count == 0) continue;
      char* memory = static_cast<char*>(out->storage->data()) +
                     (at + first * step) * static_cast<int64_t>(out.itemsize());
      clear(memory, count, step, out.itemsize());
    }
  });
}

// --- diagonals

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t n = self.dim() + 1, a = wrap_dim(dim1, n), b = wrap_dim(dim2, n);
  check(self.dim() > 0, "diag_embed(): expected a tensor of at least 1 dimension; got one of 0");
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  int64_t side;
  check(
      offset != INT64_MIN && !__builtin_add_overflow(self.sizes().back(), std::abs(offset), &side),
      "diag_embed(): the offset ", offset, " is too large");
  IntVec sizes(self.sizes().first(self.sizes().size() - 1));
  sizes.insert(std::min(a, b), side);
  sizes.insert(std::max(a, b), side);
  const Tensor whole = ops::new_zeros(self, sizes);
  ops::copy_(ops::diagonal(whole, offset, a, b), self);
  return whole;
}
Tensor diag(const Tensor& self, int64_t diagonal) {
  check(self.dim() == 1 || self.dim() == 2, "diag(): self must have 1 or 2 dimensions; got ",
        self.dim());
  if (self.dim() == 1) return ops::diag_embed(self, diagonal, 0, 1);
  return ops::diagonal_copy(self, diagonal, 0, 1);
}
Tensor diagflat(const Tensor& self, int64_t offset) {
  return ops::diag_embed(ops::reshape(ops::contiguous(self), {-1}), offset, 0, 1);
}
Tensor trace(const Tensor& self) {
  check(self.dim() == 2, "trace(): self must be a matrix; got ", self.dim(), " dimensions");
  check_kind(ErrorKind::NotImplemented, self.dtype() != DType::Bool,
             "\"trace\" not implemented for 'Bool'");
  return ops::sum(ops::diagonal(self, 0, 0, 1));
}

void fill_diagonal_(const Tensor& self, const Scalar& value, bool wrap) {
  const int64_t n = self.dim();
  check(n >= 2, "dimensions must larger than 1");
  for (int64_t d = 1; d < n && n > 2; ++d)
    check(self.sizes()[d] == self.sizes()[0],
          "fill_diagonal_(): beyond 2 dimensions all sizes must be equal; got ", str(self.sizes()));
  if (self.is_meta() || self.numel() == 0) return;
  int64_t step = 0, length = self.sizes()[0];
  for (int64_t d = 0; d < n; ++d) {
    step = saturating_add(step, self.strides()[d]);
    length = std::min(length, self.sizes()[d]);
  }
  cpu::fill(alias_tensor(self, {&length, 1}, {&step, 1}, self.storage_offset()), value);
  const int64_t rows = self.sizes()[0], columns = self.sizes()[1];
  if (!wrap || n != 2 || rows <= columns + 1) return;
  // Below a tall matrix's square the diagonal starts again, one row further down each time.
  for (int64_t row = columns + 1; row < rows; row += columns + 1) {
    const int64_t more = std::min(columns, rows - row);
    cpu::fill(
        alias_tensor(self, {&more, 1}, {&step, 1}, self.storage_offset() + row * self.strides()[0]),
        value);
  }
}

// --- one_hot

void check_one_hot(const Tensor& self, int64_t num_classes) {
  check(self.dtype() == DType::Int64, "one_hot(): self must have dtype int64; got ",
        name(self.dtype()));
  check(self.numel() > 0 || num_classes > 0,
        "one_hot(): num_classes must be given, and positive, where there are no elements; got ",
        num_classes);
  check(num_classes == -1 || num_classes >= 1, "num_classes should be positive");
}
void meta_one_hot(Meta& m, const Tensor& self, int64_t num_classes) {
  check_one_hot(self, num_classes);
  IntVec sizes(self.sizes());
  sizes.push_back(num_classes == -1 ? size_from_data(m.op_name()) : num_classes);
  m.result(0, sizes, DType::Int64);
}
Tensor one_hot(const Tensor& self, int64_t num_classes) {
  check_one_hot(self, num_classes);
  const Tensor classes = cpu::contiguous(self);
  const int64_t* c = classes.data<int64_t>();
  int64_t most = -1;
  for (int64_t i = 0; i < classes.numel(); ++i) {
    check(c[i] >= 0, "one_hot(): classes must not be negative; got ", c[i]);
    most = std::max(most, c[i]);
  }
  check(num_classes == -1 || most < num_classes, "one_hot(): classes must be below num_classes, ",
        num_classes, "; got ", most);
  const int64_t n = num_classes == -1 ? most + 1 : num_classes;
  IntVec sizes(self.sizes());
  sizes.push_back(n);
  const Tensor out = empty_tensor(sizes, DType::Int64);
  cpu::fill(out, 0);
  for (int64_t i = 0; i < classes.numel(); ++i) out.data<int64_t>()[i * n + c[i]] = 1;
  return out;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(repeat){
    .schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    .doc = "Self repeated along each dimension; further repeats make new leading dimensions.",
    .forms = method,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_repeat>,
    .cpu = typed_kernel<repeat>,
    .derivatives = {vjp("self", repeat_gradient)},
    .batch = batch::repeat,
};
OP(tile){
    .schema = "tile(Tensor self, SymInt[] dims) -> Tensor",
    .doc = "Self repeated along each dimension; missing leading repeats count as one.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<tile>,
};
OP(repeat_interleave_Tensor){
    .schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    .doc = "Each position i of a vector, repeats[i] times.",
    .flags = shape_from_data,
    .meta = typed_meta<meta_repeat_interleave>,
    .cpu = typed_kernel<repeat_interleave>,
    .not_differentiable = names("repeats", "result"),
    .hole = "vmap: the number of elements of the result depends on the data of each sample",
};
OP(repeat_interleave_self_Tensor){
    .schema =
        "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
        "output_size=None) -> Tensor",
    .doc =
        "Self with slice i of a dimension repeats[i] times; of the flattened tensor without dim.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<repeat_interleave_tensor>,
};
OP(repeat_interleave_self_int){
    .schema =
        "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
        "output_size=None) -> Tensor",
    .doc =
        "Self with each slice of a dimension several times; of the flattened tensor without dim.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<repeat_interleave_int>,
};

OP(flip){
    .schema = "flip(Tensor self, int[] dims) -> Tensor",
    .doc = "Self with the order of the given dimensions reversed, as a copy.",
    .forms = function_method,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_flip>,
    .cpu = typed_kernel<flip>,
    .derivatives = {vjp("self", [](Backward& b) { return ops::flip(b.grad(), b.ints("dims")); })},
    .batch = batch::dims_of_self,
    .dims = names("dims"),
};
OP(fliplr){
    .schema = "fliplr(Tensor self) -> Tensor",
    .doc = "Self with its columns in reverse order, as a copy.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<fliplr>,
};
OP(flipud){
    .schema = "flipud(Tensor self) -> Tensor",
    .doc = "Self with its rows in reverse order, as a copy.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<flipud>,
};
OP(roll){
    .schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    .doc =
        "Self shifted along dimensions; what leaves at one end comes in at the other. Without "
        "dims, of the flattened tensor.",
    .forms = function_method,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_roll>,
    .cpu = typed_kernel<roll>,
    .derivatives = {vjp(
        "self", [](Backward& b) { return ops::roll(b.grad(), shifts_back(b), b.ints("dims")); })},
    .batch = batch::dims_of_self,
    .dims = names("dims"),
};
OP(rot90){
    .schema = "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    .doc =
        "Self turned by k right angles in the plane of two dimensions, from the first towards the "
        "second.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .any = typed_kernel<rot90>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::rot90(b.grad(), -(b.integer("k") % 4), b.ints("dims"));
                        })},
};

OP(tril){
    .schema = "tril(Tensor self, SymInt diagonal=0) -> Tensor",
    .doc = "The lower triangle of the last two dimensions up to a diagonal, zeros elsewhere.",
    .forms = all_forms,
    .flags = exact_out,
    .meta = typed_meta<meta_triangle>,
    .cpu = typed_kernel<triangle<true>>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::tril(b.grad(), b.integer("diagonal")); })},
    .batch = batch::leading,
};
OP(triu){
    .schema = "triu(Tensor self, SymInt diagonal=0) -> Tensor",
    .doc = "The upper triangle of the last two dimensions from a diagonal on, zeros elsewhere.",
    .forms = all_forms,
    .flags = exact_out,
    .meta = typed_meta<meta_triangle>,
    .cpu = typed_kernel<triangle<false>>,
    .derivatives = {vjp("self",
                        [](Backward& b) { return ops::triu(b.grad(), b.integer("diagonal")); })},
    .batch = batch::leading,
};

OP(diag_embed){
    .schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .doc = "Matrices of zeros with the last dimension of self along a diagonal.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .any = typed_kernel<diag_embed>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          return ops::diagonal(b.grad(), b.integer("offset"), b.integer("dim1"),
                                               b.integer("dim2"));
                        })},
};
OP(diag){
    .schema = "diag(Tensor self, int diagonal=0) -> Tensor",
    .doc = "A matrix with a 1-d tensor along a diagonal, or the diagonal of a matrix as a copy.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .any = typed_kernel<diag>,
};
OP(diagflat){
    .schema = "diagflat(Tensor self, int offset=0) -> Tensor",
    .doc = "A matrix with the elements of self, as one row, along a diagonal.",
    .forms = function_method,
    .composite = Composite::Implicit,
    .any = typed_kernel<diagflat>,
};
OP(trace){
    .schema = "trace(Tensor self) -> Tensor",
    .doc = "Sum of a matrix's diagonal.",
    .forms = function_method,
    .composite = Composite::Explicit,
    .autocast_cpu = Autocast::Float32,
    .any = typed_kernel<trace>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          const IntSpan n = b.sizes("self");
                          const Tensor diagonal = ops::expand(b.grad(), {std::min(n[0], n[1])});
                          return ops::diagonal_backward(diagonal, n, 0, 0, 1);
                        })},
};
OP(fill_diagonal_){
    .schema = "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    .doc =
        "Sets the main diagonal to a number in place; with wrap it starts again below a tall "
        "matrix's square.",
    .forms = method,
    .any = typed_kernel<fill_diagonal_>,
    .derivatives = {vjp("self",
                        [](Backward& b) {
                          const Tensor g = ops::clone(b.grad());
                          return ops::fill_diagonal_(g, 0, b.flag("wrap"));
                        })},
    .hole = "vmap: samples are done one by one",
};
OP(one_hot){
    .schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    .doc =
        "For int64 class numbers a new last dimension with a one at the class and zeros elsewhere; "
        "-1 takes the largest class "
        "plus one as their number.",
    .python_module = "nn",
    .flags = shape_from_data,
    .meta = typed_meta<meta_one_hot>,
    .cpu = typed_kernel<one_hot>,
    .not_differentiable = names("self", "result"),
    .batch = batch::leading,
};
