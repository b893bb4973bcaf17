// SPDX-License-Identifier: Apache-2.0
#include "cpu/expert_pager.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <utility>

#include "base/check.h"
#include "base/thread_name.h"

namespace hearth {
namespace {

// Two threads keep a disk busy, and io_uring with any depth is no faster (decision 0135). Each
// reads a piece at a time: what is needed waits for wrong guesses that are under way.
constexpr int kReaders = 2;
constexpr double kTrusted = 0.3;
constexpr int kTryAgain = 16;  // a layer that is not trusted is looked at this seldom

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

uint64_t Down(uint64_t value, uint64_t unit) { return value / unit * unit; }
uint64_t Up(uint64_t value, uint64_t unit) { return Down(value + unit - 1, unit); }

// An expert's weights when its first byte is at `base`.
PackedFfn MovedTo(const std::byte* base, const PackedFfn& counted) {
  PackedFfn ffn = counted;
  const auto move = [base](const auto*& address) {
    using Pointer = std::remove_reference_t<decltype(address)>;
    address = reinterpret_cast<Pointer>(base + reinterpret_cast<uintptr_t>(address));
  };
  for (PackedMatrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) move(matrix->data);
  for (const float** bias : {&ffn.gate_bias, &ffn.up_bias, &ffn.down_bias}) {
    if (*bias != nullptr) move(*bias);
  }
  return ffn;
}

}  // namespace

uint64_t ExpertPager::FrameBytes(uint64_t offset, uint64_t num_bytes) {
  return Up(offset + num_bytes, kReadUnit) - Down(offset, kReadUnit);
}

ExpertPager::ExpertPager(std::vector<std::vector<ExpertPlace>> layers, LargeBuffer memory,
                         Read read)
    : read_(std::move(read)), memory_(std::move(memory)), layers_(layers.size()) {
  int routed = 0;
  for (const std::vector<ExpertPlace>& experts : layers) {
    routed += experts.empty() ? 0 : 1;
    for (const ExpertPlace& place : experts) {
      frame_bytes_ = std::max(frame_bytes_, FrameBytes(place.offset, place.num_bytes));
      counts_.expert_bytes = std::max(counts_.expert_bytes, static_cast<int64_t>(place.num_bytes));
      ++counts_.experts;
    }
  }
  const auto total = static_cast<int>(memory_.bytes().size() / frame_bytes_);
  HEARTH_CHECK(total >= routed);
  std::byte* next = memory_.bytes().data();
  int nth = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer& layer = layers_[i];
    layer.experts = std::move(layers[i]);
    layer.frame_of.assign(layer.experts.size(), -1);
    if (layer.experts.empty()) continue;
    const int share = FramesOf(nth++, routed, total);
    layer.frames.resize(std::min(static_cast<size_t>(share), layer.experts.size()));
    layer.memory = next;
    next += layer.frames.size() * frame_bytes_;
    counts_.frames += static_cast<int>(layer.frames.size());
  }
  counts_.most_bytes = counts_.frames * static_cast<int64_t>(frame_bytes_);
  for (int i = 0; i < kReaders; ++i) readers_.emplace_back([this] { RunReader(); });
}

ExpertPager::~ExpertPager() {
  {
    MutexLock lock(mu_);
    stops_ = true;
  }
  work_.NotifyAll();
  for (std::thread& reader : readers_) reader.join();
}

PagingCounts ExpertPager::counts() const {
  MutexLock lock(mu_);
  return counts_;
}

void ExpertPager::TellTo(std::shared_ptr<PagingMeter> meter) {
  meter_ = std::move(meter);
  if (meter_ != nullptr) meter_->Set(counts());
}

bool ExpertPager::IsNeeded(int layer, int expert) const {
  return layer == layer_ && std::ranges::find(needed_, expert) != needed_.end();
}

