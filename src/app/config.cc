// SPDX-License-Identifier: Apache-2.0
#include "app/config.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>

#include "app/config_values.h"
#include "base/near_match.h"
#include "platform/file.h"
#include "platform/user_folders.h"

namespace hearth {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr const char* kSystemPath = "/etc/hearth/hearth.toml";
constexpr const char* kModelsSection = "models";
constexpr const char* kModelSetting = "serve.model-setting";

// Kubernetes sets these in every container beside a service named hearth.
bool IsServiceLink(std::string_view name) {
  return name == "HEARTH_PORT" || name.starts_with("HEARTH_PORT_") ||
         name.starts_with("HEARTH_SERVICE_");
}

// Reads names against the flags that exist, and keeps the strongest value of each.
class Reader {
 public:
  Reader(const std::vector<CommandFlags>& commands, Settings& out) : out_(out) {
    for (const CommandFlags& command : commands) {
      sections_.push_back(command.section);
      for (const Flag& flag : command.flags) {
        keys_[command.section].push_back(flag.key);
        flags_[command.section + "." + flag.key] = &flag;
        by_variable_[flag.variable] = &flag;
        variables_.push_back(flag.variable);
        // One that CLI11 reads by itself, for a flag with a shorter name of its own.
        const std::string own = flag.option->get_envname();
        if (!own.empty()) variables_.push_back(own);
      }
    }
    for (const PlainVariable& each : PlainVariables()) variables_.push_back(each.name);
  }

  void ReadVariables(const std::vector<std::string>& environment) {
    for (const std::string& line : environment) {
      const size_t equals = line.find('=');
      if (equals == std::string::npos || !line.starts_with("HEARTH_")) continue;
      const std::string name = line.substr(0, equals), value = line.substr(equals + 1);
      const auto found = by_variable_.find(name);
      if (found == by_variable_.end()) {
        WarnOf(name);
      } else if (!value.empty()) {  // empty is the same as unset, as it is elsewhere
        Keep(*found->second, {Rank::kVariable, ValuesOfVariable(*found->second, value), name});
      }
    }
  }

  // Where secrets are in it, the system's file is for the service's account alone: others go
  // without it.
  bool IsForOthers(const std::string& path) {
    if (::access(path.c_str(), R_OK) == 0 || errno != EACCES) return false;
    out_.skipped.push_back(path);
    return true;
  }

  void ReadFile(const std::string& path, Rank rank) {
    Result<std::string> text = ReadTextFile(path, kMaxFileBytes);
    if (!text.ok()) {
      out_.problems.push_back(text.status().message());
      return;
    }
    out_.files.push_back(path);
    Result<std::vector<ConfigEntry>> entries = ParseConfig(*text, path);
    if (!entries.ok()) {
      out_.problems.push_back(entries.status().message());
      return;
    }
    for (const ConfigEntry& entry : *entries) {
      const std::string origin = path + ":" + std::to_string(entry.line);
      const std::string problem = ReadEntry(entry, rank, origin);
      if (!problem.empty()) out_.problems.push_back(origin + ": " + problem);
    }
  }

 private:
  void WarnOf(const std::string& name) {
    const bool is_known = std::find(variables_.begin(), variables_.end(), name) != variables_.end();
    if (is_known || IsServiceLink(name)) return;
    out_.warnings.push_back(name + " names no flag and has no effect" +
                            DidYouMean(name, variables_));
  }

  // bench is known because bench.load is, whether or not it has flags of its own.
  bool IsSection(const std::string& name) const {
    return std::any_of(sections_.begin(), sections_.end(), [&](const std::string& each) {
      return each == name || each.starts_with(name + ".");
    });
  }

  // [models.NAME] is another way to write values of a flag of serve.
  std::string ReadModelEntry(const ConfigEntry& entry, const Flag& flag, Rank rank,
                             const std::string& origin) {
    if (entry.type == ConfigType::kSection) return "";
    if (entry.section == kModelsSection) {
      return Quoted(entry.key) +
             " stands above the first model; put it under a model's name, such " +
             "as [models.\"smollm2\"]";
    }
    if (entry.type == ConfigType::kOther) return entry.key + ": expected a number, text or switch";
    const std::string name = entry.section.substr(std::string_view(kModelsSection).size() + 1);
    Setting setting{rank, {}, origin};
    // Those of one file belong together.
    const auto before = out_.values.find(flag.variable);
    if (before != out_.values.end() && before->second.rank == rank) setting = before->second;
    for (const std::string& value : entry.values) {
      setting.values.push_back(name + "." + entry.key + "=" + value);
    }
    if (before != out_.values.end() && before->second.rank == rank) out_.values.erase(before);
    Keep(flag, std::move(setting));
    return "";
  }

