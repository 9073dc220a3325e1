// A Vulkan device: buffers, work that goes to one queue in order, and copies that go to another.
//
// The timeline is a semaphore. Each submission to the driver costs the host and the device some 10 µs. Pieces of work
// that follow each other closely are therefore gathered in one command buffer, and a thread, the flusher, submits it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "device.h"
#include "vulkan/job_times.h"
#include "vulkan/later.h"
#include "vulkan/slot.h"
#include "vulkan/vulkan_api.h"
#include "vulkan/vulkan_buffer.h"

namespace triton_spirv {

// The stages that kernels and copies run in, and how they touch memory.
constexpr VkPipelineStageFlags kWorkStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWorkWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kWorkReads = kWorkWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

// A semaphore that another API signals: its number, and an opaque file descriptor, which the caller owns.
struct Incoming {
  std::size_t number;
  int fd;
};

// The queue of all work, and the transfer queue, which is the same one if the device has no other.
struct Queues {
  VkQueue work;
  uint32_t work_family;
  VkQueue copies;
  uint32_t copies_family;
};

// Precautions with a driver (field_reports.py).
struct Care {
  double job_ns = 0;               // a submission is to take no longer; 0: any time
  bool drains = false;             // each submission waits for the one before
  bool holds_allocations = false;  // no allocation is larger than maxMemoryAllocationSize
  bool asks_budget = false;        // large allocations ask for the memory budget first
};

class VulkanDevice final : public Device {
 public:
  // The caller owns the handles, and destroys them after close(). `shares_semaphores`: whether
  // VK_KHR_external_semaphore_fd is enabled. `timeout_ns`: as limit_waits() has it. `care`: what its driver needs.
  VulkanDevice(VkInstance instance, VkPhysicalDevice physical, VkDevice device, const Queues& queues,
               VkPipelineLayout layout, bool host_addresses, bool shares_semaphores, uint64_t timeout_ns,
               const Care& care);
  ~VulkanDevice() override;

  bool stop() override;
  bool close() override;

  std::unique_ptr<Buffer> allocate(uint64_t bytes, MemoryKind kind) override { return allocate_buffer(bytes, kind); }
  // Imports host memory as a buffer. Pointer and size are multiples of minImportedHostPointerAlignment.
  std::unique_ptr<Buffer> import_host(void* pointer, uint64_t bytes) override;
  // Imports memory that another API exported as an opaque file descriptor. The device then owns the descriptor.
  std::unique_ptr<Buffer> import_fd(int fd, VkDeviceSize bytes);
  // Joins the memory of several imported buffers into one range of device addresses. The result must be freed before
  // the parts. Throws std::runtime_error if the device cannot do this.
  std::unique_ptr<Buffer> join(const std::vector<const Buffer*>& parts);

  double expected(KernelHandle kernel, uint64_t programs) const override;
  void expect(KernelHandle kernel, uint64_t programs, double seconds) override;
  uint64_t parts(KernelHandle kernel, uint64_t programs) const override;
  void forget(KernelHandle kernel) override;
  // Submits a dispatch with a grid of no programs, at which a driver that compiles late compiles the pipeline.
  uint64_t launch_nothing(KernelHandle kernel);
  std::shared_ptr<Recorded> make_recorded() override;
  void wait(uint64_t value) override;
  void wait_copies(uint64_t value) override;

  void upload(Address address, const std::byte* host, uint64_t bytes) override;
  void download(std::byte* host, Address address, uint64_t bytes) override;
  void copy(Address to, Address from, uint64_t bytes) override;
  void fill(Address address, uint64_t bytes, uint32_t word) override;
  bool owns(Address address, uint64_t bytes) override;
  bool overlaps(Address address, uint64_t bytes) override;

  bool has_timestamps() const override { return timestamp_bits_ != 0; }
  Timestamp acquire_timestamp() override;
  void release_timestamp(const Timestamp& timestamp) override;
  void write_timestamp(Timestamp& timestamp, Stream* stream) override;
  double elapsed(const Timestamp& from, const Timestamp& to) override;

