// A Vulkan device as the launch path sees it: buffers, and work that goes to one queue in order.
//
// Every piece of work has the next value of one timeline semaphore. Work begins when all before it is done, so whoever
// submits later sees what was written earlier. Handing work to the driver costs the host and the device some 10 µs each
// time, so pieces that come in a row are gathered in one command buffer, and a thread, the flusher, hands that over.
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

// A host range that is copied to the device before a dispatch and, where `write_back` is set, back after it.
struct StagedCopy {
  std::byte* host;      // first byte of the range
  VkDeviceSize bytes;   // of the range
  Buffer* staging;      // mapped; the range starts at its first byte
  Buffer* device;       // the kernel's copy
  VkDeviceSize offset;  // of the range in `device`
  bool write_back;
};

// What follows from an error after which a device is left.
constexpr const char* kOpenedAgain =
    "; the next use of the device opens it again, and tensors, graphs and loaded files of before are gone";

// The stages that kernels and copies run in, and how they touch memory.
constexpr VkPipelineStageFlags kWorkStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWorkWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kWorkReads = kWorkWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

// A semaphore that another API signals: its number, and an opaque file descriptor, which is the caller's.
struct Incoming {
  std::size_t number;
  int fd;
};

// A timestamp query of the device. Freed ones are used again.
struct Query {
  VkQueryPool pool;
  uint32_t index;
  uint64_t written;  // the timeline's value once it is written
};

class Recording;

// Gives what a dispatch uses, in whoever's hands that is.
using Used = std::function<std::shared_ptr<void>()>;

class Device : public std::enable_shared_from_this<Device> {
 public:
  // The handles belong to the caller, who destroys them after close(). `shares_semaphores`: whether the device has
  // VK_KHR_external_semaphore_fd enabled. `timeout_ns`: how long a wait may take.
  Device(VkInstance instance, VkPhysicalDevice physical, VkDevice device, VkQueue queue, uint32_t queue_family,
         VkPipelineLayout layout, bool host_addresses, bool shares_semaphores, uint64_t timeout_ns);
  ~Device();

  // Refuses launches and allocations from now on, and waits for all work. False where work never ended, or in a forked
  // child. Where a signal's handler throws while it waits, so does this, and nothing has happened.
  bool stop();
  // The same; then waits for calls of other threads and destroys what this object made. False, with nothing destroyed,
  // also where another thread does not come out of a call.
  bool close();
  // Waits for calls of other threads, for a limited time; whether all have returned. For a device whose work never
  // ended: they are told so.
  bool calls_returned() const;

  std::unique_ptr<Buffer> allocate(VkDeviceSize bytes, MemoryKind kind);
  // Host memory as a buffer; pointer and size are multiples of minImportedHostPointerAlignment.
  std::unique_ptr<Buffer> import_host(void* pointer, VkDeviceSize bytes);
  // Memory that another API exported as an opaque file descriptor, which is the device's from then on.
  std::unique_ptr<Buffer> import_fd(int fd, VkDeviceSize bytes);
  // The memory of several imported buffers, one behind the other in one range of device addresses. It must be freed
  // before they are. Throws std::runtime_error where the device cannot.
  std::unique_ptr<Buffer> join(const std::vector<const Buffer*>& parts);

  // All below are thread-safe; call them without the GIL.