  std::string ReadEntry(const ConfigEntry& entry, Rank rank, const std::string& origin) {
    const auto models = flags_.find(kModelSetting);
    const bool is_models = entry.section == kModelsSection ||
                           entry.section.starts_with(std::string(kModelsSection) + ".");
    if (is_models && models != flags_.end()) {
      return ReadModelEntry(entry, *models->second, rank, origin);
    }
    if (entry.section.empty() && entry.type != ConfigType::kSection) {
      return Quoted(entry.key) + " stands above the first section; put it under the command that " +
             "it is for, such as [serve]";
    }
    if (entry.type == ConfigType::kSection) {
      // Keys of an unknown section are not reported again.
      if (IsSection(entry.section)) return "";
      return "unknown section [" + entry.section + "]" + DidYouMean(entry.section, sections_);
    }
    if (!IsSection(entry.section)) return "";
    const auto found = flags_.find(entry.section + "." + entry.key);
    if (found == flags_.end()) {
      return "[" + entry.section + "] has no key " + Quoted(entry.key) +
             DidYouMean(entry.key, keys_[entry.section]);
    }
    const std::string problem = TypeProblem(*found->second, entry);
    if (!problem.empty()) return entry.key + ": " + problem;
    Keep(*found->second, {rank, entry.values, origin});
    return "";
  }

  void Keep(const Flag& flag, Setting setting) {
    const auto [at, is_new] = out_.values.try_emplace(flag.variable, setting);
    if (!is_new && setting.rank < at->second.rank) at->second = std::move(setting);
  }

  Settings& out_;
  std::vector<std::string> sections_, variables_;
  std::map<std::string, std::vector<std::string>> keys_;
  std::map<std::string, const Flag*> flags_, by_variable_;
};

// Whether a flag of a stronger source stands in the way of `flag`: one that excludes it, or one of
// the same group where the group takes only so many.
bool IsOverruled(const Flag& flag, const std::vector<Flag>& flags,
                 const std::map<const CLI::Option*, Rank>& ranks, Rank rank) {
  const auto is_stronger = [&](const CLI::Option* other) {
    const auto found = ranks.find(other);
    return found != ranks.end() && found->second < rank;
  };
  for (const CLI::Option* other : flag.option->get_excludes()) {
    if (is_stronger(other)) return true;
  }
  if (!flag.owner->get_name().empty() || flag.owner->get_require_option_max() == 0) return false;
  const auto rivals = std::count_if(flags.begin(), flags.end(), [&](const Flag& other) {
    return other.owner == flag.owner && is_stronger(other.option);
  });
  return static_cast<size_t>(rivals) >= flag.owner->get_require_option_max();
}

ConfigOutcome Configure(CLI::App& root) {
  ConfigOutcome outcome;
  const CLI::App& chosen = ChosenCommand(root);
  const std::vector<CommandFlags> commands = ListConfigurable(root);
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const auto& each) { return each.command == &chosen; });
  if (command == commands.end()) return outcome;  // nothing is run, or something about the files
  const Settings settings = ReadSettings(StandardSources(GivenConfig(root)), commands);
  outcome.warnings = settings.warnings;
  if (!settings.problems.empty()) {
    const size_t more = settings.problems.size() - 1;
    const std::string rest =
        more == 0 ? "" : Printf(" (and %zu more; see `hearth config check`)", more);
    outcome.status = Status(Code::kInvalid, settings.problems.front() + rest);
  } else {
    outcome.status = Apply(settings, *command);
  }
  return outcome;
}

}  // namespace

std::string GivenConfig(CLI::App& root) {
  for (CLI::App* app = &ChosenCommand(root); app != nullptr; app = app->get_parent()) {
    const CLI::Option* flag = app->get_option_no_throw("--config");
    if (flag != nullptr && flag->count() > 0) return flag->results().back();
  }
  return "";
}

