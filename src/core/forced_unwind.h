// Threads whose stack is unwound by force.
//
// pthread_exit unwinds the stack of its thread through whatever frames there are, and so does
// CPython up to 3.13, which ends a thread in that way when it asks for the GIL of an interpreter
// that is ending. Frames of this library must not be unwound like that: their destructors would let
// go of Python objects without the GIL, and the first function that throws nothing would abort the
// process. So where C++ frames are met (the linker sends the compiler's calls of its personality
// routine here, see CMakeLists.txt) a thread that may not go on stops, until the process ends.
#pragma once
#include <atomic>

namespace facula {

// Whether the calling thread must stop rather than be unwound by force. Null: it never must.
extern constinit std::atomic<bool (*)()> must_not_unwind;

[[noreturn]] void stop_this_thread();

}  // namespace facula
