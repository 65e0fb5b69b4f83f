// A stored program: for which arguments and state of Python it stands, what it calls, what it
// gives.
#pragma once
#include "bindings/skip/steps.h"
#include "core/inline_vector.h"

namespace facula::python {

// The state of the thread that a program was taken down in.
struct ProgramState {
  bool grad = false, inference = false;
  DType default_dtype = DType::Float32;
  bool operator==(const ProgramState&) const = default;
  static ProgramState now();
  // Whether nothing is on that sees or changes calls: modes but the recorder, transforms, autocast,
  // overrides, hooks, tracers of Python.
  static bool is_plain();
};

// What an argument must be for a program to take it.
class ArgumentForm {
 public:
  // Takes the form of an object, and gives its tensors to `found`. Raises if there is none.
  static ArgumentForm of(PyObject* o, std::vector<PyObject*>& found, std::vector<PyObject*>& lists);
  // Whether the object has it; adds the tensors to a list.
  bool fits(PyObject* o, InlineVector<TensorImpl*, 16>& tensors) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Kind : uint8_t { Tensor, Same, Number, Tuple, List, Dict };
  Kind kind_ = Kind::Same;
  Object object_;  // a class for tensors, the object for Same and Number
  std::vector<TensorFacts> facts_;
  std::vector<Object> keys_;
  std::vector<ArgumentForm> items_;
};

// What a program gives: tensors in tuples, lists and dicts.
class ResultForm {
 public:
  static ResultForm of(PyObject* o, const StepRecorder& r, std::vector<Slot>& used, int depth = 0);
  Object make(const Tensors& t) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Kind : uint8_t { Tensor, Constant, Tuple, List, Dict };
  Kind kind_ = Kind::Constant;
  Slot slot_{};
  Object object_;
  std::vector<Object> keys_;
  std::vector<ResultForm> items_;
};

class Program {
 public:
  Watches watches;

  void take_arguments(PyObject* args, PyObject* kwargs, std::vector<PyObject*>& lists);
  void begin();
  void end() { recorder_.end(); }
  void hold(PyObject* tensor);
  void forget_used() { recorder_.forget_used(); }
  // Asks of calls that no argument is another one, or a tensor that is held.
  void need_distinct_arguments() { distinct_ = true; }
  const StepRecorder& recorder() const { return recorder_; }
  void finish(PyObject* result);

  // Whether the program stands for a call: its arguments fit and nothing it has read has changed.
  bool fits(PyObject* const* args, Py_ssize_t count, PyObject* names,
            InlineVector<TensorImpl*, 16>& tensors) const;
  Standing look() { return finished_ ? watches.look() : Standing::Gone; }
  Object run(const InlineVector<TensorImpl*, 16>& inputs) const;
  const Steps& steps() const { return steps_; }
  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  std::vector<ArgumentForm> positional_, named_;
  std::vector<Object> names_;
  std::vector<PyObject*> inputs_;  // while it is made
  ProgramState state_;
  StepRecorder recorder_;
  Steps steps_;
  ResultForm result_;
  uint64_t warnings_ = 0;  // given before
  bool distinct_ = false;
  bool finished_ = false;
  bool are_distinct(const InlineVector<TensorImpl*, 16>& tensors) const;
};

struct ProgramObject {
  PyObject_HEAD Program* program;
};
extern PyTypeObject program_type;
inline Program& program_of(PyObject* o) { return *reinterpret_cast<ProgramObject*>(o)->program; }

void add_skip(PyObject* module);
void add_program_type(PyObject* module);
void add_frame_functions(PyObject* module);

}  // namespace facula::python