  // Forgets launches of a pipeline that is destroyed next. None of them runs.
  void forget(VkPipeline pipeline);
  // Submits the dispatch and returns the value that the timeline has when it is done.
  uint64_t launch(const Dispatch& dispatch, const ExternalWait* after = nullptr);
  // Runs the dispatch with copies around it, and returns when it is done. Where it throws although the dispatch may run
  // on, it keeps what `used` gives; what the copies use is for the caller to keep.
  void run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used = {});
  // Returns when the timeline has reached `value`. Throws VulkanError after the time limit.
  void wait(uint64_t value);
  // Returns when everything that was submitted is done.
  void synchronize() { wait(submitted()); }
  // The same; what it wrote to mapped memory is then visible to the host.
  void synchronize_host();
  // The value of the last submission.
  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  // Whether the timeline has reached `value`. Throws as check_usable() where it has not yet, and never will.
  bool done(uint64_t value);

  // Keeps what work up to `value` may still use, until a later let_go() after that work. False, with nothing kept,
  // where it is done, or another process's.
  bool keep(uint64_t value, std::shared_ptr<void> used);
  // Lets go of what is kept for work that is done. Called with no mutex held, where the end of any object is welcome:
  // with the GIL, for those of Python.
  void let_go() {
    if (keeps_.load(std::memory_order_relaxed)) let_go_of_done();
  }

  // Copies between host memory and device memory at `address`, which must lie in a buffer of this device.
  void upload(VkDeviceAddress address, const std::byte* host, VkDeviceSize bytes);
  void download(std::byte* host, VkDeviceAddress address, VkDeviceSize bytes);
  void copy(VkDeviceAddress to, VkDeviceAddress from, VkDeviceSize bytes);
  // Repeats a 32-bit word; address and size are multiples of 4.
  void fill(VkDeviceAddress address, VkDeviceSize bytes, uint32_t word);
  // Whether [address, address + bytes) lies in one buffer of this device.
  bool owns(VkDeviceAddress address, VkDeviceSize bytes);

  bool has_timestamps() const { return timestamp_bits_ != 0; }
  // One that can be written, once.
  Query acquire_query();
  void release_query(const Query& query);
  // Writes the time when all earlier work is done.
  void write_timestamp(Query& query);
  // Nanoseconds from one timestamp to another; the submissions of both must be done.
  double elapsed(const Query& from, const Query& to);

  // The timeline as an opaque file descriptor, which is the caller's, for another API to import. Throws where the
  // device has no VK_KHR_external_semaphore_fd.
  int export_timeline() { return export_semaphore(timeline_); }
  // A semaphore that one queue of another API signals with rising values. Throws as export_timeline().
  Incoming make_incoming();
  // A wait for such a value.
  ExternalWait incoming(std::size_t number, uint64_t value);

  // Whether host addresses are device addresses, so that a dispatch may be given any host pointer.
  void set_host_addresses(bool holds) { host_addresses_ = holds; }
  bool host_addresses() const { return host_addresses_; }
  const VkPhysicalDeviceLimits& limits() const { return limits_; }
  // Throws if this process was forked from the one that made the device, or the device is lost or closed.
  void check_usable() const;
  // Whether this process was forked from the one that made the device.
  bool forked() const;
  // Whether it was lost, or work on it did not end in time: nothing runs on it any more.
  bool failed() const { return lost_ || stuck_; }
  // Its owner leaves it, failed as it is, to open another one. What tensors still hold of its memory is known from then
  // on as memory that is gone.
  void leave();
  // Whether one was, and whether the range meets memory of one.
  static bool any_left();
  static bool is_gone(VkDeviceAddress address, VkDeviceSize bytes);
  // Throws std::runtime_error where this thread is making a recording: what it does now would not be in it.
  void refuse_while_recording() const;
  // Whether the validation layer is on. Layers of 2023 stall for 10 s where one thread asks for the timeline's value
  // while another one does, or submits: then there is one such call at a time, and none that blocks.
  static inline std::atomic<bool> validated{false};
  // Called now and then while a wait lasts; may throw.
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

  // A call that touches the device's objects without a mutex: close() waits for its end. False where they are gone.
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
  // `launch`: what `record` records, where that may be handed over again.
  template <typename Record>
  uint64_t submit(Record&& record, Batch batch = Batch::kWithOthers, const ExternalWait* after = nullptr,
                  const Dispatch* launch = nullptr);
  // These are called with ring_mutex_ held.
  // `again`: its commands may be handed over more than once.
  Slot& open_slot(bool again);
  VkResult begin(Slot& slot, VkCommandBufferUsageFlags usage);
  // Has the next slot hold the commands of an earlier launch like this one, which are ended. False where there are
  // none.
  bool take_again(const Dispatch& launch, const LaunchKey& key);
  enum class Commands { kOpen, kEnded };
  void close_slot(Commands commands = Commands::kOpen, const ExternalWait* after = nullptr);
  void wake_flusher();
  // Where the last launch had to be recorded: begins the next command buffer while the device works.
  void begin_ahead();
  // Waits, without the mutex, until there is a command buffer to record into. `alone`: a new one.
  void wait_for_slot(std::unique_lock<std::mutex>& ring, bool alone);
  // Hands everything up to `value` to the driver.
  void flush(uint64_t value);
  void flush_locked(uint64_t value);  // with queue_mutex_ held
  void hand_over(const Submission& submission);
  // vkWaitSemaphores() on the timeline.
  VkResult wait_semaphore(uint64_t value, uint64_t timeout_ns);
  std::unique_lock<std::mutex> layer_guard() {
    return validated ? std::unique_lock<std::mutex>(layer_mutex_) : std::unique_lock<std::mutex>();
  }
  // wait(), but not a sign that the host wants results.
  void wait_until(uint64_t value);
  // done(), of a device that is known not to be destroyed.
  bool seen(uint64_t value);
  // The kernels that may be the one that the device works on, as an error's subject: "add.py:7: kernel 'add'".
  std::string running() const;
  // The timeline's value now.
  uint64_t look();
  // check_usable(), but for a device that is being closed.
  void check_running() const;
  void let_go_of_done();
  // Whether the driver has less than two submissions to work on.
  bool nearly_idle() { return seen(queued_before_.load(std::memory_order_acquire)); }
  // The flusher's life: submits what is recorded when the device is about to run out of work.
  void flush_when_idle();
  void stop_flusher();
  void make_ring();
  void finish();
  VkSemaphore make_timeline();
  int export_semaphore(VkSemaphore semaphore);
  // What is recorded next begins when all earlier work is done, and sees what that wrote.
  void order(Slot& slot);
  void record_dispatch(Slot& slot, const Dispatch& dispatch);
  // Behind the pipeline's binding; `block`: where the argument block of an indirect dispatch is.
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
  // The properties of memory that a buffer is to have.
  struct Wanted {
    VkMemoryPropertyFlags required;
    VkMemoryPropertyFlags preferred;
    bool mapped = false;
  };
  // Memory of another owner: structures for the buffer and for the allocation, and the memory types that it may have.
  // `taken`: is set once the driver has it.
  struct External {
    const void* buffer;
    const void* memory;
    uint32_t types;
    bool* taken = nullptr;
  };
  std::unique_ptr<Buffer> bind(VkBuffer buffer, uint32_t type, VkDeviceSize bytes, VkDeviceSize allocation, bool map,
                               const External* external);
  // Without memory. Raises where the device's buffers are smaller.
  VkBuffer create_buffer(VkDeviceSize bytes, const void* next, VkBufferCreateFlags flags);
  std::unique_ptr<Buffer> make_buffer(VkDeviceSize bytes, const Wanted& wanted, const External* external = nullptr);
  // The buffer, bound to its memory, as one of this device's.
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
  bool on_host_ = false;  // the device is this machine's processor
  std::atomic<bool> closed_{false};
  std::atomic<bool> stopped_{false};  // closed, with all work done
  std::atomic<bool> gone_{false};     // stopped, and being destroyed: nothing is used any more
  std::atomic<unsigned> uses_{0};
  std::atomic<bool> stuck_{false};  // work did not end in time
  std::atomic<bool> lost_{false};
  std::atomic<bool> left_{false};
  uint32_t timestamp_bits_ = 0;
  bool binds_sparse_ = false;  // the queue can, also memory that was imported
  VkPhysicalDeviceLimits limits_{};
  VkDeviceSize most_buffer_bytes_ = 0;  // maxBufferSize
  VkPhysicalDeviceMemoryProperties memory_{};

  // A sleep is cut into pieces of this length, so that Ctrl-C is heard.
  static constexpr uint64_t kSleepNs = 200'000'000;
  // While work comes in, the flusher looks this often whether the device runs out of it. Nobody has to wake it then: a
  // wake-up costs the launching thread more than recording a launch.
  static constexpr auto kNap = std::chrono::microseconds(30);
  static constexpr std::size_t kRing = 128;
  static constexpr std::size_t kBatch = 32;
  // Work that follows earlier work within this time, with no wait between them, is left to the flusher.
  static constexpr auto kRow = std::chrono::microseconds(100);
  // Order: queue_mutex_, then ring_mutex_. No wait for the device happens under ring_mutex_.
  std::mutex queue_mutex_;  // the queue: whoever has it hands over closed command buffers in their order
  std::mutex ring_mutex_;   // the ring and the command pool
  std::mutex layer_mutex_;  // taken last: see `validated`
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::vector<VkSemaphore> incoming_;  // with queue_mutex_
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::array<Slot, kRing> ring_;
  std::size_t next_slot_ = 0;           // records, or will
  std::size_t closed_count_ = 0;        // those before it that were not handed over yet
  std::atomic<uint64_t> submitted_{0};  // recorded; all up to flushed_ are with the driver
  std::atomic<uint64_t> flushed_{0};
  std::atomic<uint64_t> queued_before_{0};  // flushed_ before the last submission
  std::size_t open_ = 0;                    // recordings in the open command buffer, ring_[next_slot_]
  VkPipeline bound_ = VK_NULL_HANDLE;       // in the open command buffer
  bool ordered_ = false;                    // it ends with a barrier, behind which there are no more than timestamps
  bool timing_ = false;                     // of its timestamps one has no partner: what it times comes with both
  // Of the last pieces of work, by the timeline's value, the kernel; null where it is no dispatch.
  static constexpr std::size_t kNamed = 2 * kRing * kBatch;
  std::vector<std::atomic<const std::string*>> named_{kNamed};
  void name_next(const std::string* kernel) {  // with ring_mutex_
    named_[(submitted_.load(std::memory_order_relaxed) + 1) % kNamed].store(kernel, std::memory_order_relaxed);
  }
  std::atomic<bool> waited_{true};   // since the last recording
  std::atomic<bool> missed_{false};  // a launch that was handed over at once had to be recorded
  std::chrono::steady_clock::time_point last_recorded_{};
  std::thread flusher_;
  std::condition_variable wake_;
  bool flusher_awake_ = false;
  bool closing_ = false;
  std::atomic<uint64_t> reached_{0};         // the highest value that was seen
  std::set<VkCommandPool> recording_pools_;  // with ring_mutex_

  // What is kept, with the value of the work that may use it. Nothing else is locked while its mutex is held.
  struct Kept {
    uint64_t value;
    std::shared_ptr<void> used;
  };
  std::mutex kept_mutex_;
  std::vector<Kept> kept_;
  std::atomic<bool> keeps_{false};  // there is some

  std::mutex buffers_mutex_;
  struct Range {
    VkDeviceSize bytes;
    VkBuffer buffer;
    VkDeviceMemory memory;
  };
  std::multimap<VkDeviceAddress, Range> buffers_;  // host memory may be imported twice, at one address
  std::vector<std::unique_ptr<Buffer>> parked_;    // at addresses of memory that is gone

  using Chunks = std::array<Chunk, 2>;
  std::timed_mutex transfer_mutex_;              // the chunks
  std::atomic<std::thread::id> transferring_{};  // who has it
  Chunks chunks_;

  std::mutex queries_mutex_;
  std::vector<VkQueryPool> query_pools_;
  std::deque<Query> free_queries_;  // the one that was given back first in front
};

// Records commands with `record(slot)` into the open command buffer. That is handed over at once where the host waited
// since the last recording, or some time has passed, and the device has less than two submissions to work on; where the
// buffer is full; or where `batch` says so. Otherwise the flusher does it. A launch that is handed over at once, and is
// like an earlier one that is done, has the commands of that one: recording costs about as much as handing over.
template <typename Record>
uint64_t Device::submit(Record&& record, Batch batch, const ExternalWait* after, const Dispatch* launch) {
  check_usable();  // before the mutex: in a forked child it may be held by a thread that stayed in the parent
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
      record(slot);  // where this throws with nothing else in it, beginning it again drops what was recorded
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
