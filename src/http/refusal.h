// SPDX-License-Identifier: Apache-2.0
// What a refused client reads where no dialect has words of its own.
#pragma once
#include <string>
#include <string_view>

#include "http/head_check.h"
#include "http/message.h"
namespace hearth {

std::string DefaultRefusal(const HttpRefusal& refusal);
HttpReply::Headers RefusalHeaders(const HttpRefusal& refusal);

// Said in clear: whoever forgot the s of https sees why, instead of an empty reply.
inline constexpr std::string_view kNeedsTls =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 41\r\n"
    "connection: close\r\n\r\nthis port speaks TLS alone: use https://\n";

}  // namespace hearth
