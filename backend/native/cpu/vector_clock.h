// What a program knows of the others: of each, up to which of its events it comes after. A vector clock, as a tree
// whose nodes never change once two clocks have them, so that to take over a clock costs nothing, and to add to one
// takes the nodes above what is added: a counter that 4,096 programs pass costs each a few nodes, where a plain vector
// would take 4,096 entries of each. A clock that is what one program knew at a fence says so: whoever comes after that
// program's last event knows all of it, so that most joins compare one number (the epochs of FastTrack).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace triton_spirv::cpu {

class VectorClock {
 public:
  VectorClock() = default;
  VectorClock(const VectorClock& other)
      : root_(other.root_), program_(other.program_), event_(other.event_), alone_(other.alone_) {
    hold(root_);
  }
  VectorClock(VectorClock&& other) noexcept
      : root_(std::exchange(other.root_, nullptr)),
        program_(other.program_),
        event_(std::exchange(other.event_, 0)),
        alone_(std::exchange(other.alone_, false)) {}
  VectorClock& operator=(VectorClock other) noexcept {
    std::swap(root_, other.root_);
    program_ = other.program_;
    event_ = other.event_;
    alone_ = other.alone_;
    return *this;
  }
  ~VectorClock() { drop(root_); }

  bool empty() const { return root_ == nullptr; }

  // How many levels trees of so many programs have.
  static unsigned levels(uint64_t programs) {
    unsigned result = 1;
    for (uint64_t reach = kWidth; reach < programs; reach *= kWidth) ++result;
    return result;
  }

  // The last event of a program that is known; 0 if none is. `levels`: of all clocks that meet.
  uint32_t known(unsigned levels, uint64_t program) const {
    const Node* node = root_;
    for (unsigned level = levels; node != nullptr && level > 1; --level) node = node->children[digit(level, program)];
    return node == nullptr ? 0 : node->known[digit(1, program)];
  }

  // Whether it knows the event at which a program knew what the other clock is, and so knows all of that.
  bool comes_after(unsigned levels, const VectorClock& other) const {
    return other.event_ != 0 && known(levels, other.program_) >= other.event_;
  }

  // What the program whose clock this is knows at a fence, with its own events up to this one. No other clock of it may
  // have the same event.
  VectorClock at(unsigned levels, uint64_t program, uint32_t event) const {
    VectorClock result = *this;
    result.root_ = added(result.root_, levels, program, event);
    result.program_ = program;
    result.event_ = event;
    result.alone_ = empty();
    return result;
  }

  // From now on it knows what the other one knows.
  void join(unsigned levels, const VectorClock& other) {
    if (other.empty() || comes_after(levels, other)) return;
    if (empty() || other.comes_after(levels, *this)) {
      *this = other;
      return;
    }
    root_ = other.alone_ ? added(root_, levels, other.program_, other.event_) : joined(root_, other.root_);
    program_ = other.program_;
    event_ = root_ == other.root_ ? other.event_ : 0;
    alone_ = false;
  }

 private:
  static constexpr unsigned kBits = 4, kWidth = 1 << kBits;
  struct Node {
    uint32_t references = 1;
    bool leaf = false;
    union {
      Node* children[kWidth] = {};
      uint32_t known[kWidth];
    };
  };

  static unsigned digit(unsigned level, uint64_t program) { return program >> (kBits * (level - 1)) & (kWidth - 1); }

  static void hold(Node* node) {
    if (node != nullptr) ++node->references;
  }
  static void drop(Node* node) {
    if (node == nullptr || --node->references != 0) return;
    if (!node->leaf)
      for (Node* child : node->children) drop(child);
    delete node;
  }
  // A node with the same content that nothing else has, in place of one.
  static Node* own(Node* node) {
    if (node->references == 1) return node;
    Node* const result = new Node(*node);
    result->references = 1;
    if (!node->leaf)
      for (Node* child : node->children) hold(child);
    --node->references;
    return result;
  }

  // Both take over the reference to `node`, and return one to the result.
  static Node* added(Node* node, unsigned level, uint64_t program, uint32_t event) {
    const unsigned place = digit(level, program);
    if (node == nullptr) {
      node = new Node;
      node->leaf = level == 1;
    }
    node = own(node);
    if (level == 1) {
      node->known[place] = std::max(node->known[place], event);
    } else {
      node->children[place] = added(node->children[place], level - 1, program, event);
    }
    return node;
  }
  static Node* joined(Node* node, Node* other) {
    if (other == nullptr || node == other) return node;
    if (node == nullptr) {
      hold(other);
      return other;
    }
    if (node->leaf) {
      bool more = false, less = false;
      for (unsigned place = 0; place < kWidth; ++place) {
        more |= other->known[place] > node->known[place];
        less |= other->known[place] < node->known[place];
      }
      if (!less) return swapped(node, other);  // also where both are equal
      if (!more) return node;
      node = own(node);
      for (unsigned place = 0; place < kWidth; ++place)
        node->known[place] = std::max(node->known[place], other->known[place]);
      return node;
    }
    bool all = true;
    for (unsigned place = 0; place < kWidth; ++place) {
      Node* const child = node->children[place];
      if (other->children[place] == nullptr || other->children[place] == child) {
        all &= other->children[place] == child;
        continue;
      }
      const bool shared = node->references != 1;
      if (shared) hold(child);
      Node* const both = joined(child, other->children[place]);
      all &= both == other->children[place];
      if (shared && both != child) {
        node = own(node);
        drop(node->children[place]);
      } else if (shared) {
        drop(both);
      }
      if (!shared || both != child) node->children[place] = both;
    }
    return all ? swapped(node, other) : node;
  }
  // The other node, which knows all that `node` knows: then they share what is below.
  static Node* swapped(Node* node, Node* other) {
    hold(other);
    drop(node);
    return other;
  }

  Node* root_ = nullptr;
  uint64_t program_ = 0;  // at whose fence it is what that program knew
  uint32_t event_ = 0;    // the program's last one then; 0: it is of several
  bool alone_ = false;    // that program knew of no other one
};

}  // namespace triton_spirv::cpu
