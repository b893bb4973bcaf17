// SPDX-License-Identifier: Apache-2.0
#include "supervise/shared_page.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace hearth {
namespace {

constexpr uint64_t kMagic = 0x3265676150687448;  // also tells layouts apart

using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free);  // so that it works between processes

struct Flight {
  Word is_there, first, second;
};
struct Request {
  Word first, second, is_refused, has_landed;
};

}  // namespace

struct SharedPage::Layout {
  Word magic;
  Word secret[4];
  Word num_restarts, last_by_signal, last_number, last_end_s;
  Word num_beats;
  Word num_requests;
  Request requests[PoisonList::kMaxEntries];
  Flight flights[kMaxFlights];
};

Result<std::unique_ptr<SharedPage>> SharedPage::Map(int descriptor) {
  void* at = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    return Error(Code::kIo, "the memory shared with the worker: %s", std::strerror(error));
  }
  return std::unique_ptr<SharedPage>(new SharedPage(descriptor, static_cast<Layout*>(at)));
}

Result<std::unique_ptr<SharedPage>> SharedPage::Make() {
  const int descriptor = ::memfd_create("hearth", MFD_CLOEXEC);
  if (descriptor < 0 || ::ftruncate(descriptor, sizeof(Layout)) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    return Error(Code::kIo, "the memory shared with the worker: %s", std::strerror(error));
  }
  HEARTH_ASSIGN(std::unique_ptr<SharedPage> page, Map(descriptor));
  page->layout_->magic = kMagic;
  uint64_t random[4] = {};
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    return Error(Code::kIo, "random bytes: %s", std::strerror(errno));
  }
  for (size_t i = 0; i < std::size(random); ++i) page->layout_->secret[i] = random[i];
  return page;
}

Result<std::unique_ptr<SharedPage>> SharedPage::Adopt(int descriptor) {
  struct stat st{};
  if (::fstat(descriptor, &st) != 0 || st.st_size != static_cast<off_t>(sizeof(Layout))) {
    return Error(Code::kInvalid, "descriptor %d is not the memory of a supervisor", descriptor);
  }
  HEARTH_ASSIGN(std::unique_ptr<SharedPage> page, Map(descriptor));
  if (page->layout_->magic != kMagic) {
    return Error(Code::kInvalid, "descriptor %d is not the memory of a supervisor", descriptor);
  }
  return page;
}

SharedPage::~SharedPage() {
  ::munmap(layout_, sizeof(Layout));
  ::close(descriptor_);
}

void SharedPage::Reset(const WorkerHistory& history, std::span<const PoisonList::Entry> requests) {
  layout_->num_restarts = history.num_restarts;
  layout_->last_by_signal = history.last_by_signal ? 1 : 0;
  layout_->last_number = static_cast<uint64_t>(history.last_number);
  layout_->last_end_s = static_cast<uint64_t>(history.last_end_s);
  layout_->num_beats = 0;
  for (Flight& flight : layout_->flights) flight.is_there = 0;
  const size_t count = std::min(requests.size(), PoisonList::kMaxEntries);
  for (size_t i = 0; i < count; ++i) {
    Request& request = layout_->requests[i];
    request.first = requests[i].digest[0];
    request.second = requests[i].digest[1];
    request.is_refused = requests[i].is_refused ? 1 : 0;
    request.has_landed = 0;
  }
  layout_->num_requests = count;
}

std::vector<RequestDigest> SharedPage::in_flight() const {
  std::vector<RequestDigest> out;
  for (const Flight& flight : layout_->flights) {
    if (flight.is_there != 0) out.push_back({flight.first, flight.second});
  }
  return out;
}

std::vector<RequestDigest> SharedPage::landed() const {
  std::vector<RequestDigest> out;
  const size_t count = std::min<size_t>(layout_->num_requests, PoisonList::kMaxEntries);
  for (size_t i = 0; i < count; ++i) {
    const Request& request = layout_->requests[i];
    if (request.has_landed != 0) out.push_back({request.first, request.second});
  }
  return out;
}

uint64_t SharedPage::num_beats() const { return layout_->num_beats; }

void SharedPage::Beat() { ++layout_->num_beats; }

std::string SharedPage::secret() const {
  std::string out;
  for (const Word& word : layout_->secret) {
    const uint64_t part = word;
    out.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
  return out;
}

WorkerHistory SharedPage::history() const {
  WorkerHistory history;
  history.num_restarts = layout_->num_restarts;
  history.last_by_signal = layout_->last_by_signal != 0;
  history.last_number = static_cast<int>(layout_->last_number.load());
  history.last_end_s = static_cast<int64_t>(layout_->last_end_s.load());
  return history;
}

bool SharedPage::IsRefused(const RequestDigest& digest) const {
  const size_t count = std::min<size_t>(layout_->num_requests, PoisonList::kMaxEntries);
  for (size_t i = 0; i < count; ++i) {
    const Request& request = layout_->requests[i];
    if (request.first == digest[0] && request.second == digest[1]) return request.is_refused != 0;
  }
  return false;
}

int SharedPage::Begin(const RequestDigest& digest) {
  const MutexLock lock(mu_);
  for (size_t i = 0; i < kMaxFlights; ++i) {
    const size_t place = (next_ + i) % kMaxFlights;
    Flight& flight = layout_->flights[place];
    if (flight.is_there != 0) continue;
    flight.first = digest[0];
    flight.second = digest[1];
    flight.is_there = 1;  // last: before it the digest is not whole
    next_ = place + 1;
    return static_cast<int>(place);
  }
  return kNoPlace;
}

void SharedPage::End(int place, bool landed) {
  if (place == kNoPlace) return;
  const MutexLock lock(mu_);
  Flight& flight = layout_->flights[place];
  flight.is_there = 0;
  if (!landed) return;
  const size_t count = std::min<size_t>(layout_->num_requests, PoisonList::kMaxEntries);
  for (size_t i = 0; i < count; ++i) {
    Request& request = layout_->requests[i];
    if (request.first == flight.first && request.second == flight.second) request.has_landed = 1;
  }
}

}  // namespace hearth
