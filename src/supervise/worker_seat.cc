// SPDX-License-Identifier: Apache-2.0
#include "supervise/worker_seat.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace hearth {

std::string WorkerSeat::AsText(const Descriptors& descriptors) {
  std::string text = Printf("%d,%d", descriptors.page, descriptors.pipe);
  for (const int listener : descriptors.listeners) text += Printf(",%d", listener);
  return text;
}

Result<WorkerSeat::Descriptors> WorkerSeat::FromText(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < -1 || (rest != end && *rest != ',')) {
      return Error(Code::kInvalid,
                   "%s: expected descriptors, found %s; it is set by `hearth serve` for its "
                   "worker, not by hand",
                   kVariable, Quoted(text).c_str());
    }
    numbers.push_back(number);
    if (rest == end) break;
    at = rest + 1;
  }
  if (numbers.size() < 2) {
    return Error(Code::kInvalid, "%s: expected at least 2 descriptors, found %s", kVariable,
                 Quoted(text).c_str());
  }
  return Descriptors{numbers[0], numbers[1], {numbers.begin() + 2, numbers.end()}};
}

bool WorkerSeat::IsOffered() { return std::getenv(kVariable) != nullptr; }

Result<std::unique_ptr<WorkerSeat>> WorkerSeat::Take() {
  const char* given = std::getenv(kVariable);
  if (given == nullptr) return std::unique_ptr<WorkerSeat>();
  const std::string text = given;
  ::unsetenv(kVariable);
  HEARTH_ASSIGN(Descriptors descriptors, FromText(text));
  HEARTH_ASSIGN(std::unique_ptr<SharedPage> page,
                SharedPage::Adopt(descriptors.page).Within(kVariable));
  // Whatever this process might ever start gets none of them.
  ::fcntl(descriptors.page, F_SETFD, FD_CLOEXEC);
  ::fcntl(descriptors.pipe, F_SETFD, FD_CLOEXEC);
  for (const int listener : descriptors.listeners) ::fcntl(listener, F_SETFD, FD_CLOEXEC);
  return std::unique_ptr<WorkerSeat>(new WorkerSeat(std::move(page), std::move(descriptors)));
}

WorkerSeat::~WorkerSeat() { ::close(descriptors_.pipe); }

int WorkerSeat::listener(size_t index) const {
  return index < descriptors_.listeners.size() ? descriptors_.listeners[index] : -1;
}

void WorkerSeat::Tell(std::string_view state) const {
  const std::string line = std::string(state) + "\n";
  // A supervisor that is gone takes this process along; there is nobody else to tell.
  [[maybe_unused]] const ssize_t written = ::write(descriptors_.pipe, line.data(), line.size());
}

}  // namespace hearth
