// SPDX-License-Identifier: Apache-2.0
// POST /tokenize and /detokenize: what a prompt becomes, without running it.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeTokenDialect();

}  // namespace hearth
