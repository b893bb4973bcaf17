// SPDX-License-Identifier: Apache-2.0
// The APIs that are served, one line each, and how a request that reached none of them is refused.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "http/router.h"
#include "server/dialects/batches/batch_desk.h"
#include "server/turns/dialect.h"
#include "server/turns/response_store.h"
namespace hearth {

// In the order of the documents. `responses` outlives them. `admin` is whose key may load and
// unload models. `batches` outlives them too; null: there are none.
Dialects AllDialects(ResponseStore& responses, Auth admin = Auth::kAdmin,
                     BatchDesk* batches = nullptr);

// The body of an error in the words of the dialect whose path `path` is, or begins with; OpenAI's
// where there is none.
// Whose path begins how. Made once: a request that is refused for want of memory must not build all
// routes anew.
using PathBeginnings = std::vector<std::pair<std::string, std::shared_ptr<const Dialect>>>;
PathBeginnings BeginningsOf(const Dialects& dialects);
std::string DescribeErrorAt(const PathBeginnings& beginnings, const std::string& path,
                            const ApiError& error);
std::string DescribeErrorAt(const Dialects& dialects, const std::string& path,
                            const ApiError& error);

}  // namespace hearth
