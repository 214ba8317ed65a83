// A camera that speaks RTSP, as far as a player needs it, sending MPEG-TS.
#include <chrono>
#include <future>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/stream/testing/loopback_server.h"
#include "riffle/stream/testing/video_folder.h"

namespace riffle {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::Ge;

// Over the connection of the session, in packets of RTP.
void send_film(LoopbackServer::Exchange& exchange, std::string_view film) {
  constexpr std::size_t kPayload = 7 * 188, kHeader = 12, kVersion = 0x80, kMpegTs = 33;
  const auto big = [](std::size_t value, int bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes) & 0xff);
    return text;
  };
  for (std::size_t number = 0; number * kPayload < film.size(); ++number) {
    const auto part = film.substr(number * kPayload, kPayload);
    if (!exchange.write(cat('$', big(0, 1), big(kHeader + part.size(), 2), big(kVersion, 1),
                            big(kMpegTs, 1), big(number, 2), big(number * 900, 4), big(7, 4),
                            part))) {
      return;
    }
  }
}

// A session that ends when the film does.
void play(LoopbackServer::Exchange& exchange, std::string_view film) {
  do {
    const auto& request = exchange.request();
    const auto number = request.find("CSeq:");
    const auto line = request.substr(number, request.find("\r\n", number) - number);
    const auto reply = [&](const std::string& headers, const std::string& body = "") {
      exchange.write(cat("RTSP/1.0 200 OK\r\n", line, "\r\n", headers,
                         "Content-Length: ", body.size(), "\r\n\r\n", body));
    };
    if (request.starts_with("OPTIONS")) {
      reply("Public: DESCRIBE, SETUP, PLAY\r\n");
    } else if (request.starts_with("DESCRIBE")) {
      reply("Content-Type: application/sdp\r\n",
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=yard\r\nt=0 0\r\n"
            "m=video 0 RTP/AVP 33\r\na=control:track\r\n");
    } else if (request.starts_with("SETUP")) {
      reply("Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
    } else if (request.starts_with("PLAY")) {
      reply("Session: 1\r\n");
      return send_film(exchange, film);
    }
  } while (exchange.read_request());
}

class VideoRtsp : public VideoFolder {
 protected:
  std::string address() const { return cat("rtsp://127.0.0.1:", server_.port(), "/yard"); }

  LoopbackServer server_;
};

TEST_F(VideoRtsp, ACameraIsPlayedAgainEachTimeItHangsUp) {
  make("film.ts", {.frames = 60, .b_frames = 0});
  const auto bytes = read_bytes(path("film.ts"));
  const std::string film(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  server_.route(address(), [film](LoopbackServer::Exchange& exchange) { play(exchange, film); });
  const auto stream = open_stream(cat("video:", address(), "?timeout=5"));
  std::vector<Sample> samples;
  while (samples.size() < 100) {
    auto sample = stream->next();
    ASSERT_TRUE(sample);
    samples.push_back(std::move(*sample));
  }
  EXPECT_THAT(numbers(samples), Each(Ge(0)));
  EXPECT_GE(server_.requests(address()), 2);
  EXPECT_NE(samples.front().clip, samples.back().clip);
  EXPECT_GE(stream->skipped().at("connection lost"), 1);
}

TEST_F(VideoRtsp, AServerThatRefusesIsAskedAgainUntilStopped) {
  std::promise<void> asked;
  server_.route(address(), [&](LoopbackServer::Exchange& exchange) {
    if (server_.requests(address()) == 3) asked.set_value();
    exchange.write("RTSP/1.0 404 Not Found\r\nCSeq: 1\r\n\r\n");
  });
  const auto stream = open_stream(cat("video:", address(), "?timeout=5&threads=0"));
  auto sample = std::async(std::launch::async, [&] { return stream->next(); });
  EXPECT_EQ(asked.get_future().wait_for(20s), std::future_status::ready);
  stream->stop();
  EXPECT_FALSE(sample.get());
  EXPECT_GE(stream->skipped().at("cannot connect"), 2);
}

}  // namespace
}  // namespace riffle
