// SPDX-License-Identifier: Apache-2.0
// The fields that every OpenAI-like request shares: sampling, stops, the shape of the answer, and
// what only this server and vLLM know.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

std::span<const Field> SharedFields();
// Both tables in one, in order of their names.
std::vector<Field> JoinFields(std::span<const Field> own, std::span<const Field> shared);

// Reads all of SharedFields into `out`.
ApiStatus ReadShared(const Fields& fields, TurnRequest& out);

Priority PriorityOf(const Fields& fields);

// `{"type": "json_schema", …}` and its like, as chat and (with `schema` at the top) responses write
// it.
ApiStatus ReadResponseFormat(const Json& format, const std::string& path, AnswerShape& out);
// Whether the turn's tools can meet its tool_choice.
ApiStatus CheckToolChoice(const TurnRequest& turn);
// Any client's word for how much to think, into the conversation's effort or a bound of 0.
ApiStatus ReadEffort(const std::string& word, const std::string& path, TurnRequest& out);

}  // namespace hearth
