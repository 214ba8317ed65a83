// A test fixture with a server on the loopback interface, and a list of addresses on it.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "riffle/base/text.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/testing/loopback_server.h"
#include "riffle/stream/testing/picture_folder.h"

namespace riffle {

class UrlsServer : public PictureFolder {
 protected:
  UrlsServer() {
    for (const char* variable : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                 "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
      ::unsetenv(variable);
    }
  }
  ~UrlsServer() override { ::unsetenv("http_proxy"); }

  void list(const std::vector<std::string>& lines) {
    std::ofstream out(folder_ / "list.txt", std::ios::binary);
    for (const auto& line : lines) out << line << '\n';
  }
  std::unique_ptr<Stream> open_public(const std::string& options = "") {
    return open_stream(cat("urls:", (folder_ / "list.txt").string(), "?backoff=0.01&", options));
  }
  std::unique_ptr<Stream> open(const std::string& options = "") {
    return open_public("allow_private=1&" + options);
  }
  // Serves pictures /0 to /(count - 1), and lists them.
  void serve(int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      server_.serve(cat("/", i), solid_png(i));
      lines.push_back(server_.url(cat("/", i)));
    }
    list(lines);
  }
  // Lists this URL and a good picture, and returns what was skipped.
  std::map<std::string, std::int64_t> skipped(const std::string& url,
                                              const std::string& options = "") {
    server_.serve("/good", solid_png(1));
    list({url, server_.url("/good")});
    const auto stream = open(options);
    EXPECT_EQ(levels(*stream).size(), 1u);
    return stream->skipped();
  }

  LoopbackServer server_;
};

}  // namespace riffle
