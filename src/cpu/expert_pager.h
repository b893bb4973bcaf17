// SPDX-License-Identifier: Apache-2.0
// Experts that come from disk when a step needs them, into a bounded part of memory.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "backend/paging_counts.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cpu/packed_ffn.h"
#include "platform/chunk_hash.h"
#include "platform/memory.h"
namespace hearth {

// Where an expert lies in its file, and what its bytes must be.
struct ExpertPlace {
  uint64_t offset = 0, num_bytes = 0;
  std::vector<ChunkHash> hashes;  // of its pieces: cut where the file's chunks are
  PackedFfn ffn{};                // addresses counted from the expert's first byte
};

// Every layer has its own frames, each with room for one expert, and in them the experts that were
// used last. Own frames, because steps go through the layers in a circle: with common ones a step
// that uses every expert would always throw out what the next layer is about to need.
// Threads of its own read, two at a time, which keeps a disk busy (docs/machines.md).
// Thread: one calls; it is the step's.
class ExpertPager {
 public:
  // Reads at least `needed` bytes of the file to `to`. Offsets, sizes and addresses are multiples
  // of kReadUnit. Called by several threads.
  using Read = std::function<Status(uint64_t offset, std::span<std::byte> to, uint64_t needed)>;
  static constexpr uint64_t kReadUnit = 4096;
  static constexpr uint64_t kPiece = uint64_t{1} << 20;  // bytes under one hash, at most

  // What an expert takes in memory: it lies there as in the file, from a unit's start on.
  static uint64_t FrameBytes(uint64_t offset, uint64_t num_bytes);
  // Frames of layer `layer` when `total` are shared out among `layers` of them.
  static int FramesOf(int layer, int layers, int total) {
    return static_cast<int>(int64_t{total} * (layer + 1) / layers -
                            int64_t{total} * layer / layers);
  }

  // `layers[i]` are the experts of layer i; none for a dense one. As many frames as `memory` holds,
  // at least one for each layer with experts.
  ExpertPager(std::vector<std::vector<ExpertPlace>> layers, LargeBuffer memory, Read read);
  ~ExpertPager();
  ExpertPager(const ExpertPager&) = delete;

  struct Loaded {
    int expert;
    const PackedFfn* ffn;  // good until the next call of Next or Begin
  };
  // A step needs these experts of a layer, each once; reads begin.
  void Begin(int layer, std::span<const int> experts);
  // Those that have come since the last call, after waiting for at least one; none when all have
  // been given. An error ends the step: Begin starts anew.
  Result<std::span<const Loaded>> Next();

  // A layer that comes later will probably need these, the likeliest first: they are read while
  // nothing else is. In place of what was expected of it before and has not begun.
  void Expect(int layer, std::span<const int> experts);
  // Whether expecting is worth its while: for layers where it has been right lately, and now and
  // then for the others.
  bool IsWorthExpecting(int layer);
  // Whether something is left to read of what was expected.
  bool HasExpected() const;

  PagingCounts counts() const;
  // Tells it the counts now, and at every Begin. Before the first step; null: nobody.
  void TellTo(std::shared_ptr<PagingMeter> meter);

 private:
  enum class State : uint8_t { kEmpty, kReading, kReady, kDropped };
  struct Frame {
    State state = State::kEmpty;
    int expert = -1;
    int parts_left = 0;      // of what is being read
    uint64_t used = 0;       // when: larger is later
    uint64_t began = 0;      // when its reading did
    bool is_pinned = false;  // given to the step
    bool is_ahead = false;   // read because it was expected, and not needed yet
    bool is_taken = false;   // its memory has been touched
    Status status;
    PackedFfn ffn{};
  };
  // What a layer will probably need.
  struct Expectation {
    uint64_t at = 0;
    std::vector<int> guesses;  // experts that are not there, or only since they were expected
    std::deque<int> absent;    // of these, those whose reading has not begun
  };
  struct Layer {
    std::vector<ExpertPlace> experts;
    std::vector<Frame> frames;
    std::vector<int> frame_of;  // by expert, or -1
    std::byte* memory = nullptr;
    double trust = 0.6;  // share of expected experts that were then needed, fading
    int skipped = 0;     // expectations, for want of trust
    Expectation expected{};
  };
  struct Part {  // what lies under one hash
    int layer, frame;
    uint64_t begin, end;  // of the expert's bytes
  };

  int FreeFrame(int layer, uint64_t used_before) const HEARTH_REQUIRES(mu_);
  void StartReading(int layer, int expert, int frame, std::deque<Part>& parts) HEARTH_REQUIRES(mu_);
  void Fill() HEARTH_REQUIRES(mu_);
  void GiveArrived() HEARTH_REQUIRES(mu_);
  void Unpin() HEARTH_REQUIRES(mu_);
  void EndExpectation() HEARTH_REQUIRES(mu_);
  bool StartExpected() HEARTH_REQUIRES(mu_);
  void SortAhead() HEARTH_REQUIRES(mu_);
  bool TakePart(Part& part) HEARTH_REQUIRES(mu_);
  void EndPart(const Part& part, Status status) HEARTH_REQUIRES(mu_);
  bool IsNeeded(int layer, int expert) const HEARTH_REQUIRES(mu_);
  Status ReadPart(const Part& part) const;
  void RunReader();

  const Read read_;
  LargeBuffer memory_;
  uint64_t frame_bytes_ = 0;

  mutable Mutex mu_;
  CondVar work_, arrived_;
  std::vector<Layer> layers_;  // places and memory never change, the rest is under the lock
  bool stops_ HEARTH_GUARDED_BY(mu_) = false;
  uint64_t now_ HEARTH_GUARDED_BY(mu_) = 0;
  int layer_ HEARTH_GUARDED_BY(mu_) = -1;           // of the last Begin
  uint64_t begin_at_ HEARTH_GUARDED_BY(mu_) = 0;    // its time
  std::vector<int> needed_ HEARTH_GUARDED_BY(mu_);  // not yet given
  std::vector<int> given_ HEARTH_GUARDED_BY(mu_);   // frames
  Status failed_ HEARTH_GUARDED_BY(mu_);            // of what is needed
  std::deque<Part> parts_ HEARTH_GUARDED_BY(mu_);   // of what is needed
  std::deque<Part> ahead_ HEARTH_GUARDED_BY(mu_);   // of what is expected
  uint64_t arrivals_ HEARTH_GUARDED_BY(mu_) = 0;
  int under_way_ HEARTH_GUARDED_BY(mu_) = 0;  // reads
  int64_t busy_since_ns_ HEARTH_GUARDED_BY(mu_) = 0;
  PagingCounts counts_ HEARTH_GUARDED_BY(mu_);
  std::shared_ptr<PagingMeter> meter_;
  std::vector<Loaded> loaded_;
  std::vector<std::thread> readers_;
};

}  // namespace hearth
