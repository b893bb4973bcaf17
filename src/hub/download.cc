// SPDX-License-Identifier: Apache-2.0
#include "hub/download.h"

#include <algorithm>
#include <cinttypes>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "hub/lane.h"
#include "hub/trailing_digest.h"

namespace hearth {
namespace {

using Clock = Lane::Clock;
using std::chrono::milliseconds;

// The state is written once a part: more parts than this would write more of it than of the file.
constexpr uint64_t kMaxParts = 4096;

class Download {
 public:
  Download(Transport& transport, const DownloadTask& task, const DownloadPolicy& policy,
           DownloadWatcher& watcher, PartialFile file)
      : transport_(transport),
        task_(task),
        policy_(policy),
        watcher_(watcher),
        file_(std::move(file)),
        allowed_(policy.num_connections),
        reached_(static_cast<size_t>(file_.num_parts())),
        trouble_(static_cast<size_t>(file_.num_parts())) {
    for (int i = 0; i < policy.num_connections; ++i)
      lanes_.push_back(std::make_unique<Lane>(file_));
    for (int part = 0; part < file_.num_parts(); ++part) {
      reached_[static_cast<size_t>(part)] = file_.begin(part);
      if (!file_.is_done(part)) missing_.push_back(part);
    }
  }
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;
  ~Download() { StopAll(); }

  Status Run();

 private:
  // Until no part is missing.
  Status FetchMissing();
  void StartLanes();
  Status Finish(Lane& lane, const FetchOutcome& outcome);
  Status Retry(const Lane& lane, const FetchOutcome& outcome);
  Status CheckStalls();
  void StopAll();
  // The digest is wrong: some part of it is, and the sum does not say which.
  Status Repair();
  // Fetches these parts again, until the sum is right; else those that came differently are left.
  Result<bool> FetchSuspects(std::vector<int>& suspects);
  // Which of these parts came differently this time.
  Result<std::vector<int>> FetchAgain(std::span<const int> parts);
  Result<Digest> SumUp() const;
  uint64_t BytesHere() const;
  milliseconds WaitTime() const;

