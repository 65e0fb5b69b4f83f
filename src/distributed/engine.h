// What moves data between the ranks of a process group. A group checks calls, orders them and
// makes Work of them; an engine runs one call after the other on plain memory, or gives them to a
// device's stream.
//
// Engines of this library: LocalEngine (local_engine.h) for ranks on one machine, whether processes
// or threads. Others are plug-ins that are opened when they are asked for (engine_plugin.h).
#pragma once
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/storage.h"

namespace facula::distributed {

// Numbers are those of PyTorch's ReduceOp.
enum class Reduction : uint8_t { Sum, Avg, Product, Min, Max, BitAnd, BitOr, BitXor, PremulSum };

enum class Call : uint8_t {
  None,
  Barrier,
  Broadcast,
  AllReduce,
  Reduce,
  AllGather,
  Gather,
  Scatter,
  ReduceScatter,
  AllToAll,
  Send,
  Receive,
};

// What a rank calls: compared between ranks before data moves, and shown in errors. Plain data, as
// it lies in shared memory and travels as bytes.
struct CallRecord {
  static constexpr int most_sizes = 8, most_place = 112;

  uint64_t sequence = 0;  // number of the collective in its group, from 1
  int64_t started_ms = 0;
  int64_t count = 0;  // elements that each rank contributes
  Call call = Call::None;
  DType dtype = DType::Undefined;
  Reduction reduction = Reduction::Sum;
  uint8_t ndim = 0;   // of the tensor as the caller has it; sizes hold at most eight of them
  int32_t root = -1;  // or the other rank of a message
  int32_t tag = 0;
  int32_t thread = 0;   // that called
  int8_t finished = 0;  // 1 once the call has returned
  int8_t async = 0;     // 1 if the thread did not wait
  int8_t detailed = 0;  // 1 if shapes are to be the same, and not only numbers of elements
  int64_t sizes[most_sizes] = {};
  char place[most_place] = {};  // file and line of the caller
};

// One collective. Lists have an entry for each rank where each rank has a part of its own
// (inputs of Scatter, ReduceScatter, AllToAll; outputs of AllGather, Gather, AllToAll), else one.
struct Collective {
  CallRecord record;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<int64_t> sent, received;  // AllToAll: elements to and from each rank
  double factor = 1;                    // PremulSum: what each input is multiplied by
  Device device;                        // that has the memory
};

struct EngineOptions {
  int rank = 0;
  int size = 1;
  std::string group;  // its name, for errors
  std::chrono::milliseconds timeout{1'800'000};
  std::chrono::milliseconds heartbeat{10'000};  // silence after which a rank counts as lost
  std::chrono::milliseconds lag{2'000};         // wait after which ranks that lag are named
  std::map<std::string, std::string> settings;  // an engine's own, by name
};

// A failure between ranks: a rank that is lost or late, or calls that differ. The group cannot be
// used any more.
class DistributedError : public Error {
 public:
  explicit DistributedError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// Calls that were given to a stream of a device, which does them later.
class QueuedCalls {
 public:
  virtual ~QueuedCalls() = default;
  // Whether the device is through with them; throws the error that has ended them.
  virtual bool is_done() = 0;
  // Has the current stream of the device wait for them; throws the error that has ended them.
  virtual void hold_current_stream() = 0;
};

struct QueueRequest {
  std::vector<Collective> calls;     // and messages; done together, on one device
  std::vector<Ref<Storage>> memory;  // held until they are done
  bool own_stream = false;           // or the current stream of the device
  // Called once, by any thread, when they are done or have failed.
  std::function<void(std::exception_ptr)> ended;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  // What the other ranks need to know in order to reach this one.
  virtual std::string address() = 0;
  // Given the addresses of all ranks. Returns false if these ranks cannot use this engine, say,
  // because they are on several machines; all ranks must then agree not to use it.
  virtual bool connect(const std::vector<std::string>& addresses) = 0;
  // Runs a collective to its end. Not called by two threads at once.
  virtual void run(Collective& call) = 0;
  // A message of `record.count` elements to or from rank `record.root`, -1 being any rank in
  // begin_receive(). The memory belongs to the engine until finish() or test() says that it is
  // done. Called by any thread.
  virtual uint64_t begin_send(const CallRecord& record, const void* data) = 0;
  virtual uint64_t begin_receive(const CallRecord& record, void* data) = 0;
  // Goes on with begun messages in the background, so that nobody has to wait for them.
  virtual void pursue() {}
  // Waits for a message and forgets it; returns the other rank.
  virtual int finish(uint64_t message) = 0;
  virtual bool test(uint64_t message) = 0;
  // Makes running and later calls fail, here and at the other ranks where the engine can.
  virtual void abort(const std::string& reason) = 0;
  // This rank takes no part any more. With a text: because of this error.
  virtual void leave(const std::string& error) = 0;
  // How long later calls wait for other ranks.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;
  // Tells the others that this process lives; called several times a second.
  virtual void beat() {}
  // What each rank does, one line for each.
  virtual std::string table() { return {}; }
  // Whether it works on the memory of a device, by queue(), and not on the host's, by run() and
  // messages.
  virtual bool is_of_device() const { return false; }
  // Gives calls to a stream, after what the current one has been given so far. Called by any
  // thread.
  virtual std::shared_ptr<QueuedCalls> queue(QueueRequest) { return nullptr; }
};

std::unique_ptr<Engine> new_local_engine(const EngineOptions& options);

}  // namespace facula::distributed
