// SPDX-License-Identifier: Apache-2.0
#include "events/zmq_publisher.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/fresh_random.h"
#include "base/mutex.h"
#include "base/terminal.h"
#include "base/thread_name.h"
#include "late/late.h"

namespace hearth {
namespace {

// Batches that wait for one subscriber; more than that it misses, and asks for again.
constexpr int kMaxWaiting = 8'192;
// What strangers send: a topic to subscribe to, or the number that a replay begins with.
constexpr int64_t kMaxRequestBytes = 1024;
constexpr int kLingerMs = 200;
// Replays between two looks at the queue: whoever asks in a loop does not hold up the stream.
constexpr int kReplaysAtOnce = 4;
constexpr uint64_t kEndMark = ~uint64_t{0};  // -1: a replay is over

double NowSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Microseconds since 1970: more than any process before this one got to, at a batch per step.
uint64_t FirstNumber() { return static_cast<uint64_t>(NowSeconds() * 1e6); }

std::array<char, 8> BigEndian(uint64_t number) {
  std::array<char, 8> bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(number >> 56);
    number <<= 8;
  }
  return bytes;
}

void SetOption(void* socket, int option, int value) {
  HEARTH_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

struct Frame {
  Frame() { zmq_msg_init(&msg); }
  ~Frame() { zmq_msg_close(&msg); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  std::string_view bytes() { return {static_cast<char*>(zmq_msg_data(&msg)), zmq_msg_size(&msg)}; }
  zmq_msg_t msg;
};

// A message's frames; none when there is no message.
std::vector<std::string> Receive(void* socket) {
  std::vector<std::string> frames;
  while (true) {
    Frame frame;
    if (zmq_msg_recv(&frame.msg, socket, ZMQ_DONTWAIT) < 0) return frames;
    frames.emplace_back(frame.bytes());
    if (zmq_msg_more(&frame.msg) == 0) return frames;
  }
}

bool Send(void* socket, std::string_view bytes, bool is_last) {
  return zmq_send(socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT | (is_last ? 0 : ZMQ_SNDMORE)) >=
         0;
}

// The library takes any number for a port, and its last 16 bits.
bool IsTcpAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  unsigned port = 0;
  const char* const end = address.data() + address.size();
  return address.starts_with("tcp://") && colon > 5 &&
         std::from_chars(address.data() + colon + 1, end, port).ptr == end && port <= 65'535;
}

}  // namespace

bool IsLocalAddress(const std::string& address) {
  for (const char* beginning : {"tcp://127.", "tcp://localhost:", "tcp://[::1]:"}) {
    if (address.starts_with(beginning)) return true;
  }
  return false;
}

struct ZmqPublisher::Impl {
  explicit Impl(const PublisherOptions& given)
      : options(given),
        bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        queue(given.max_queued, [this] { Ring(); }),
        log({.wire = given.wire, .first_number = FirstNumber()}) {
    HEARTH_CHECK(bell >= 0);
    zmq_ctx_set(context, ZMQ_IO_THREADS, 1);
  }

  ~Impl() {
    is_ending = true;
    Ring();
    if (thread.joinable()) thread.join();
    for (void* socket : {publisher, replayer}) {
      if (socket != nullptr) zmq_close(socket);
    }
    zmq_ctx_term(context);
    close(bell);
  }

  void Ring() const {
    const uint64_t one = 1;
    // It can only fail when it rings already.
    [[maybe_unused]] const ssize_t written = write(bell, &one, sizeof one);
  }

