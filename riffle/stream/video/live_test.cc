#include "riffle/stream/video/live.h"

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/stream/testing/generated_stream.h"
#include "riffle/stream/testing/loopback_server.h"
#include "riffle/stream/testing/video_folder.h"

namespace riffle {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::Throws;
using testing::ThrowsMessage;

// A live camera: MPEG-TS of unknown length over HTTP.
class VideoLiveStream : public VideoFolder {
 protected:
  void SetUp() override {
    VideoFolder::SetUp();
    if (IsSkipped()) return;
    make("film.ts", {.frames = 40, .b_frames = 0});
    film_ = read_bytes(path("film.ts"));
  }
  std::unique_ptr<Stream> open_live(const std::string& options = "", const char* target = "/live") {
    return open_stream(cat("video:", server_.url(target), "?", options));
  }

  // Before the server, whose threads send it until the server ends.
  std::vector<std::byte> film_;
  LoopbackServer server_;
};

TEST_F(VideoLiveStream, SaysForHowLongItsSourceCannotBeReached) {
  std::atomic<bool> there = false;
  server_.route("/live", [&](LoopbackServer::Exchange& exchange) {
    if (!there) return exchange.reply(503, "later");
    exchange.write_head(200) && exchange.write(film_);
  });
  const auto stream = open_stream(cat("video:", server_.url("/live")), "limit:samples=5");
  EXPECT_EQ(stream->unreachable_s(), 0);
  auto first = std::async(std::launch::async, [&] { return stream->next(); });
  while (stream->unreachable_s() == 0) std::this_thread::yield();
  there = true;
  ASSERT_TRUE(first.get());
  EXPECT_EQ(stream->unreachable_s(), 0);
}

TEST_F(VideoLiveStream, ContinuesThroughStallsDisconnectionsAndErrors) {
  std::atomic<int> connections = 0;
  server_.route("/live", [&](LoopbackServer::Exchange& exchange) {
    switch (++connections) {
      case 1:  // breaks off in the middle
        exchange.write_head(200) && exchange.write(std::span(film_).first(film_.size() / 2));
        return;
      case 2:
        return exchange.reply(503, "later");
      case 3:
        return exchange.reply(200, "<html>a page</html>");
      case 4:  // falls silent
        exchange.write_head(200) && exchange.write(film_) && exchange.pause(60s);
        return;
      default:
        exchange.write_head(200) && exchange.write(film_);
    }
  });
  const auto stream = open_live("timeout=0.5");
  const auto samples = take(*stream, 70);
  ASSERT_EQ(samples.size(), 70u);
  EXPECT_GE(connections, 5);
  std::set<std::int64_t> clips;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].index, i);
    EXPECT_EQ(samples[i].key, cat(server_.url("/live"), '#', i));
    EXPECT_EQ(samples[i].label, "");
    clips.insert(samples[i].clip);
    const int number = shown_number(samples[i].picture);
    // One after the other, or from the beginning on a new connection.
    const bool begins = i == 0 || samples[i].clip != samples[i - 1].clip;
    EXPECT_EQ(number, begins ? 0 : shown_number(samples[i - 1].picture) + 1) << i;
  }
  EXPECT_EQ(clips.size(), 3u);
  auto skipped = stream->skipped();
  EXPECT_GE(skipped["connection lost"], 2);
  EXPECT_GE(skipped["cannot connect"], 1);
  EXPECT_GE(skipped["not a video"], 1);
}

TEST_F(VideoLiveStream, AServerThatDripsIsLeft) {
  std::atomic<int> connections = 0;
  server_.route("/live", [&](LoopbackServer::Exchange& exchange) {
    if (++connections > 1) {
      exchange.write_head(200) && exchange.write(film_);
      return;
    }
    exchange.write_head(200);
    while (exchange.write("G") && exchange.pause(20ms)) continue;
  });
  EXPECT_EQ(numbers(take(*open_live("timeout=0.3"), 5)), every(1, 5));
}

TEST_F(VideoLiveStream, AFilmOfKnownLengthEnds) {
  make("film.mp4", {.frames = 20});
  server_.serve("/film.mp4", read_bytes(path("film.mp4")));
  const auto stream = open_live("stride=2", "/film.mp4");
  EXPECT_EQ(numbers(rest(*stream)), every(2, 20));
  EXPECT_FALSE(stream->next());
}

