#include "distributed/engine_plugin.h"

#include <dlfcn.h>

namespace facula::distributed {
namespace {

// The folder of this library.
std::string folder() {
  Dl_info found;
  if (dladdr(reinterpret_cast<void*>(&new_engine), &found) == 0) return ".";
  const std::string path = found.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

// A function of an engine's library; null with an error. Opened libraries stay: their threads and
// tables may outlive their engines.
void* find_function(const std::string& engine, const char* function, std::string& error) {
  const std::string path = concat(folder(), "/libfacula_engine_", engine, ".so");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = library ? dlsym(library, function) : nullptr;
  if (found == nullptr) error = dlerror();
  return found;
}

NewEngine open_engine(const std::string& name, std::string& error) {
  return reinterpret_cast<NewEngine>(find_function(name, "facula_new_engine", error));
}

}  // namespace

std::string why_not(const std::string& name) {
  std::string error;
  if (name != "local") open_engine(name, error);
  return error;
}

std::unique_ptr<Engine> new_engine(const std::string& name, const EngineOptions& options) {
  if (name == "local") return new_local_engine(options);
  std::string error;
  const NewEngine make = open_engine(name, error);
  check(make != nullptr, "init_process_group(): expected a library of the engine '", name,
        "'; got ", error);
  return std::unique_ptr<Engine>(make(options));
}

World world_of(const std::string& name) {
  std::string error;
  void* ask = find_function(name, "facula_engine_world", error);
  check(ask != nullptr, "init_process_group(): expected an engine that knows its ranks; got '",
        name, "': ", error);
  World world;
  reinterpret_cast<void (*)(int*, int*)>(ask)(&world.rank, &world.size);
  return world;
}

}  // namespace facula::distributed
