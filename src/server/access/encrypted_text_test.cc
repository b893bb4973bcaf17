// SPDX-License-Identifier: Apache-2.0
#include "server/access/encrypted_text.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(TextCipher, DecryptsWhatItEncrypted) {
  const TextCipher cipher(NewCipherKey());
  for (size_t size : {0, 1, 2, 3, 15, 16, 17, 1000, 100'000}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * 37);
    const std::string encrypted = cipher.Encrypt(text, "anna");
    EXPECT_EQ(cipher.Decrypt(encrypted, "anna"), text) << size;
    EXPECT_EQ(cipher.Encrypt(text, "anna"), encrypted) << "the same every time";
    EXPECT_EQ(cipher.Decrypt(encrypted, "bert"), std::nullopt) << "for one tenant alone";
    EXPECT_NE(cipher.Encrypt(text, "bert"), encrypted);
  }
  EXPECT_EQ(cipher.Encrypt("secret plan", "").find("secret"), std::string::npos);
  EXPECT_EQ(TextCipher(NewCipherKey()).Decrypt(cipher.Encrypt("x", ""), ""), std::nullopt);
}

TEST(TextCipher, NoticesEveryChange) {
  const TextCipher cipher(NewCipherKey());
  const std::string encrypted = cipher.Encrypt("thoughts about owls", "anna");
  ASSERT_TRUE(cipher.Decrypt(encrypted, "anna"));
  for (size_t i = 0; i < encrypted.size(); ++i) {
    std::string changed = encrypted;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(cipher.Decrypt(changed, "anna"), std::nullopt) << i;
    EXPECT_EQ(cipher.Decrypt(encrypted.substr(0, i), "anna"), std::nullopt) << i;
  }
  for (const char* odd :
       {"", "hearth1.", "hearth2.", "hearth2.====", "hearth2.AAAA", "plain thoughts"}) {
    EXPECT_EQ(cipher.Decrypt(odd, "anna"), std::nullopt) << odd;
  }
}

// What clients kept from before there was a key for this alone: made by another program, as it was.
TEST(TextCipher, ReadsWhatEarlierVersionsWrote) {
  CipherKey root;
  for (size_t i = 0; i < root.size(); ++i) root[i] = static_cast<unsigned char>(i);
  const TextCipher cipher(root);
  const std::string old =
      "hearth1.bfboP2bkxT5fA5zbvEpnQb4pM/hvbXNbk9tvasECjX4FqhR6RuJ36ZfDqzLuEH0=";
  EXPECT_EQ(cipher.Decrypt(old, "anna"), "thoughts about owls");
  EXPECT_EQ(cipher.Decrypt(old, "bert"), std::nullopt);
  const std::string now = cipher.Encrypt("thoughts about owls", "anna");
  EXPECT_TRUE(now.starts_with("hearth2."));
  for (const char digit : {'0', '1', '3'}) {
    std::string other = now;
    other[6] = digit;
    EXPECT_EQ(cipher.Decrypt(other, "anna"), std::nullopt) << "another version's key";
  }
}

TEST(TextCipher, IsBounded) {
  const TextCipher cipher(NewCipherKey());
  EXPECT_EQ(cipher.Encrypt(std::string(TextCipher::kMaxBytes + 1, 'x'), ""), "");
  const std::string most(TextCipher::kMaxBytes, 'x');
  EXPECT_EQ(cipher.Decrypt(cipher.Encrypt(most, ""), ""), most);
  EXPECT_EQ(cipher.Decrypt("hearth2." + std::string(TextCipher::kMaxBytes * 2, 'A'), ""),
            std::nullopt);
}

}  // namespace
}  // namespace hearth
