// A Vulkan device as the launch path sees it: buffers, and work that goes to one queue in order.
//
// Every piece of work has the next value of one timeline semaphore. Work begins when all earlier work is done, so it
// sees everything that earlier work wrote. Each submission to the driver costs the host and the device some 10 µs.
// Pieces of work that follow each other closely are therefore gathered in one command buffer, and a thread, the
// flusher, submits it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "buffer.h"
#include "slot.h"
#include "vulkan_api.h"

namespace triton_spirv {

// A host range that is copied to the device before a dispatch, and copied back after it if `write_back` is set.
struct StagedCopy {
  std::byte* host;      // first byte of the range
  VkDeviceSize bytes;   // length of the range
  Buffer* staging;      // mapped; the range starts at its first byte
  Buffer* device;       // the kernel's copy
  VkDeviceSize offset;  // start of the range in `device`
  bool write_back;
};

// The end of every error message after which the device is abandoned.
constexpr const char* kOpenedAgain =
    "; the next use of the device opens it again, and tensors, graphs and loaded files of before are gone";

// The stages that kernels and copies run in, and how they touch memory.
constexpr VkPipelineStageFlags kWorkStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWorkWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kWorkReads = kWorkWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

// A semaphore that another API signals: its number, and an opaque file descriptor, which the caller owns.
struct Incoming {
  std::size_t number;
  int fd;
};

// A timestamp query of the device. Released queries are reused.
struct Query {
  VkQueryPool pool;
  uint32_t index;
  uint64_t written;  // the timeline's value when the query is written
};

class Recording;

// Returns an owner of everything that a dispatch uses.
using Used = std::function<std::shared_ptr<void>()>;

class Device : public std::enable_shared_from_this<Device> {
 public:
  // The caller owns the handles, and destroys them after close(). `shares_semaphores`: whether
  // VK_KHR_external_semaphore_fd is enabled. `timeout_ns`: how long a wait may take.
  Device(VkInstance instance, VkPhysicalDevice physical, VkDevice device, VkQueue queue, uint32_t queue_family,
         VkPipelineLayout layout, bool host_addresses, bool shares_semaphores, uint64_t timeout_ns);
  ~Device();

  // Refuses launches and allocations from now on, and waits for all work. Returns false if work never ended, and in a
  // forked child. If a signal handler throws during the wait, the exception is passed on and nothing has changed.
  bool stop();
  // Does the same, then waits for calls of other threads and destroys what this object made. Returns false, with
  // nothing destroyed, also if another thread's call does not return.
  bool close();
  // Waits a limited time for calls of other threads, and says whether all have returned. Used for a device whose work
  // never ended: those calls raise an error that says so.
  bool calls_returned() const;

  std::unique_ptr<Buffer> allocate(VkDeviceSize bytes, MemoryKind kind);
  // Imports host memory as a buffer. Pointer and size are multiples of minImportedHostPointerAlignment.
  std::unique_ptr<Buffer> import_host(void* pointer, VkDeviceSize bytes);
  // Imports memory that another API exported as an opaque file descriptor. The device then owns the descriptor.
  std::unique_ptr<Buffer> import_fd(int fd, VkDeviceSize bytes);
  // Joins the memory of several imported buffers into one range of device addresses. The result must be freed before
  // the parts. Throws std::runtime_error if the device cannot do this.
  std::unique_ptr<Buffer> join(const std::vector<const Buffer*>& parts);

  // All functions below are thread-safe. Call them without the GIL.

  // Forgets launches of a pipeline that will be destroyed next. None of them may be running.
  void forget(VkPipeline pipeline);
  // Submits the dispatch. Returns the timeline's value when the dispatch is done.
  uint64_t launch(const Dispatch& dispatch, const ExternalWait* after = nullptr);
  // The same with a grid of no programs, at which a driver that compiles late compiles the pipeline.
  uint64_t launch_nothing(VkPipeline pipeline);
  // Runs the dispatch with copies around it, and returns when it is done. If it throws while the dispatch may still
  // run, it keeps what `used` returns. The caller keeps what the copies use.
  void run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used = {});
  // Returns when the timeline has reached `value`. Throws VulkanError after the time limit.
  void wait(uint64_t value);
  // Returns when all submitted work is done.
  void synchronize() { wait(submitted()); }
  // Does the same. What the work wrote to mapped memory is then visible to the host.
  void synchronize_host();
  // The timeline's value when the last submission is done.
  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  // Whether the timeline has reached `value`. Throws as check_usable() does if the timeline can no longer reach it.
  bool done(uint64_t value);