  // Exports the timeline for another API as an opaque file descriptor, which the caller owns. Throws if the device
  // lacks VK_KHR_external_semaphore_fd.
  int export_timeline() { return export_semaphore(timeline_); }
  // Makes a semaphore that one queue of another API signals with rising values. Throws as export_timeline() does.
  Incoming make_incoming();

  // After how many nanoseconds in which no submission ended a wait fails. Time in which the first of them waits for
  // another API does not count.
  void limit_waits(uint64_t timeout_ns) { timeout_ns_ = timeout_ns; }
  void set_host_addresses(bool holds) { host_addresses_ = holds; }
  // Whether the validation layer is on. Layers of 2023 stall for 10 s if one thread asks for the timeline's value while
  // another thread asks or submits. With the layer, only one such call runs at a time, and none of them blocks.
  static inline std::atomic<bool> validated{false};

 protected:
  uint64_t submit_launch(const Dispatch& dispatch, const ExternalWait* after) override;
  void run_now(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used) override;
  // Submits all work up to `value` to the driver.
  void flush(uint64_t value) override;
  uint64_t look() override;
  bool look_copies(uint64_t value) override;
  bool overlaps_copies() const override { return !care_.drains; }
  uint64_t copy_in(Address address, uint64_t bytes) override;
  [[noreturn]] void throw_lost(const std::string& message) const override;
  void tell() override;
  bool is_refused(KernelHandle kernel) override;

 private:
  friend class VulkanBuffer;
  friend class VulkanPipeline;
  friend class RecordedCommands;
  struct Location {
    VkBuffer buffer;
    VkDeviceSize offset;
    bool on_host;
    const std::byte* read;  // where the host reads it
  };
  struct Chunk {
    std::unique_ptr<VulkanBuffer> buffer;
    uint64_t value = 0;
  };

  class Transfer;

