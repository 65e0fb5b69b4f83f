// Fingerprints of tensors.
#include "ops/reduce/hash.h"

#include <cstring>
#include <vector>

#include "dispatch/out_dtype.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loop/convert.h"

namespace facula {
namespace {

// Reduced dimensions; none given stands for all.
std::vector<bool> reduced_dims(const Tensor& self, IntSpan dim) {
  std::vector<bool> reduced(static_cast<size_t>(self.dim()), dim.empty());
  for (int64_t d : dim) {
    const int64_t w = wrap_dim(d, self.dim());
    check(!reduced[static_cast<size_t>(w)], "hash_tensor(): dimension ", w, " is named twice");
    reduced[static_cast<size_t>(w)] = true;
  }
  return reduced;
}

void meta_hash(Meta& m, const Tensor& self, IntSpan dim, bool keepdim, int64_t mode) {
  check(mode == 0, "hash_tensor(): mode must be 0; got ", mode);
  check(self.numel() > 0 || !dim.empty(), "hash_tensor(): an empty tensor needs dim");
  check_kind(ErrorKind::NotImplemented, !is_complex(self.dtype()),
             "\"xor_sum_cpu\" not implemented for '", info(self.dtype()).legacy_name, "'");
  const std::vector<bool> reduced = self.dim() == 0 ? std::vector<bool>() : reduced_dims(self, dim);
  IntVec sizes;
  for (size_t d = 0; d < reduced.size(); ++d) {
    check_index(!reduced[d] || self.sizes()[d] > 0, "hash_tensor(): dimension ", d,
                " must not be empty");
    if (!reduced[d]) sizes.push_back(self.sizes()[d]);
    if (reduced[d] && keepdim) sizes.push_back(1);
  }
  m.result(0, sizes, DType::UInt64);
}

// Words of 64 bits, in rows of what goes into one result.
Tensor words_of(const Tensor& self, const std::vector<bool>& reduced) {
  IntVec sizes, strides;
  for (const bool wanted : {false, true})
    for (size_t d = 0; d < reduced.size(); ++d)
      if (reduced[d] == wanted) {
        sizes.push_back(self.sizes()[d]);
        strides.push_back(self.strides()[d]);
      }
  const Tensor turned = alias_tensor(self, sizes, strides, self.storage_offset());
  const DType d = self.dtype();
  const DType wide = is_floating(d) ? DType::Float64 : d == DType::UInt64 ? d : DType::Int64;
  return cpu::contiguous(wide == d ? turned : cpu::converted(turned, wide));
}

void hash(const Tensor& self, IntSpan dim, bool, int64_t, const Tensor& out) {
  const Tensor words =
      words_of(self, self.dim() == 0 ? std::vector<bool>() : reduced_dims(self, dim));
  const int64_t rows = out.numel(), length = rows == 0 ? 0 : words.numel() / rows;
  const char* from = static_cast<const char*>(words.data());
  uint64_t* to = out.data<uint64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    to[i] = 0;
    for (int64_t k = 0; k < length; ++k) {
      uint64_t word;
      std::memcpy(&word, from + (i * length + k) * 8, sizeof word);
      to[i] ^= word;
    }
  }
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(hash_tensor){
    .schema =
        "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    .doc =
        "Exclusive or, as uint64, of the bits of all elements or of those along dim; floats count "
        "as float64, integers as int64.",
    .forms = function | method | out,
    .flags = exact_out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_hash>,
    .cpu = typed_kernel<hash>,
    .hole = "bits have no derivative",
};
