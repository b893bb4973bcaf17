// SPDX-License-Identifier: Apache-2.0
// The part of the service that gets a request its model: now, or when it is loaded.
#include <utility>

#include "server/turns/session_key.h"
#include "server/turns/turn_service_impl.h"
#include "server/turns/why_ended.h"
#include "server/turns/within_memory.h"

namespace hearth {
TurnService::Impl::Patience TurnService::Impl::PatienceOf(
    const std::shared_ptr<Reading>& reading) const {
  Patience out;
  const TurnRequest& turn = reading->read.turn;
  out.timeout_us = turn.timeout_us;
  if (!turn.streams) return out;
  const auto facts = [this, reading] {
    // The model as its replies will call it.
    const std::string& asked = reading->read.turn.model;
    const std::vector<ModelListing> all = source.List();
    const ModelListing* listing = FindListing(all, asked);
    const std::string name = listing != nullptr ? listing->name : asked;
    return FactsOf(*reading, name, "");
  };
  out.writer = [reading, facts] { return reading->read.write(reading->read.turn, facts()); };
  if (reading->read.detach) {
    out.detach = [reading, facts](std::shared_ptr<HttpReply> client) {
      return reading->read.detach(facts(), std::move(client));
    };
  }
  return out;
}

ApiStatus TurnService::Impl::BeginWait(const std::shared_ptr<Arrival>& arrival,
                                       const std::string& model, Patience patience) {
  const bool is_detached = patience.detach != nullptr;
  if (is_detached) {
    HEARTH_ASSIGN(arrival->reply, patience.detach(arrival->reply));
  }
  ModelWait::Form form{model, {{"x-request-id", arrival->id}, {"request-id", arrival->id}}};
  if (!arrival->traceparent.empty()) form.headers.push_back({"traceparent", arrival->traceparent});
  if (!arrival->session_key.empty()) form.headers.push_back({kSessionHeader, arrival->session_key});
  form.ping_every = options.ping_every;
  form.writer = std::move(patience.writer);
  form.timeout_us = patience.timeout_us;
  const auto wait = std::make_shared<ModelWait>(arrival->reply, std::move(form),
                                                std::chrono::steady_clock::now());
  arrival->wait = wait;
  arrival->flight = nullptr;  // it takes off again when it is read on
  {
    const MutexLock lock(mu);
    waiting.push_back(arrival);
  }
  const auto leave = [weak = weak_from_this(),
                      left = std::weak_ptr<Arrival>(arrival)](const ApiError& why) {
    const auto self = weak.lock();
    const auto gone = left.lock();
    if (self == nullptr || gone == nullptr || !gone->wait->Take()) return;
    self->source.Forget(gone->wait->ticket());
    self->Refuse(*gone, why);
  };
  const ApiStatus begun = WithinMemory([&]() -> ApiStatus {
    if (is_detached) wait->Queue();
    // One that outlives its connection ends with this alone.
    if (is_detached && arrival->account != nullptr) {
      arrival->account->OnCut([leave] { leave(CutForMemory()); });
    }
    arrival->reply->OnGone([leave] { leave(ClientLeft()); });
    return {};
  });
  // Refused, it is nobody else's to answer; unless somebody has.
  if (!begun.ok() && wait->Take()) return begun;
  return {};
}

ApiStatus TurnService::Impl::WithModel(const std::shared_ptr<Arrival>& arrival, const ModelAsk& ask,
                                       Patience patience, const ModelWork& work) {
  HEARTH_ASSIGN(const ModelSource::Answer there, source.Ask(ask, nullptr));
  if (there.now != nullptr) return work(there.now);
  HEARTH_TRY(BeginWait(arrival, ask.name, std::move(patience)));
  const std::shared_ptr<ModelWait> wait = arrival->wait;
  const std::weak_ptr<Impl> weak = weak_from_this();
  const auto then = [weak, arrival, work](ApiResult<HeldModel> held) {
    const auto self = weak.lock();
    if (self != nullptr && arrival->wait->Take()) self->GoOn(arrival, std::move(held), work);
  };
  // Whoever asks finds no memory: then nobody else may answer it, as when it is refused.
  ApiResult<ModelSource::Answer> answer = OutOfMemory();
  WithinMemoryOr([&] { answer = source.Ask(ask, then); }, [] {});
  if (answer.ok() && answer->now == nullptr) {
    wait->set_ticket(answer->ticket);
    // Gone while it was put into line.
    if (wait->is_taken()) source.Forget(answer->ticket);
    return {};
  }
  if (!wait->Take()) return {};  // gone, and told so
  if (!answer.ok()) return answer.error();
  arrival->reply = wait->reply();
  return work(answer->now);
}

void TurnService::Impl::EndLate() {
  std::vector<std::shared_ptr<Arrival>> late;
  {
    const MutexLock lock(mu);
    const auto now = std::chrono::steady_clock::now();
    for (const auto& arrival : waiting) {
      if (!arrival->wait->LeftUs(now)) late.push_back(arrival);
    }
  }
  for (const auto& arrival : late) {
    if (!arrival->wait->Take()) continue;
    source.Forget(arrival->wait->ticket());
    WithinMemoryOr([&] { Refuse(*arrival, TimedOutLoading(arrival->wait->model())); },
                   [&] { arrival->reply->Abort(); });
  }
}

// On whatever thread had the news: the reading goes on where requests are read.
void TurnService::Impl::GoOn(const std::shared_ptr<Arrival>& arrival, ApiResult<HeldModel> held,
                             const ModelWork& work) {
  const auto go_on = [&] {
    if (!held.ok()) return Refuse(*arrival, held.error());
    arrival->reply = arrival->wait->reply();
    Read(arrival, [work, model = *held] { return work(model); });
  };
  WithinMemoryOr(go_on, [&] { arrival->reply->Abort(); });
}

// For routes that are no turns.
ApiStatus TurnService::Impl::Answer(const std::shared_ptr<Arrival>& arrival,
                                    const DialectRoute& route, const TurnService& service) {
  auto ignored = std::make_shared<std::vector<std::string>>();
  HEARTH_ASSIGN(Json body, Body(*arrival, *ignored));
  const auto send = [arrival, ignored](ApiResult<Json> said) -> ApiStatus {
    if (!said.ok()) return said.error();
    HttpReply::Headers headers;
    if (!ignored->empty()) {
      headers.push_back({"x-hearth-ignored-fields", NamesForHeader(*ignored)});
    }
    SendJson(*arrival->reply, *said, std::move(headers));
    return {};
  };
  if (route.answer) return send(route.answer(service, body, arrival->http));
  // Before its model is looked for: a name beyond its bounds is a bad field, not one unknown.
  if (const ApiResult<Fields> fields = ReadFields(body, route.endpoint.fields); !fields.ok()) {
    return fields.error();
  }
  const Json* name = body.Find("model");
  const bool is_named = name != nullptr && name->string() != nullptr;
  const ModelAsk ask{is_named ? *name->string() : "", {}, arrival->client};
  return WithModel(arrival, ask, {},
                   [arrival, send, &service, answer = route.model_answer,
                    body = std::make_shared<Json>(std::move(body))](const HeldModel& held) {
                     return send(answer(service, held->model, *body, arrival->http));
                   });
}

ApiStatus TurnService::CheckModel(const std::string& name) const {
  return impl_->source.Check(name);
}

std::vector<ModelListing> TurnService::models() const { return impl_->source.List(); }

ApiStatus TurnService::KeepModel(const std::string& name, std::optional<bool> pin,
                                 std::optional<double> keep_alive_s) const {
  return impl_->source.Keep(name, pin, keep_alive_s);
}

ApiStatus TurnService::UnloadModel(const std::string& name) const {
  return impl_->source.Unload(name);
}

std::string TurnService::version() const { return impl_->source.version(); }

}  // namespace hearth
