// SPDX-License-Identifier: Apache-2.0
#include "app/model_offers.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "app/flag_checks.h"
#include "app/model_argument.h"
#include "app/open_backend.h"
#include "base/duration.h"
#include "base/near_match.h"
#include "base/terminal.h"
#include "server/turns/served_model.h"
#include "store/inventory.h"

namespace hearth {
namespace {

constexpr double kDefaultKeepAlive = 300;

Status Add(Offers& out, const ServedSpec& common, HostedModel model, const std::string& path) {
  HEARTH_TRY(CheckServedName(model.name));
  for (const HostedModel& other : out.models) {
    if (other.name == model.name) {
      return Error(Code::kInvalid, "two models are called %s: give each once",
                   Quoted(model.name).c_str());
    }
  }
  ServedSpec spec = common;
  spec.path = path;
  spec.name = model.name;
  out.specs.push_back(std::move(spec));
  out.models.push_back(std::move(model));
  return Status();
}

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Clients know a model by its name. Where its files are is for the log alone.
Status WithoutPlace(const ServedSpec& spec, const Status& failed) {
  std::string told = failed.message();
  PrintError("hearth: model %s: %s\n", Quoted(spec.name).c_str(), told.c_str());
  ReplaceAll(told, spec.path, spec.name);
  const std::string folder = std::filesystem::path(spec.path).parent_path().string();
  if (folder.size() > 1) ReplaceAll(told, folder + "/", "");  // other parts of the same model
  return Error(failed.code(), "%s", told.c_str());
}

Status AddStore(Offers& out, const ServedSpec& common, const Environment& environment) {
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(environment));
  const Inventory inventory = TakeInventory(places);
  out.warnings = inventory.problems;
  for (const StoredModel& model : inventory.models) {
    const auto same = [&](const HostedModel& other) { return other.name == model.name; };
    // Of equal names the first counts, as it does elsewhere.
    if (!model.is_complete || std::any_of(out.models.begin(), out.models.end(), same)) continue;
    HostedModel hosted{model.name};
    hosted.file_bytes = static_cast<int64_t>(model.bytes);
    HEARTH_TRY(Add(out, common, std::move(hosted), model.path));
  }
  if (!out.models.empty()) return Status();
  return Error(Code::kNotFound,
               "no models on this machine yet: get one with `hearth pull smollm2`, or name a model "
               "file: `hearth serve FILE`");
}

Status AddGiven(Offers& out, const std::string& given, const ServedSpec& common,
                const Environment& environment) {
  HEARTH_ASSIGN(const ModelArgument found, FindModelArgument(given, environment));
  const std::filesystem::path path(found.path);
  HostedModel hosted{found.name.empty() ? path.stem().string() : found.name};
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (!error) hosted.file_bytes = static_cast<int64_t>(bytes);
  return Add(out, common, std::move(hosted), found.path);
}

std::vector<std::string> NamesOf(const Offers& offers) {
  std::vector<std::string> names;
  for (const HostedModel& each : offers.models) names.push_back(each.name);
  return names;
}

// -1: none is called that.
int IndexOf(const Offers& offers, const std::string& name) {
  for (size_t i = 0; i < offers.models.size(); ++i) {
    if (IsSameModel(name, offers.models[i].name)) return static_cast<int>(i);
  }
  return -1;
}

Result<int64_t> WholeNumber(const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  if (!CLI::detail::lexical_cast(text, value) || value < least || value > most) {
    return Error(Code::kInvalid, "expected a whole number from %lld to %lld, found %s",
                 static_cast<long long>(least), static_cast<long long>(most), Quoted(text).c_str());
  }
  return value;
}

constexpr const char* kSettingKeys[] = {"context", "keep-alive", "kv-memory", "pin", "served-name"};

Status Set(const std::string& key, std::string value, HostedModel& model, ServedSpec& spec) {
  if (key == "context") {
    HEARTH_ASSIGN(const int64_t tokens, WholeNumber(value, 16, 1 << 27));
    spec.engine.max_context = static_cast<int>(tokens);
  } else if (key == "keep-alive") {
    HEARTH_ASSIGN(model.keep_alive_s, ParseDuration(value));
  } else if (key == "kv-memory") {
    const std::string problem = Size()(value);
    if (!problem.empty()) return Status(Code::kInvalid, problem);
    HEARTH_ASSIGN(spec.engine.kv_bytes, WholeNumber(value, 0, int64_t{1} << 50));
  } else if (key == "pin") {
    if (value != "true" && value != "false") {
      return Error(Code::kInvalid, "expected true or false, found %s", Quoted(value).c_str());
    }
    model.is_pinned = value == "true";
  } else if (key == "served-name") {
    HEARTH_TRY(CheckServedName(value));
    model.aliases.push_back(value);
    spec.aliases.push_back(value);
  } else {
    const std::vector<std::string> known(std::begin(kSettingKeys), std::end(kSettingKeys));
    return Error(Code::kInvalid, "unknown setting %s%s", Quoted(key).c_str(),
                 DidYouMean(key, known).c_str());
  }
  return Status();
}

// NAME.KEY=VALUE; names may have dots and keys have none.
struct Setting {
  std::string name, key, value;
};
Result<Setting> ParseSetting(const std::string& text) {
  const size_t equals = text.find('=');
  const size_t dot = text.rfind('.', equals);
  if (equals == std::string::npos || dot == std::string::npos || dot == 0) {
    return Error(Code::kInvalid, "expected NAME.KEY=VALUE, found %s", Quoted(text).c_str());
  }
  return Setting{text.substr(0, dot), text.substr(dot + 1, equals - dot - 1),
                 text.substr(equals + 1)};
}

Status ApplySetting(const std::string& text, Offers& out) {
  HEARTH_ASSIGN(const Setting setting, ParseSetting(text));
  const int model = IndexOf(out, setting.name);
  if (model < 0) {
    out.warnings.push_back("a setting is for " + Quoted(setting.name) + ", which is not served" +
                           DidYouMean(setting.name, NamesOf(out)));
    return Status();
  }
  const auto at = static_cast<size_t>(model);
  return Set(setting.key, setting.value, out.models[at], out.specs[at])
      .Within(setting.name + "." + setting.key);
}

// What is wrong with a setting, whatever models there are; empty: nothing.
std::string ProblemOf(const std::string& text) {
  Result<Setting> setting = ParseSetting(text);
  if (!setting.ok()) return setting.status().message();
  HostedModel model;
  ServedSpec spec;
  return Set(setting->key, setting->value, model, spec).message();
}

Status CheckNames(const Offers& offers) {
  std::vector<std::string> seen = NamesOf(offers);
  for (const HostedModel& each : offers.models) {
    for (const std::string& alias : each.aliases) {
      if (alias == "*") {
        return Error(Code::kInvalid, "served-name '*' needs a server with one model");
      }
      if (std::find(seen.begin(), seen.end(), alias) != seen.end()) {
        return Error(Code::kInvalid, "two models are called %s", Quoted(alias).c_str());
      }
      seen.push_back(alias);
    }
  }
  return Status();
}

}  // namespace

