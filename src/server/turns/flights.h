// SPDX-License-Identifier: Apache-2.0
// Which requests are being worked on, kept where it outlives this process: one that was there when
// two processes died is not worked on a third time for the key that sent it. The text of a request
// is not kept.
#pragma once
#include <memory>
#include <string_view>

#include "server/turns/api_error.h"
namespace hearth {

// A request under way. Its destructor says that it is no longer.
// Thread: any.
class Flight {
 public:
  virtual ~Flight() = default;
  // It came to its end, whatever that was: it is none that ends processes. Once.
  virtual void Land() = 0;
};

// Thread: any.
class FlightBook {
 public:
  virtual ~FlightBook() = default;
  // Null: this request of this owner, the key's id, ended processes before.
  virtual std::unique_ptr<Flight> Begin(std::string_view owner, std::string_view path,
                                        std::string_view body) = 0;
};

// What a request is told that is not worked on again.
ApiError EndedProcesses();

}  // namespace hearth