  Transport& transport_;
  const DownloadTask& task_;
  const DownloadPolicy& policy_;
  DownloadWatcher& watcher_;
  PartialFile file_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::deque<int> missing_;  // parts that no lane is at
  int allowed_;              // lanes; fewer when the server is overloaded
  bool is_serial_ = false;   // the server gives whole files only
  int failures_ = 0;         // in a row
  Clock::time_point last_failure_{}, not_before_{}, last_progress_{};
  std::vector<uint64_t> reached_;  // by part: the offset from which on it is missing
  std::vector<int> trouble_;       // by part: how often a request for it failed
  std::unique_ptr<TrailingDigest> digest_;
};

uint64_t Download::BytesHere() const {
  uint64_t bytes = 0;
  for (int part = 0; part < file_.num_parts(); ++part) {
    const uint64_t reached =
        file_.is_done(part) ? file_.end(part) : reached_[static_cast<size_t>(part)];
    bytes += reached - file_.begin(part);
  }
  for (const auto& lane : lanes_) {
    if (lane->is_busy() && !lane->is_done() && !is_serial_) bytes += lane->got();
  }
  return std::min(bytes, file_.size());
}

void Download::StartLanes() {
  if (Clock::now() < not_before_) return;
  int busy = static_cast<int>(std::count_if(lanes_.begin(), lanes_.end(),
                                            [](const auto& lane) { return lane->is_busy(); }));
  for (size_t i = 0; i < lanes_.size() && busy < (is_serial_ ? 1 : allowed_); ++i) {
    if (lanes_[i]->is_busy()) continue;
    std::erase_if(missing_, [&](int part) { return file_.is_done(part); });
    if (missing_.empty()) return;
    // In one piece from the lowest on: it passes over all the others.
    const auto next =
        is_serial_ ? std::min_element(missing_.begin(), missing_.end()) : missing_.begin();
    const int part = *next;
    missing_.erase(next);
    const uint64_t at = reached_[static_cast<size_t>(part)];
    lanes_[i]->Start(at, is_serial_ ? file_.size() : file_.end(part), is_serial_ || at == 0);
    HttpFetch fetch{.url = task_.url, .token = task_.token};
    if (!is_serial_) {
      fetch.first = at;
      fetch.last = lanes_[i]->end() - 1;
    }
    transport_.Begin(static_cast<int>(i), fetch, *lanes_[i]);
    ++busy;
  }
}

Status Download::Finish(Lane& lane, const FetchOutcome& outcome) {
  lane.Stop();
  if (!lane.disk().ok()) return lane.disk();
  if (lane.saw_whole() && !is_serial_) {
    is_serial_ = true;
    watcher_.OnNote("the server cannot send parts of a file; downloading in one piece");
  }
  digest_->Advance(file_.Frontier());
  if (lane.is_done()) {
    if (!lane.complaint().empty()) ++trouble_[static_cast<size_t>(file_.PartAt(lane.at() - 1))];
    failures_ = 0;
    return Status();
  }
  const int part = file_.PartAt(lane.at());
  if (!file_.is_done(part)) {
    reached_[static_cast<size_t>(part)] = std::max(lane.at(), file_.begin(part));
    missing_.push_front(part);
  }
  if (lane.saw_whole() && !lane.takes_whole()) return Status();  // another lane takes it
  ++trouble_[static_cast<size_t>(part)];
  return Retry(lane, outcome);
}

Status Download::Retry(const Lane& lane, const FetchOutcome& outcome) {
  FetchOutcome judged = outcome;
  if (!lane.complaint().empty()) judged.why = lane.complaint();
  if (!IsTransient(judged)) return FinalError(judged, task_.url);
  // Connections that broke together are one failure. An eighth of a part is progress; so even a
  // server that drops every connection cannot hold us for ever.
  if (lane.got() >= std::max<uint64_t>(1, policy_.part_bytes / 8)) failures_ = 0;
  if (lane.started() >= last_failure_) {
    ++failures_;
    last_failure_ = Clock::now();
  }
  if (outcome.head.status == 429) allowed_ = std::max(1, allowed_ / 2);
  Result<milliseconds> wait = NextWait(policy_.retry, judged, std::max(1, failures_));
  if (!wait.ok()) {
    return Error(Code::kIo, "%s: %s; what arrived is kept: the same command goes on from there",
                 task_.url.c_str(), wait.status().message().c_str());
  }
  not_before_ = std::max(not_before_, Clock::now() + *wait);
  return Status();
}

Status Download::CheckStalls() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    if (!lane.is_busy() || Clock::now() - lane.last_byte() < policy_.stall_time) continue;
    transport_.Cancel(static_cast<int>(i));
    HEARTH_TRY(
        Finish(lane, {.slot = static_cast<int>(i),
                      .trouble = FetchTrouble::kInterrupted,
                      .why = Printf("no byte came for %g s",
                                    static_cast<double>(policy_.stall_time.count()) / 1000)}));
  }
  return Status();
}

milliseconds Download::WaitTime() const {
  constexpr milliseconds kLongest{100};  // so that progress is shown
  const auto until = std::chrono::duration_cast<milliseconds>(not_before_ - Clock::now());
  return std::clamp(std::min(until <= milliseconds(0) ? kLongest : until, policy_.stall_time / 4),
                    milliseconds(1), kLongest);
}

Status Download::FetchMissing() {
  while (true) {
    StartLanes();
    const bool is_idle = std::none_of(lanes_.begin(), lanes_.end(),
                                      [](const auto& lane) { return lane->is_busy(); });
    if (is_idle && file_.Frontier() == file_.size()) return Status();
    for (const FetchOutcome& outcome : transport_.Wait(WaitTime())) {
      HEARTH_TRY(Finish(*lanes_[static_cast<size_t>(outcome.slot)], outcome));
    }
    HEARTH_TRY(CheckStalls());
    constexpr milliseconds kApart{50};  // counting every part is not for every packet
    if (Clock::now() - last_progress_ < kApart) continue;
    last_progress_ = Clock::now();
    watcher_.OnProgress(BytesHere());
  }
}

