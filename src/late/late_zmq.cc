// SPDX-License-Identifier: Apache-2.0
// libzmq's functions by their own names.
#include <zmq.h>

#include "late/late.h"
#include "late/late_library.h"

namespace {

hearth::LateLibrary& Library() {
  static hearth::LateLibrary library("libzmq.so.5", "libzmq5");
  return library;
}

template <typename Function>
Function* Real(const char* name) {
  return Library().Find<Function>(name);
}

}  // namespace

extern "C" {

int zmq_errno() {
  static auto* const real = Real<decltype(zmq_errno)>("zmq_errno");
  return real();
}

const char* zmq_strerror(int number) {
  static auto* const real = Real<decltype(zmq_strerror)>("zmq_strerror");
  return real(number);
}

void* zmq_ctx_new() {
  static auto* const real = Real<decltype(zmq_ctx_new)>("zmq_ctx_new");
  return real();
}

int zmq_ctx_set(void* context, int option, int value) {
  static auto* const real = Real<decltype(zmq_ctx_set)>("zmq_ctx_set");
  return real(context, option, value);
}

int zmq_ctx_term(void* context) {
  static auto* const real = Real<decltype(zmq_ctx_term)>("zmq_ctx_term");
  return real(context);
}

void* zmq_socket(void* context, int type) {
  static auto* const real = Real<decltype(zmq_socket)>("zmq_socket");
  return real(context, type);
}

int zmq_setsockopt(void* socket, int option, const void* value, size_t size) {
  static auto* const real = Real<decltype(zmq_setsockopt)>("zmq_setsockopt");
  return real(socket, option, value, size);
}

int zmq_getsockopt(void* socket, int option, void* value, size_t* size) {
  static auto* const real = Real<decltype(zmq_getsockopt)>("zmq_getsockopt");
  return real(socket, option, value, size);
}

int zmq_bind(void* socket, const char* address) {
  static auto* const real = Real<decltype(zmq_bind)>("zmq_bind");
  return real(socket, address);
}

int zmq_close(void* socket) {
  static auto* const real = Real<decltype(zmq_close)>("zmq_close");
  return real(socket);
}

int zmq_send(void* socket, const void* bytes, size_t size, int flags) {
  static auto* const real = Real<decltype(zmq_send)>("zmq_send");
  return real(socket, bytes, size, flags);
}

int zmq_poll(zmq_pollitem_t* items, int count, long timeout_ms) {
  static auto* const real = Real<decltype(zmq_poll)>("zmq_poll");
  return real(items, count, timeout_ms);
}

int zmq_msg_init(zmq_msg_t* message) {
  static auto* const real = Real<decltype(zmq_msg_init)>("zmq_msg_init");
  return real(message);
}

int zmq_msg_recv(zmq_msg_t* message, void* socket, int flags) {
  static auto* const real = Real<decltype(zmq_msg_recv)>("zmq_msg_recv");
  return real(message, socket, flags);
}

int zmq_msg_more(const zmq_msg_t* message) {
  static auto* const real = Real<decltype(zmq_msg_more)>("zmq_msg_more");
  return real(message);
}

size_t zmq_msg_size(const zmq_msg_t* message) {
  static auto* const real = Real<decltype(zmq_msg_size)>("zmq_msg_size");
  return real(message);
}

void* zmq_msg_data(zmq_msg_t* message) {
  static auto* const real = Real<decltype(zmq_msg_data)>("zmq_msg_data");
  return real(message);
}

int zmq_msg_close(zmq_msg_t* message) {
  static auto* const real = Real<decltype(zmq_msg_close)>("zmq_msg_close");
  return real(message);
}

}  // extern "C"

namespace hearth {

Status LoadZmq() { return Library().Load(); }

}  // namespace hearth