  // Keeps what work up to `value` may still use, until let_go() is called after that work. Returns false and keeps
  // nothing if that work is done or belongs to another process.
  bool keep(uint64_t value, std::shared_ptr<void> used);
  // Releases what is kept for finished work. Any object may be destroyed here: so it is called without a mutex, and
  // with the GIL if Python objects may be kept.
  void let_go() {
    if (keeps_.load(std::memory_order_relaxed)) let_go_of_done();
  }

  // These copy between host memory and device memory. Device addresses must lie in a buffer of this device.
  void upload(VkDeviceAddress address, const std::byte* host, VkDeviceSize bytes);
  void download(std::byte* host, VkDeviceAddress address, VkDeviceSize bytes);
  void copy(VkDeviceAddress to, VkDeviceAddress from, VkDeviceSize bytes);
  // Fills memory with a 32-bit word. Address and size are multiples of 4.
  void fill(VkDeviceAddress address, VkDeviceSize bytes, uint32_t word);
  // Whether [address, address + bytes) lies in one buffer of this device.
  bool owns(VkDeviceAddress address, VkDeviceSize bytes);

  bool has_timestamps() const { return timestamp_bits_ != 0; }
  // Returns a query that can be written once.
  Query acquire_query();
  void release_query(const Query& query);
  // Writes the time at which all earlier work is done.
  void write_timestamp(Query& query);
  // Nanoseconds from one timestamp to another. The submissions of both must be done.
  double elapsed(const Query& from, const Query& to);

  // Exports the timeline for another API as an opaque file descriptor, which the caller owns. Throws if the device
  // lacks VK_KHR_external_semaphore_fd.
  int export_timeline() { return export_semaphore(timeline_); }
  // Makes a semaphore that one queue of another API signals with rising values. Throws as export_timeline() does.
  Incoming make_incoming();
  // A wait for a value of that semaphore.
  ExternalWait incoming(std::size_t number, uint64_t value);

  // Whether host addresses are device addresses. A dispatch may then take any host pointer.
  void set_host_addresses(bool holds) { host_addresses_ = holds; }
  bool host_addresses() const { return host_addresses_; }
  const VkPhysicalDeviceLimits& limits() const { return limits_; }
  // Throws if this process is a fork of the one that made the device, or if the device is lost or closed.
  void check_usable() const;
  // Whether this process is a fork of the one that made the device.
  bool forked() const;
  // Whether the device was lost, or its work did not end in time. Nothing runs on it any more.
  bool failed() const { return lost_ || stuck_; }
  // The owner abandons a failed device to open another one. Memory of this device that tensors still hold counts as
  // gone from then on.
  void leave();
  // Whether any device was abandoned, and whether the range overlaps memory of such a device.
  static bool any_left();
  static bool is_gone(VkDeviceAddress address, VkDeviceSize bytes);
  // Throws std::runtime_error if this thread is making a recording, which would not contain what the thread does now.
  void refuse_while_recording() const;
  // Whether the validation layer is on. Layers of 2023 stall for 10 s if one thread asks for the timeline's value while
  // another thread asks or submits. With the layer, only one such call runs at a time, and none of them blocks.
  static inline std::atomic<bool> validated{false};
  // Called now and then during a wait. It may throw.
  static inline void (*while_waiting)() = nullptr;

 private:
  friend class Buffer;
  friend class Recording;
  friend struct Recorded;
  struct Location {
    VkBuffer buffer;
    VkDeviceSize offset;
  };
  struct Chunk {
    std::unique_ptr<Buffer> buffer;
    uint64_t value = 0;
  };

