// SPDX-License-Identifier: Apache-2.0
#include "server/access/request_digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "server/access/or_no_memory.h"

namespace hearth {
namespace {

void AddText(std::string_view text, std::string& out) {
  out += std::to_string(text.size()) + ":";
  out += text;
}

void AddValue(const Json& value, std::string& out) {
  if (const JsonObject* object = value.object()) {
    std::vector<const JsonMember*> members;
    for (const JsonMember& member : *object) members.push_back(&member);
    std::ranges::sort(members, {}, &JsonMember::first);
    out += '{';
    for (const JsonMember* member : members) {
      AddText(member->first, out);
      AddValue(member->second, out);
    }
    out += '}';
  } else if (const JsonArray* array = value.array()) {
    out += '[';
    for (const Json& each : *array) AddValue(each, out);
    out += ']';
  } else if (const std::string* text = value.string()) {
    AddText(*text, out);
  } else {
    // Whole numbers below 2^53 are the same number with a fraction of zero.
    const std::optional<double> number = value.number();
    const bool is_whole = number && std::abs(*number) < 0x1p53 && std::trunc(*number) == *number;
    out += WriteJson(is_whole ? Json(static_cast<int64_t>(*number)) : value) + ";";
  }
}

}  // namespace

std::array<uint64_t, 2> DigestOfJsonRequest(std::string_view path, const Json& body) {
  std::string text;
  AddValue(body, text);
  return DigestOfRequest(path, text);
}

// Its length goes before the owner, so that no owner and path are another owner and path.
std::array<uint64_t, 2> DigestOfRequest(std::string_view owner, std::string_view path,
                                        std::string_view body) {
  std::string owned = std::to_string(owner.size()) + ":";
  owned += owner;
  owned += path;
  return DigestOfRequest(owned, body);
}

std::array<uint64_t, 2> DigestOfRequest(std::string_view path, std::string_view body) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  std::array<unsigned char, 32> digest{};
  const unsigned char separator = 0;  // no path contains it
  OrNoMemory(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
             EVP_DigestUpdate(context.get(), path.data(), path.size()) == 1 &&
             EVP_DigestUpdate(context.get(), &separator, 1) == 1 &&
             EVP_DigestUpdate(context.get(), body.data(), body.size()) == 1 &&
             EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  std::array<uint64_t, 2> first{};
  std::memcpy(first.data(), digest.data(), sizeof first);
  return first;
}

}  // namespace hearth
