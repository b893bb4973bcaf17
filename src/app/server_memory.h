// SPDX-License-Identifier: Apache-2.0
// What a server takes beside its models: a plan that leaves nothing for it would be kept until the
// first request.
#pragma once
#include <cstdint>

#include "base/result.h"
namespace hearth {

// Of what the process may hold: text of models, sockets, books, and what requests hold
// (`request_bytes`). Where address space is limited, the stacks of its threads besides, of which
// `num_threads` compute. 0: what the machine allows.
int64_t ServerMemoryBytes(uint64_t request_bytes, int num_threads);

// kExhausted, with the numbers, where not even a server without a model has room.
Status CheckServerFits(int64_t server_bytes, uint64_t usable_bytes);

}  // namespace hearth