ConfigSources StandardSources(const std::string& flag) {
  ConfigSources sources;
  sources.given = flag.empty() ? ProcessEnvironment()("HEARTH_CONFIG") : flag;
  sources.system_path = kSystemPath;
  const std::string folder = PathOf(UserFolder::kConfig, ProcessEnvironment());
  if (!folder.empty()) sources.user_path = folder + "/hearth/hearth.toml";
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    sources.environment.emplace_back(*line);
  }
  return sources;
}

Settings ReadSettings(const ConfigSources& sources, const std::vector<CommandFlags>& commands) {
  Settings settings;
  Reader reader(commands, settings);
  reader.ReadVariables(sources.environment);
  if (!sources.given.empty()) {
    // The usual way to say that no file shall be read.
    if (sources.given != "/dev/null") reader.ReadFile(sources.given, Rank::kUserFile);
    return settings;
  }
  if (!sources.user_path.empty() && FileExists(sources.user_path)) {
    reader.ReadFile(sources.user_path, Rank::kUserFile);
  }
  if (!sources.system_path.empty() && FileExists(sources.system_path) &&
      !reader.IsForOthers(sources.system_path)) {
    reader.ReadFile(sources.system_path, Rank::kSystemFile);
  }
  return settings;
}

Status Apply(const Settings& settings, const CommandFlags& command) {
  std::map<const CLI::Option*, Rank> ranks;
  for (const Flag& flag : command.flags) {
    const auto found = settings.values.find(flag.variable);
    if (flag.option->count() > 0) {
      ranks[flag.option] = Rank::kLine;
    } else if (found != settings.values.end()) {
      ranks[flag.option] = found->second.rank;
    }
  }
  for (const Flag& flag : command.flags) {
    const auto rank = ranks.find(flag.option);
    if (rank == ranks.end() || rank->second == Rank::kLine) continue;
    if (IsOverruled(flag, command.flags, ranks, rank->second)) continue;
    const Setting& setting = settings.values.at(flag.variable);
    HEARTH_TRY(SetFlag(flag, setting.values).Within(setting.origin));
  }
  return Status();
}

std::vector<std::string> CheckValues(const Settings& settings,
                                     const std::vector<CommandFlags>& commands) {
  std::vector<std::string> problems;
  for (const CommandFlags& command : commands) {
    for (const Flag& flag : command.flags) {
      const auto found = settings.values.find(flag.variable);
      if (found == settings.values.end()) continue;
      const Status status = SetFlag(flag, found->second.values).Within(found->second.origin);
      if (!status.ok()) problems.push_back(status.message());
    }
  }
  return problems;
}

std::shared_ptr<const ConfigOutcome> AddConfiguration(CLI::App& root) {
  auto outcome = std::make_shared<ConfigOutcome>();
  // CLI11 calls back the root's flags when the whole line is parsed, but before it looks for what
  // is required: the moment at which it is known what the line left out.
  root.add_option_function<std::string>(
          "--config", [&root, outcome](const std::string&) { *outcome = Configure(root); },
          "Configuration file to read instead of /etc/hearth/hearth.toml and "
          "~/.config/hearth/hearth.toml")
      ->option_text("FILE")
      ->force_callback();
  for (const CommandFlags& each : ListFlags(root)) {
    // Accepted behind a command too, and listed once: in the help of the program itself.
    each.command->add_option("--config")->group("");
  }
  return outcome;
}

const std::vector<PlainVariable>& PlainVariables() {
  static const std::vector<PlainVariable> kVariables = {
      {"HEARTH_CONFIG", "configuration file to read instead of the standard ones, like `--config`"},
      {"HEARTH_API_KEY",
       "API key that `hearth run --server`, `hearth top` and `hearth bench load --url` send"},
      {"HEARTH_MODELS", "folder of models that are known by name"},
      {"HEARTH_WORKER", "set by `hearth serve` for its worker process, not by hand"},
      {"HEARTH_WORK", "folder for models of the tests and developer tools"},
      {"HEARTH_QUICK", "shortens the longest tests"},
      {"HEARTH_HARMONY_STREAMS", "number of streams in a test"},
      {"HEARTH_WRITE_HASHES", "file that a test writes its hashes to"},
  };
  return kVariables;
}

}  // namespace hearth