  enum class Batch { kWithOthers, kAlone, kLater };
  // `launch`: what `record` records, if its commands may be submitted again.
  template <typename Record>
  uint64_t submit(Record&& record, Batch batch = Batch::kWithOthers, const SemaphoreWait* after = nullptr,
                  const Dispatch* launch = nullptr);
  // These are called with ring_mutex_ held.
  // `again`: the slot's commands may be submitted more than once.
  Slot& open_slot(bool again);
  VkResult begin(Slot& slot, VkCommandBufferUsageFlags usage);
  // Moves the finished commands with this key, and for a launch its arguments, to the next slot. Returns false if no
  // slot has such commands.
  bool take_again(const CommandsKey& key, const Dispatch* launch);
  enum class Commands { kOpen, kEnded };
  void close_slot(Commands commands = Commands::kOpen, const SemaphoreWait* after = nullptr, uint64_t copies = 0);
  // The value of the transfer queue's timeline that a stream's next work has to wait for; 0 if earlier work did.
  uint64_t copies_before(const Stream* stream) const {
    const uint64_t copies = point(stream).copies;
    return copies > ordered_copies_ ? copies : 0;
  }
  // What is known of a dispatch's time, in nanoseconds, on a device whose submissions are bounded. Tells once of a
  // kernel whose launch alone takes too long.
  double bounded_estimate(const Dispatch& dispatch);
  // Whether the open command buffer has no time left for another `expected` nanoseconds.
  bool is_full_for(double expected) const { return is_bounded() && open_ != 0 && open_ns_ + expected > care_.job_ns; }
  void begin_timing(Slot& slot);
  void end_timing(Slot& slot, bool recorded);
  // Takes the time of a slot's commands, if they are done and were not learnt from.
  void learn(Slot& slot);
  void wake_flusher();
  // Begins the next command buffer while the device works, if the last launch had to be recorded.
  void begin_ahead();
  // Waits, without the mutex, for a command buffer to record into, with nothing that must be recorded before. `alone`:
  // it must be a new one.
  void wait_for_slot(std::unique_lock<std::mutex>& ring, bool alone, const Dispatch* launch);
  // The value of the last work that is recorded. What is left for later has those behind it.
  uint64_t recorded() const { return submitted_.load(std::memory_order_relaxed) - later_.size(); }
  // Whether a launch's pipeline is made. Throws if it was refused.
  static bool is_made(const Dispatch* launch);
  void tell_this_thread();
  // Waits, without the mutex, until `is_ready()`, which `do_later()` brings about. Throws as tell() does if `tells`.
  template <typename IsReady>
  void await_later(std::unique_lock<std::mutex>& ring, IsReady&& is_ready, bool tells = true);
  // None of what is left for later will run, because of its first work.
  void drop_later(const std::string& why);
  // Leaves work for later, if it has to wait for a pipeline: its own, or that of work before it. Returns its value; 0
  // if it is to be recorded now, if need be after a wait. `work` is called for it, in another thread, and submits once.
  uint64_t leave(const Dispatch* launch, std::function<void()> work);
  // Does what was left for later, up to the first launch without a pipeline.
  void do_later();
  // Waits until the launch's pipeline is made. Throws as tell() does, or if it was refused.
  void await_pipeline(const Dispatch& launch);
  // Waits until all work up to `value` is recorded. Throws as tell() does.
  void catch_up(uint64_t value);
  void flush_locked(uint64_t value);  // with queue_mutex_ held
  void hand_over(const Submission& submission);
  // Calls vkQueueSubmit(), with queue_mutex_ held. Waits without a semaphore are left out.
  void submit_to(VkQueue queue, VkCommandBuffer commands, std::initializer_list<SemaphoreWait> waits,
                 const SemaphoreWait& signal);
  // Submits what `record(commands)` records to the transfer queue. It uses the device memory at `address`.
  template <typename Record>
  Point submit_aside(Stream& stream, Address address, uint64_t bytes, Record&& record);
  // Calls vkWaitSemaphores() for a timeline, of which `is_reached(value)` asks.
  template <typename IsReached>
  VkResult wait_semaphore(VkSemaphore timeline, uint64_t value, uint64_t timeout_ns, IsReached&& is_reached);
  VkResult wait_semaphore(uint64_t value, uint64_t timeout_ns);
  std::unique_lock<std::mutex> layer_guard() {
    return validated ? std::unique_lock<std::mutex>(layer_mutex_) : std::unique_lock<std::mutex>();
  }
  // Whether the first submission that is not done waits for what another API has not done yet.
  bool waits_outside();
  // As wait(), but does not count as a sign that the host wants results.
  void wait_until(uint64_t value);
  // The last copy on the transfer queue that work up to `value` waits for; 0 if none is under way.
  uint64_t copies_before_work(uint64_t value);
  // A timeline's value, which becomes that of `reached`.
  uint64_t counter(VkSemaphore timeline, const std::atomic<uint64_t>& submitted, std::atomic<uint64_t>& reached);
  // Waits for a timeline, of which `is_reached(value)` asks. The time limit begins anew where `goes_on(whether it has
  // passed)`. After it throws, with (the subject, what it may still do) of `what()`.
  template <typename IsReached, typename GoesOn, typename What>
  void poll(VkSemaphore timeline, uint64_t value, IsReached&& is_reached, GoesOn&& goes_on, What&& what);
  // The kernels that the device may be running, as an error's subject: "add.py:7: kernel 'add'".
  std::string running() const;
  // What the driver says of a lost device (VK_EXT_device_fault), as the end of a sentence; "" if it says nothing.
  std::string fault() const;
  // Whether the driver has less than two submissions to work on.
  bool nearly_idle() { return seen(queued_before_.load(std::memory_order_acquire)); }
  // The flusher's loop: submits recorded work when the device is about to run out of work.
  void flush_when_idle();
  void stop_flusher();
  void make_ring();
  void finish();
  VkSemaphore make_timeline();
  int export_semaphore(VkSemaphore semaphore);
  // The semaphore that another API signals, as submissions wait for it.
  SemaphoreWait incoming(const ExternalWait& wait);
  // Records a barrier: the next commands begin when all earlier work is done, and see what it wrote.
  void order(Slot& slot);
  void record_dispatch(Slot& slot, const Dispatch& dispatch);
  // Called when the pipeline is bound. `block`: holds the argument block of an indirect dispatch.
  void push_and_dispatch(VkCommandBuffer commands, const Dispatch& dispatch, const VulkanBuffer* block);
  // For RecordedCommands.
  std::pair<VkCommandPool, VkCommandBuffer> add_recording();
  void remove_recording(VkCommandPool pool);
  VkCommandBuffer add_commands(VkCommandPool pool);
  uint64_t submit_recording(const std::vector<VkCommandBuffer>& commands);
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes, VkPipelineStageFlags to,
               VkAccessFlags reads);
  // Ends each submission: what earlier work wrote is visible to a host that waits for it.
  void to_host(VkCommandBuffer commands) {
    barrier(commands, kWorkStages, kWorkWrites, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  }
  void fail(const char* function, VkResult result);
  void checked(VkResult result, const char* function) {
    if (result != VK_SUCCESS) fail(function, result);
  }
  Location find(VkDeviceAddress address, VkDeviceSize bytes);
  // Throws if an allocation of so many bytes of the memory type cannot be trusted to work.
  void check_room(VkDeviceSize bytes, uint32_t type) const;
  // The allowed memory types that are not in the heap of `type`.
  uint32_t in_other_heaps(uint32_t allowed, uint32_t type) const;
  uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred) const;
  // The memory properties that a buffer needs.
  struct Wanted {
    VkMemoryPropertyFlags required;
    VkMemoryPropertyFlags preferred;
    bool mapped = false;
    bool read = false;  // device memory that the host reads
  };
  // Memory of another owner: structures for the buffer and for the allocation, and the allowed memory types.
  // `taken`: set when the driver has taken the memory over. `on_host`: it is the host's.
  struct External {
    const void* buffer;
    const void* memory;
    uint32_t types;
    bool* taken = nullptr;
    bool on_host = false;
  };
  std::unique_ptr<VulkanBuffer> bind(VkBuffer buffer, uint32_t type, VkDeviceSize bytes, VkDeviceSize allocation,
                                     const Wanted& wanted, const External* external);
  std::unique_ptr<VulkanBuffer> allocate_buffer(VkDeviceSize bytes, MemoryKind kind);
  // Makes a buffer without memory. Throws if the device does not allow buffers of this size.
  VkBuffer create_buffer(VkDeviceSize bytes, const void* next, VkBufferCreateFlags flags);
  std::unique_ptr<VulkanBuffer> make_buffer(VkDeviceSize bytes, const Wanted& wanted,
                                            const External* external = nullptr);
  // Registers a buffer that is bound to its memory as a buffer of this device.
  std::unique_ptr<VulkanBuffer> adopt(VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize bytes, void* host,
                                      bool on_host = false, bool read = false);
  void destroy(VkBuffer buffer, VkDeviceMemory memory);
  bool imports_into_sparse(VkPhysicalDevice physical) const;
  void bind_sparse(VkBuffer buffer, const std::vector<VkSparseMemoryBind>& parts);

