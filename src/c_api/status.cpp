#include "c_api/status.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>

namespace facula::c_api {
namespace {

struct LastError {
  facula_status code = FACULA_OK;
  std::string text;
  std::exception_ptr exception;  // null where a callback set code and text itself
};
LastError& last() {
  thread_local LastError e;
  return e;
}

// FACULA_RUNTIME_ERROR is ErrorKind::Runtime plus one, and so on. Kinds that the interface has no
// code for are runtime errors to a library; behind it the exception itself goes on.
constexpr facula_status code_of(ErrorKind k) {
  if (k == ErrorKind::Python) return FACULA_PYTHON_ERROR;
  return k > ErrorKind::StopIteration ? FACULA_RUNTIME_ERROR : static_cast<facula_status>(k) + 1;
}
static_assert(code_of(ErrorKind::Runtime) == FACULA_RUNTIME_ERROR);
static_assert(code_of(ErrorKind::NotImplemented) == FACULA_NOT_IMPLEMENTED_ERROR);
static_assert(code_of(ErrorKind::LinAlg) == FACULA_LINALG_ERROR);
static_assert(code_of(ErrorKind::StopIteration) == FACULA_STOP_ITERATION);

ErrorKind kind_of(facula_status code) {
  const bool known = code >= FACULA_RUNTIME_ERROR && code <= FACULA_STOP_ITERATION;
  return known ? static_cast<ErrorKind>(code - 1) : ErrorKind::Runtime;
}

facula_status note(facula_status code, const char* text) {
  last() = {code, text, std::current_exception()};
  return code;
}

}  // namespace

facula_status note_exception() {
  try {
    throw;
  } catch (abi::__forced_unwind&) {
    throw;  // the thread ends: nothing may stop that
  } catch (const Error& e) {
    return note(code_of(e.kind()), e.what());
  } catch (const std::bad_alloc& e) {
    return note(FACULA_MEMORY_ERROR, "not enough memory");
  } catch (const std::exception& e) {
    return note(FACULA_RUNTIME_ERROR, e.what());
  } catch (...) {
    return note(FACULA_RUNTIME_ERROR, "an exception of an unknown type");
  }
}

void forget_error() {
  if (last().code != FACULA_OK) last() = {};
}

void raise(facula_status code) {
  LastError e = std::move(last());
  last() = {};
  if (e.code != code)
    throw Error(kind_of(code), "a callback of a library failed with code ", code,
                " and without a text");
  if (e.exception) std::rethrow_exception(e.exception);
  throw Error(kind_of(code), e.text);
}

}  // namespace facula::c_api

using namespace facula;

uint32_t facula_c_version(void) { return FACULA_C_VERSION; }

const char* facula_error_text(void) { return c_api::last().text.c_str(); }

facula_status facula_set_error(facula_status code, const char* text) {
  c_api::last() = {code, text ? text : "", nullptr};
  return code;
}
