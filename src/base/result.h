// SPDX-License-Identifier: Apache-2.0
// What a correct program may still meet: a bad file, a bad request, a full disk.
// Bugs are not here (check.h), and neither are ordinary shortages (std::optional).
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
namespace hearth {

enum class Code : unsigned char {
  kOk,
  kInvalid,      // the caller asked for something that makes no sense
  kNotFound,     // a file, tensor or key that is not there
  kCorrupt,      // the bytes contradict themselves or their container
  kUnsupported,  // well-formed, but Hearth does not do it
  kIo,           // the operating system said no
  kExhausted,    // a limit was reached
  kCancelled
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // Adds what we were doing, outermost first: "loading layer 3: " + message.
  Status Within(std::string_view doing) && {
    if (ok()) return Status();
    return Status(code_, std::string(doing) + ": " + message_);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : v_(std::in_place_index<1>, std::move(error)) {
    HEARTH_CHECK(!std::get<1>(v_).ok());  // an ok Status carries no T
  }
  bool ok() const { return v_.index() == 0; }
  T& operator*() & { return *Get(); }
  T&& operator*() && { return std::move(*Get()); }
  T* operator->() { return Get(); }
  Status status() const& { return ok() ? Status() : std::get<1>(v_); }
  Status status() && { return ok() ? Status() : std::move(std::get<1>(v_)); }
  Result Within(std::string_view doing) && {
    if (ok()) return std::move(*this);
    return std::move(*this).status().Within(doing);
  }

 private:
  T* Get() {
    HEARTH_CHECK(ok());
    return std::get_if<0>(&v_);
  }
  std::variant<T, Status> v_;
};

// printf-style message: std::format is not in this C++20 library, and the core takes no other.
[[nodiscard, gnu::format(printf, 2, 3)]] Status Error(Code code, const char* format, ...);
[[nodiscard, gnu::format(printf, 1, 2)]] std::string Printf(const char* format, ...);

// Bytes from outside made safe to print: control and non-ASCII bytes as \xNN, cut at 80 bytes.
std::string Quoted(std::string_view bytes);

}  // namespace hearth

#define HEARTH_CONCAT_(a, b) a##b
#define HEARTH_CONCAT(a, b) HEARTH_CONCAT_(a, b)
#define HEARTH_TRY(expr)                          \
  do {                                            \
    if (auto st_ = (expr); !st_.ok()) return st_; \
  } while (false)
#define HEARTH_ASSIGN(lhs, expr) HEARTH_ASSIGN_(HEARTH_CONCAT(r_, __COUNTER__), lhs, expr)
#define HEARTH_ASSIGN_(r, lhs, expr)         \
  auto r = (expr);                           \
  if (!r.ok()) return std::move(r).status(); \
  lhs = *std::move(r)
