// SPDX-License-Identifier: Apache-2.0
// Bodies of multipart/form-data (RFC 7578), as clients upload files with. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

struct FormPart {
  std::string name, filename;  // the filename is empty where none was given
  std::string_view content;    // within the body
};

// The parts of a body, in order; at most 16, with heads of at most 4 KiB. `type` is the request's
// content-type with its boundary. Parts in other encodings are refused.
Result<std::vector<FormPart>> ParseForm(std::string_view type, std::string_view body);

}  // namespace hearth
