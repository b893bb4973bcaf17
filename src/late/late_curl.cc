// SPDX-License-Identifier: Apache-2.0
// libcurl's functions by their own names. The two with "..." take one argument more, whose kind
// follows from the option's number, as it does inside libcurl.
#include <curl/curl.h>

#include <cstdarg>

#include "late/late.h"
#include "late/late_library.h"

namespace {

hearth::LateLibrary& Library() {
  static hearth::LateLibrary library("libcurl.so.4", "libcurl4");
  return library;
}

template <typename Function>
Function* Real(const char* name) {
  return Library().Find<Function>(name);
}

}  // namespace

// clang minds that an enumeration comes last before the dots: libcurl's own header has it so.
#pragma GCC diagnostic ignored "-Wvarargs"

extern "C" {

CURLcode curl_global_init(long flags) {
  static auto* const real = Real<decltype(curl_global_init)>("curl_global_init");
  return real(flags);
}

CURL* curl_easy_init() {
  static auto* const real = Real<decltype(curl_easy_init)>("curl_easy_init");
  return real();
}

CURLcode curl_easy_setopt(CURL* easy, CURLoption option, ...) {
  static auto* const real = Real<decltype(curl_easy_setopt)>("curl_easy_setopt");
  va_list rest;
  va_start(rest, option);
  CURLcode code = CURLE_OK;
  if (option < CURLOPTTYPE_OBJECTPOINT) {
    code = real(easy, option, va_arg(rest, long));
  } else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB) {
    code = real(easy, option, va_arg(rest, curl_off_t));
  } else {
    code = real(easy, option, va_arg(rest, void*));
  }
  va_end(rest);
  return code;
}

CURLcode curl_easy_getinfo(CURL* easy, CURLINFO info, ...) {
  static auto* const real = Real<decltype(curl_easy_getinfo)>("curl_easy_getinfo");
  va_list rest;
  va_start(rest, info);
  const CURLcode code = real(easy, info, va_arg(rest, void*));
  va_end(rest);
  return code;
}

CURLcode curl_easy_perform(CURL* easy) {
  static auto* const real = Real<decltype(curl_easy_perform)>("curl_easy_perform");
  return real(easy);
}

void curl_easy_reset(CURL* easy) {
  static auto* const real = Real<decltype(curl_easy_reset)>("curl_easy_reset");
  real(easy);
}

void curl_easy_cleanup(CURL* easy) {
  static auto* const real = Real<decltype(curl_easy_cleanup)>("curl_easy_cleanup");
  real(easy);
}

const char* curl_easy_strerror(CURLcode code) {
  static auto* const real = Real<decltype(curl_easy_strerror)>("curl_easy_strerror");
  return real(code);
}

CURLM* curl_multi_init() {
  static auto* const real = Real<decltype(curl_multi_init)>("curl_multi_init");
  return real();
}

CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  static auto* const real = Real<decltype(curl_multi_add_handle)>("curl_multi_add_handle");
  return real(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* easy) {
  static auto* const real = Real<decltype(curl_multi_remove_handle)>("curl_multi_remove_handle");
  return real(multi, easy);
}

CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  static auto* const real = Real<decltype(curl_multi_perform)>("curl_multi_perform");
  return real(multi, running);
}

CURLMcode curl_multi_poll(CURLM* multi, curl_waitfd* fds, unsigned count, int timeout_ms,
                          int* ready) {
  static auto* const real = Real<decltype(curl_multi_poll)>("curl_multi_poll");
  return real(multi, fds, count, timeout_ms, ready);
}

CURLMcode curl_multi_wakeup(CURLM* multi) {
  static auto* const real = Real<decltype(curl_multi_wakeup)>("curl_multi_wakeup");
  return real(multi);
}

CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
  static auto* const real = Real<decltype(curl_multi_info_read)>("curl_multi_info_read");
  return real(multi, left);
}

CURLMcode curl_multi_cleanup(CURLM* multi) {
  static auto* const real = Real<decltype(curl_multi_cleanup)>("curl_multi_cleanup");
  return real(multi);
}

curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  static auto* const real = Real<decltype(curl_slist_append)>("curl_slist_append");
  return real(list, text);
}

void curl_slist_free_all(curl_slist* list) {
  static auto* const real = Real<decltype(curl_slist_free_all)>("curl_slist_free_all");
  real(list);
}

time_t curl_getdate(const char* text, const time_t* unused) {
  static auto* const real = Real<decltype(curl_getdate)>("curl_getdate");
  return real(text, unused);
}

}  // extern "C"

namespace hearth {

Status LoadCurl() {
  HEARTH_TRY(Library().Load());
  if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return Status();
  return Error(Code::kIo, "cannot initialise libcurl");
}

}  // namespace hearth
