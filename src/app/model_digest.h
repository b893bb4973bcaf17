// SPDX-License-Identifier: Apache-2.0
// A number that stands for a model's weights and description: what is cached of one model must
// never be taken for another's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
namespace hearth {

// The files that a model was read from.
Result<std::vector<std::string>> FilesOf(const Model& model, const std::string& path);
// What the file system says of them: changes whenever one is written, replaced or touched.
Result<std::string> IdentityOf(const std::vector<std::string>& files);
// Reads all of them.
Result<uint64_t> DigestOf(const std::vector<std::string>& files);

}  // namespace hearth
