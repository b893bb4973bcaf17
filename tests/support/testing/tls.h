// SPDX-License-Identifier: Apache-2.0
// Certificates and a client for tests of TLS.
#pragma once
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "http/http_server.h"
#include "testing/socket_client.h"
#include "testing/temp_dir.h"
namespace hearth::testing {

// A key and a certificate that it signed itself, as PEM files.
enum class TlsKeyKind : unsigned char { kEc, kRsa };
inline TlsFiles MakeTlsFiles(const TempDir& dir, TlsKeyKind kind = TlsKeyKind::kEc) {
  TlsFiles files{dir.Path("certificate.pem"), dir.Path("key.pem")};
  EVP_PKEY* key = kind == TlsKeyKind::kEc ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048);
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  std::FILE* out = std::fopen(files.certificate_path.c_str(), "w");
  EXPECT_EQ(PEM_write_X509(out, certificate), 1);
  std::fclose(out);
  out = std::fopen(files.key_path.c_str(), "w");
  EXPECT_EQ(PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  std::fclose(out);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

// What SocketClient is without TLS.
class TlsClient {
 public:
  explicit TlsClient(int port)
      : client_(port), context_(SSL_CTX_new(TLS_client_method())), tls_(SSL_new(context_)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    SSL_set_fd(tls_, client_.fd());
    EXPECT_EQ(SSL_connect(tls_), 1);
  }
  // One that speaks this version alone, and with a list, these suites alone; see `connected`.
  TlsClient(int port, int version, const char* suites)
      : client_(port), context_(SSL_CTX_new(TLS_client_method())) {
    std::signal(SIGPIPE, SIG_IGN);
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_min_proto_version(context_, version);
    SSL_CTX_set_max_proto_version(context_, version);
    if (suites != nullptr) {
      EXPECT_EQ(SSL_CTX_set_cipher_list(context_, suites), 1) << suites;
    }
    tls_ = SSL_new(context_);
    SSL_set_fd(tls_, client_.fd());
    connected_ = SSL_connect(tls_) == 1;
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  ~TlsClient() {
    SSL_free(tls_);
    SSL_CTX_free(context_);
  }
  bool connected() const { return connected_; }
  std::string suite() const { return SSL_get_cipher_name(tls_); }
  // The public key of the server's certificate.
  std::string PeerKey() const {
    X509* certificate = SSL_get1_peer_certificate(tls_);
    unsigned char* bytes = nullptr;
    const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes);
    std::string key(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
    OPENSSL_free(bytes);
    X509_free(certificate);
    return key;
  }
  bool Send(const std::string& bytes) {
    size_t written = 0;
    return SSL_write_ex(tls_, bytes.data(), bytes.size(), &written) == 1;
  }
  // Up to the end; `in_order` when close_notify said that it is one.
  std::string ReadAll(bool& in_order) {
    std::string got;
    char buffer[4096];
    int n = 0;
    while ((n = SSL_read(tls_, buffer, sizeof buffer)) > 0) got.append(buffer, size_t(n));
    in_order = SSL_get_error(tls_, n) == SSL_ERROR_ZERO_RETURN;
    return got;
  }

 private:
  SocketClient client_;
  SSL_CTX* context_;
  SSL* tls_ = nullptr;
  bool connected_ = true;
};

}  // namespace hearth::testing