void AddOfferFlags(CLI::App& sub, OfferFlags& flags) {
  sub.add_option("--pin", flags.pins,
                 "Model that is loaded at the start and never leaves; may be given several times")
      ->option_text("NAME ...");
  sub.add_option(
         "--memory", flags.memory_bytes,
         "Memory for all models together, such as 24GiB; default: what this machine and its "
         "limits leave. Models are loaded when they are asked for, and leave for others")
      ->option_text("SIZE")
      ->transform(Size());
  sub.add_option("--keep-alive", flags.keep_alive,
                 "How long a model stays loaded without requests, such as 30s, 5m or 1h; -1: until "
                 "another one needs its memory; default: 5m")
      ->option_text("TIME");
  sub.add_option("--model-setting", flags.settings,
                 "A setting of one model, as NAME.KEY=VALUE with the keys context, keep-alive, "
                 "kv-memory, pin and served-name; may be given several times. In a configuration "
                 "file: the section [models.NAME]")
      ->option_text("NAME.KEY=VALUE ...")
      ->check(CLI::Validator(ProblemOf, ""));
}

Result<Offers> FindOffers(const std::vector<std::string>& given, const OfferFlags& flags,
                          const ServedSpec& common, const Environment& environment) {
  Offers out;
  if (given.empty()) {
    HEARTH_TRY(AddStore(out, common, environment));
  }
  for (const std::string& each : given) HEARTH_TRY(AddGiven(out, each, common, environment));
  if (given.size() == 1 && flags.keep_alive.empty()) out.models.front().is_pinned = true;
  for (const std::string& text : flags.settings) {
    HEARTH_TRY(ApplySetting(text, out).Within("--model-setting"));
  }
  for (const std::string& name : flags.pins) {
    const int model = IndexOf(out, name);
    if (model < 0) {
      return Error(Code::kNotFound, "--pin %s: no model is offered under that name%s",
                   Quoted(name).c_str(), DidYouMean(name, NamesOf(out)).c_str());
    }
    out.models[static_cast<size_t>(model)].is_pinned = true;
  }
  HEARTH_TRY(CheckNames(out));
  out.host.keep_alive_s = kDefaultKeepAlive;
  if (!flags.keep_alive.empty()) {
    HEARTH_ASSIGN(out.host.keep_alive_s, ParseDuration(flags.keep_alive).Within("--keep-alive"));
  }
  const int64_t usable =
      static_cast<int64_t>(UsableMemoryBytes()) - common.engine.hardware.beside_bytes;
  if (flags.memory_bytes > usable) {
    return Error(Code::kExhausted, "--memory: %.2f GiB are more than the %.2f GiB that are usable",
                 InGib(flags.memory_bytes), InGib(usable));
  }
  out.host.budget_bytes = flags.memory_bytes > 0 ? flags.memory_bytes : usable;
  out.host.version = HEARTH_VERSION;
  return out;
}

