#include "codegen/llvm/table_lookups.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <vector>

namespace facula::codegen {
namespace {

// A gather of all lanes from a constant: which one, and the places in it.
struct Lookup {
  llvm::IntrinsicInst* gather;
  llvm::GlobalVariable* table;
  llvm::Value* places;  // null where they are not those of elements
};

llvm::Value* places_in(const llvm::GetElementPtrInst& address, const llvm::Type* element) {
  if (address.getSourceElementType() == element && address.getNumIndices() == 1)
    return address.getOperand(1);
  const auto* array = llvm::dyn_cast<llvm::ArrayType>(address.getSourceElementType());
  if (!array || array->getElementType() != element || address.getNumIndices() != 2) return nullptr;
  const auto* first = llvm::dyn_cast<llvm::Constant>(address.getOperand(1));
  return first && first->isNullValue() ? address.getOperand(2) : nullptr;
}

std::vector<Lookup> find_lookups(llvm::Module& m) {
  std::vector<Lookup> found;
  for (llvm::Function& f : m)
    for (llvm::BasicBlock& block : f)
      for (llvm::Instruction& i : block) {
        auto* gather = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        if (!gather || gather->getIntrinsicID() != llvm::Intrinsic::masked_gather) continue;
        auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(gather->getArgOperand(0));
        if (!address) continue;
        auto* table = llvm::dyn_cast<llvm::GlobalVariable>(address->getPointerOperand());
        if (!table || !table->isConstant()) continue;
        found.push_back({gather, table, places_in(*address, gather->getType()->getScalarType())});
      }
  return found;
}

uint64_t entries_of(const llvm::GlobalVariable& table) {
  const auto* array = llvm::dyn_cast<llvm::ArrayType>(table.getValueType());
  return array ? array->getNumElements() : 0;
}

// Whether every lane is taken, from a table that is a register or two, at places within it.
bool is_permute(const Lookup& l, const llvm::DataLayout& layout) {
  const auto* mask = llvm::dyn_cast<llvm::Constant>(l.gather->getArgOperand(2));
  const uint64_t entries = entries_of(*l.table);
  if (!mask || !mask->isAllOnesValue() || (entries != 16 && entries != 32)) return false;
  if (!l.places || !l.places->getType()->isVectorTy()) return false;
  return llvm::computeKnownBits(l.places, layout).getMaxValue().ult(entries);
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
    const bool is_long = entries_of(*lookup_.table) == 32;
    if (is_long && !(is_float && lanes == 16 && has_avx512_)) return nullptr;
    if (is_long)
      return build_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_ps_512, {},
                                    {part(0, 16), places(32), part(16, 16)});
    if (is_float && lanes == 16 && has_avx512_)
      return build_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                    {part(0, 16), places(32)});
    if (!is_float && lanes == 8 && has_avx512_)
      return build_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_pd_512, {},
                                    {part(0, 8), places(64), part(8, 8)});
    if (is_float && lanes == 8) return of_halves();
    return nullptr;
  }

 private:
  // So many entries from one on, as a register.
  llvm::Value* part(unsigned first, unsigned count) {
    llvm::Type* element = lookup_.gather->getType()->getScalarType();
    llvm::Value* from = build_.CreateConstGEP1_64(element, lookup_.table, first);
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

  llvm::Value* of_halves() {
    llvm::Value *at = places(32), *halves[2];
    for (unsigned h = 0; h < 2; ++h)
      halves[h] =
          build_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {part(h * 8, 8), at});
    llvm::Value* high = build_.CreateICmpUGT(at, llvm::ConstantInt::get(at->getType(), 7));
    return build_.CreateSelect(high, halves[1], halves[0]);
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