// An empty one, else the one that was used longest ago, before `used_before`; -1 when every one is
// in use, being read, or about to be used.
int ExpertPager::FreeFrame(int layer, uint64_t used_before) const {
  const std::vector<Frame>& frames = layers_[static_cast<size_t>(layer)].frames;
  int best = -1;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    if (frame.state == State::kEmpty) return static_cast<int>(i);
    if (frame.state != State::kReady || frame.is_pinned || frame.used >= used_before) continue;
    if (IsNeeded(layer, frame.expert)) continue;
    if (best < 0 || frame.used < frames[static_cast<size_t>(best)].used) best = static_cast<int>(i);
  }
  return best;
}

void ExpertPager::StartReading(int index, int expert, int number, std::deque<Part>& parts) {
  Layer& layer = layers_[static_cast<size_t>(index)];
  Frame& frame = layer.frames[static_cast<size_t>(number)];
  if (frame.state == State::kReady) layer.frame_of[static_cast<size_t>(frame.expert)] = -1;
  if (!std::exchange(frame.is_taken, true)) {
    counts_.resident_bytes += static_cast<int64_t>(frame_bytes_);
  }
  const ExpertPlace& place = layer.experts[static_cast<size_t>(expert)];
  const std::byte* memory = layer.memory + static_cast<uint64_t>(number) * frame_bytes_;
  frame.state = State::kReading;
  frame.expert = expert;
  frame.used = frame.began = now_;
  frame.is_ahead = false;
  frame.status = Status();
  frame.ffn = MovedTo(memory + place.offset % kReadUnit, place.ffn);
  frame.parts_left = 0;
  layer.frame_of[static_cast<size_t>(expert)] = number;
  for (uint64_t at = 0; at < place.num_bytes; ++frame.parts_left) {
    const uint64_t end =
        std::min(Down(place.offset + at, kPiece) + kPiece - place.offset, place.num_bytes);
    parts.push_back({index, number, at, end});
    at = end;
  }
  work_.NotifyAll();
}

void ExpertPager::Unpin() {
  if (layer_ < 0) return;
  Layer& layer = layers_[static_cast<size_t>(layer_)];
  for (const int frame : given_) layer.frames[static_cast<size_t>(frame)].is_pinned = false;
  given_.clear();
}

void ExpertPager::Begin(int index, std::span<const int> experts) {
  MutexLock lock(mu_);
  Unpin();
  begin_at_ = ++now_;
  layer_ = index;
  failed_ = Status();
  needed_.assign(experts.begin(), experts.end());
  EndExpectation();
  SortAhead();
  Layer& layer = layers_[static_cast<size_t>(index)];
  counts_.needed += needed_.size();
  for (const int expert : needed_) {
    const int number = layer.frame_of[static_cast<size_t>(expert)];
    if (number < 0) continue;
    Frame& frame = layer.frames[static_cast<size_t>(number)];
    const bool was_there = frame.state == State::kReady && !frame.is_ahead;
    ++(was_there ? counts_.hits : counts_.ahead_hits);
    frame.is_ahead = false;
    frame.used = now_;
  }
  if (meter_ != nullptr) meter_->Set(counts_);
  Fill();
}

// How right it was. What has not begun of it is forgotten, and what was read for nothing makes room
// first.
void ExpertPager::EndExpectation() {
  Layer& layer = layers_[static_cast<size_t>(layer_)];
  const std::vector<int>& guesses = layer.expected.guesses;
  if (!guesses.empty()) {
    double right = 0;
    for (const int expert : guesses) right += IsNeeded(layer_, expert) ? 1 : 0;
    layer.trust += 0.1 * (right / static_cast<double>(guesses.size()) - layer.trust);
  }
  layer.expected = Expectation();
  for (Frame& frame : layer.frames) {
    if (frame.is_ahead && !IsNeeded(layer_, frame.expert)) frame.used = 0;
  }
}

