// SPDX-License-Identifier: Apache-2.0
// Health says what the engine does, not that a socket answers.
#include "server/observe/health_routes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "engine/event_buffer.h"
#include "http/outbox.h"
#include "testing/fake_backend.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using testing::FakeBackend;
using testing::FakeOptions;

// The status and body that a GET of this path is answered with, at once.
std::string Get(const Router& router, const std::string& path) {
  const auto found = router.Find("GET", path);
  const auto outbox = std::make_shared<Outbox>(Outbox::Form{});
  HttpRequest request;
  request.path = path;
  std::get<Router::Match>(found).route->handler(std::move(request), outbox);
  const std::string bytes = outbox->Take().bytes;
  return bytes.substr(9, 3) + " " + bytes.substr(bytes.find("\r\n\r\n") + 4);
}

bool Eventually(const std::function<bool()>& is) {
  for (int i = 0; i < 5000 && !is(); ++i) std::this_thread::sleep_for(milliseconds(1));
  return is();
}

TEST(HealthRoutes, AStuckBackendIsAliveAndNotReady) {
  std::atomic<bool> hang{false};
  FakeOptions fake;
  fake.before_run = [&hang](const StepPlan&) {
    while (hang) std::this_thread::sleep_for(milliseconds(1));
    return Status();
  };
  WatchOptions watch;
  watch.stall_us = 20'000;
  Engine engine(std::make_unique<FakeBackend>(fake), EngineOptions(), watch);
  Router router;
  AddHealthRoutes(engine, router);
  EXPECT_EQ(Get(router, "/readyz"), "200 ready\n");
  hang = true;
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 3;
  const auto buffer = std::make_shared<EventBuffer>();
  ASSERT_TRUE(engine.Submit(std::move(request), buffer).ok());
  EXPECT_TRUE(Eventually([&] { return Get(router, "/readyz") == "503 stalled\n"; }));
  EXPECT_EQ(Get(router, "/livez"), "200 alive\n");  // a restart is for whoever watches to decide
  hang = false;
  EXPECT_TRUE(Eventually([&] { return Get(router, "/readyz") == "200 ready\n"; }));
  engine.Drain(1'000'000);
  EXPECT_TRUE(Eventually([&] { return Get(router, "/readyz") == "503 draining\n"; }));
  EXPECT_EQ(Get(router, "/livez"), "200 alive\n");
}

TEST(HealthRoutes, TellsOfRestartsAndOfItsOwnEnd) {
  Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
  bool is_wedged = false;
  Router router;
  AddHealthRoutes(engine, router, {"restarted 1 time", [&] { return is_wedged; }});
  EXPECT_EQ(Get(router, "/readyz"), "200 ready\nrestarted 1 time\n");
  EXPECT_EQ(Get(router, "/livez"), "200 alive\n");
  is_wedged = true;
  EXPECT_EQ(Get(router, "/livez"), "503 stalled\n");
}

// While requests are still taken, so that a balancer finds out before one is refused.
TEST(HealthRoutes, IsNotReadyOnceItIsToLeave) {
  Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
  bool is_leaving = false;
  Router router;
  AddHealthRoutes(engine, router, {"", {}, [&] { return is_leaving; }});
  EXPECT_EQ(Get(router, "/readyz"), "200 ready\n");
  is_leaving = true;
  EXPECT_EQ(Get(router, "/readyz"), "503 draining\n");
  EXPECT_EQ(Get(router, "/livez"), "200 alive\n");
  EXPECT_FALSE(engine.snapshot()->is_draining);
}

}  // namespace
}  // namespace hearth
