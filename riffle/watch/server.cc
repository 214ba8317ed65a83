#include "riffle/watch/server.h"

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include <sys/random.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/pages/shown_curves.h"
#ifdef RIFFLE_HTTP
#include "riffle/watch/bounded_server.h"
#endif
#include "riffle/watch/page.h"
#include "riffle/watch/watcher.h"

namespace riffle {

std::string random_token() {
  std::array<unsigned char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error("the system gives no random numbers", ErrorKind::failure);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const auto byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

#ifdef RIFFLE_HTTP

std::vector<Library> watch_libraries() { return {{"cpp-httplib", CPPHTTPLIB_VERSION, {}}}; }

namespace {

constexpr const char* kJson = "application/json";

const httplib::Headers kHeaders = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"}};

// Takes as long whatever the texts have in common.
bool equal_texts(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differ == 0;
}

// A name or address by which a browser on this machine reaches it.
bool is_own_name(const std::string& host) {
  const std::string name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

void answer(httplib::Response& response, const std::optional<std::string>& json) {
  if (json) {
    response.set_content(*json, kJson);
  } else {
    response.status = 404;
    response.set_content(R"({"error":"unknown run"})", kJson);
  }
}

std::string charts_json() {
  // Those of probes have points of their own (Watcher::curves).
  auto charts = nlohmann::json::array();
  for (const auto& [key, title] :
       {std::pair("probe_linear", "Linear probe"), std::pair("probe_knn", "k-NN probe")}) {
    charts.push_back({{"title", title},
                      {"label", "top-1 (%)"},
                      {"key", key},
                      {"caption", "Accuracy of the frozen encoder on labelled pictures."},
                      {"factor", 1},
                      {"per_batch", false},
                      {"least", 0}});
  }
  for (const auto& curve : shown_curves()) {
    charts.push_back({{"title", curve.title},
                      {"label", curve.label},
                      {"key", curve.key},
                      {"caption", curve.caption},
                      {"factor", curve.factor},
                      {"per_batch", curve.per_batch},
                      {"least", curve.least}});
  }
  return charts.dump();
}

}  // namespace

struct WatchServer::State {
  explicit State(const ServerOptions& given) : options(given), watcher(given.folder) {
    http.set_default_headers(kHeaders);
    http.set_pre_routing_handler([this](const auto& request, auto& response) {
      if (may_see(request)) return httplib::Server::HandlerResponse::Unhandled;
      response.status = 403;
      response.set_content(R"({"error":"the address of this page has a token, which is missing"})",
                           kJson);
      return httplib::Server::HandlerResponse::Handled;
    });
    http.set_exception_handler([](const auto&, auto& response, std::exception_ptr) {
      response.status = 500;
      response.set_content(R"({"error":"it cannot be read just now"})", kJson);
    });
    serve_text("/", std::string(page_html()), "text/html; charset=utf-8");
    serve_text("/watch.js", std::string(page_script()), "text/javascript; charset=utf-8");
    serve_text("/watch.css", page_css(), "text/css; charset=utf-8");
    serve_text("/data/charts", charts_json(), kJson);
    http.Get("/data/runs",
             [this](const auto&, auto& response) { response.set_content(watcher.runs(), kJson); });
    serve_of_run("/data/curves", &Watcher::curves);
    serve_of_run("/data/arrived", &Watcher::arrived);
    serve_of_run("/data/kept", &Watcher::kept);
    bind();
  }

  void serve_text(const char* path, const std::string& text, const char* type) {
    http.Get(path, [text, type](const auto&, auto& response) { response.set_content(text, type); });
  }

  void serve_of_run(const char* path,
                    std::optional<std::string> (Watcher::*what)(const std::string&)) {
    http.Get(path, [this, what](const auto& request, auto& response) {
      answer(response, (watcher.*what)(request.get_param_value("run")));
    });
  }

  bool may_see(const httplib::Request& request) const {
    if (options.token.empty()) return is_own_name(request.get_header_value("Host"));
    if (!request.path.starts_with("/data/")) return true;  // the page itself tells nothing
    return equal_texts(request.get_header_value("Authorization"), "Bearer " + options.token);
  }

  void bind() {
    if (options.port == 0) {
      port = http.bind_to_any_port(options.host);
    } else if (http.bind_to_port(options.host, options.port)) {
      port = options.port;
    }
    http.let_many_wait();
    if (port > 0) return;
    throw Error(options.port > 0
                    ? cat("cannot listen on ", options.host, " port ", options.port,
                          "; another program may have it: give another --port")
                    : cat("cannot listen on ", options.host, ": not an address of this machine"));
  }

  const ServerOptions options;
  Watcher watcher;
  BoundedServer http;
  int port = -1;
  // 0: not yet, 1: serving, 2: asked to stop.
  std::atomic<int> phase = 0;
};

void WatchServer::serve() {
  int before = 0;
  if (!state_->phase.compare_exchange_strong(before, 1)) return;
  state_->http.listen_after_bind();
  if (state_->phase != 2) throw Error("the server ended by itself", ErrorKind::failure);
}

void WatchServer::stop() {
  if (state_->phase.exchange(2) == 0) return;
  // The library forgets a request to stop that comes before it listens.
  while (!state_->http.is_running()) std::this_thread::yield();
  state_->http.stop();
}

#else

std::vector<Library> watch_libraries() { return {{"cpp-httplib", {}, "riffle watch"}}; }

struct WatchServer::State {
  explicit State(const ServerOptions&) {
    throw Error(
        "this riffle was built without its page; install libcpp-httplib-dev and build again");
  }
  int port = -1;
};

void WatchServer::serve() {}
void WatchServer::stop() {}

#endif

WatchServer::WatchServer(const ServerOptions& options) : state_(std::make_unique<State>(options)) {}
WatchServer::~WatchServer() = default;
int WatchServer::port() const { return state_->port; }

}  // namespace riffle