  // Marks a call that uses the device's objects without a mutex. close() waits for its end. It converts to false if
  // the objects are gone.
  class Use {
   public:
    explicit Use(Device& device) : device_(device) { device_.uses_.fetch_add(1); }
    ~Use() { device_.uses_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return !device_.gone_; }

   private:
    Device& device_;
  };
  class Transfer;

  enum class Batch { kWithOthers, kAlone, kLater };
  // `launch`: the launch that `record` records, if its commands may be submitted again.
  template <typename Record>
  uint64_t submit(Record&& record, Batch batch = Batch::kWithOthers, const ExternalWait* after = nullptr,
                  const Dispatch* launch = nullptr);
  // These are called with ring_mutex_ held.
  // `again`: the slot's commands may be submitted more than once.
  Slot& open_slot(bool again);
  VkResult begin(Slot& slot, VkCommandBufferUsageFlags usage);
  // Moves the finished commands of an earlier launch that equals this one to the next slot. Returns false if no slot
  // has such commands.
  bool take_again(const Dispatch& launch, const LaunchKey& key);
  enum class Commands { kOpen, kEnded };
  void close_slot(Commands commands = Commands::kOpen, const ExternalWait* after = nullptr);
  void wake_flusher();
  // Begins the next command buffer while the device works, if the last launch had to be recorded.
  void begin_ahead();
  // Waits, without the mutex, for a command buffer to record into. `alone`: it must be a new one.
  void wait_for_slot(std::unique_lock<std::mutex>& ring, bool alone);
  // Submits all work up to `value` to the driver.
  void flush(uint64_t value);
  void flush_locked(uint64_t value);  // with queue_mutex_ held
  void hand_over(const Submission& submission);
  // Calls vkWaitSemaphores() for the timeline.
  VkResult wait_semaphore(uint64_t value, uint64_t timeout_ns);
  std::unique_lock<std::mutex> layer_guard() {
    return validated ? std::unique_lock<std::mutex>(layer_mutex_) : std::unique_lock<std::mutex>();
  }
  // As wait(), but does not count as a sign that the host wants results.
  void wait_until(uint64_t value);
  // As done(), for a device that is known not to be destroyed.
  bool seen(uint64_t value);
  // The kernels that the device may be running, as an error's subject: "add.py:7: kernel 'add'".
  std::string running() const;
  // The timeline's current value.
  uint64_t look();
  // As check_usable(), but does not throw while the device is being closed.
  void check_running() const;
  void let_go_of_done();
  // Whether the driver has less than two submissions to work on.
  bool nearly_idle() { return seen(queued_before_.load(std::memory_order_acquire)); }
  // The flusher's loop: submits recorded work when the device is about to run out of work.
  void flush_when_idle();
  void stop_flusher();
  void make_ring();
  void finish();
  VkSemaphore make_timeline();
  int export_semaphore(VkSemaphore semaphore);
  // Records a barrier: the next commands begin when all earlier work is done, and see what it wrote.
  void order(Slot& slot);
  void record_dispatch(Slot& slot, const Dispatch& dispatch);
  // Called when the pipeline is bound. `block`: holds the argument block of an indirect dispatch.
  void push_and_dispatch(VkCommandBuffer commands, const Dispatch& dispatch, const Buffer* block);
  // For Recording (recording.cpp).
  std::pair<VkCommandPool, VkCommandBuffer> add_recording();
  void remove_recording(VkCommandPool pool);
  void begin(VkCommandBuffer recorded);
  void end(VkCommandBuffer recorded);
  void record(Recording& recording, const Dispatch& dispatch);
  uint64_t submit_recording(VkCommandBuffer commands);
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes, VkPipelineStageFlags to,
               VkAccessFlags reads);
  void fail(const char* function, VkResult result);
  void checked(VkResult result, const char* function) {
    if (result != VK_SUCCESS) fail(function, result);
  }
  Location find(VkDeviceAddress address, VkDeviceSize bytes);
  uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred) const;
  // The memory properties that a buffer needs.
  struct Wanted {
    VkMemoryPropertyFlags required;
    VkMemoryPropertyFlags preferred;
    bool mapped = false;
  };
  // Memory of another owner: structures for the buffer and for the allocation, and the allowed memory types.
  // `taken`: set when the driver has taken the memory over.
  struct External {
    const void* buffer;
    const void* memory;
    uint32_t types;
    bool* taken = nullptr;
  };
  std::unique_ptr<Buffer> bind(VkBuffer buffer, uint32_t type, VkDeviceSize bytes, VkDeviceSize allocation, bool map,
                               const External* external);
  // Makes a buffer without memory. Throws if the device does not allow buffers of this size.
  VkBuffer create_buffer(VkDeviceSize bytes, const void* next, VkBufferCreateFlags flags);
  std::unique_ptr<Buffer> make_buffer(VkDeviceSize bytes, const Wanted& wanted, const External* external = nullptr);
  // Registers a buffer that is bound to its memory as a buffer of this device.
  std::unique_ptr<Buffer> adopt(VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes, void* host);
  void destroy(VkBuffer buffer, VkDeviceMemory memory);
  bool imports_into_sparse(VkPhysicalDevice physical) const;
  void bind_sparse(VkBuffer buffer, const std::vector<VkSparseMemoryBind>& parts);

  InstanceFunctions instance_functions_;
  DeviceFunctions vk_;
  VkDevice device_;
  VkQueue queue_;
  uint32_t queue_family_;
  VkPipelineLayout layout_;
  bool host_addresses_;
  uint64_t timeout_ns_;
  bool shares_semaphores_;
  unsigned fork_generation_;
  bool on_host_ = false;  // the device is this machine's CPU
  std::atomic<bool> closed_{false};
  std::atomic<bool> stopped_{false};  // closed, and all work is done
  std::atomic<bool> gone_{false};     // stopped and being destroyed: nothing may be used any more
  std::atomic<unsigned> uses_{0};
  std::atomic<bool> stuck_{false};  // work did not end in time
  std::atomic<bool> lost_{false};
  std::atomic<bool> left_{false};
  uint32_t timestamp_bits_ = 0;
  bool binds_sparse_ = false;  // the queue can bind sparse memory, also imported memory
  VkPhysicalDeviceLimits limits_{};
  VkDeviceSize most_buffer_bytes_ = 0;  // maxBufferSize
  VkPhysicalDeviceMemoryProperties memory_{};

  // Longer sleeps are cut into pieces of this length, so that Ctrl-C works.
  static constexpr uint64_t kSleepNs = 200'000'000;
  // While work comes in, the flusher checks this often whether the device is running out of work. It then needs no
  // wake-up, which would cost the launching thread more than recording a launch.
  static constexpr auto kNap = std::chrono::microseconds(30);
  static constexpr std::size_t kRing = 128;
  static constexpr std::size_t kBatch = 32;
  // Work that follows earlier work within this time, without a wait between them, is left to the flusher.
  static constexpr auto kRow = std::chrono::microseconds(100);
  // The order is queue_mutex_, then ring_mutex_. Nothing waits for the device under ring_mutex_.
  std::mutex queue_mutex_;  // the queue; its holder submits closed command buffers in order
  std::mutex ring_mutex_;   // the ring and the command pool
  std::mutex layer_mutex_;  // taken last; see `validated`
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::vector<VkSemaphore> incoming_;  // with queue_mutex_
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::array<Slot, kRing> ring_;
  std::size_t next_slot_ = 0;           // the slot that records now or next
  std::size_t closed_count_ = 0;        // the slots before it that are closed and not yet submitted
  std::atomic<uint64_t> submitted_{0};  // recorded work; all up to flushed_ is with the driver
  std::atomic<uint64_t> flushed_{0};
  std::atomic<uint64_t> queued_before_{0};  // flushed_ before the last submission
  std::size_t open_ = 0;                    // recordings in the open command buffer, ring_[next_slot_]
  VkPipeline bound_ = VK_NULL_HANDLE;       // in the open command buffer
  bool ordered_ = false;                    // it ends with a barrier, followed by timestamps at most
  bool timing_ = false;  // one of its timestamps has no partner: the timed work is submitted with both
  // The kernels of the last pieces of work, by the timeline's value. Null for work that is not a dispatch.
  static constexpr std::size_t kNamed = 2 * kRing * kBatch;
  std::vector<std::atomic<const std::string*>> named_{kNamed};
  void name_next(const std::string* kernel) {  // with ring_mutex_
    named_[(submitted_.load(std::memory_order_relaxed) + 1) % kNamed].store(kernel, std::memory_order_relaxed);
  }
  std::atomic<bool> waited_{true};   // since the last recording
  std::atomic<bool> missed_{false};  // a launch that was submitted at once had to be recorded
  std::chrono::steady_clock::time_point last_recorded_{};
  std::thread flusher_;
  std::condition_variable wake_;
  bool flusher_awake_ = false;
  bool closing_ = false;
  std::atomic<uint64_t> reached_{0};         // the highest value seen so far
  std::set<VkCommandPool> recording_pools_;  // with ring_mutex_

  // Kept objects, with the value of the work that may use them. No other mutex is locked while kept_mutex_ is held.
  struct Kept {
    uint64_t value;
    std::shared_ptr<void> used;
  };
  std::mutex kept_mutex_;
  std::vector<Kept> kept_;
  std::atomic<bool> keeps_{false};  // kept_ is not empty

  std::mutex buffers_mutex_;
  struct Range {
    VkDeviceSize bytes;
    VkBuffer buffer;
    VkDeviceMemory memory;
  };
  std::multimap<VkDeviceAddress, Range> buffers_;  // host memory may be imported twice at one address
  std::vector<std::unique_ptr<Buffer>> parked_;    // at addresses of memory that is gone

  using Chunks = std::array<Chunk, 2>;
  std::timed_mutex transfer_mutex_;              // the chunks
  std::atomic<std::thread::id> transferring_{};  // the thread that holds it
  Chunks chunks_;

  std::mutex queries_mutex_;
  std::vector<VkQueryPool> query_pools_;
  std::deque<Query> free_queries_;  // the query that was released first is in front
};

