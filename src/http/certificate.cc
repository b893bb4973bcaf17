// SPDX-License-Identifier: Apache-2.0
#include "http/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

namespace hearth {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Result<Bio> Open(const std::string& path) {
  Bio bio(BIO_new_file(path.c_str(), "r"), BIO_free);
  if (bio == nullptr) return Error(Code::kIo, "%s cannot be read", Quoted(path).c_str());
  return bio;
}

Result<Certificate> ReadCertificate(const std::string& path) {
  HEARTH_ASSIGN(const Bio bio, Open(path));
  Certificate found(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  if (found == nullptr) {
    return Error(Code::kInvalid, "%s holds no certificate in PEM form", Quoted(path).c_str());
  }
  return found;
}

Result<int64_t> Seconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return Error(Code::kInvalid, "the certificate has a date that is none");
  }
  return static_cast<int64_t>(::timegm(&parts));
}

}  // namespace

Result<CertificateDates> ReadCertificateDates(const std::string& path) {
  HEARTH_ASSIGN(const Certificate certificate, ReadCertificate(path));
  CertificateDates dates;
  HEARTH_ASSIGN(dates.begins, Seconds(X509_get0_notBefore(certificate.get())));
  HEARTH_ASSIGN(dates.ends, Seconds(X509_get0_notAfter(certificate.get())));
  return dates;
}

Status CheckKeyBelongs(const std::string& certificate_path, const std::string& key_path) {
  HEARTH_ASSIGN(const Certificate certificate, ReadCertificate(certificate_path));
  HEARTH_ASSIGN(const Bio bio, Open(key_path));
  // Without this OpenSSL asks on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr),
                       EVP_PKEY_free);
  const bool belongs = key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (key == nullptr) {
    return Error(Code::kInvalid, "%s holds no private key in PEM form without a password",
                 Quoted(key_path).c_str());
  }
  if (!belongs) {
    return Error(Code::kInvalid, "%s is not the key of %s", Quoted(key_path).c_str(),
                 Quoted(certificate_path).c_str());
  }
  return Status();
}

}  // namespace hearth
