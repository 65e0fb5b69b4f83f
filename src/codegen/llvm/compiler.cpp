// The library facula_compiler: fused loops to machine code by LLVM.
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <mutex>
#include <string_view>

#include "codegen/llvm/loop_builder.h"
#include "codegen/llvm/scalar_library.h"
#include "codegen/llvm/table_lookups.h"
#include "codegen/loop_compiler.h"

namespace facula::codegen {
namespace {

std::string text(llvm::Error e) { return llvm::toString(std::move(e)); }

std::unique_ptr<llvm::TargetMachine> make_machine(const llvm::Module& m, std::string& error) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(m.getTargetTriple(), error);
  if (!target) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // eager's bits
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(m.getTargetTriple(), "x86-64", "", options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module& m, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(m, modules);
}

// Whether the loop has become one over vectors: row functions are faster than any other.
bool is_vectorized(const llvm::Module& m) {
  for (const llvm::Function& f : m)
    for (const llvm::BasicBlock& block : f)
      for (const llvm::Instruction& i : block)
        if (i.getType()->isVectorTy() && i.mayReadFromMemory()) return true;
  return false;
}

std::string emit(llvm::Module& m, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  llvm::MCContext* context = nullptr;
  if (machine.addPassesToEmitMC(passes, context, out)) return "";
  passes.run(m);
  return std::string(bytes.data(), bytes.size());
}

std::string compile(const FusedLoop& loop, const char* isa, const std::string& symbol,
                    std::string& error) {
  const ScalarLibrary* library = ScalarLibrary::of(isa);
  if (!library) {
    error = std::string("there is no bitcode for ") + isa;
    return "";
  }
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> m = build_loop(loop, *library, symbol, context, error);
  if (!m) return "";
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(*m, error);
  if (!machine) return "";
  optimize(*m, *machine);
  if (!is_vectorized(*m)) {
    error = "the loop does not become one over vectors";
    return "";
  }
  if (!permute_tables(*m, std::string_view(isa) == "avx512")) {
    error = "the loop gathers from a table";
    return "";
  }
  return emit(*m, *machine);
}

// One for the process; what it has loaded stays.
llvm::orc::LLJIT* jit(std::string& error) {
  static std::string why;
  static llvm::orc::LLJIT* one = []() -> llvm::orc::LLJIT* {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto made = llvm::orc::LLJITBuilder().create();
    if (made) return made->release();
    why = text(made.takeError());
    return nullptr;
  }();
  if (!one) error = why;
  return one;
}

CompiledLoop load(const std::string& object, const std::string& symbol, std::string& error) {
  llvm::orc::LLJIT* j = jit(error);
  if (!j) return nullptr;
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, symbol);
  if (auto failed = j->addObjectFile(std::move(buffer))) {
    error = text(std::move(failed));
    return nullptr;
  }
  auto found = j->lookup(symbol);
  if (found) return found->toPtr<CompiledLoop>();
  error = text(found.takeError());
  return nullptr;
}

}  // namespace
}  // namespace facula::codegen

extern "C" __attribute__((visibility("default"))) const facula::LoopCompiler*
facula_loop_compiler() {
  // Another number where loop_builder.cpp or table_lookups.cpp makes other loops.
  static const std::string name = "loops 3, LLVM " LLVM_VERSION_STRING ", scalar functions " +
                                  facula::codegen::ScalarLibrary::digest();
  static const facula::LoopCompiler compiler{facula::LoopCompiler::expected, name.c_str(),
                                             &facula::codegen::compile, &facula::codegen::load};
  return &compiler;
}