// Parts of expected experts that turned out to be needed become urgent; the others are dropped.
void ExpertPager::SortAhead() {
  std::deque<Part> later;
  for (const Part& part : ahead_) {
    Layer& layer = layers_[static_cast<size_t>(part.layer)];
    Frame& frame = layer.frames[static_cast<size_t>(part.frame)];
    if (part.layer != layer_) {
      later.push_back(part);
    } else if (frame.state == State::kReading && IsNeeded(layer_, frame.expert)) {
      parts_.push_back(part);
    } else {
      if (frame.state == State::kReading) layer.frame_of[static_cast<size_t>(frame.expert)] = -1;
      --frame.parts_left;
      frame.state = frame.parts_left > 0 ? State::kDropped : State::kEmpty;
    }
  }
  ahead_ = std::move(later);
}

// As many of the absent ones as there is room for.
void ExpertPager::Fill() {
  const Layer& layer = layers_[static_cast<size_t>(layer_)];
  for (const int expert : needed_) {
    if (layer.frame_of[static_cast<size_t>(expert)] >= 0) continue;
    const int frame = FreeFrame(layer_, UINT64_MAX);
    if (frame < 0) return;
    StartReading(layer_, expert, frame, parts_);
  }
}

void ExpertPager::GiveArrived() {
  Layer& layer = layers_[static_cast<size_t>(layer_)];
  std::erase_if(needed_, [&](int expert) HEARTH_NO_THREAD_SAFETY_ANALYSIS {
    const int number = layer.frame_of[static_cast<size_t>(expert)];
    if (number < 0) return false;
    Frame& frame = layer.frames[static_cast<size_t>(number)];
    if (frame.state != State::kReady) return false;
    frame.is_pinned = true;
    frame.is_ahead = false;
    given_.push_back(number);
    loaded_.push_back({expert, &frame.ffn});
    return true;
  });
}

Result<std::span<const ExpertPager::Loaded>> ExpertPager::Next() {
  MutexLock lock(mu_);
  Unpin();
  loaded_.clear();
  while (!needed_.empty()) {
    if (!failed_.ok()) {
      needed_.clear();
      if (meter_ != nullptr) meter_->Set(counts_);
      return std::exchange(failed_, Status());
    }
    Fill();
    GiveArrived();
    if (!loaded_.empty()) break;
    const int64_t began = NowNs();
    arrived_.Wait(mu_,
                  [this, seen = arrivals_]() HEARTH_REQUIRES(mu_) { return arrivals_ != seen; });
    counts_.waited_ns += NowNs() - began;
  }
  if (loaded_.empty() && meter_ != nullptr) meter_->Set(counts_);
  return std::span<const Loaded>(loaded_);
}

bool ExpertPager::IsWorthExpecting(int index) {
  MutexLock lock(mu_);
  Layer& layer = layers_[static_cast<size_t>(index)];
  if (layer.frames.size() == layer.experts.size()) return false;  // they are all there, or will be
  if (layer.trust >= kTrusted) return true;
  layer.skipped = (layer.skipped + 1) % kTryAgain;
  return layer.skipped == 0;
}

void ExpertPager::Expect(int index, std::span<const int> experts) {
  MutexLock lock(mu_);
  Layer& layer = layers_[static_cast<size_t>(index)];
  layer.expected = Expectation();
  layer.expected.at = ++now_;
  for (const int expert : experts) {
    const int number = layer.frame_of[static_cast<size_t>(expert)];
    if (number < 0) {
      layer.expected.absent.push_back(expert);
      layer.expected.guesses.push_back(expert);
      continue;
    }
    Frame& frame = layer.frames[static_cast<size_t>(number)];
    frame.used = now_;  // it must not make room for another
    if (frame.is_ahead) layer.expected.guesses.push_back(expert);
  }
  if (!layer.expected.absent.empty()) work_.NotifyAll();
}

bool ExpertPager::HasExpected() const {
  MutexLock lock(mu_);
  return !ahead_.empty() ||
         std::ranges::any_of(layers_, [](const Layer& l) { return !l.expected.absent.empty(); });
}

