// SPDX-License-Identifier: Apache-2.0
// OpenAI's files and batches: many requests in one file, answered when nobody else wants anything.
#pragma once
#include <memory>

#include "server/dialects/batches/batch_desk.h"
#include "server/turns/dialect.h"
namespace hearth {

// `desk` outlives it; null: every route says that it is not set up.
std::shared_ptr<const Dialect> MakeBatchDialect(BatchDesk* desk);

}  // namespace hearth
