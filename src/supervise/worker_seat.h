// SPDX-License-Identifier: Apache-2.0
// What a supervisor hands to its worker over exec: the listening sockets, the shared page and a
// pipe, as descriptors that a variable of the environment names.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "supervise/shared_page.h"
namespace hearth {

// Thread: any.
class WorkerSeat {
 public:
  static constexpr const char* kVariable = "HEARTH_WORKER";

  // Whether this process was started by a supervisor; until Take.
  static bool IsOffered();
  // The seat of this process, once; null when no supervisor started it.
  static Result<std::unique_ptr<WorkerSeat>> Take();
  ~WorkerSeat();
  WorkerSeat(const WorkerSeat&) = delete;
  WorkerSeat& operator=(const WorkerSeat&) = delete;

  // In the order that the supervisor has them; -1: none.
  int listener(size_t index) const;
  // "READY=1" or "STOPPING=1", to the supervisor, who tells the service manager.
  void Tell(std::string_view state) const;
  SharedPage& page() { return *page_; }

  // For the supervisor: the variable's value, and back.
  struct Descriptors {
    int page = -1, pipe = -1;
    std::vector<int> listeners = {};
  };
  static std::string AsText(const Descriptors& descriptors);
  static Result<Descriptors> FromText(std::string_view text);

 private:
  WorkerSeat(std::unique_ptr<SharedPage> page, Descriptors descriptors)
      : page_(std::move(page)), descriptors_(std::move(descriptors)) {}
  const std::unique_ptr<SharedPage> page_;
  const Descriptors descriptors_;
};

}  // namespace hearth
