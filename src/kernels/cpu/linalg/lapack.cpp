#include "kernels/cpu/linalg/lapack.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "core/environment.h"
#include "core/error.h"

namespace facula::cpu::lapack {
namespace {

std::atomic<Locator> locator{nullptr};

// An open library, whose routines have names with a prefix: "scipy_dgetrf_", or "dgetrf_".
class Library {
 public:
  // Null where the file cannot be opened or has no routines of LAPACK, which `why` then tells.
  static const Library* from(const std::string& path, std::string& why) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      why = dlerror();
      return nullptr;
    }
    for (const char* prefix : {"scipy_", ""})
      if (dlsym(handle, concat(prefix, "dgetrf_").c_str()) != nullptr)
        return new Library(handle, prefix);  // lives for ever, as addresses in it do
    why = concat(path, " has neither dgetrf_ nor scipy_dgetrf_");
    dlclose(handle);
    return nullptr;
  }

  void* find(const std::string& name) const {
    return dlsym(handle_, concat(prefix_, name).c_str());
  }

 private:
  Library(void* handle, const char* prefix) : handle_(handle), prefix_(prefix) {
    // Batches are cut into parts for our own threads; more threads in each part would only wait.
    if (void* set = find("openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(1);
  }

  void* handle_;
  const char* prefix_;
};

// The library in the folder of an installed package; "" where there is none.
std::string installed_library() {
  const Locator locate = locator.load();
  const std::string folder = locate != nullptr ? locate() : std::string();
  if (folder.empty()) return "";
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable))
    if (entry.path().filename().string().starts_with("libscipy_openblas"))
      return entry.path().string();
  return "";
}

const Library* open_first_found() {
  std::string why;
  if (const char* named = environment_value("FACULA_LAPACK")) {
    const Library* library = Library::from(named, why);
    check(library != nullptr, "LAPACK: expected in FACULA_LAPACK the path of a library; got ", why);
    return library;
  }
  std::vector<std::string> paths = {"libopenblas.so.0", "liblapack.so.3"};
  if (std::string installed = installed_library(); !installed.empty())
    paths.insert(paths.begin(), installed);
  for (const std::string& path : paths)
    if (const Library* library = Library::from(path, why)) return library;
  throw Error(ErrorKind::Runtime, concat("LAPACK: expected a library for linear algebra; got none. "
                                         "`pip install scipy-openblas32`, or name one in "
                                         "FACULA_LAPACK (",
                                         why, ")"));
}

// No lock: looking for the package may wait for the GIL, whose holder might wait for the lock. Who
// comes second lets go of what it opened, which is the same.
const Library& library() {
  static std::atomic<const Library*> opened{nullptr};
  const Library* now = opened.load(std::memory_order_acquire);
  if (now != nullptr) return *now;
  const Library* made = open_first_found();
  if (opened.compare_exchange_strong(now, made)) return *made;
  delete made;
  return *now;
}

}  // namespace

void set_locator(Locator locate) { locator.store(locate); }

void open() { library(); }

void* routine(const std::string& name) {
  void* address = library().find(name + "_");
  check(address != nullptr, "LAPACK: the library found lacks ", name);
  return address;
}

}  // namespace facula::cpu::lapack
