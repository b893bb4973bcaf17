// SPDX-License-Identifier: Apache-2.0
// POST /tokenize and /detokenize: what a prompt becomes, without running it.
#pragma once
#include <span>

#include "http/router.h"
#include "server/dialects/fields.h"
#include "server/turns/turn_service.h"
namespace hearth {

std::span<const Field> TokenizeFields();
std::span<const Field> DetokenizeFields();
// `service` outlives the router.
void AddTokenRoutes(TurnService& service, Router& router);

}  // namespace hearth