// Records commands with `record(slot)` into the open command buffer. The buffer is submitted at once if it is full, if
// `batch` says so, or if the host waited since the last recording (or some time has passed) and the device has less
// than two submissions to work on. Otherwise the flusher submits it. A launch that is submitted at once and equals an
// earlier one that is done reuses that launch's commands: recording costs about as much as submitting.
template <typename Record>
uint64_t Device::submit(Record&& record, Batch batch, const ExternalWait* after, const Dispatch* launch) {
  check_usable();  // before the mutex, which a thread of the parent may hold in a forked child
  refuse_while_recording();
  const bool alone = batch == Batch::kAlone || after != nullptr;
  bool flushes = true;
  uint64_t value;
  {
    std::unique_lock<std::mutex> ring(ring_mutex_);
    wait_for_slot(ring, alone);
    check_usable();
    const auto now = std::chrono::steady_clock::now();
    const bool in_a_row = !waited_.exchange(false, std::memory_order_relaxed) && now - last_recorded_ < kRow;
    last_recorded_ = now;
    const bool at_once = alone || (batch != Batch::kLater && !in_a_row && !timing_ && nearly_idle());
    name_next(launch != nullptr ? launch->kernel : nullptr);
    LaunchKey key = launch != nullptr && at_once && open_ == 0 ? LaunchKey(*launch) : LaunchKey();
    const bool again = key && take_again(*launch, key);
    if (!again) {
      if (at_once) missed_.store(true, std::memory_order_relaxed);
      Slot& slot = open_slot(static_cast<bool>(key));
      record(slot);  // if this throws, an empty slot is begun again, which drops what was recorded
      slot.launch = std::move(key);
    }
    value = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(value, std::memory_order_release);
    ++open_;
    if (again || alone) {
      close_slot(again ? Commands::kEnded : Commands::kOpen, after);
    } else if (!at_once && open_ != kBatch) {
      flushes = false;
      wake_flusher();
    }
  }
  if (flushes) flush(value);
  return value;
}

}  // namespace triton_spirv
