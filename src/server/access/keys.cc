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
  return Error(Code::kInvalid, "max_priority: urgent, normal, low or idle");
}

Status ReadLimit(const std::string& name, const Json& value, KeyLimits& out) {
  if (name == "max_priority") return ReadPriority(value, out.max_priority);
  const std::optional<int64_t> number = value.integer();
  if (!number || *number < 1 || *number > kMaxLimit) {
    return Error(Code::kInvalid, "%s: a number from 1 to %lld", Quoted(name).c_str(),
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
    if (to == nullptr) return Error(Code::kInvalid, "%s: unknown member", Quoted(name).c_str());
    if (value.string() == nullptr) return Error(Code::kInvalid, "%s: no string", name.c_str());
    *to = *value.string();
  }
  if (!IsId(entry.info.id)) return Error(Code::kInvalid, "id: 1 to 64 of a-z A-Z 0-9 - _ .");
  if (entry.salt.size() < 16) return Error(Code::kInvalid, "salt: at least 16 characters");
  if (hash.size() != 2 * entry.digest.size()) return Error(Code::kInvalid, "sha256: 64 hex digits");
  for (size_t i = 0; i < entry.digest.size(); ++i) {
    const int high = HexDigit(hash[2 * i]), low = HexDigit(hash[2 * i + 1]);
    if (high < 0 || low < 0) return Error(Code::kInvalid, "sha256: 64 hex digits");
    entry.digest[i] = static_cast<unsigned char>(16 * high + low);
  }
  return entry;
}

Result<KeyRing> KeyRing::Parse(std::string_view text) {
  HEARTH_ASSIGN(const Json json, ParseJson(text));
  const Json* keys = json.Find("keys");
  if (keys == nullptr || keys->array() == nullptr || json.object()->size() != 1) {
    return Error(Code::kInvalid, "a keys file is {\"keys\": [...]}");
  }
  if (keys->array()->size() > kMaxKeys)
    return Error(Code::kInvalid, "more than %zu keys", kMaxKeys);
  KeyRing ring;
  for (size_t i = 0; i < keys->array()->size(); ++i) {
    Result<Entry> entry = ParseEntry((*keys->array())[i]);
    if (!entry.ok()) return std::move(entry).status().Within(Printf("keys[%zu]", i));
    for (const Entry& other : ring.entries_) {
      if (other.info.id == entry->info.id) {
        return Error(Code::kInvalid, "keys[%zu]: the id %s is taken", i, entry->info.id.c_str());
      }
    }
    ring.entries_.push_back(*std::move(entry));
  }
  return ring;
}

const KeyInfo* KeyRing::Find(std::string_view key) const {
  if (key.size() > kMaxKeyBytes) return nullptr;
  const KeyInfo* found = nullptr;
  for (const Entry& entry : entries_) {
    const Digest digest = HashOf(entry.salt, key);
    const bool same = CRYPTO_memcmp(digest.data(), entry.digest.data(), digest.size()) == 0;
    found = same ? &entry.info : found;
  }
  return found;
}

KeyLimits KeyRing::LimitsOf(std::string_view id) const {
  for (const Entry& entry : entries_) {
    if (entry.info.id == id) return entry.info.limits;
  }
  return {};
}

Result<KeyRing::Fresh> KeyRing::Make(std::string_view id, bool is_admin, const KeyLimits& limits) {
  if (!IsId(id)) return Error(Code::kInvalid, "an id is 1 to 64 of a-z A-Z 0-9 - _ .");
  Digest secret{};
  std::array<unsigned char, 16> salt{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1 ||
      RAND_bytes(salt.data(), static_cast<int>(salt.size())) != 1) {
    return Error(Code::kIo, "the system gave no random numbers");
  }
  Fresh fresh;
  fresh.key = "hearth-" + AsHex(secret);
  JsonObject entry{{"id", id},
                   {"salt", AsHex(salt)},
                   {"sha256", AsHex(HashOf(AsHex(salt), fresh.key))},
                   {"admin", is_admin}};
  JsonObject said = LimitsAsJson(limits);
  if (!said.empty()) entry.push_back({"limits", std::move(said)});
  fresh.entry = WriteJson(entry);
  return fresh;
}

}  // namespace hearth
