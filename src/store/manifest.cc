// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.h"

#include "base/checked.h"
#include "base/json.h"
#include "store/folders.h"
#include "store/reference.h"

namespace hearth {
namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kMaxFiles = 10000;

std::string TextOf(const Json& json, std::string_view name) {
  const Json* member = json.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : std::string();
}

bool FlagOf(const Json& json, std::string_view name) {
  const Json* member = json.Find(name);
  return member != nullptr && member->boolean() != nullptr && *member->boolean();
}

Result<ManifestFile> FileOf(const Json& json) {
  ManifestFile file{.name = TextOf(json, "name"), .digest = TextOf(json, "digest")};
  // A name with a slash or a leading dot would lead out of the folder, or to a part of a download.
  if (!IsPlainName(file.name) || file.name.starts_with('.')) {
    return Error(Code::kCorrupt, "files: %s is not a plain file name", Quoted(file.name).c_str());
  }
  const Json* bytes = json.Find("bytes");
  const auto value = bytes != nullptr ? bytes->unsigned_integer() : std::nullopt;
  if (!value) return Error(Code::kCorrupt, "files: %s has no size", Quoted(file.name).c_str());
  file.bytes = *value;
  return file;
}

}  // namespace

uint64_t Manifest::bytes() const {
  Checked sum(0);
  for (const ManifestFile& file : files) sum = sum + file.bytes;
  return sum.value().value_or(UINT64_MAX);
}

std::string Manifest::source() const {
  if (repo.empty()) return url;
  return repo + (revision.empty() ? "" : "@" + revision) + (selector.empty() ? "" : ":" + selector);
}

Result<Manifest> ParseManifest(std::string_view text) {
  constexpr size_t kMaxBytes = size_t{4} << 20;
  HEARTH_ASSIGN(const Json json, ParseJson(text, {.max_bytes = kMaxBytes, .max_depth = 8}));
  const Json* format = json.Find("format");
  const std::optional<int64_t> number = format != nullptr ? format->integer() : std::nullopt;
  if (number && *number > kFormat) {
    return Error(Code::kUnsupported,
                 "format %lld is of a newer version of Hearth, this one reads %d; use the newer "
                 "one, or `hearth rm` and `hearth pull` the model",
                 static_cast<long long>(*number), static_cast<int>(kFormat));
  }
  if (number != kFormat) {
    return Error(Code::kCorrupt, "expected a model's manifest of format %d",
                 static_cast<int>(kFormat));
  }
  Manifest manifest{.name = TextOf(json, "name"),
                    .repo = TextOf(json, "repo"),
                    .revision = TextOf(json, "revision"),
                    .selector = TextOf(json, "selector"),
                    .url = TextOf(json, "url"),
                    .licence = TextOf(json, "licence"),
                    .is_complete = FlagOf(json, "complete"),
                    .is_directory = FlagOf(json, "directory")};
  if (!IsModelName(manifest.name)) {
    return Error(Code::kCorrupt, "%s is not a model's name", Quoted(manifest.name).c_str());
  }
  const Json* files = json.Find("files");
  if (files == nullptr || files->array() == nullptr || files->array()->empty() ||
      files->array()->size() > kMaxFiles) {
    return Error(Code::kCorrupt, "expected 1 to %zu files", kMaxFiles);
  }
  for (const Json& file : *files->array()) {
    HEARTH_ASSIGN(ManifestFile one, FileOf(file));
    manifest.files.push_back(std::move(one));
  }
  return manifest;
}

std::string WriteManifest(const Manifest& manifest) {
  JsonArray files;
  for (const ManifestFile& file : manifest.files) {
    files.push_back(
        JsonObject{{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}});
  }
  const Json json = JsonObject{{"format", kFormat},
                               {"name", manifest.name},
                               {"repo", manifest.repo},
                               {"revision", manifest.revision},
                               {"selector", manifest.selector},
                               {"url", manifest.url},
                               {"licence", manifest.licence},
                               {"complete", manifest.is_complete},
                               {"directory", manifest.is_directory},
                               {"files", std::move(files)}};
  return WriteJson(json, 2) + "\n";
}

}  // namespace hearth
