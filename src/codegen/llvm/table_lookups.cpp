#include "codegen/llvm/table_lookups.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <optional>
#include <vector>

namespace facula::codegen {
namespace {

// A gather of all lanes from a constant: which one, where in it the table begins, and the places in
// it.
struct Lookup {
  llvm::IntrinsicInst* gather;
  llvm::GlobalVariable* table;
  uint64_t first;       // elements before the table, where a constant has several
  uint64_t entries;     // of one table
  llvm::Value* places;  // null where they are not those of elements
};

// The elements of the innermost arrays of a type; 0 for what is no array of elements.
uint64_t entries_of(const llvm::Type* type, const llvm::Type* element) {
  const auto* array = llvm::dyn_cast<llvm::ArrayType>(type);
  while (array && array->getElementType() != element)
    array = llvm::dyn_cast<llvm::ArrayType>(array->getElementType());
  return array ? array->getNumElements() : 0;
}

// Bytes that all indices but the last skip; none where they are no constants, or where the last is
// not that of an element.
std::optional<uint64_t> bytes_before(const llvm::GetElementPtrInst& address,
                                     const llvm::Type* element, const llvm::DataLayout& layout) {
  if (address.getResultElementType() != element) return std::nullopt;
  llvm::SmallVector<llvm::Value*> indices(address.idx_begin(), address.idx_end());
  for (size_t i = 0; i + 1 < indices.size(); ++i)
    if (!llvm::isa<llvm::ConstantInt>(indices[i])) return std::nullopt;
  indices.back() = llvm::ConstantInt::get(llvm::Type::getInt64Ty(address.getContext()), 0);
  return layout.getIndexedOffsetInType(address.getSourceElementType(), indices);
}

std::optional<Lookup> lookup_by(llvm::IntrinsicInst* gather, const llvm::DataLayout& layout) {
  const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(gather->getArgOperand(0));
  if (!address) return std::nullopt;
  llvm::APInt skipped(64, 0);
  const llvm::Value* base =
      address->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, skipped, true);
  auto* table = llvm::dyn_cast<llvm::GlobalVariable>(const_cast<llvm::Value*>(base));
  if (!table || !table->isConstant()) return std::nullopt;
  llvm::Type* element = gather->getType()->getScalarType();
  // A constant that ends in zeros may be a structure, whose places are an array's.
  const uint64_t entries = entries_of(table->getValueType(), element);
  Lookup found{gather, table, 0, entries, nullptr};
  if (entries == 0) found.entries = entries_of(address->getSourceElementType(), element);
  if (const auto more = bytes_before(*address, element, layout)) {
    found.first = (skipped.getZExtValue() + *more) / layout.getTypeAllocSize(element);
    found.places = address->getOperand(address->getNumOperands() - 1);
  }
  return found;
}

std::vector<Lookup> find_lookups(llvm::Module& m) {
  std::vector<Lookup> found;
  for (llvm::Function& f : m)
    for (llvm::BasicBlock& block : f)
      for (llvm::Instruction& i : block) {
        auto* gather = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        if (!gather || gather->getIntrinsicID() != llvm::Intrinsic::masked_gather) continue;
        if (const auto lookup = lookup_by(gather, m.getDataLayout())) found.push_back(*lookup);
      }
  return found;
}

// Whether every lane is taken, from a table that is a register or two, at places within it.
bool is_permute(const Lookup& l, const llvm::DataLayout& layout) {
  const auto* mask = llvm::dyn_cast<llvm::Constant>(l.gather->getArgOperand(2));
  if (!mask || !mask->isAllOnesValue() || (l.entries != 16 && l.entries != 32)) return false;
  if (!l.places || !l.places->getType()->isVectorTy() || l.first % l.entries != 0) return false;
  return llvm::computeKnownBits(l.places, layout).getMaxValue().ult(l.entries);
}

class PermuteBuilder {
 public:
  PermuteBuilder(const Lookup& l, bool has_avx512)
      : lookup_(l), has_avx512_(has_avx512), build_(l.gather) {}

  // The permute; null where the set has none for vectors of this length.
  llvm::Value* build() {
    const auto* type = llvm::cast<llvm::FixedVectorType>(lookup_.gather->getType());
    const unsigned lanes = type->getNumElements();
    const bool is_float = type->getElementType()->isFloatTy();
    const bool is_long = lookup_.entries == 32;
    if (is_long && is_float && lanes == 16 && has_avx512_)
      return build_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_ps_512, {},
                                    {part(0, 16), places(32), part(16, 16)});
    if (is_float && !is_long && lanes == 16 && has_avx512_)
      return build_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                    {part(0, 16), places(32)});
    if (!is_float && !is_long && lanes == 8 && has_avx512_)
      return build_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_pd_512, {},
                                    {part(0, 8), places(64), part(8, 8)});
    if (is_float && lanes == 8) return of_eighths();
    return nullptr;
  }

 private:
  // So many entries from one on, as a register.
  llvm::Value* part(unsigned first, unsigned count) {
    llvm::Type* element = lookup_.gather->getType()->getScalarType();
    llvm::Value* from = build_.CreateConstGEP1_64(element, lookup_.table, lookup_.first + first);
    return build_.CreateAlignedLoad(llvm::FixedVectorType::get(element, count), from,
                                    llvm::Align(element->getScalarSizeInBits() / 8));
  }

  llvm::Value* places(unsigned bits) {
    auto* to = llvm::VectorType::get(build_.getIntNTy(bits),
                                     llvm::cast<llvm::VectorType>(lookup_.places->getType()));
    llvm::Value* from = lookup_.places;
    if (const auto* wide = llvm::dyn_cast<llvm::CastInst>(from); wide && wide->getSrcTy() == to)
      if (wide->getOpcode() != llvm::Instruction::Trunc) return wide->getOperand(0);
    return build_.CreateZExtOrTrunc(from, to);
  }

  // From each eight entries, and then those that the upper bits of a place name.
  llvm::Value* of_eighths() {
    llvm::Value *at = places(32), *found = nullptr;
    for (unsigned first = 0; first < lookup_.entries; first += 8) {
      llvm::Value* some =
          build_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {part(first, 8), at});
      llvm::Value* from = llvm::ConstantInt::get(at->getType(), first);
      found = found ? build_.CreateSelect(build_.CreateICmpUGE(at, from), some, found) : some;
    }
    return found;
  }

  const Lookup& lookup_;
  const bool has_avx512_;
  llvm::IRBuilder<> build_;
};

}  // namespace

bool permute_tables(llvm::Module& m, bool has_avx512) {
  for (const Lookup& l : find_lookups(m)) {
    llvm::Value* permute =
        is_permute(l, m.getDataLayout()) ? PermuteBuilder(l, has_avx512).build() : nullptr;
    if (!permute) return false;
    l.gather->replaceAllUsesWith(permute);
    l.gather->eraseFromParent();
  }
  return true;
}

}  // namespace facula::codegen
