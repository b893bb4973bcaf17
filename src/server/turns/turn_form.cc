// SPDX-License-Identifier: Apache-2.0
// The part of the service that says how an exchange answers: its names, and what its headers tell.
#include <utility>

#include "server/turns/reply_masks.h"
#include "server/turns/turn_service_impl.h"

namespace hearth {

Exchange::Form TurnService::Impl::FormOf(const Arrival& arrival, const Reading& reading) {
  const TurnRequest& turn = reading.read.turn;
  Exchange::Form form{arrival.id, arrival.http.key_id, arrival.traceparent, turn.streams,
                      turn.stops, turn.num_choices,    arrival.at,          arrival.dialect};
  form.client = arrival.client;
  form.account = arrival.account;
  form.mask_field = MaskField(turn);
  std::vector<std::string> ignored = reading.ignored;
  ignored.insert(ignored.end(), turn.ignored_fields.begin(), turn.ignored_fields.end());
  form.ignored_fields = NamesForHeader(ignored);
  form.has_generic_tools = turn.start && turn.start->has_generic_calls;
  form.wants_progress = turn.wants_progress;
  form.flight = arrival.flight;
  form.session_key = arrival.session_key;
  return form;
}

}  // namespace hearth
