#include "cpu/program_races.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cpu/faults.h"
#include "cpu/pool.h"
#include "triton_spirv/symbols.hpp"

namespace triton_spirv::cpu {
namespace {

constexpr std::size_t kCachedPages = 256, kCachedEvents = 256, kCachedPublished = 1024;
// Shadow memory beyond this is given back after a launch.
constexpr std::size_t kMostPages = 16384;  // of 64 KiB
// Accesses of places that the program has accessed in the same way shortly before, one after the other. So many are a
// program that waits for another one, which does not run meanwhile.
constexpr uint64_t kMostRepeated = 100000;
constexpr std::size_t kRecent = 64;
// Clocks that wait to be joined.
constexpr std::size_t kMostAcquired = 4096;
constexpr uint64_t kWord = 4;  // the smallest that atomic instructions access

thread_local ProgramRaces* watching = nullptr;

bool writes(Access kind) { return kind != Access::kRead && kind != Access::kAtomicRead; }
bool is_atomic(Access kind) { return kind >= Access::kUpdate; }

template <typename T>
void put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

// Of a vector of accesses, whether one is in the memory of this process: a fault of the kernel, if it is not.
void touch(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes) {
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!active[lane]) continue;
    (void)*reinterpret_cast<const volatile std::byte*>(places[lane]);
    (void)*reinterpret_cast<const volatile std::byte*>(places[lane] + bytes - 1);
  }
}

// What functions of System V's convention call is not part of them: Windows' compiler takes no cleaning up there.
[[gnu::noinline]] void watch(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, Access kind,
                             uint64_t place) {
  ProgramRaces* const here = watching;
  if (here == nullptr) return;
  if (kind == Access::kCompareExchange || (here->undoes() && writes(kind))) touch(places, active, lanes, bytes);
  bool goes_on = true;
  {
    const Unguarded held;
    goes_on = here->access(places, active, lanes, bytes, kind, place);
  }
  if (!goes_on) raise_fault("waits for another program", 0);
}

// Code of kernels calls these, the first from the place of the access.
TRITON_SPIRV_SYSTEM_V void watch_program(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes,
                                         uint32_t access) {
  const uint64_t after = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  watch(places, active, lanes, bytes, static_cast<Access>(access), after - 1);
}

[[gnu::noinline]] void order_program() {
  if (watching == nullptr) return;
  const Unguarded held;
  watching->fence();
}

}  // namespace

ProgramRaces::ProgramRaces()
    : cached_(kCachedPages), cached_events_(kCachedEvents), cached_published_(kCachedPublished), recent_(kRecent) {}

ProgramRaces::~ProgramRaces() {
  for (const auto& [number, page] : pages_) std::free(page);
}

void ProgramRaces::run(Pool& pool, Launch& launch) {
  Found backwards;
  launch.races = this;
  if (launch.kernel->watch().twice && launch.programs() > 1) {
    begin(launch, true);
    pool.run(launch);
    end();
    undo();
    take_counts();
    backwards = found_;
    // In this order programs may do what they never do in the other one: wait for each other, or fail.
    int32_t failed = static_cast<int32_t>(Stop::kFault);
    launch.stop.compare_exchange_strong(failed, 0);
    launch.fault = {};
  }
  begin(launch, false);
  if (launch.stopped() == Stop::kNo) pool.run(launch);
  end();
  launch.waits = repeated_ >= kMostRepeated;
  launch.races = nullptr;
  const Race &race = gravest(found_), &other = gravest(backwards);
  tell(launch, other.kind < race.kind ? other : race);
}

const Race& ProgramRaces::gravest(const Found& found) const {
  for (const Race& race : found.races)
    if (race.kind != RaceKind::kNone) return race;
  static const Race none;
  return none;
}