  InstanceFunctions instance_functions_;
  VkPhysicalDevice physical_;
  DeviceFunctions vk_;
  VkDevice device_;
  const Queues queues_;
  VkPipelineLayout layout_;
  std::atomic<uint64_t> timeout_ns_;
  bool shares_semaphores_;
  bool on_host_ = false;  // the device is this machine's CPU
  uint32_t timestamp_bits_ = 0;
  bool binds_sparse_ = false;           // the queue can bind sparse memory, also imported memory
  float timestamp_period_ = 0;          // nanoseconds of a tick
  VkDeviceSize most_buffer_bytes_ = 0;  // maxBufferSize
  VkDeviceSize most_allocation_bytes_ = ~VkDeviceSize{0};
  bool shares_memory_with_host_ = false;  // an integrated GPU: all heaps are the same memory
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

  // Commands of the transfer queue, and the value when they are done.
  struct Aside {
    VkCommandBuffer commands;
    uint64_t value;
  };
  // What runs on the transfer queue: behind which work, and on which device memory.
  struct Copy {
    uint64_t value, after;
    Address address;
    uint64_t bytes;
  };
  VkSemaphore copies_ = VK_NULL_HANDLE;  // the timeline of the transfer queue
  VkCommandPool copies_pool_ = VK_NULL_HANDLE;
  std::vector<Aside> aside_;                 // with queue_mutex_
  std::atomic<uint64_t> ordered_copies_{0};  // closed command buffers come after these
  std::mutex copies_mutex_;
  std::deque<Copy> pending_;  // with copies_mutex_

  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::array<Slot, kRing> ring_;
  std::size_t next_slot_ = 0;               // the slot that records now or next
  std::size_t closed_count_ = 0;            // the slots before it that are closed and not yet submitted
  std::atomic<uint64_t> flushed_{0};        // the driver has the work up to this value
  std::atomic<uint64_t> queued_before_{0};  // flushed_ before the last submission
  std::size_t open_ = 0;                    // recordings in the open command buffer, ring_[next_slot_]
  KernelHandle bound_ = 0;                  // in the open command buffer
  bool ordered_ = false;                    // it ends with a barrier, followed by timestamps at most
  bool timing_ = false;  // one of its timestamps has no partner: the timed work is submitted with both
  // The kernels of the last pieces of work, by the timeline's value. Null for work that is not a dispatch.
  const Care care_;
  JobTimes times_;
  double open_ns_ = 0;                        // what the open command buffer should take, if submissions are bounded
  VkQueryPool job_queries_ = VK_NULL_HANDLE;  // two of each slot
  std::set<const std::string*> told_;         // kernels whose launches take too long, with ring_mutex_
  static constexpr std::size_t kNamed = 2 * kRing * kBatch;
  std::vector<std::atomic<const std::string*>> named_{kNamed};
  void name_next(const std::string* kernel) {  // with ring_mutex_
    named_[(recorded() + 1) % kNamed].store(kernel, std::memory_order_relaxed);
  }
  std::atomic<bool> waited_{true};   // since the last recording
  std::atomic<bool> missed_{false};  // a launch that was submitted at once had to be recorded
  std::chrono::steady_clock::time_point last_recorded_{};
  std::thread flusher_;
  std::condition_variable wake_;
  bool flusher_awake_ = false;
  bool closing_ = false;
  std::set<VkCommandPool> recording_pools_;  // with ring_mutex_

