#include "codegen/llvm/loop_builder.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace facula::codegen {
namespace {

using llvm::Value;

class LoopBuilder {
 public:
  LoopBuilder(const FusedLoop& loop, const ScalarLibrary& library, const std::string& symbol,
              llvm::LLVMContext& context)
      : loop_(loop),
        library_(library),
        symbol_(symbol),
        module_(std::make_unique<llvm::Module>(symbol, context)),
        b_(context),
        pointer_(b_.getPtrTy()),
        index_(b_.getInt64Ty()) {}

  std::unique_ptr<llvm::Module> build(std::string& error) {
    std::unique_ptr<llvm::Module> functions = library_.module(module_->getContext());
    if (!functions) {
      error = "the bitcode of scalar functions cannot be read";
      return nullptr;
    }
    module_->setDataLayout(functions->getDataLayout());
    module_->setTargetTriple(functions->getTargetTriple());
    if (!make_body("blocks", true, error) || !make_body("rest", false, error)) return nullptr;
    make_entry();
    if (llvm::Linker::linkModules(*module_, std::move(functions), llvm::Linker::LinkOnlyNeeded)) {
      error = "the bitcode of scalar functions cannot be linked";
      return nullptr;
    }
    inline_all();
    if (llvm::verifyModule(*module_)) {
      error = "the loop is not well formed";
      return nullptr;
    }
    return std::move(module_);
  }

 private:
  static constexpr uint64_t widest = 16;  // bytes of an element
  static constexpr uint64_t register_bytes = 64;
  // Vectors that a block holds. Each is a chain of dependent steps, which go side by side.
  static constexpr uint32_t vectors = 8;

  // Elements of a block. A loop's vectors are as long as the widest operand in memory lets them be.
  uint64_t block() const {
    uint64_t item = 1;
    for (const FusedLoop::Memory& m : loop_.memory)
      if (m.stepping != FusedLoop::Stepping::None) item = std::max<uint64_t>(item, m.itemsize);
    return vectors * register_bytes / item;
  }

  // A body takes each operand in memory, and its step, as an argument of its own: none overlaps
  // what another writes, which the vectoriser must know. There is one for whole blocks, and one
  // for what is left, as a loop that takes many vectors at a time does its last elements singly.
  bool make_body(const char* name, bool of_blocks, std::string& error) {
    rooms_.clear();
    std::vector<llvm::Type*> types;
    for (size_t m = 0; m < loop_.memory.size(); ++m) types.push_back(pointer_);
    for (size_t m = 0; m < loop_.memory.size(); ++m) types.push_back(index_);
    types.insert(types.end(), {index_, pointer_});
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
    body_ = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, *module_);
    bodies_.push_back(body_);
    for (unsigned a = 0; a < body_->arg_size(); ++a)
      if (types[a] == pointer_) body_->addParamAttr(a, llvm::Attribute::NoAlias);
    auto* entry = llvm::BasicBlock::Create(b_.getContext(), "entry", body_);
    auto* head = llvm::BasicBlock::Create(b_.getContext(), "loop", body_);
    auto* end = llvm::BasicBlock::Create(b_.getContext(), "end", body_);
    const size_t memory = loop_.memory.size();
    Value* count = body_->getArg(static_cast<unsigned>(2 * memory));
    params_ = body_->getArg(static_cast<unsigned>(2 * memory + 1));
    b_.SetInsertPoint(entry);
    make_rooms();
    b_.CreateCondBr(b_.CreateICmpSGT(count, b_.getInt64(0)), head, end);
    b_.SetInsertPoint(head);
    auto* i = b_.CreatePHI(index_, 2, "i");
    i->addIncoming(b_.getInt64(0), entry);
    i_ = i;
    for (size_t s = 0; s < loop_.steps.size(); ++s)
      if (!make_step(s, error)) return false;
    Value* next = b_.CreateNSWAdd(i, b_.getInt64(1));
    i->addIncoming(next, head);
    llvm::Instruction* again = b_.CreateCondBr(b_.CreateICmpSLT(next, count), head, end);
    if (of_blocks) interleave(*again);
    b_.SetInsertPoint(end);
    b_.CreateRetVoid();
    return true;
  }

