// Races between the programs of a launch: accesses of the same bytes of device memory by two programs, at least one of
// them to write and at least one of them not atomic, that nothing orders (backend/cpu/watching.py emits the calls).
//
// Programs run one after another on one thread, so what is found does not depend on how they interleave. Each access is
// an event; events are numbered in the order in which they happen, so those of one program follow each other. A cell of
// shadow memory for the smallest element that the kernel accesses has the events that accessed it last. Whether an
// event comes before what a program does now is told by FastTrack's clocks (Flanagan and Freund, PLDI 2009), with the
// fences and atomic operations of C11 (section 7.17.4): a release fence has later atomic writes of the program publish
// what it knows, an acquire fence takes what the addresses had that the program read atomically before.
//
// A kernel with atomic operations runs twice, in the two orders of its programs: in one of them a program that looks at
// a flag before it is set takes another path. What the first run wrote is undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu/kernel.h"
#include "cpu/vector_clock.h"

namespace triton_spirv::cpu {

class Pool;

// Kinds of accesses, as code passes them.
enum class Access : uint32_t { kRead, kWrite, kUpdate, kAtomicRead, kAtomicWrite, kCompareExchange };

// What two accesses are together, the gravest first.
enum class RaceKind : uint32_t { kRace, kBesideAtomic, kEqualValues, kNone };

// Two accesses that race: the later one, and the earlier one. Programs are numbers in the grid, x fastest.
struct Race {
  RaceKind kind = RaceKind::kNone;
  Access access{}, earlier{};
  uint32_t bytes = 0;
  uint64_t address = 0;
  uint64_t place = 0, earlier_place = 0;  // instructions of the kernel
  uint64_t program = 0, earlier_program = 0;
  uint64_t count = 0;  // how many accesses raced
};

class ProgramRaces {
 public:
  ProgramRaces();
  ~ProgramRaces();

  // Runs a launch of a kernel that is watched, and writes what was found into its report buffer. What Pool::run() says
  // of launches holds.
  void run(Pool& pool, Launch& launch);

  // Called by the launch's thread: a program begins; `number`: which one, in the order in which they run.
  uint64_t begin_program(uint64_t number);
  // An access, before it happens. Returns false if the run has to end here.
  bool access(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, Access kind,
              uint64_t place);
  void fence();
  // Whether what is written may have to be undone.
  bool undoes() const { return backwards_; }

 private:
  static constexpr uint32_t kCells = 4096;  // of a page
  // The last events that wrote a cell, updated it atomically and read it, and the last read of another program. In
  // front, those of the whole page: what no event of this run did is not looked for.
  struct Page {
    uint32_t last_writer, last_update, last_reader;
    uint32_t writer[kCells], update[kCells], reader[kCells], earlier[kCells];
  };
  // Neighbouring cells of a page.
  struct Piece {
    Page* page;
    uint32_t from, count;
  };
  // What an address has for programs that read it atomically. `added`, `read`: the stamp at which a program last added
  // to it, and read it.
  struct Published {
    VectorClock clock;
    uint64_t added = 0, read = 0;
  };
  // What is known only once an access has happened.
  struct Pending {
    uint64_t address, element;
    uint32_t bytes;
    bool exchanges;  // a compare-and-exchange, which publishes `published` if it stores; otherwise a race
    std::byte before[64];
    Race race;
    VectorClock published;
  };
  // What a run found, by kind.
  struct Found {
    Race races[static_cast<std::size_t>(RaceKind::kNone)];
  };
  struct Cached {
    uint64_t key = ~uint64_t{0};
    Page* page = nullptr;
  };
  struct CachedPublished {
    uint64_t address = 0;
    Published* published = nullptr;
  };
  struct CachedEvent {
    uint64_t place = 0;
    uint64_t stamp = 0;
    uint32_t event = 0;
  };

  void begin(const Launch& launch, bool backwards);
  void end();
  void undo();
  void tell(const Launch& launch, const Race& race) const;
  const Race& gravest(const Found& found) const;

  Page& page_of(uint64_t number);
  uint32_t event_of(uint64_t place);
  Published* published_at(uint64_t address);
  bool is_ignored(uint64_t begin, uint64_t end) const { return begin < ignored_end_ && end > ignored_begin_; }
  bool is_ordered(uint32_t event);
  void forget();
  void take();
  const VectorClock& released();
  bool conflicts(uint32_t event) { return event - first_ < program_first_ - first_ && !is_ordered(event); }
  bool repeats(uint64_t place, uint64_t address);
  bool is_run(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes) const;
  void access_plain(uint64_t begin, uint64_t end, uint32_t bytes, Access kind, uint32_t event);
  void access_atomic(uint64_t begin, uint32_t bytes, Access kind, uint32_t event);
  bool meets_others(const Piece& piece, Access kind);
  void note(const Piece& piece, Access kind, uint32_t event);
  // Looks at an element whose cells have events of other programs.
  void look(uint64_t begin, uint32_t bytes, Access kind, uint32_t event);
  void add(Race race);
  void settle();
  void keep(uint64_t begin, uint64_t end);

  // Shadow memory stays from launch to launch: events of earlier ones have lower numbers.
  std::unordered_map<uint64_t, Page*> pages_;
  std::vector<Cached> cached_;
  uint32_t next_event_ = 1;
  uint32_t first_ = 1;  // of this run

  // Of this run.
  unsigned shift_ = 0;  // a cell has 1 << shift_ bytes
  unsigned levels_ = 1;
  uint64_t programs_ = 0;
  bool backwards_ = false;
  uint64_t ignored_begin_ = 0, ignored_end_ = 0;
  std::vector<uint64_t> places_;  // of events, from first_ on
  std::vector<uint32_t> firsts_;  // the first event of each program
  std::vector<CachedEvent> cached_events_;
  uint64_t stamp_ = 0;                                 // events of one place are one up to the next release
  std::unordered_map<uint64_t, Published> published_;  // by the address of an atomic operation
  std::vector<CachedPublished> cached_published_;
  std::vector<Pending> pending_;
  Found found_;
  std::vector<std::byte> kept_;                         // what was there before
  std::vector<std::pair<uint64_t, uint64_t>> written_;  // address and bytes of that

  // Of the program that runs.
  uint32_t program_first_ = 1;
  uint32_t fenced_ = 1;  // the next event at its last fence
  // Nothing but the program changes what addresses have meanwhile, so that clocks are joined only where it is asked
  // what comes before what: most programs end before. `seen_`: what addresses had that were read since the last fence;
  // `acquired_`: before it; `replaced_`: of these, what was written over. `released_`: what was known at the last
  // fence, if it was asked for since; its last event then was `released_event_`.
  VectorClock clock_, released_;
  std::vector<const VectorClock*> seen_, acquired_;
  std::deque<VectorClock> replaced_;
  uint32_t released_event_ = 0;
  bool is_known_ = false;  // whether released_ is that
  uint32_t asked_ = 0;
  bool answer_ = false;
  uint64_t repeated_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> recent_;
};

// Runs programs first ... last-1 of a launch that is watched, in the order that it asks for.
void run_watched(const Launch& launch, uint64_t first, uint64_t last, std::byte* scratch);

}  // namespace triton_spirv::cpu
