#include "codegen/llvm/scalar_library.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/xxhash.h>

#include <vector>

// Files of bitcode that the build embeds (bitcode.S).
extern "C" {
extern const char facula_bitcode_avx2[], facula_bitcode_avx2_end[];
extern const char facula_bitcode_avx512[], facula_bitcode_avx512_end[];
}

namespace facula::codegen {
namespace {

// The name in a text like "... [F = facula::scalar::add]" or "... [with F = facula::scalar::add]".
std::string name_in(const std::string& text) {
  const size_t begin = text.find("F = ");
  if (begin == std::string::npos) return text;
  return text.substr(begin + 4, text.rfind(']') - begin - 4);
}

std::string entry_name(const std::string& function, DType d, bool by_number) {
  return function + (by_number ? "#" : "|") + std::to_string(static_cast<int>(d));
}

// The bytes of a constant string that a field points to.
std::string text_of(const llvm::Constant* field) {
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(field->stripPointerCasts());
  if (!global || !global->hasInitializer()) return "";
  const auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(global->getInitializer());
  return data && data->isCString() ? data->getAsCString().str() : "";
}

// The pointers in a constant, in their order: of a LoopTable (kernels/cpu/elementwise/pointwise.h)
// its text, the loops by dtype, and two loops by a number. clang splits arrays as it likes.
void collect_pointers(const llvm::Constant& c, std::vector<const llvm::Constant*>& to) {
  if (c.getType()->isPointerTy()) return to.push_back(&c);
  uint64_t n = 0;
  if (const auto* array = llvm::dyn_cast<llvm::ArrayType>(c.getType())) n = array->getNumElements();
  if (const auto* fields = llvm::dyn_cast<llvm::StructType>(c.getType()))
    n = fields->getNumElements();
  for (uint64_t i = 0; i < n; ++i)
    if (const llvm::Constant* part = c.getAggregateElement(static_cast<unsigned>(i)))
      collect_pointers(*part, to);
}

const llvm::Function* function_in(const llvm::Constant* field) {
  return llvm::dyn_cast<llvm::Function>(field->stripPointerCasts());
}

}  // namespace

ScalarLibrary::ScalarLibrary(const char* begin, const char* end) : begin_(begin), end_(end) {
  read_tables();
}

const ScalarLibrary* ScalarLibrary::of(const std::string& isa) {
  if (isa == "avx512") {
    static const ScalarLibrary library(facula_bitcode_avx512, facula_bitcode_avx512_end);
    return &library;
  }
  if (isa == "avx2") {
    static const ScalarLibrary library(facula_bitcode_avx2, facula_bitcode_avx2_end);
    return &library;
  }
  return nullptr;
}

std::string ScalarLibrary::digest() {
  const auto of = [](const char* begin, const char* end) {
    return llvm::xxh3_64bits(llvm::StringRef(begin, static_cast<size_t>(end - begin)));
  };
  return std::to_string(of(facula_bitcode_avx2, facula_bitcode_avx2_end) ^
                        3 * of(facula_bitcode_avx512, facula_bitcode_avx512_end));
}

std::unique_ptr<llvm::Module> ScalarLibrary::module(llvm::LLVMContext& context) const {
  const llvm::StringRef bytes(begin_, static_cast<size_t>(end_ - begin_));
  auto found =
      llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "scalar functions"), context);
  if (found) return std::move(*found);
  llvm::consumeError(found.takeError());
  return nullptr;
}

void ScalarLibrary::read_tables() {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> m = module(context);
  if (!m) return;
  for (const llvm::GlobalVariable& global : m->globals()) {
    const std::string name = global.getName().str();
    const bool is_table = name.find("Loops") != std::string::npos && name.ends_with("5tableE");
    if (!is_table || !global.hasInitializer()) continue;
    std::vector<const llvm::Constant*> pointers;
    collect_pointers(*global.getInitializer(), pointers);
    if (pointers.size() != 1 + loop_slots + 2) continue;
    const std::string function = name_in(text_of(pointers[0]));
    const auto note = [&](size_t at, DType d, bool by_number) {
      if (const llvm::Function* loop = function_in(pointers[at]))
        symbols_[entry_name(function, d, by_number)] = loop->getName().str();
    };
    for (size_t d = 0; d < loop_slots; ++d) note(1 + d, static_cast<DType>(d), false);
    note(1 + loop_slots, DType::Float16, true);
    note(2 + loop_slots, DType::BFloat16, true);
  }
}

std::string ScalarLibrary::loop(const char* text, DType compute, bool by_number) const {
  const auto found = symbols_.find(entry_name(name_in(text), compute, by_number));
  return found == symbols_.end() ? "" : found->second;
}

}  // namespace facula::codegen
