// SPDX-License-Identifier: Apache-2.0
// The flags of hearth serve.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/agent_check.h"
#include "app/confine_serve.h"
#include "app/kv_events.h"
#include "app/model_offers.h"
#include "app/open_batches.h"
#include "app/serve_life.h"
#include "base/result.h"
#include "http/http_server.h"
#include "server/access/guard.h"
#include "server/turns/turn_service.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct ServeFlags {
  std::vector<std::string> models;  // names and paths
  OfferFlags offers;
  std::string name, keys_path, date, responses_path;
  std::vector<std::string> served_names;  // "*": any
  EngineFlags engine;
  HttpOptions http;
  GuardPolicy guard;
  std::string certificate, private_key;
  double drain_s = 30;
  LifeFlags life;
  uint64_t request_bytes = 0;  // 0: from the machine's
  int control_port = -1;       // none
  bool public_metrics = false;
  std::string log_path;
  bool is_quiet = false;
  std::string trace_url;   // empty: no traces
  double trace_share = 1;  // of the requests that do not say
  ConfineMode confine = ConfineMode::kAuto;
  Neutralise neutralise = Neutralise::kHeaders;
  UnknownFields unknown_fields = UnknownFields::kRefuse;
  int overload_status = 429;
  AgentFlags agent;
  EventFlags events;
  BatchFlags batches;

  // One that is named is loaded before the server listens, and stays; others come and go.
  bool has_one() const { return models.size() == 1 && !offers.any(); }
};

// CLI11 needs the flags to stay where they are.
void AddServeOptions(CLI::App& sub, ServeFlags& flags);
// What no flag can see alone.
Status CheckFlags(const ServeFlags& flags);

}  // namespace hearth
