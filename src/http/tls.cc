// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <openssl/ssl.h>

#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

using boost::system::error_code;

// Of TLS 1.2 only suites whose session keys die with the connection (ECDHE) and whose records
// cannot be changed unnoticed (AES-GCM, ChaCha20-Poly1305): without ECDHE a certificate's key that
// is stolen later opens what was recorded before, and CBC has been attacked by its padding since
// 2002. TLS 1.3 has no others.
constexpr const char* kSuites = "ECDHE+AESGCM:ECDHE+CHACHA20";

void Restrict(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  HEARTH_CHECK(SSL_CTX_set_cipher_list(context, kSuites) == 1);
  // A client that asks for the handshake again makes the server pay for it each time.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

}  // namespace

Status TlsContexts::Load() {
  auto context = std::make_shared<boost::asio::ssl::context>(boost::asio::ssl::context::tls_server);
  Restrict(context->native_handle());
  error_code ec;
  context->use_certificate_chain_file(files_.certificate_path, ec);
  if (ec) {
    return Error(Code::kIo,
                 "TLS certificate %s: %s; expected a chain of certificates in a PEM file",
                 Quoted(files_.certificate_path).c_str(), ec.message().c_str());
  }
  context->use_private_key_file(files_.key_path, boost::asio::ssl::context::pem, ec);
  if (ec) {
    return Error(Code::kIo, "TLS key %s: %s; expected the certificate's private key in a PEM file",
                 Quoted(files_.key_path).c_str(), ec.message().c_str());
  }
  const MutexLock lock(mu_);
  context_ = std::move(context);
  return Status();
}

}  // namespace hearth
