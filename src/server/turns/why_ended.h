// SPDX-License-Identifier: Apache-2.0
// What a client is told of a reply that did not reach its end.
#pragma once
#include <string>

#include "engine/request.h"
#include "server/turns/api_error.h"
namespace hearth {

// `mask_field` is what is to blame when its mask failed.
ApiError WhyItEnded(const RequestRecord& record, const std::string& mask_field);

// 499, in the number that nginx made known: nobody reads it, it is for logs.
ApiError ClientLeft();

// 503: the server ran out of memory for requests and gave up the largest of whoever holds most.
ApiError CutForMemory();

}  // namespace hearth