  // Asks for so many vectors at a time: of its own the vectoriser takes one of a long body.
  void interleave(llvm::Instruction& latch) {
    llvm::LLVMContext& context = b_.getContext();
    llvm::Metadata* count[] = {llvm::MDString::get(context, "llvm.loop.interleave.count"),
                               llvm::ConstantAsMetadata::get(b_.getInt32(vectors))};
    llvm::MDNode* loop =
        llvm::MDNode::getDistinct(context, {nullptr, llvm::MDNode::get(context, count)});
    loop->replaceOperandWith(0, loop);  // which tells loops apart
    latch.setMetadata(llvm::LLVMContext::MD_loop, loop);
  }

  // Places for results and for the lists of operands, which become registers.
  void make_rooms() {
    for (const FusedLoop::Step& s : loop_.steps) {
      auto* room = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), s.itemsize));
      room->setAlignment(llvm::Align(widest));
      rooms_.push_back(room);
    }
    operands_ = b_.CreateAlloca(llvm::ArrayType::get(pointer_, 1 + FusedLoop::most_inputs));
    auto* steps = llvm::ArrayType::get(index_, 1 + FusedLoop::most_inputs);
    no_steps_ = new llvm::GlobalVariable(*module_, steps, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantAggregateZero::get(steps), "no_steps");
  }

  Value* offset(Value* base, uint64_t bytes) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, bytes);
  }
  // The element of an operand in memory, whose step may be any.
  Value* element(size_t m, Value* base, Value* any_step, Value* index) {
    const FusedLoop::Memory& memory = loop_.memory[m];
    if (memory.stepping == FusedLoop::Stepping::None) return base;
    Value* step = memory.stepping == FusedLoop::Stepping::Unit
                      ? static_cast<Value*>(b_.getInt64(memory.itemsize))
                      : any_step;
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), base, b_.CreateNSWMul(index, step));
  }
  Value* element(size_t m) {
    return element(m, body_->getArg(static_cast<unsigned>(m)),
                   body_->getArg(static_cast<unsigned>(loop_.memory.size() + m)), i_);
  }
  Value* operand(size_t s, int k) {
    const FusedLoop::Operand& o = loop_.steps[s].in[k];
    if (o.source == FusedLoop::Source::Step) return rooms_[o.at];
    if (o.source == FusedLoop::Source::Memory) return element(o.at);
    return offset(params_, s * FusedLoop::params_of_step + FusedLoop::numbers_begin +
                               static_cast<uint64_t>(k) * FusedLoop::number_size);
  }

  bool make_step(size_t s, std::string& error) {
    const FusedLoop::Step& step = loop_.steps[s];
    const std::string function = step.function;
    if (function == "move")
      b_.CreateStore(load(operand(s, 0), step.itemsize), rooms_[s]);
    else if (function == "select")
      make_select(s);
    else if (!make_call(s, error))
      return false;
    if (step.stores >= 0)
      b_.CreateAlignedStore(load(rooms_[s], step.itemsize),
                            element(static_cast<size_t>(step.stores)), llvm::Align(1));
    return true;
  }

  Value* load(Value* from, uint64_t bytes) {
    return b_.CreateAlignedLoad(b_.getIntNTy(static_cast<unsigned>(bytes * 8)), from,
                                llvm::Align(1));
  }
  void make_select(size_t s) {
    const uint64_t bytes = loop_.steps[s].itemsize;
    Value* chosen = b_.CreateICmpNE(load(operand(s, 0), 1), b_.getInt8(0));
    b_.CreateStore(b_.CreateSelect(chosen, load(operand(s, 1), bytes), load(operand(s, 2), bytes)),
                   rooms_[s]);
  }
  bool make_call(size_t s, std::string& error) {
    const FusedLoop::Step& step = loop_.steps[s];
    const std::string name = library_.loop(step.function, step.compute, step.by_number);
    if (name.empty()) {
      error = std::string("there is no bitcode of ") + step.function;
      return false;
    }
    auto* type =
        llvm::FunctionType::get(b_.getVoidTy(), {pointer_, pointer_, index_, pointer_}, false);
    const auto put = [&](int at, Value* p) {
      b_.CreateStore(p,
                     b_.CreateConstInBoundsGEP1_64(pointer_, operands_, static_cast<uint64_t>(at)));
    };
    put(0, rooms_[s]);
    for (int k = 0; k < step.inputs; ++k) put(1 + k, operand(s, k));
    b_.CreateCall(
        module_->getOrInsertFunction(name, type),
        {operands_, no_steps_, b_.getInt64(1), offset(params_, s * FusedLoop::params_of_step)});
    return true;
  }

  // The function that is called: it takes the operands out of their lists.
  void make_entry() {
    auto* type =
        llvm::FunctionType::get(b_.getVoidTy(), {pointer_, pointer_, index_, pointer_}, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol_, *module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", f));
    const size_t memory = loop_.memory.size();
    std::vector<Value*> arguments;
    for (size_t list = 0; list < 2; ++list)
      for (size_t m = 0; m < memory; ++m) {
        llvm::Type* what = list == 0 ? static_cast<llvm::Type*>(pointer_) : index_;
        Value* from = f->getArg(static_cast<unsigned>(list));
        arguments.push_back(b_.CreateLoad(what, b_.CreateConstInBoundsGEP1_64(what, from, m)));
      }
    Value* whole = b_.CreateAnd(f->getArg(2), b_.getInt64(-block()));
    arguments.insert(arguments.end(), {whole, f->getArg(3)});
    b_.CreateCall(bodies_[0], arguments);
    for (size_t m = 0; m < memory; ++m)
      arguments[m] = element(m, arguments[m], arguments[memory + m], whole);
    arguments[2 * memory] = b_.CreateNSWSub(f->getArg(2), whole);
    b_.CreateCall(bodies_[1], arguments);
    b_.CreateRetVoid();
  }

  // All that was linked in becomes part of the loop, for the machine that the functions are for.
  void inline_all() {
    const llvm::Function* sample = nullptr;
    for (llvm::Function& f : *module_) {
      if (f.isDeclaration() || is_ours(f)) continue;
      if (f.hasFnAttribute("target-cpu") && !sample) sample = &f;
      f.setLinkage(llvm::GlobalValue::InternalLinkage);
      f.setComdat(nullptr);
      f.removeFnAttr(llvm::Attribute::NoInline);
      f.removeFnAttr(llvm::Attribute::OptimizeNone);
      f.addFnAttr(llvm::Attribute::AlwaysInline);
    }
    for (llvm::GlobalVariable& g : module_->globals())
      if (!g.isDeclaration()) {
        g.setLinkage(llvm::GlobalValue::InternalLinkage);
        g.setComdat(nullptr);
      }
    for (llvm::Function& f : *module_) {
      if (!is_ours(f)) continue;
      f.addFnAttr(llvm::Attribute::NoUnwind);
      // Where it sees that fewer elements than a block's are left, LLVM takes few at a time.
      if (&f == bodies_[1]) f.addFnAttr(llvm::Attribute::NoInline);
      if (!sample) continue;
      for (const char* kind : {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width"})
        if (sample->hasFnAttribute(kind)) f.addFnAttr(sample->getFnAttribute(kind));
    }
  }
  bool is_ours(const llvm::Function& f) const {
    return f.getName() == symbol_ || std::ranges::find(bodies_, &f) != bodies_.end();
  }

  const FusedLoop& loop_;
  const ScalarLibrary& library_;
  const std::string& symbol_;
  std::unique_ptr<llvm::Module> module_;
  llvm::IRBuilder<> b_;
  llvm::PointerType* pointer_;
  llvm::IntegerType* index_;
  std::vector<llvm::Function*> bodies_;
  llvm::Function* body_ = nullptr;  // the one that is being made
  Value* params_ = nullptr;
  Value* i_ = nullptr;
  Value* operands_ = nullptr;
  Value* no_steps_ = nullptr;
  std::vector<Value*> rooms_;
};

}  // namespace

std::unique_ptr<llvm::Module> build_loop(const FusedLoop& loop, const ScalarLibrary& library,
                                         const std::string& symbol, llvm::LLVMContext& context,
                                         std::string& error) {
  return LoopBuilder(loop, library, symbol, context).build(error);
}

}  // namespace facula::codegen