// Writes the race into its part of the report buffer (backend/abi/report_buffer.py, PROGRAM_RACES).
void ProgramRaces::tell(const Launch& launch, const Race& race) const {
  const Watch& watch = launch.kernel->watch();
  if (race.kind == RaceKind::kNone || (race.kind == RaceKind::kEqualValues && !watch.equal)) return;
  std::byte* const part = reinterpret_cast<std::byte*>(ignored_begin_) + watch.part;
  uint64_t count = 0;
  std::memcpy(&count, part, sizeof count);
  if (count != 0) return;  // of an earlier part of the grid
  uint32_t first[3] = {};
  if (watch.first_program != 0) std::memcpy(first, launch.arguments + watch.first_program, sizeof first);
  put(part, race.count);
  put(part + 8, reinterpret_cast<uint64_t>(launch.kernel));
  put(part + 16, race.address);
  put(part + 24, race.place);
  put(part + 32, race.earlier_place);
  put(part + 40, static_cast<uint32_t>(race.kind));
  put(part + 44, race.bytes);
  put(part + 48, static_cast<uint32_t>(race.access));
  put(part + 52, static_cast<uint32_t>(race.earlier));
  const auto put_program = [&](std::byte* to, uint64_t number) {
    put(to, static_cast<uint32_t>(number % launch.grid[0] + first[0]));
    put(to + 4, static_cast<uint32_t>(number / launch.grid[0] % launch.grid[1] + first[1]));
    put(to + 8, static_cast<uint32_t>(number / launch.grid[0] / launch.grid[1] + first[2]));
  };
  put_program(part + 56, race.program);
  put_program(part + 68, race.earlier_program);
  std::byte* to = part + 80;
  for (const uint32_t pointer : watch.pointers) {
    std::memcpy(to, launch.arguments + pointer, 8);
    to += 8;
  }
}

void ProgramRaces::begin(const Launch& launch, bool backwards) {
  const Watch& watch = launch.kernel->watch();
  const bool is_full = pages_.size() > kMostPages;
  if (is_full || next_event_ > 1u << 31) {
    for (const auto& [number, page] : pages_) {
      if (is_full) {
        std::free(page);
      } else {
        std::memset(page, 0, sizeof *page);
      }
    }
    if (is_full) pages_.clear();
    cached_.assign(kCachedPages, {});
    next_event_ = 1;
  }
  shift_ = watch.shift;
  programs_ = launch.programs();
  levels_ = VectorClock::levels(programs_);
  backwards_ = backwards;
  std::memcpy(&ignored_begin_, launch.arguments + watch.reports, sizeof ignored_begin_);
  ignored_end_ = ignored_begin_ + watch.bytes;
  first_ = program_first_ = next_event_;
  places_.clear();
  firsts_.clear();
  published_.clear();
  pending_.clear();
  found_ = {};
  kept_.clear();
  written_.clear();
  forget();
  repeated_ = 0;
  ++stamp_;
}

void ProgramRaces::end() {
  watching = nullptr;  // a fault leaves it
  settle();
  published_.clear();
  cached_published_.assign(kCachedPublished, {});
  forget();
}

void ProgramRaces::undo() {
  std::size_t end = kept_.size();
  for (auto one = written_.rbegin(); one != written_.rend(); ++one) {
    end -= one->second;
    std::memcpy(reinterpret_cast<void*>(one->first), kept_.data() + end, one->second);
  }
  kept_.clear();
  written_.clear();
}

uint64_t ProgramRaces::begin_program(uint64_t number) {
  settle();
  firsts_.push_back(next_event_);
  program_first_ = fenced_ = next_event_;
  forget();
  asked_ = 0;
  repeated_ = 0;
  std::fill(recent_.begin(), recent_.end(), std::pair<uint64_t, uint64_t>{});
  ++stamp_;
  return backwards_ ? programs_ - 1 - number : number;
}

ProgramRaces::Page& ProgramRaces::page_of(uint64_t number) {
  const uint64_t key = number << 3 | shift_;
  Cached& cached = cached_[(number ^ number >> 8) % kCachedPages];
  if (cached.key == key) return *cached.page;
  Page*& page = pages_[key];
  if (page == nullptr) page = static_cast<Page*>(std::calloc(1, sizeof(Page)));
  if (page == nullptr) throw std::bad_alloc();
  cached = {key, page};
  return *page;
}

uint32_t ProgramRaces::event_of(uint64_t place) {
  CachedEvent& cached = cached_events_[(place ^ place >> 8) % kCachedEvents];
  if (cached.stamp == stamp_ && cached.place == place) return cached.event;
  places_.push_back(place);
  cached = {place, stamp_, next_event_++};
  return cached.event;
}

ProgramRaces::Published* ProgramRaces::published_at(uint64_t address) {
  if (published_.empty()) return nullptr;
  CachedPublished& cached = cached_published_[(address / kWord) % kCachedPublished];
  if (cached.address == address) return cached.published;
  const auto found = published_.find(address);
  if (found == published_.end()) return nullptr;
  cached = {address, &found->second};
  return cached.published;
}

