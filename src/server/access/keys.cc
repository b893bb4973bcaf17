// SPDX-License-Identifier: Apache-2.0
#include "server/access/keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace hearth {
namespace {

// Longer than any key we make; a megabyte of header must not become a megabyte of hashing.
constexpr size_t kMaxKeyBytes = 512;
constexpr size_t kMaxKeys = 10'000;
// A file may say so; those of `hearth key` do not, and older versions read them.
constexpr int64_t kFormat = 1;
// A key is "hearth-" and 64 hexadecimal digits. Its entry's salt begins with the first 8 of them
// and a dash, which is how the entry is found; 224 bits stay unknown.
constexpr std::string_view kMark = "hearth-";
constexpr size_t kStartBytes = kMark.size() + 8;
constexpr std::string_view kNobodysSalt = "hearth-00000000-0123456789abcdef0123456789abcdef";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

template <class Bytes>
std::string AsHex(const Bytes& bytes) {
  std::string out;
  for (const unsigned char byte : bytes) out += Printf("%02x", byte);
  return out;
}

bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// A keys file's limits that are numbers, and their places.
struct NumberLimit {
  const char* name;
  int64_t KeyLimits::* place;
};
constexpr NumberLimit kNumberLimits[] = {
    {"max_concurrent", &KeyLimits::max_concurrent},
    {"requests_per_minute", &KeyLimits::requests_per_minute},
    {"tokens_per_minute", &KeyLimits::tokens_per_minute},
    {"max_tokens_per_request", &KeyLimits::max_tokens_per_request}};
constexpr int64_t kMaxLimit = int64_t{1} << 30;

Status ReadPriority(const Json& value, Priority& out) {
  const std::string* word = value.string();
  for (int i = 0; word != nullptr && i < kNumPriorities; ++i) {
    if (*word != NameOf(static_cast<Priority>(i))) continue;
    out = static_cast<Priority>(i);
    return Status();
  }
  return Error(Code::kInvalid, "max_priority: expected urgent, normal, low or idle");
}

Status ReadLimit(const std::string& name, const Json& value, KeyLimits& out) {
  if (name == "max_priority") return ReadPriority(value, out.max_priority);
  const std::optional<int64_t> number = value.integer();
  if (!number || *number < 1 || *number > kMaxLimit) {
    return Error(Code::kInvalid, "%s: expected a whole number from 1 to %lld", Quoted(name).c_str(),
                 static_cast<long long>(kMaxLimit));
  }
  for (const NumberLimit& limit : kNumberLimits) {
    if (name != limit.name) continue;
    out.*limit.place = *number;
    return Status();
  }
  return Error(Code::kInvalid, "%s: unknown limit", Quoted(name).c_str());
}

Result<KeyLimits> ReadLimits(const Json& json) {
  if (json.object() == nullptr) return Error(Code::kInvalid, "must be an object");
  KeyLimits limits;
  for (const auto& [name, value] : *json.object()) HEARTH_TRY(ReadLimit(name, value, limits));
  return limits;
}

JsonObject LimitsAsJson(const KeyLimits& limits) {
  JsonObject out;
  for (const NumberLimit& limit : kNumberLimits) {
    if (const int64_t value = limits.*limit.place; value > 0) out.push_back({limit.name, value});
  }
  if (limits.max_priority != Priority::kNormal) {
    out.push_back({"max_priority", NameOf(limits.max_priority)});
  }
  return out;
}

// What a salt says about the beginning of its key; empty when it says nothing.
std::string_view StartIn(std::string_view salt) {
  const bool says =
      salt.size() > kStartBytes && salt.starts_with(kMark) && salt[kStartBytes] == '-';
  return says ? salt.substr(0, kStartBytes) : std::string_view();
}

}  // namespace

