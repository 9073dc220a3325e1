// A device as the launch path sees it: memory, and work that runs in order along a timeline.
//
// Every piece of work has the next value of the timeline. Work begins when all earlier work is done, so it sees
// everything that earlier work wrote. What is common to all kinds of devices is here; a folder for each kind, such as
// vulkan/, has the rest.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "buffer.h"
#include "device_error.h"
#include "dispatch.h"
#include "shared.h"
#include "stream.h"

namespace triton_spirv {

class Recorded;
class Recording;

class USED_BY_TORCH Device : public std::enable_shared_from_this<Device> {
 public:
  struct Limits {
    std::array<uint32_t, 3> grid;  // the most programs on each axis of a dispatch
    uint32_t block_bytes;          // the most bytes of an argument block that a kernel does not read from a buffer
  };

  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Limits& limits() const { return limits_; }
  // Whether host addresses are device addresses. A dispatch may then take any host pointer.
  bool host_addresses() const { return host_addresses_; }

  // Refuses launches and allocations from now on, and waits for all work. Returns false if work never ended, and in a
  // forked child. If a signal handler throws during the wait, the exception is passed on and nothing has changed.
  virtual bool stop() = 0;
  // Does the same, then waits for calls of other threads and destroys what this object made. Returns false, with
  // nothing destroyed, also if another thread's call does not return.
  virtual bool close() = 0;
  // Waits a limited time for calls of other threads, and says whether all have returned. Used for a device whose work
  // never ended: those calls raise an error that says so.
  bool calls_returned() const;

  virtual std::unique_ptr<Buffer> allocate(uint64_t bytes, MemoryKind kind) = 0;
  // Makes host memory a buffer. Throws std::runtime_error if the device cannot use it. Not called if host addresses are
  // device addresses.
  virtual std::unique_ptr<Buffer> import_host(void* pointer, uint64_t bytes);

  // All functions below are thread-safe. Call them without the GIL.

  // Whether work that is submitted together may take a limited time only. The three that follow are for such devices.
  bool is_bounded() const { return bounded_; }
  // Seconds that a launch of so many programs should take, infinity if nothing is known of its kernel.
  virtual double expected(KernelHandle, uint64_t) const { return 0; }
  // Takes what is computed of a kernel that did not run yet.
  virtual void expect(KernelHandle, uint64_t, double) {}
  // Into how many launches one of so many programs has to be divided.
  virtual uint64_t parts(KernelHandle, uint64_t) const { return 1; }

  // Whether the kernel was refused after launches of it had returned. No launch of it will run.
  bool refuses(KernelHandle kernel) { return waiting_ != 0 && is_refused(kernel); }
  // Forgets launches of a kernel that will be destroyed next. None of them may be running.
  virtual void forget(KernelHandle) {}
  // Submits the dispatch, or adds it to the thread's recording. Returns the timeline's value when the dispatch is done.
  uint64_t launch(const Dispatch& dispatch, const ExternalWait* after = nullptr);
  // Takes host memory that is the caller's own for device memory, where that is the same. `owner` is released when what
  // this returns has been, and no submitted work can use the memory any more.
  virtual std::shared_ptr<void> adopt(Address address, uint64_t bytes, std::shared_ptr<void> owner);
  // Runs the dispatch and returns true, where that is known to take less time than Python's lock may be held for, and
  // it is to be neither recorded nor queued.
  virtual bool launched_at_once(const Dispatch&) { return false; }
  // Runs the dispatch with copies around it, and returns when it is done; or adds it to the thread's recording. If it
  // throws while the dispatch may still run, it keeps what `used` returns. The caller keeps what the copies use.
  void run(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used = {});
  // Makes what launches are recorded in, to run again.
  virtual std::shared_ptr<Recorded> make_recorded() = 0;

  // Returns when the timeline has reached `value`. Throws a DeviceError after the time limit.
  virtual void wait(uint64_t value) = 0;
  // The same for what runs on the transfer queue, and for both.
  virtual void wait_copies(uint64_t) {}
  void await(const Point& point) {
    wait(point.work);
    wait_copies(point.copies);
  }
  // Returns when all submitted work of all streams is done, and what it wrote to mapped memory is visible to the host.
  void synchronize() { await({submitted(), copied()}); }
  // The timeline's value when the last submission is done, and that of the transfer queue.
  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  uint64_t copied() const { return copied_.load(std::memory_order_acquire); }
  // Whether the timeline has reached `value`. Throws as check_usable() does if the timeline can no longer reach it.
  bool done(uint64_t value);
  bool done(const Point& point) { return done(point.work) && done_copies(point.copies); }

  // What a stream, the first one for null, has submitted and waited for.
  Point point(const Stream* stream) const;
  // What a stream, the first one for null, does later comes after `point`.
  void order(Stream* stream, const Point& point);
  // This thread takes idle memory, which work up to `freed` may use. What its stream does later comes after that, and
  // after copies that use the memory.
  void take_over(Address address, uint64_t bytes, uint64_t freed);

  // Keeps what is used until `point`, until let_go() is called after that. Returns false and keeps nothing if the
  // point is reached or belongs to another process.
  bool keep(const Point& point, std::shared_ptr<void> used);
  bool keep(uint64_t value, std::shared_ptr<void> used) { return keep(Point{value, 0}, std::move(used)); }
  // Releases what is kept for finished work. Any object may be destroyed here: so it is called without a mutex, and
  // with the GIL if Python objects may be kept.
  void let_go() {
    if (keeps_.load(std::memory_order_relaxed)) let_go_of_done();
  }