Status ApplySettings(const OfferFlags& flags, ServedSpec& spec) {
  for (const std::string& text : flags.settings) {
    HEARTH_ASSIGN(const Setting setting, ParseSetting(text).Within("--model-setting"));
    if (!IsSameModel(setting.name, spec.name)) continue;
    HostedModel alone;  // it stays anyway
    HEARTH_TRY(Set(setting.key, setting.value, alone, spec)
                   .Within("--model-setting " + setting.name + "." + setting.key));
  }
  return Status();
}

const ServedSpec& OfferOpener::SpecOf(const std::string& name) const {
  const auto found = std::find_if(specs_.begin(), specs_.end(),
                                  [&](const ServedSpec& spec) { return spec.name == name; });
  HEARTH_CHECK(found != specs_.end());
  return *found;
}

Result<MeasuredModel> OfferOpener::Measure(const std::string& name) {
  Result<MeasuredModel> measured = MeasureServed(SpecOf(name), budget_);
  if (!measured.ok()) return WithoutPlace(SpecOf(name), measured.status());
  return measured;
}

Result<std::unique_ptr<LoadedModel>> OfferOpener::Load(const std::string& name, int64_t bytes) {
  // So many sequences that no engine comes near the next one's.
  constexpr int kIdBits = 40;
  Result<std::unique_ptr<LoadedModel>> opened =
      OpenServedWithin(SpecOf(name), budget_, bytes, gate_, (++num_loads_ << kIdBits) + 1);
  if (!opened.ok()) return WithoutPlace(SpecOf(name), opened.status());
  return opened;
}

}  // namespace hearth