KeyRing::Digest KeyRing::HashOf(std::string_view salt, std::string_view key) {
  Digest digest{};
  const std::string joined = std::string(salt) + std::string(key);
  HEARTH_CHECK(
      EVP_Digest(joined.data(), joined.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return digest;
}

Result<KeyRing::Entry> KeyRing::ParseEntry(const Json& json) {
  if (json.object() == nullptr) return Error(Code::kInvalid, "must be an object");
  Entry entry;
  std::string hash;
  for (const auto& [name, value] : *json.object()) {
    if (name == "admin") {
      if (value.boolean() == nullptr) return Error(Code::kInvalid, "admin: must be true or false");
      entry.info.is_admin = *value.boolean();
      continue;
    }
    if (name == "limits") {
      HEARTH_ASSIGN(entry.info.limits, ReadLimits(value).Within("limits"));
      continue;
    }
    std::string* to = name == "id" ? &entry.info.id : name == "salt" ? &entry.salt : nullptr;
    if (name == "sha256") to = &hash;
    if (to == nullptr) return Error(Code::kInvalid, "%s: unknown field", Quoted(name).c_str());
    if (value.string() == nullptr)
      return Error(Code::kInvalid, "%s: expected a string", name.c_str());
    *to = *value.string();
  }
  if (!IsId(entry.info.id))
    return Error(Code::kInvalid, "id: expected 1 to 64 characters from a-z A-Z 0-9 - _ .");
  if (entry.salt.size() < 16) return Error(Code::kInvalid, "salt: expected at least 16 characters");
  if (hash.size() != 2 * entry.digest.size())
    return Error(Code::kInvalid, "sha256: expected 64 hexadecimal digits");
  for (size_t i = 0; i < entry.digest.size(); ++i) {
    const int high = HexDigit(hash[2 * i]), low = HexDigit(hash[2 * i + 1]);
    if (high < 0 || low < 0) return Error(Code::kInvalid, "sha256: expected 64 hexadecimal digits");
    entry.digest[i] = static_cast<unsigned char>(16 * high + low);
  }
  return entry;
}

Result<KeyRing> KeyRing::Parse(std::string_view text) {
  Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) {
    return Error(Code::kInvalid, "%s; expected a file that `hearth key ID --keys FILE` made",
                 parsed.status().message().c_str());
  }
  const Json json = *std::move(parsed);
  const Json* keys = json.Find("keys");
  const Json* format = json.Find("format");
  if (format != nullptr && format->integer() != kFormat) {
    return Error(Code::kUnsupported,
                 "a keys file of another version of Hearth (format %s), this one reads %d; it is "
                 "left as it is",
                 WriteJson(*format).c_str(), static_cast<int>(kFormat));
  }
  const size_t num_members = format != nullptr ? 2 : 1;
  if (keys == nullptr || keys->array() == nullptr || json.object()->size() != num_members) {
    return Error(Code::kInvalid, "expected a keys file of the form {\"keys\": [...]}");
  }
  if (keys->array()->size() > kMaxKeys)
    return Error(Code::kInvalid, "more than %zu keys", kMaxKeys);
  KeyRing ring;
  for (size_t i = 0; i < keys->array()->size(); ++i) {
    Result<Entry> entry = ParseEntry((*keys->array())[i]);
    if (!entry.ok()) return std::move(entry).status().Within(Printf("keys[%zu]", i));
    HEARTH_TRY(ring.Add(*std::move(entry)).Within(Printf("keys[%zu]", i)));
  }
  return ring;
}

Status KeyRing::Add(Entry entry) {
  const size_t index = entries_.size();
  if (!by_id_.emplace(entry.info.id, index).second) {
    return Error(Code::kInvalid, "the id %s is taken; choose another one", entry.info.id.c_str());
  }
  const std::string start(StartIn(entry.salt));
  if (start.empty()) {
    unindexed_.push_back(index);
  } else {
    by_start_.emplace(start, index);
  }
  entries_.push_back(std::move(entry));
  return Status();
}

bool KeyRing::Opens(const Entry& entry, std::string_view key) {
  const Digest digest = HashOf(entry.salt, key);
  return CRYPTO_memcmp(digest.data(), entry.digest.data(), digest.size()) == 0;
}

const KeyInfo* KeyRing::Find(std::string_view key) const {
  if (key.empty() || key.size() > kMaxKeyBytes) return nullptr;
  const KeyInfo* found = nullptr;
  const auto [begin, end] = by_start_.equal_range(std::string(key.substr(0, kStartBytes)));
  for (auto at = begin; at != end; ++at) {
    if (Opens(entries_[at->second], key)) found = &entries_[at->second].info;
  }
  // Whether some key begins like this one is nobody's business either.
  if (begin == end && !by_start_.empty()) static_cast<void>(HashOf(kNobodysSalt, key));
  for (const size_t index : unindexed_) {
    if (Opens(entries_[index], key)) found = &entries_[index].info;
  }
  return found;
}

KeyLimits KeyRing::LimitsOf(std::string_view id) const {
  const auto at = by_id_.find(std::string(id));
  return at == by_id_.end() ? KeyLimits{} : entries_[at->second].info.limits;
}

Result<KeyRing::Fresh> KeyRing::Make(std::string_view id, bool is_admin, const KeyLimits& limits) {
  if (!IsId(id))
    return Error(Code::kInvalid, "expected an id of 1 to 64 characters from a-z A-Z 0-9 - _ .");
  Digest secret{};
  std::array<unsigned char, 16> salt{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1 ||
      RAND_bytes(salt.data(), static_cast<int>(salt.size())) != 1) {
    return Error(Code::kIo, "cannot get random numbers from the operating system");
  }
  Fresh fresh;
  fresh.key = std::string(kMark) + AsHex(secret);
  const std::string salted = fresh.key.substr(0, kStartBytes) + "-" + AsHex(salt);
  JsonObject entry{{"id", id},
                   {"salt", salted},
                   {"sha256", AsHex(HashOf(salted, fresh.key))},
                   {"admin", is_admin}};
  JsonObject said = LimitsAsJson(limits);
  if (!said.empty()) entry.push_back({"limits", std::move(said)});
  fresh.entry = WriteJson(entry);
  return fresh;
}

}  // namespace hearth