  // With ring_mutex_, as is what pipelines say.
  std::list<Later> later_;
  std::list<Dropped> dropped_;
  std::thread::id doing_;               // the thread that does what was left for later
  std::condition_variable later_done_;  // some of it was done
  std::atomic<unsigned> awaiting_{0};   // threads that wait for it: nothing is added meanwhile

  std::mutex buffers_mutex_;
  struct Range {
    VkDeviceSize bytes;
    VkBuffer buffer;
    VkDeviceMemory memory;
    bool on_host;           // it is the host's
    const std::byte* read;  // where the host reads device memory; null for other memory
  };
  std::multimap<VkDeviceAddress, Range> buffers_;      // host memory may be imported twice at one address
  std::vector<std::unique_ptr<VulkanBuffer>> parked_;  // at addresses of memory that is gone

  using Chunks = std::array<Chunk, 2>;
  std::timed_mutex transfer_mutex_;              // the chunks
  std::atomic<std::thread::id> transferring_{};  // the thread that holds it
  Chunks chunks_;

  // A query of the device. A timestamp's slot is its number among those of all pools.
  struct Query {
    VkQueryPool pool;
    uint32_t index;
  };
  Query query_of(const Timestamp& timestamp);  // takes queries_mutex_
  std::mutex queries_mutex_;
  std::vector<VkQueryPool> query_pools_;
  std::deque<Timestamp> free_queries_;  // the query that was released first is in front
};

