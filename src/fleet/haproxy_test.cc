// SPDX-License-Identifier: Apache-2.0
#include "fleet/haproxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "testing/data.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FleetSpec Three() {
  FleetSpec spec;
  spec.replicas = {{"10.0.0.1:8080", 9100}, {"10.0.0.2:8080", 9100}, {"10.0.0.3:8080", 9100}};
  return spec;
}

// After a change: build/release/bin/hearth fleet haproxy --replicas
// 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080 > deploy/haproxy/haproxy.cfg
TEST(Haproxy, TheExampleIsCurrent) {
  std::ifstream file(testing::RepoPath("deploy/haproxy/haproxy.cfg"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), *HaproxyConfig(Three()));
}

TEST(Haproxy, SaysWhatIsAskedFor) {
  FleetSpec spec = Three();
  spec.replicas[1].agent_port = 0;
  spec.certificate = "/etc/hearth/fleet.pem";
  spec.bounded_load = 0;
  std::string text = *HaproxyConfig(spec);
  EXPECT_THAT(text, HasSubstr("bind *:8080 ssl crt /etc/hearth/fleet.pem alpn h2,http/1.1\n"));
  EXPECT_THAT(text, Not(HasSubstr("hash-balance-factor")));
  EXPECT_THAT(text, HasSubstr("agent-check agent-port 9100"));
  EXPECT_THAT(text, HasSubstr(Printf("server 10.0.0.2:8080 10.0.0.2:8080 id %d\n",
                                     RingId("10.0.0.2:8080"))));
  spec.balance = FleetBalance::kRoundRobin;
  text = *HaproxyConfig(spec);
  EXPECT_THAT(text, HasSubstr("balance roundrobin\n"));
  EXPECT_THAT(text, Not(HasSubstr("hash-type")));
  spec.balance = FleetBalance::kLeast;
  EXPECT_THAT(*HaproxyConfig(spec), HasSubstr("balance leastconn\n"));
}

TEST(Haproxy, SendsBatchesWhereTheyAre) {
  FleetSpec spec = Three();
  const char* const second =
      "  server 10.0.0.2:8080 10.0.0.2:8080 maxconn 32 track replicas/10.0.0.2:8080\n";
  EXPECT_THAT(*HaproxyConfig(spec), HasSubstr("server 10.0.0.1:8080 10.0.0.1:8080 maxconn 32\n"));
  EXPECT_THAT(*HaproxyConfig(spec), Not(HasSubstr(second)));
  spec.has_shared_batches = true;
  EXPECT_THAT(*HaproxyConfig(spec), HasSubstr(second));
  EXPECT_THAT(*HaproxyConfig(spec), HasSubstr("http-request disable-l7-retry if is_batch\n"));
}

// A replica that goes must not rename the others: their sessions stay where they are.
TEST(Haproxy, IdsDoNotDependOnTheList) {
  FleetSpec spec = Three();
  const std::string line = Printf("id %d ", RingId("10.0.0.3:8080"));
  EXPECT_THAT(*HaproxyConfig(spec), HasSubstr(line));
  spec.replicas.erase(spec.replicas.begin());
  EXPECT_THAT(*HaproxyConfig(spec), HasSubstr(line));
  std::set<int> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(RingId("10.0.0." + std::to_string(i) + ":8080"));
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_GE(*ids.begin(), 1);
}

TEST(Haproxy, ReadsReplicas) {
  const FleetReplica plain = *ParseReplica("10.0.0.1:8080", 9100);
  EXPECT_EQ(plain.address, "10.0.0.1:8080");
  EXPECT_EQ(plain.agent_port, 9100);
  EXPECT_EQ(ParseReplica("box-1.lan:80@7", 9100)->agent_port, 7);
  EXPECT_EQ(ParseReplica("[fd00::1]:8080", 0)->address, "[fd00::1]:8080");
  for (const char* wrong :
       {"", "10.0.0.1", ":80", "a:0", "a:65536", "a:80@", "a:80@x", "a:80@0", "a b:80",
        "a:80\nserver", "a\"b:80", "*:80", "a:80 # x", "http://a:80"}) {
    EXPECT_FALSE(ParseReplica(wrong, 9100).ok()) << wrong;
  }
}

// Nothing becomes a line of its own.
TEST(Haproxy, RefusesWhatItCannotWrite) {
  const auto refusal = [](auto change) {
    FleetSpec spec = Three();
    change(spec);
    return HaproxyConfig(spec).status().message();
  };
  EXPECT_THAT(refusal([](FleetSpec& s) { s.replicas.clear(); }), HasSubstr("at least one"));
  EXPECT_THAT(refusal([](FleetSpec& s) { s.replicas[1] = s.replicas[0]; }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](FleetSpec& s) { s.listen = "8080"; }), HasSubstr("expected an address"));
  EXPECT_THAT(refusal([](FleetSpec& s) { s.stats = "a:1\nx"; }), HasSubstr("expected an address"));
  EXPECT_THAT(refusal([](FleetSpec& s) { s.certificate = "a b.pem"; }), HasSubstr("a b.pem"));
}

}  // namespace
}  // namespace hearth
