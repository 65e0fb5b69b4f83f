// Forced unwinding by pthread_exit.
//
// CPython up to 3.13 calls pthread_exit on a thread that asks for the GIL while the interpreter
// shuts down. That runs the destructors of all C++ frames on the stack: ours would release Python
// objects without the GIL, and the first noexcept function would abort the process. The linker
// therefore routes the C++ personality routine through this file (see CMakeLists.txt), and such a
// thread sleeps until the process ends instead of being unwound.
#pragma once
#include <atomic>

namespace facula {

// Says whether the calling thread must stop instead of being unwound. Null: it never must.
extern constinit std::atomic<bool (*)()> must_not_unwind;

[[noreturn]] void stop_this_thread();

}  // namespace facula
