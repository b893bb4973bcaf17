// SPDX-License-Identifier: Apache-2.0
#include "platform/user_folders.h"

#include <cstdlib>

namespace hearth {
namespace {

struct Names {
  const char *variable, *below_home;
};

Names NamesOf(UserFolder folder) {
  switch (folder) {
    case UserFolder::kConfig:
      return {"XDG_CONFIG_HOME", ".config"};
    case UserFolder::kData:
      return {"XDG_DATA_HOME", ".local/share"};
    case UserFolder::kState:
      return {"XDG_STATE_HOME", ".local/state"};
    case UserFolder::kCache:
      break;
  }
  return {"XDG_CACHE_HOME", ".cache"};
}

std::string Absolute(std::string path) {
  if (!path.starts_with('/')) return "";
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
}

std::string PathOf(UserFolder folder, const Environment& environment) {
  const Names names = NamesOf(folder);
  const std::string given = Absolute(environment(names.variable));
  if (!given.empty()) return given;
  const std::string home = Absolute(environment("HOME"));
  if (home.empty()) return "";
  return (home == "/" ? "" : home) + "/" + names.below_home;
}

}  // namespace hearth