  // These copy between host memory and device memory, in order with launches. Device addresses must lie in a buffer of
  // this device. The host memory of an upload may be used again at once.
  virtual void upload(Address address, const std::byte* host, uint64_t bytes) = 0;
  virtual void download(std::byte* host, Address address, uint64_t bytes) = 0;
  virtual void copy(Address to, Address from, uint64_t bytes) = 0;
  // Fills memory with a 32-bit word. Address and size are multiples of 4.
  virtual void fill(Address address, uint64_t bytes, uint32_t word) = 0;
  // Whether [address, address + bytes) lies in one buffer of this device.
  virtual bool owns(Address address, uint64_t bytes) = 0;
  // Whether it shares a byte with one.
  virtual bool overlaps(Address address, uint64_t bytes) = 0;

  virtual bool has_timestamps() const { return false; }
  // Returns a timestamp that can be written once. The four are for devices that have timestamps.
  virtual Timestamp acquire_timestamp();
  virtual void release_timestamp(const Timestamp&) {}
  // Has the device write the time at which all earlier work of the stream, the first one for null, is done.
  virtual void write_timestamp(Timestamp& timestamp, Stream* stream);
  // Nanoseconds from one timestamp to another. The work before both must be done.
  virtual double elapsed(const Timestamp& from, const Timestamp& to);

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
  static bool is_gone(Address address, uint64_t bytes);
  // Throws std::runtime_error if this thread is making a recording, which would not contain what the thread does now.
  void refuse_while_recording() const;
  // Called now and then during a wait. It may throw.
  static inline void (*while_waiting)() = nullptr;

 protected:
  friend class Recording;

  explicit Device(bool host_addresses);

  // As launch(), for a dispatch that is not recorded. Throws if the device has no semaphore to wait for.
  virtual uint64_t submit_launch(const Dispatch& dispatch, const ExternalWait* after) = 0;
  // As run(), for a dispatch that is not recorded.
  virtual void run_now(const Dispatch& dispatch, const std::vector<StagedCopy>& copies, const Used& used) = 0;
  // Sees to it that the timeline will reach `value`, if work is handed over later than it is submitted.
  virtual void flush(uint64_t) {}
  // Sets reached_ to the timeline's current value, and returns it.
  virtual uint64_t look() = 0;
  // Whether the transfer queue's timeline has reached `value`.
  virtual bool look_copies(uint64_t) { return true; }
  // Whether streams have copies that run beside work.
  virtual bool overlaps_copies() const { return false; }
  // Throws what this thread has not been told of work that will never run.
  virtual void tell() {}
  virtual bool is_refused(KernelHandle) { return false; }
  // The last copy that runs beside work and uses the memory; 0 if there is none.
  virtual uint64_t copy_in(Address, uint64_t) { return 0; }
  // Throws the error of a device that is lost.
  [[noreturn]] virtual void throw_lost(const std::string& message) const;

  // As done(), for a device that is known not to be destroyed.
  bool seen(uint64_t value);
  bool passed(const Point& point) const { return reached_ >= point.work && copies_end_ >= point.copies; }
  // As check_usable(), but does not throw while the device is being closed.
  void check_running() const;
  // A kind whose devices can be used in a forked child calls this there.
  void adopt_fork();
  // Ends every error message after which the device is abandoned.
  static constexpr const char* kOpenedAgain =
      "; the next use of the device opens it again, and tensors, graphs and loaded files of before are gone";

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
  // The same of a call that needs the device: the constructor throws as check_usable() does.
  struct Work : Use {
    explicit Work(Device& device) : Use(device) { device.check_usable(); }
  };

  Limits limits_{};  // set by the constructor of the kind
  bool host_addresses_;
  bool bounded_ = false;
  std::atomic<uint64_t> submitted_{0};               // the timeline's value when all submitted work is done
  std::atomic<uint64_t> reached_{0};                 // the highest value seen so far
  std::atomic<uint64_t> copied_{0}, copies_end_{0};  // the same of the transfer queue
  std::atomic<bool> closed_{false};                  // refuses new work
  std::atomic<bool> stopped_{false};                 // closed, and all work is done
  std::atomic<bool> gone_{false};                    // stopped and being destroyed: nothing may be used any more
  std::atomic<bool> stuck_{false};                   // work did not end in time
  std::atomic<bool> lost_{false};
  std::atomic<unsigned> uses_{0};
  // While it is 0, launches need not ask whether anything waits for a pipeline, or did not run (vulkan/later.cpp).
  std::atomic<std::size_t> waiting_{0};

 private:
  void let_go_of_done();
  bool done_copies(uint64_t value);

  unsigned fork_generation_;
  std::atomic<bool> left_{false};

  // Kept objects, with the value of the work that may use them. No other mutex is locked while kept_mutex_ is held.
  struct Kept {
    Point point;
    std::shared_ptr<void> used;
  };
  std::atomic<uint64_t> first_copies_{0};  // what the first stream comes after on the transfer queue
  std::mutex kept_mutex_;
  std::vector<Kept> kept_;
  std::atomic<bool> keeps_{false};  // kept_ is not empty
};

}  // namespace triton_spirv
