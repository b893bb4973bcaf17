// SPDX-License-Identifier: Apache-2.0
#include "hub/hub_api.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "store/folders.h"

namespace hearth {
namespace {

constexpr size_t kMaxFiles = 50000;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 44;  // 16 TiB

// Everything but letters, digits, -._~ and what `kept` names as %XX.
std::string Escaped(std::string_view text, std::string_view kept = "/") {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                          kept.find(c) != kept.npos;
    out += is_plain ? std::string(1, c) : Printf("%%%02X", static_cast<unsigned char>(c));
  }
  return out;
}

bool IsSafePath(std::string_view path) {
  constexpr size_t kMaxPath = 1024;
  if (path.size() > kMaxPath) return false;
  while (true) {
    const size_t slash = path.find('/');
    if (!IsPlainName(path.substr(0, slash))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

const std::string* TextIn(const Json* json, std::string_view name) {
  const Json* member = json != nullptr ? json->Find(name) : nullptr;
  return member != nullptr ? member->string() : nullptr;
}

std::optional<uint64_t> NumberIn(const Json* json, std::string_view name) {
  const Json* member = json != nullptr ? json->Find(name) : nullptr;
  return member != nullptr ? member->unsigned_integer() : std::nullopt;
}

// Large files are kept apart (LFS) and have a SHA-256; small ones are git's own objects.
Digest DigestOf(const Json& sibling) {
  const Json* lfs = sibling.Find("lfs");
  if (const std::string* sha256 = TextIn(lfs, "sha256")) {
    if (auto digest = ParseDigest(DigestKind::kSha256, *sha256)) return *digest;
  }
  const std::string* blob = TextIn(&sibling, "blobId");
  // Of a large file git's object is the pointer to it, not the file.
  if (blob == nullptr || lfs != nullptr) return {};
  return ParseDigest(DigestKind::kGitBlob, *blob).value_or(Digest());
}

Result<HubFile> FileOf(const Json& sibling) {
  const std::string* path = TextIn(&sibling, "rfilename");
  if (path == nullptr) return Error(Code::kCorrupt, "a file without a name");
  if (!IsSafePath(*path)) {
    return Error(Code::kCorrupt, "%s is not a path inside a repository", Quoted(*path).c_str());
  }
  const Json* lfs = sibling.Find("lfs");
  auto bytes = NumberIn(lfs, "size");
  if (!bytes) bytes = NumberIn(&sibling, "size");
  if (!bytes || *bytes > kMaxFileBytes) {
    return Error(Code::kCorrupt, "%s has no length, or one beyond 16 TiB", Quoted(*path).c_str());
  }
  return HubFile{*path, *bytes, DigestOf(sibling)};
}

// "license:apache-2.0" among the tags.
std::string LicenceOf(const Json& listing) {
  const Json* tags = listing.Find("tags");
  if (tags == nullptr || tags->array() == nullptr) return "";
  constexpr std::string_view kPrefix = "license:";
  for (const Json& tag : *tags->array()) {
    if (tag.string() != nullptr && tag.string()->starts_with(kPrefix)) {
      return tag.string()->substr(kPrefix.size(), 64);
    }
  }
  return "";
}

}  // namespace

Result<HubAddress> FindHub(const Environment& environment) {
  HubAddress hub{environment("HF_ENDPOINT"), environment("HF_TOKEN")};
  if (hub.endpoint.empty()) hub.endpoint = "https://huggingface.co";
  while (hub.endpoint.ends_with('/')) hub.endpoint.pop_back();
  if (!hub.endpoint.starts_with("http://") && !hub.endpoint.starts_with("https://")) {
    return Error(Code::kInvalid, "HF_ENDPOINT is %s: expected a URL with http:// or https://",
                 Quoted(hub.endpoint).c_str());
  }
  const bool is_plain =
      std::all_of(hub.token.begin(), hub.token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  // Its text is not shown: it is a secret.
  if (!is_plain) return Error(Code::kInvalid, "HF_TOKEN has a character that no token has");
  return hub;
}

std::string ListingUrl(const HubAddress& hub, const std::string& repo,
                       const std::string& revision) {
  return hub.endpoint + "/api/models/" + Escaped(repo) + "/revision/" + Escaped(revision, "") +
         "?blobs=true";
}

std::string FileUrl(const HubAddress& hub, const std::string& repo, const std::string& revision,
                    const std::string& path) {
  return hub.endpoint + "/" + Escaped(repo) + "/resolve/" + Escaped(revision, "") + "/" +
         Escaped(path);
}

Result<HubRepo> ParseListing(std::string_view text) {
  HEARTH_ASSIGN(const Json json, ParseJson(text, {.max_bytes = size_t{64} << 20}));
  HubRepo repo;
  const std::string* commit = TextIn(&json, "sha");
  const auto digest = commit != nullptr ? ParseDigest(DigestKind::kGitBlob, *commit) : std::nullopt;
  if (!digest) return Error(Code::kCorrupt, "the listing names no commit");
  repo.commit = digest->hex;
  repo.licence = LicenceOf(json);
  const Json* siblings = json.Find("siblings");
  if (siblings == nullptr || siblings->array() == nullptr ||
      siblings->array()->size() > kMaxFiles) {
    return Error(Code::kCorrupt, "the listing has no list of files, or one of more than %zu",
                 kMaxFiles);
  }
  for (const Json& sibling : *siblings->array()) {
    HEARTH_ASSIGN(HubFile file, FileOf(sibling));
    repo.files.push_back(std::move(file));
  }
  return repo;
}

ModelReference HubReferenceOf(const HubAddress& hub, const ModelReference& reference) {
  if (reference.kind != ModelReference::Kind::kUrl) return reference;
  std::string_view rest = reference.url;
  const std::array<std::string, 3> hosts = {hub.endpoint, "https://huggingface.co",
                                            "https://hf.co"};
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const std::string& candidate) {
    return rest.starts_with(candidate + "/");
  });
  if (host == hosts.end()) return reference;
  rest.remove_prefix(host->size() + 1);
  rest = rest.substr(0, rest.find_first_of("?#"));
  // OWNER/REPO, or OWNER/REPO/resolve/REV/FILE.
  std::array<std::string_view, 4> words;
  for (std::string_view& word : words) {
    const size_t slash = rest.find('/');
    word = rest.substr(0, slash);
    rest = slash == rest.npos ? "" : rest.substr(slash + 1);
  }
  std::string text = std::string(words[0]) + "/" + std::string(words[1]);
  const bool names_file = (words[2] == "resolve" || words[2] == "blob") && !rest.empty();
  if (names_file) text += "@" + std::string(words[3]) + ":" + std::string(rest);
  if (!names_file && !words[2].empty()) return reference;
  Result<ModelReference> parsed = ParseReference(text);
  return parsed.ok() && parsed->kind == ModelReference::Kind::kHub ? *parsed : reference;
}

}  // namespace hearth