bool ProgramRaces::is_ordered(uint32_t event) {
  if (event == asked_) return answer_;
  asked_ = event;
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), event);
  take();
  answer_ = clock_.known(levels_, after - firsts_.begin() - 1) >= event;
  return answer_;
}

void ProgramRaces::forget() {
  clock_ = released_ = {};
  seen_.clear();
  acquired_.clear();
  replaced_.clear();
  released_event_ = 0;
  is_known_ = false;
}

void ProgramRaces::take() {
  for (const VectorClock* one : acquired_) clock_.join(levels_, *one);
  acquired_.clear();
}

const VectorClock& ProgramRaces::released() {
  if (!is_known_) {
    take();
    released_ = clock_.at(levels_, firsts_.size() - 1, released_event_);
    is_known_ = true;
  }
  return released_;
}

bool ProgramRaces::repeats(uint64_t place, uint64_t address) {
  auto& recent = recent_[(place * 31 ^ address >> 2) % kRecent];
  if (recent.first == place && recent.second == address) {
    ++repeated_;
  } else {
    recent = {place, address};
    repeated_ = 0;
  }
  return repeated_ >= kMostRepeated;
}

bool ProgramRaces::access(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes, Access kind,
                          uint64_t place) {
  settle();
  uint32_t lane = 0;
  while (lane < lanes && !active[lane]) ++lane;
  if (lane == lanes) return true;
  const bool waits = repeats(place, places[lane]);
  const uint32_t event = event_of(place);
  if (is_atomic(kind)) {
    for (; lane < lanes; ++lane)
      if (active[lane] && !is_ignored(places[lane], places[lane] + bytes))
        access_atomic(places[lane], bytes, kind, event);
    return !waits || !backwards_;
  }
  if (is_run(places, active, lanes, bytes)) {
    if (!is_ignored(places[0], places[0] + lanes * bytes))
      access_plain(places[0], places[0] + lanes * bytes, bytes, kind, event);
    return !waits || !backwards_;
  }
  while (lane < lanes) {
    // Lanes of neighbouring elements, or of the same one, are one access.
    const uint64_t begin = places[lane];
    uint64_t end = begin + bytes;
    for (++lane; lane < lanes; ++lane) {
      if (!active[lane] || places[lane] == end - bytes) continue;
      if (places[lane] != end) break;
      end += bytes;
    }
    if (!is_ignored(begin, end)) access_plain(begin, end, bytes, kind, event);
  }
  return !waits || !backwards_;
}

// Whether all lanes are active and have neighbouring elements.
bool ProgramRaces::is_run(const uint64_t* places, const uint8_t* active, uint32_t lanes, uint32_t bytes) const {
  uint64_t differs = 0, idle = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    differs |= places[lane] ^ (places[0] + uint64_t{lane} * bytes);
    idle |= active[lane] ^ 1;
  }
  return (differs | idle) == 0;
}

void ProgramRaces::access_plain(uint64_t begin, uint64_t end, uint32_t bytes, Access kind, uint32_t event) {
  const auto each_piece = [&](auto does) {
    const uint64_t last = (end - 1) >> shift_;
    for (uint64_t cell = begin >> shift_; cell <= last;) {
      Page& page = page_of(cell / kCells);
      const uint32_t from = cell % kCells;
      const uint32_t count = static_cast<uint32_t>(std::min<uint64_t>(kCells - from, last - cell + 1));
      does(Piece{&page, from, count});
      cell += count;
    }
  };
  bool others = false;
  each_piece([&](const Piece& piece) { others |= meets_others(piece, kind); });
  // An element's cells know its other accesses until all of it was looked at.
  if (others)
    for (uint64_t element = begin; element < end; element += bytes) look(element, bytes, kind, event);
  if (kind == Access::kWrite && backwards_) {
    bool unwritten = false;
    each_piece([&](const Piece& piece) {
      for (uint32_t at = piece.from; at < piece.from + piece.count; ++at)
        unwritten |= (piece.page->writer[at] < first_) & (piece.page->update[at] < first_);
    });
    if (unwritten) keep(begin, end);
  }
  each_piece([&](const Piece& piece) { note(piece, kind, event); });
}

