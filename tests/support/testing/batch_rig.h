// SPDX-License-Identifier: Apache-2.0
// A batch office with clocks of its own and an API that is a function.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "batch/batch_office.h"
namespace hearth::testing {

inline constexpr const char* kChat = "/v1/chat/completions";

inline std::string Input(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += Printf(R"({"custom_id": "c%d", "method": "POST", "url": "%s", "body": {"n": %d}})", i,
                   kChat, i) +
            "\n";
  }
  return text;
}

inline std::string Text(const Json& json, const char* name) {
  const Json* member = json.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : "";
}

// Answers when it is told to, and notes what was asked.
class FakeApi {
 public:
  struct Call {
    HttpRequest request;
    std::shared_ptr<HttpReply> reply;
  };
  using AnswerFn = std::function<void(const HttpRequest&, HttpReply&)>;
  BatchSend Sender() {
    return [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      AnswerFn answer;
      {
        const MutexLock lock(mu_);
        ++asked_[request.body];
        answer = answer_;
        if (answer == nullptr) {
          calls_.push_back({std::move(request), std::move(reply)});
          return;
        }
      }
      answer(request, *reply);
    };
  }
  void Always(AnswerFn answer) {
    const MutexLock lock(mu_);
    answer_ = std::move(answer);
  }
  std::vector<Call> Take() {
    const MutexLock lock(mu_);
    std::vector<Call> out(std::make_move_iterator(calls_.begin()),
                          std::make_move_iterator(calls_.end()));
    calls_.clear();
    return out;
  }
  size_t waiting() {
    const MutexLock lock(mu_);
    return calls_.size();
  }
  std::map<std::string, int> asked() {
    const MutexLock lock(mu_);
    return asked_;
  }

 private:
  Mutex mu_;
  std::deque<Call> calls_ HEARTH_GUARDED_BY(mu_);
  std::map<std::string, int> asked_ HEARTH_GUARDED_BY(mu_);
  AnswerFn answer_ HEARTH_GUARDED_BY(mu_);
};

inline void Echo(const HttpRequest& request, HttpReply& reply) {
  reply.Send(200, {}, R"({"echo":)" + request.body + "}");
}

class BatchRig : public ::testing::Test {
 public:
  BatchOptions Options(int in_flight = 4) {
    BatchOptions options;
    options.max_in_flight = in_flight;
    options.clocks = [this] { return ClockReading{wall_s_, boot_s_, "boot"}; };
    options.look_every = std::chrono::milliseconds(5);
    return options;
  }
  void Open(const std::string& path = "", int in_flight = 4, const BatchQuota& quota = {}) {
    office_ = std::make_unique<BatchOffice>(*BatchStore::Open(path, quota), Options(in_flight));
  }
  std::string Upload(const std::string& content, const std::string& tenant = "t") {
    return Text(*office_->AddFile(tenant, {"in.jsonl", "batch", content}), "id");
  }
  std::string Create(const std::string& content, const std::string& tenant = "t",
                     const std::string& window = "24h") {
    return Text(*office_->AddBatch(tenant, {Upload(content, tenant), kChat, window}), "id");
  }
  Json Batch(const std::string& id) { return *office_->FindBatch("t", id); }
  bool WaitFor(const std::string& id, const std::string& status) {
    for (int i = 0; i < 10'000; ++i) {
      if (Text(*ParseJson(WriteJson(Batch(id))), "status") == status) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool Eventually(const std::function<bool()>& is) {
    for (int i = 0; i < 10'000 && !is(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return is();
  }
  // The ids of a result's lines, each once; null: the batch has no such file.
  std::set<std::string> Ids(const std::string& batch, const char* file) {
    std::set<std::string> ids;
    const std::string id = Text(Batch(batch), file);
    if (id.empty()) return ids;
    const std::string content = *office_->ReadFile("t", id);
    size_t at = 0;
    while (at < content.size()) {
      const size_t end = content.find('\n', at);
      const Json line = *ParseJson(content.substr(at, end - at));
      EXPECT_TRUE(ids.insert(Text(line, "custom_id")).second) << Text(line, "custom_id");
      at = end + 1;
    }
    return ids;
  }
  std::string Counts(const std::string& id) { return WriteJson(*Batch(id).Find("request_counts")); }

  // As the engine does: lines that run end when the runner leaves them.
  void EndWhatIsLeft() {
    for (FakeApi::Call& call : api_.Take()) {
      held_.push_back(call.reply);
      call.reply->OnGone([reply = call.reply.get()] { reply->Abort(); });
    }
  }
  void Pass(int64_t seconds) {
    wall_s_ += seconds;
    boot_s_ += seconds;
  }
  static constexpr int64_t kDay = 24 * 3600, kYear = 365 * kDay;

  std::atomic<int64_t> wall_s_{1'800'000'000}, boot_s_{5000};
  FakeApi api_;
  std::vector<std::shared_ptr<HttpReply>> held_;
  std::unique_ptr<BatchOffice> office_;
};

}  // namespace hearth::testing