  Result<void*> Bind(int type, const char* flag, const std::string& wanted, std::string& bound) {
    if (!IsTcpAddress(wanted)) {
      return Error(Code::kInvalid,
                   "%s %s: expected tcp://HOST:PORT, for example tcp://127.0.0.1:5557", flag,
                   Quoted(wanted).c_str());
    }
    void* socket = zmq_socket(context, type);
    if (socket == nullptr) return Error(Code::kIo, "%s: %s", flag, zmq_strerror(zmq_errno()));
    SetOption(socket, ZMQ_LINGER, kLingerMs);
    SetOption(socket, ZMQ_SNDHWM, kMaxWaiting);
    SetOption(socket, ZMQ_IPV6, wanted.find('[') != std::string::npos);
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &kMaxRequestBytes, sizeof kMaxRequestBytes);
    if (zmq_bind(socket, wanted.c_str()) != 0) {
      const int error = zmq_errno();
      zmq_close(socket);
      return Error(error == EINVAL || error == ENODEV ? Code::kInvalid : Code::kIo, "%s %s: %s",
                   flag, Quoted(wanted).c_str(), zmq_strerror(error));
    }
    std::array<char, 512> name{};
    size_t size = name.size();
    HEARTH_CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, name.data(), &size) == 0);
    bound = name.data();
    return socket;
  }

  Status Open() {
    HEARTH_ASSIGN(publisher, Bind(ZMQ_PUB, "--kv-events", options.address, address));
    if (options.replay_address.empty()) return Status();
    HEARTH_ASSIGN(replayer,
                  Bind(ZMQ_ROUTER, "--kv-events-replay", options.replay_address, replay_address));
    // A subscriber that left, or does not read, is told so instead of being waited for.
    SetOption(replayer, ZMQ_ROUTER_MANDATORY, 1);
    return Status();
  }

  void Publish(const NumberedBatch& batch) {
    const std::array<char, 8> number = BigEndian(batch.number);
    Send(publisher, topic, false);
    Send(publisher, {number.data(), number.size()}, false);
    Send(publisher, *batch.payload, true);
    last_batch = std::chrono::steady_clock::now();
  }

  void PublishQueued() {
    while (const std::optional<BlockEvents> events = queue.Take()) {
      if (const auto batch = log.Add(*events, queue.layout(), NowSeconds())) Publish(*batch);
    }
    if (std::chrono::steady_clock::now() - last_batch >=
        std::chrono::milliseconds(options.beat_ms)) {
      Publish(log.Beat(NowSeconds()));
    }
  }

  void TakeCounts() {
    const MutexLock lock(mu);
    counts = log.counts();
  }

  bool Answer(const std::string& client, uint64_t number, std::string_view payload) const {
    const std::array<char, 8> bytes = BigEndian(number);
    return Send(replayer, client, false) && Send(replayer, "", false) &&
           Send(replayer, {bytes.data(), bytes.size()}, false) && Send(replayer, payload, true);
  }

  // False: nobody asks.
  bool AnswerReplay() {
    const std::vector<std::string> frames = Receive(replayer);
    if (frames.empty()) return false;
    if (frames.size() != 3 || !frames[1].empty() || frames[2].size() != 8) return true;  // not ours
    uint64_t from = 0;
    for (const char byte : frames[2]) from = from << 8 | static_cast<uint8_t>(byte);
    for (const NumberedBatch& batch : log.Replay(from, NowSeconds())) {
      if (!Answer(frames[0], batch.number, *batch.payload)) return true;  // gone, or not reading
    }
    Answer(frames[0], kEndMark, "");
    return true;
  }

  void Run() {
    NameThread("kv-events");
    Publish(log.Begin(NowSeconds()));
    while (!is_ending) {
      zmq_pollitem_t items[] = {{nullptr, bell, ZMQ_POLLIN, 0}, {replayer, 0, ZMQ_POLLIN, 0}};
      zmq_poll(items, replayer == nullptr ? 1 : 2, static_cast<long>(options.beat_ms));
      uint64_t rung = 0;
      [[maybe_unused]] const ssize_t got = read(bell, &rung, sizeof rung);
      PublishQueued();
      // Everything up to here was published: a replay and the stream after it leave no gap.
      for (int i = 0; replayer != nullptr && i < kReplaysAtOnce && AnswerReplay(); ++i) {
      }
      TakeCounts();
    }
    PublishQueued();
  }

  const PublisherOptions options;
  void* const context = zmq_ctx_new();
  void* publisher = nullptr;
  void* replayer = nullptr;
  const int bell;
  EventQueue queue;
  EventLog log;  // the thread's
  std::string address, replay_address, topic;
  std::chrono::steady_clock::time_point last_batch;
  std::atomic<bool> is_ending{false};
  mutable Mutex mu;
  EventCounts counts HEARTH_GUARDED_BY(mu);
  std::thread thread;
};

ZmqPublisher::ZmqPublisher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZmqPublisher::~ZmqPublisher() = default;

Result<std::unique_ptr<ZmqPublisher>> ZmqPublisher::Listen(const PublisherOptions& options) {
  HEARTH_TRY(LoadZmq());
  PublisherOptions with_seed = options;
  if (with_seed.wire.hash_seed == 0) with_seed.wire.hash_seed = FreshNumber();
  auto impl = std::make_unique<Impl>(with_seed);
  HEARTH_TRY(impl->Open());
  return std::unique_ptr<ZmqPublisher>(new ZmqPublisher(std::move(impl)));
}

BlockWatch& ZmqPublisher::watch() { return impl_->queue; }

void ZmqPublisher::Start(std::string topic) {
  HEARTH_CHECK(!impl_->thread.joinable());
  impl_->topic = std::move(topic);
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

PublisherCounts ZmqPublisher::counts() const {
  PublisherCounts counts;
  counts.queue = impl_->queue.counts();
  const MutexLock lock(impl_->mu);
  counts.log = impl_->counts;
  return counts;
}

const std::string& ZmqPublisher::address() const { return impl_->address; }
const std::string& ZmqPublisher::replay_address() const { return impl_->replay_address; }

}  // namespace hearth