// Whether another program of this run accessed the cells, which may be ordered.
bool ProgramRaces::meets_others(const Piece& piece, Access kind) {
  const uint32_t first = first_, before = program_first_ - first_;
  const Page& page = *piece.page;
  const auto is_any = [&](const uint32_t* events) {
    events += piece.from;
    uint32_t result = 0;
    for (uint32_t i = 0; i < piece.count; ++i) result |= events[i] - first < before;
    return result != 0;
  };
  bool result = page.last_writer >= first && is_any(page.writer);
  result |= page.last_update >= first && is_any(page.update);
  if (kind == Access::kWrite) result |= page.last_reader >= first && (is_any(page.reader) || is_any(page.earlier));
  return result;
}

void ProgramRaces::note(const Piece& piece, Access kind, uint32_t event) {
  Page& page = *piece.page;
  uint32_t *const writer = page.writer + piece.from, *const update = page.update + piece.from,
                  *const reader = page.reader + piece.from, *const earlier = page.earlier + piece.from;
  const uint32_t count = piece.count;
  if (kind == Access::kWrite) {
    std::fill_n(writer, count, event);
    if (page.last_update >= first_) std::fill_n(update, count, 0u);
    if (page.last_reader >= first_) {
      std::fill_n(reader, count, 0u);
      std::fill_n(earlier, count, 0u);
    }
    page.last_writer = event;
    return;
  }
  if (page.last_reader >= first_) {
    const uint32_t first = first_, before = program_first_ - first_;
    uint32_t others = 0;
    for (uint32_t i = 0; i < count; ++i) others |= reader[i] - first < before;
    if (others)
      for (uint32_t i = 0; i < count; ++i) earlier[i] = reader[i] - first < before ? reader[i] : earlier[i];
  }
  std::fill_n(reader, count, event);
  page.last_reader = event;
}

void ProgramRaces::access_atomic(uint64_t begin, uint32_t bytes, Access kind, uint32_t event) {
  bool unwritten = false, others = false;
  const uint32_t first = first_, before = program_first_ - first_;
  for (uint64_t cell = begin >> shift_; cell <= (begin + bytes - 1) >> shift_; ++cell) {
    Page& page = page_of(cell / kCells);
    const uint32_t at = cell % kCells;
    if (page.last_writer >= first) others |= page.writer[at] - first < before;
    if (page.last_reader >= first && writes(kind))
      others |= (page.reader[at] - first < before) | (page.earlier[at] - first < before);
    unwritten |= page.writer[at] < first && page.update[at] < first;
    page.update[at] = event;
    page.last_update = event;
  }
  if (others) look(begin, bytes, kind, event);
  // An atomic read counts as an update of the cell: what is there is kept for the first time, too.
  // An element that is smaller than a word is exchanged with the word that it lies in.
  const uint64_t from = bytes < kWord ? begin & ~(kWord - 1) : begin, count = std::max<uint64_t>(bytes, kWord);
  if (backwards_ && unwritten) keep(from, from + count);
  Published* published = published_at(begin);
  // Nothing new since the program's last update of it.
  if (published != nullptr && published->added == stamp_ && (kind == Access::kUpdate || kind == Access::kAtomicRead))
    return;
  if (published != nullptr && kind != Access::kAtomicWrite && published->read != stamp_) {
    published->read = stamp_;
    seen_.push_back(&published->clock);
  }
  const bool has_released = released_event_ != 0;
  if (published == nullptr && has_released && (kind == Access::kUpdate || kind == Access::kAtomicWrite))
    published = &published_[begin];
  switch (kind) {
    case Access::kUpdate:
      if (published == nullptr) break;
      if (has_released) published->clock.join(levels_, released());
      published->added = stamp_;
      break;
    case Access::kAtomicWrite:
      if (published == nullptr) break;
      take();
      if (published->read == stamp_) {
        replaced_.push_back(published->clock);
        std::replace<decltype(seen_)::iterator, const VectorClock*>(seen_.begin(), seen_.end(), &published->clock,
                                                                    &replaced_.back());
      }
      published->clock = has_released ? released() : VectorClock();
      published->added = 0;
      break;
    case Access::kCompareExchange:
      if (!has_released) break;
      {
        Pending& pending = pending_.emplace_back();
        pending.address = from;
        pending.bytes = static_cast<uint32_t>(count);
        pending.exchanges = true;
        pending.element = begin;
        pending.published = released();
        std::memcpy(pending.before, reinterpret_cast<const void*>(from), count);
      }
      break;
    default:
      break;
  }
}