// The likeliest expert of the layer that comes first gets a frame and is read; false when there is
// none, or no room.
bool ExpertPager::StartExpected() {
  const auto count = static_cast<int>(layers_.size());
  for (int i = 1; i <= count; ++i) {
    const int index = (layer_ + i) % count;
    Layer& layer = layers_[static_cast<size_t>(index)];
    std::deque<int>& absent = layer.expected.absent;
    while (!absent.empty()) {
      const int expert = absent.front();
      absent.pop_front();
      if (layer.frame_of[static_cast<size_t>(expert)] >= 0) continue;
      const int frame = FreeFrame(index, layer.expected.at);
      if (frame < 0) {
        absent.clear();
        break;
      }
      StartReading(index, expert, frame, ahead_);
      layer.frames[static_cast<size_t>(frame)].is_ahead = true;
      ++counts_.expected;
      return true;
    }
  }
  return false;
}

// What is needed goes before what is expected; an expected expert gets its frame only now.
bool ExpertPager::TakePart(Part& part) {
  if (parts_.empty() && ahead_.empty() && !StartExpected()) return false;
  std::deque<Part>& from = parts_.empty() ? ahead_ : parts_;
  part = from.front();
  from.pop_front();
  return true;
}

void ExpertPager::EndPart(const Part& part, Status status) {
  Layer& layer = layers_[static_cast<size_t>(part.layer)];
  Frame& frame = layer.frames[static_cast<size_t>(part.frame)];
  counts_.bytes_read += part.end - part.begin;
  if (!status.ok()) {
    ++counts_.errors;
    if (frame.status.ok()) frame.status = std::move(status);
  }
  if (--frame.parts_left > 0) return;
  if (frame.state == State::kDropped) {
    frame.state = State::kEmpty;
  } else if (frame.status.ok()) {
    frame.state = State::kReady;
  } else {
    frame.state = State::kEmpty;
    layer.frame_of[static_cast<size_t>(frame.expert)] = -1;
    // One that began before the step that needs it is tried again.
    const bool is_ours = IsNeeded(part.layer, frame.expert) && frame.began >= begin_at_;
    if (is_ours && failed_.ok()) failed_ = std::move(frame.status);
    frame.status = Status();
  }
  ++arrivals_;
  arrived_.NotifyAll();
}

Status ExpertPager::ReadPart(const Part& part) const {
  const Layer& layer = layers_[static_cast<size_t>(part.layer)];
  std::byte* memory = layer.memory + static_cast<uint64_t>(part.frame) * frame_bytes_;
  // The frame's expert cannot change while a part of it is under way.
  const int expert = layer.frames[static_cast<size_t>(part.frame)].expert;
  const ExpertPlace& place = layer.experts[static_cast<size_t>(expert)];
  const uint64_t begin = place.offset + part.begin, end = place.offset + part.end;
  const uint64_t origin = Down(place.offset, kReadUnit), from = Down(begin, kReadUnit);
  const std::span<std::byte> to(memory + (from - origin), Up(end, kReadUnit) - from);
  HEARTH_TRY(read_(from, to, end - from));
  const ChunkHash& expected = place.hashes[begin / kPiece - place.offset / kPiece];
  const ChunkHash found = HashOf({memory + (begin - origin), end - begin});
  if (found == expected) return Status();
  return Error(Code::kCorrupt,
               "bytes %" PRIu64 " to %" PRIu64
               " of the packed file are not those that were loaded: expected hash %s, found %s",
               begin, end, HexOf(expected).c_str(), HexOf(found).c_str());
}

void ExpertPager::RunReader() {
  NameThread("hearth-experts");
  MutexLock lock(mu_);
  while (true) {
    Part part{};
    work_.Wait(mu_, [&]() HEARTH_REQUIRES(mu_) { return stops_ || TakePart(part); });
    if (stops_) return;
    if (under_way_++ == 0) busy_since_ns_ = NowNs();
    lock.Unlock();
    Status status = ReadPart(part);
    lock.Lock();
    if (--under_way_ == 0) counts_.read_ns += NowNs() - busy_since_ns_;
    EndPart(part, std::move(status));
  }
}

}  // namespace hearth