TEST_F(VideoLiveStream, StopEndsTheWaitAtOnce) {
  server_.route("/silent", [](LoopbackServer::Exchange& exchange) { exchange.pause(600s); });
  server_.route("/live", [&](LoopbackServer::Exchange& exchange) {
    exchange.write_head(200) && exchange.write(film_) && exchange.pause(600s);
  });
  for (const auto* threads : {"threads=0", "threads=1"}) {
    // Before a connection is there, while data is awaited, and in the pause after a failure.
    for (const auto* target : {"/silent", "/live", "/missing"}) {
      const auto stream = open_live(cat("timeout=300&", threads), target);
      const int before = server_.requests(target);
      auto reader = std::async(std::launch::async, [&] {
        while (stream->next()) continue;
      });
      while (server_.requests(target) == before) std::this_thread::yield();
      stream->stop();
      ASSERT_EQ(reader.wait_for(20s), std::future_status::ready) << target;
      EXPECT_FALSE(stream->next());
    }
  }
}

TEST_F(VideoLiveStream, PositionCountsAndSeekContinuesFromNow) {
  server_.route("/live", [&](LoopbackServer::Exchange& exchange) {
    exchange.write_head(200) && exchange.write(film_);
  });
  const auto stream = open_live();
  EXPECT_EQ(stream->position(), "live 0");
  take(*stream, 7);
  EXPECT_EQ(stream->position(), "live 7");
  const auto again = open_live();
  again->seek("live 7");
  const auto samples = take(*again, 2);
  EXPECT_EQ(samples[0].index, 7u);
  EXPECT_EQ(samples[1].key, cat(server_.url("/live"), "#8"));
  again->seek("live 100");  // in the middle of a connection
  EXPECT_EQ(take(*again, 1)[0].index, 100u);
  for (const auto* bad : {"live", "live x", "live -1", "live 1 2", "name 1"}) {
    EXPECT_THROW(again->seek(bad), Error) << bad;
  }
  EXPECT_EQ(again->position(), "live 101");
  EXPECT_EQ(take(*again, 1)[0].index, 101u);
}

TEST_F(VideoLiveStream, PasswordsAreNotShown) {
  server_.route("/live", [&](LoopbackServer::Exchange& exchange) {
    exchange.write_head(200) && exchange.write(film_);
  });
  const auto stream =
      open_stream(cat("video:http://me:secret@127.0.0.1:", server_.port(), "/live"));
  EXPECT_EQ(take(*stream, 1)[0].key, cat(server_.url("/live"), "#0"));
}

TEST_F(VideoLiveStream, UdpPacketsAreAStream) {
  // A port that was free a moment ago.
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket, any, size), 0);
  ASSERT_EQ(::getsockname(socket, any, &size), 0);
  ::close(socket);

  std::atomic<bool> enough = false;
  std::thread sender([&] {
    constexpr std::size_t kDatagram = 7 * 188;
    const int out = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    while (!enough) {
      for (std::size_t at = 0; at < film_.size() && !enough; at += kDatagram) {
        ::sendto(out, film_.data() + at, std::min(kDatagram, film_.size() - at), 0, any, size);
        std::this_thread::sleep_for(1ms);
      }
    }
    ::close(out);
  });
  const auto stream = open_stream(cat("video:udp://127.0.0.1:", ntohs(address.sin_port)));
  const auto samples = take(*stream, 30);
  enough = true;
  sender.join();
  ASSERT_EQ(samples.size(), 30u);
  EXPECT_THAT(numbers(samples), Each(testing::Ge(0)));
}

TEST(VideoLiveAddress, IsToldFromAPattern) {
  for (const auto* live :
       {"http://host/a", "https://host/a.mp4", "rtsp://cam", "udp://@:1234", "/dev/video0"}) {
    EXPECT_TRUE(is_live_address(live)) << live;
  }
  for (const auto* films : {"/films/*.mp4", "a.mp4", "http", "/dev/shm/a.mp4"}) {
    EXPECT_FALSE(is_live_address(films)) << films;
  }
}

TEST(VideoLiveAddress, ACameraThatIsNotThereIsRefused) {
  EXPECT_THAT([] { open_stream("video:/dev/video250?fps=2"); },
              Throws<Error>(AllOf(Property(&Error::kind, ErrorKind::bad_input),
                                  Property(&Error::what, HasSubstr("/dev/video250")))));
}

TEST(VideoLiveAddress, ACameraThatIsGoneIsWaitedFor) {
#ifndef RIFFLE_AVDEVICE
  EXPECT_THAT([] { open_stream("video:/dev/video250"); },
              ThrowsMessage<Error>(HasSubstr("libavdevice-dev")));
#else
  VideoLive camera({.address = "/dev/video250", .sampling = {}, .decoding = {}});
  for (int i = 0; i < 2; ++i) {
    const auto event = camera.produce();
    ASSERT_TRUE(event);
    EXPECT_FALSE(event->sample);
    EXPECT_EQ(event->item, "/dev/video250");
    EXPECT_EQ(event->failure.reason, "cannot connect");
    EXPECT_THAT(event->failure.detail, HasSubstr("No such file"));
  }
  camera.interrupt();
  EXPECT_FALSE(camera.produce());
#endif
}

}  // namespace
}  // namespace riffle