void Download::StopAll() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i]->is_busy()) transport_.Cancel(static_cast<int>(i));
    lanes_[i]->Stop();
  }
}

Result<Digest> Download::SumUp() const {
  TrailingDigest digest(file_, task_.digest.kind);
  return digest.Finish();
}

Result<std::vector<int>> Download::FetchAgain(std::span<const int> parts) {
  std::vector<ChunkHash> before;
  for (const int part : parts) {
    before.push_back(file_.hash(part));
    file_.Forget(part);
    reached_[static_cast<size_t>(part)] = file_.begin(part);
    missing_.push_back(part);
  }
  HEARTH_TRY(FetchMissing());
  std::vector<int> changed;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (file_.hash(parts[i]) != before[i]) changed.push_back(parts[i]);
  }
  return changed;
}

Result<bool> Download::FetchSuspects(std::vector<int>& suspects) {
  const size_t batch = is_serial_ ? suspects.size() : static_cast<size_t>(policy_.num_connections);
  std::vector<int> disputed;
  for (size_t i = 0; i < suspects.size(); i += batch) {
    const std::span<const int> parts(&suspects[i], std::min(batch, suspects.size() - i));
    HEARTH_ASSIGN(const std::vector<int> changed, FetchAgain(parts));
    if (changed.empty()) continue;
    disputed.insert(disputed.end(), changed.begin(), changed.end());
    HEARTH_ASSIGN(const Digest found, SumUp());
    if (found == task_.digest) return true;
  }
  suspects = std::move(disputed);
  return false;
}

Status Download::Repair() {
  watcher_.OnNote("the file does not match its checksum; fetching parts again to find the bad one");
  std::vector<int> suspects(static_cast<size_t>(file_.num_parts()));
  std::iota(suspects.begin(), suspects.end(), 0);
  // A part that gave trouble before is likelier to be wrong.
  std::stable_sort(suspects.begin(), suspects.end(), [&](int a, int b) {
    return trouble_[static_cast<size_t>(a)] > trouble_[static_cast<size_t>(b)];
  });
  // A part that came differently the second time may be wrong either time: it is fetched again. One
  // that came the same twice is what the server has.
  constexpr int kMaxRounds = 5;
  for (int round = 0; round < kMaxRounds && !suspects.empty(); ++round) {
    HEARTH_ASSIGN(const bool is_right, FetchSuspects(suspects));
    if (is_right) return Status();
  }
  return Error(Code::kCorrupt,
               "%s: the file does not match its checksum (%s), also after every part was fetched "
               "again; nothing of it was kept. Try again later; if that does not help, the file at "
               "the source is damaged",
               task_.url.c_str(), task_.digest.text().c_str());
}

Status Download::Run() {
  digest_ = std::make_unique<TrailingDigest>(file_, task_.digest.kind);
  digest_->Advance(file_.Frontier());
  HEARTH_TRY(FetchMissing());
  watcher_.OnProgress(BytesHere());
  HEARTH_ASSIGN(const Digest found, digest_->Finish());
  if (found != task_.digest) {
    Status status = Repair();
    if (status.code() == Code::kCorrupt) file_.Discard();
    HEARTH_TRY(status);
  }
  return file_.Place();
}

}  // namespace

Status DownloadFile(Transport& transport, const DownloadTask& task, const DownloadPolicy& policy,
                    DownloadWatcher& watcher) {
  HEARTH_CHECK(policy.num_connections > 0 && policy.part_bytes > 0);
  const uint64_t part_bytes = std::max(policy.part_bytes, task.size / kMaxParts + 1);
  HEARTH_ASSIGN(PartialFile file, PartialFile::Open(task.path, {.size = task.size,
                                                                .part_bytes = part_bytes,
                                                                .digest = task.digest,
                                                                .identity = task.identity}));
  if (const uint64_t here = file.DoneBytes(); here > 0) {
    watcher.OnNote(Printf("resuming: %.0f %% is here already",
                          100.0 * static_cast<double>(here) / static_cast<double>(task.size)));
  }
  return Download(transport, task, policy, watcher, std::move(file)).Run();
}

}  // namespace hearth
