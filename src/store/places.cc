// SPDX-License-Identifier: Apache-2.0
#include "store/places.h"

#include <initializer_list>

namespace hearth {
namespace {

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string Below(const std::string& folder, const char* name) {
  return folder.empty() ? "" : folder + "/" + name;
}

// The first that is known.
std::string FirstOf(std::initializer_list<std::string> candidates) {
  for (const std::string& candidate : candidates) {
    if (!candidate.empty()) return WithoutSlash(candidate);
  }
  return "";
}

void AddIfKnown(std::string path, std::vector<std::string>& out) {
  if (!path.empty()) out.push_back(WithoutSlash(std::move(path)));
}

}  // namespace

Result<StorePlaces> FindPlaces(const Environment& environment) {
  const std::string home = WithoutSlash(environment("HOME"));
  const std::string data = PathOf(UserFolder::kData, environment);
  const std::string cache = PathOf(UserFolder::kCache, environment);
  StorePlaces places;
  places.own = FirstOf({environment("HEARTH_MODELS"), Below(data, "hearth/models")});
  if (places.own.empty()) {
    return Error(Code::kInvalid,
                 "the folder for models is unknown: set HEARTH_MODELS to a folder, or HOME");
  }
  const std::string ollama = environment("OLLAMA_MODELS");
  if (!ollama.empty()) {
    places.ollama.push_back(WithoutSlash(ollama));
  } else {
    AddIfKnown(Below(home, ".ollama/models"), places.ollama);
    // Where Ollama's installer puts the models of its system service.
    places.ollama.push_back("/usr/share/ollama/.ollama/models");
  }
  places.hugging_face = FirstOf({environment("HF_HUB_CACHE"), Below(environment("HF_HOME"), "hub"),
                                 Below(cache, "huggingface/hub")});
  AddIfKnown(Below(home, ".lmstudio/models"), places.lm_studio);
  AddIfKnown(Below(cache, "lm-studio/models"), places.lm_studio);
  return places;
}

}  // namespace hearth