void ProgramRaces::look(uint64_t begin, uint32_t bytes, Access kind, uint32_t event) {
  uint32_t writer = 0, update = 0, reader = 0;
  const bool plain = !is_atomic(kind);
  for (uint64_t cell = begin >> shift_; cell <= (begin + bytes - 1) >> shift_; ++cell) {
    const Page& page = page_of(cell / kCells);
    const uint32_t at = cell % kCells;
    if (conflicts(page.writer[at])) writer = page.writer[at];
    if (plain && conflicts(page.update[at])) update = page.update[at];
    if (writes(kind) && conflicts(page.reader[at])) {
      reader = page.reader[at];
    } else if (writes(kind) && conflicts(page.earlier[at])) {
      reader = page.earlier[at];
    }
  }
  const uint32_t other = writer ? writer : reader ? reader : update;
  if (other == 0) return;
  const auto program_of = [&](uint32_t number) {
    const uint64_t rank = std::upper_bound(firsts_.begin(), firsts_.end(), number) - firsts_.begin() - 1;
    return backwards_ ? programs_ - 1 - rank : rank;
  };
  Race race;
  race.kind = plain && (writer || reader) ? RaceKind::kRace : RaceKind::kBesideAtomic;
  race.access = kind;
  race.earlier = writer ? Access::kWrite : reader ? Access::kRead : Access::kUpdate;
  race.bytes = bytes;
  race.address = begin;
  race.place = places_[event - first_];
  race.earlier_place = places_[other - first_];
  race.program = program_of(event);
  race.earlier_program = program_of(other);
  race.count = 1;
  if (kind != Access::kWrite || !writer || reader || update || bytes > sizeof Pending::before) {
    add(race);
    return;
  }
  Pending& pending = pending_.emplace_back();
  pending.address = begin;
  pending.bytes = bytes;
  pending.exchanges = false;
  pending.race = race;
  std::memcpy(pending.before, reinterpret_cast<const void*>(begin), bytes);
}

void ProgramRaces::add(Race race) {
  Race& first = found_.races[static_cast<std::size_t>(race.kind)];
  if (first.kind == RaceKind::kNone) {
    first = race;
  } else {
    ++first.count;
  }
}

void ProgramRaces::settle() {
  if (pending_.empty()) return;
  for (Pending& one : pending_) {
    const bool same = std::memcmp(one.before, reinterpret_cast<const void*>(one.address), one.bytes) == 0;
    if (one.exchanges) {
      if (!same) published_[one.element].clock.join(levels_, one.published);
      continue;
    }
    if (same) one.race.kind = RaceKind::kEqualValues;
    add(one.race);
  }
  pending_.clear();
}

void ProgramRaces::keep(uint64_t begin, uint64_t end) {
  const auto* const memory = reinterpret_cast<const std::byte*>(begin);
  kept_.insert(kept_.end(), memory, memory + (end - begin));
  written_.emplace_back(begin, end - begin);
}

void ProgramRaces::fence() {
  settle();
  if (next_event_ == fenced_) return;  // nothing happened since the last one
  fenced_ = next_event_;
  acquired_.insert(acquired_.end(), seen_.begin(), seen_.end());
  seen_.clear();
  if (acquired_.size() > kMostAcquired) take();
  asked_ = 0;
  // What happened until now is published by atomic writes from now on.
  released_event_ = next_event_ - 1;
  is_known_ = false;
  ++stamp_;
}

uint64_t program_races_function(std::string_view name) {
  if (name == "triton_spirv_watch_program") return reinterpret_cast<uint64_t>(watch_program);
  if (name == "triton_spirv_order_program") return detail::address<order_program>();
  return 0;
}

void run_watched(const Launch& launch, uint64_t first, uint64_t last, std::byte* scratch) {
  watching = launch.races;
  for (uint64_t number = first; number < last; ++number) {
    if (launch.stop.load(std::memory_order_relaxed) != 0) break;
    uint64_t program = 0;
    {
      const Unguarded held;
      program = launch.races->begin_program(number);
    }
    launch.kernel->entry()(launch.block, program, program + 1, launch.grid, scratch,
                           reinterpret_cast<const int32_t*>(&launch.stop));
  }
}

}  // namespace triton_spirv::cpu