template <typename IsReady>
void VulkanDevice::await_later(std::unique_lock<std::mutex>& ring, IsReady&& is_ready, bool tells) {
  if (doing_ == std::this_thread::get_id()) return;
  ++awaiting_;
  const std::shared_ptr<void> waits(nullptr, [this](void*) { --awaiting_; });
  for (;;) {
    if (tells) tell_this_thread();
    if (is_ready()) return;
    check_running();
    if (later_done_.wait_for(ring, std::chrono::nanoseconds(kSleepNs)) == std::cv_status::no_timeout) continue;
    ring.unlock();
    if (while_waiting != nullptr) while_waiting();
    ring.lock();
  }
}

// Records commands with `record(slot)` into the open command buffer. The buffer is submitted at once if it is full, if
// `batch` says so, or if the host waited since the last recording (or some time has passed) and the device has less
// than two submissions to work on. Otherwise the flusher submits it. A launch that is submitted at once and equals an
// earlier one that is done reuses that launch's commands: recording costs about as much as submitting.
template <typename Record>
uint64_t VulkanDevice::submit(Record&& record, Batch batch, const SemaphoreWait* after, const Dispatch* launch) {
  check_usable();  // before the mutex, which a thread of the parent may hold in a forked child
  refuse_while_recording();
  const double expected = is_bounded() && launch != nullptr ? bounded_estimate(*launch) : 0;
  const std::shared_ptr<Stream> stream = Stream::current(*this);
  const uint64_t copies = copies_before(stream.get());
  const bool alone = batch == Batch::kAlone || after != nullptr || copies != 0 || expected == JobTimes::kUnknown;
  bool flushes = true;
  uint64_t value;
  {
    std::unique_lock<std::mutex> ring(ring_mutex_);
    do wait_for_slot(ring, alone || is_full_for(expected), launch);
    while (is_full_for(expected));
    check_usable();
    if (is_bounded()) {
      for (Slot& slot : ring_) learn(slot);
    }
    const auto now = std::chrono::steady_clock::now();
    const bool in_a_row = !waited_.exchange(false, std::memory_order_relaxed) && now - last_recorded_ < kRow;
    last_recorded_ = now;
    const bool at_once = alone || (batch != Batch::kLater && !in_a_row && !timing_ && nearly_idle());
    name_next(launch != nullptr ? launch->name : nullptr);
    CommandsKey key;
    if (at_once && open_ == 0 && launch != nullptr) key = CommandsKey(*launch);
    const bool again = key && take_again(key, launch);
    if (!again) {
      if (at_once) missed_.store(true, std::memory_order_relaxed);
      Slot& slot = open_slot(static_cast<bool>(key));
      record(slot);  // if this throws, an empty slot is begun again, which drops what was recorded
      slot.key = std::move(key);
    }
    value = recorded() + 1;
    if (waiting_ != 0 && doing_ == std::this_thread::get_id())
      later_.pop_front(), --waiting_;
    else
      submitted_.store(value, std::memory_order_release);
    ++open_;
    if (is_bounded() && expected != JobTimes::kUnknown) open_ns_ += expected;
    if (again || alone) {
      close_slot(again ? Commands::kEnded : Commands::kOpen, after, copies);
    } else if (!at_once && open_ != kBatch) {
      flushes = false;
      wake_flusher();
    }
  }
  if (stream) stream->wait_for({value, 0});
  if (flushes) flush(value);
  return value;
}

}  // namespace triton_spirv
