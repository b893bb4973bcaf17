// SPDX-License-Identifier: Apache-2.0
#include "store/reference.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/near_match.h"
#include "store/folders.h"

namespace hearth {
namespace {

constexpr size_t kMaxReferenceBytes = 2048;
constexpr size_t kMaxNameBytes = 128;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool IsLetterOrDigit(char c) { return IsNameByte(c) && c != '.' && c != '_' && c != '-'; }

// Branches may have slashes ("refs/pr/3"), but nothing that would mean another folder.
bool IsRevision(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes || text.find("..") != text.npos) return false;
  if (text.starts_with('/') || text.ends_with('/') || text.find("//") != text.npos) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsNameByte(c) || c == '/'; });
}

// A path inside a repository, or a word to look for in one.
bool IsSelector(std::string_view text) {
  while (true) {
    const size_t slash = text.find('/');
    if (!IsPlainName(text.substr(0, slash))) return false;
    if (slash == text.npos) return true;
    text.remove_prefix(slash + 1);
  }
}

Status NotAReference(std::string_view text, const char* why) {
  return Error(Code::kInvalid,
               "%s: %s; expected a name such as qwen3-8b, OWNER/REPO, OWNER/REPO:QUANT, "
               "OWNER/REPO@REVISION:FILE or a URL",
               Quoted(text).c_str(), why);
}

Result<ModelReference> ParseHub(std::string_view whole, std::string_view text) {
  ModelReference reference{.kind = ModelReference::Kind::kHub};
  if (const size_t colon = text.find(':'); colon != text.npos) {
    reference.selector = text.substr(colon + 1);
    if (!IsSelector(reference.selector)) return NotAReference(whole, "no file or quantisation");
    text = text.substr(0, colon);
  }
  if (const size_t at = text.find('@'); at != text.npos) {
    reference.revision = text.substr(at + 1);
    if (!IsRevision(reference.revision)) return NotAReference(whole, "not a revision");
    text = text.substr(0, at);
  }
  const size_t slash = text.find('/');
  const std::string_view owner = text.substr(0, slash);
  const std::string_view repo = slash == text.npos ? "" : text.substr(slash + 1);
  if (!IsModelName(owner) || !IsModelName(repo)) {
    return NotAReference(whole, "not a repository's name");
  }
  reference.repo = std::string(owner) + "/" + std::string(repo);
  return reference;
}

}  // namespace

bool IsModelName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || !IsLetterOrDigit(name[0])) return false;
  return std::all_of(name.begin(), name.end(), IsNameByte);
}

Result<ModelReference> ParseReference(std::string_view text) {
  if (text.empty()) return Error(Code::kInvalid, "the model's name is empty");
  if (text.size() > kMaxReferenceBytes) return NotAReference(text, "too long");
  for (const char c : text) {
    if (c <= ' ' || c >= 0x7f) return NotAReference(text, "has a character that no name has");
  }
  if (text.starts_with("http://") || text.starts_with("https://")) {
    return ModelReference{.kind = ModelReference::Kind::kUrl, .url = std::string(text)};
  }
  if (text.find("://") != text.npos) return NotAReference(text, "not an http or https URL");
  std::string_view rest = text;
  for (const std::string_view host :
       {std::string_view("hf.co/"), std::string_view("huggingface.co/")}) {
    if (rest.starts_with(host)) rest.remove_prefix(host.size());
  }
  if (rest.find('/') != rest.npos) return ParseHub(text, rest);
  // A tag is a part of a name: qwen3:8b.
  std::string name(rest);
  std::replace(name.begin(), name.end(), ':', '-');
  if (!IsModelName(name)) return NotAReference(text, "not a model's name");
  return ModelReference{.kind = ModelReference::Kind::kName, .name = std::string(rest)};
}

std::string PlainForm(std::string_view name) {
  std::string plain = LowerAscii(name);
  std::replace(plain.begin(), plain.end(), ':', '-');
  // As often as it stands there: the plain form of a plain form is itself.
  while (plain.ends_with("-latest")) plain.resize(plain.size() - 7);
  return plain;
}

std::vector<std::string> NearNames(std::string_view name, std::span<const std::string> known,
                                   size_t max_names) {
  // Quadratic in the length, so a long text is not compared: nothing is like it anyway.
  if (name.empty() || name.size() > kMaxNameBytes) return {};
  const std::string wanted = PlainForm(name);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : known) {
    const std::string plain = PlainForm(candidate).substr(0, kMaxNameBytes);
    size_t distance = EditDistance(wanted, plain);
    if (distance > std::max<size_t>(2, wanted.size() / 3)) {
      if (wanted.size() < 3 || plain.find(wanted) == plain.npos) continue;
      distance += kMaxNameBytes;  // after all that differ by a slip
    }
    near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  if (near.size() > max_names) near.resize(max_names);
  std::vector<std::string> names;
  for (auto& [distance, candidate] : near) names.push_back(std::move(candidate));
  return names;
}

}  // namespace hearth
