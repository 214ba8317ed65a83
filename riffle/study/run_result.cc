#include "riffle/study/run_result.h"

#include <cctype>
#include <cmath>
#include <string_view>

#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/json_number.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

std::int64_t count(const Json& json) {
  const auto whole = whole_number(json);
  if (!whole) throw Error(cat("'", json.dump(), "' is not a whole number"));
  return *whole;
}

bool is_percent_code(std::string_view text, std::size_t at) {
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  return text[at] == '%' && is_digit(at + 1) && is_digit(at + 2);
}

// Labels may be any bytes, and JSON holds text. What is not, and what would be read back as
// another byte, is written as %XX.
std::string text_of_bytes(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += bytes[i];
    if (is_percent_code(bytes, i)) text += "25";
  }
  return text_address(text);
}

std::string bytes_of_text(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_percent_code(text, i)) {
      bytes += text[i];
      continue;
    }
    bytes += decode_percent(text.substr(i, 3));
    i += 2;
  }
  return bytes;
}

template <typename Value>
std::map<std::string, Value> with_text_keys(const std::map<std::string, Value>& values) {
  std::map<std::string, Value> renamed;
  for (const auto& [name, value] : values) renamed[text_of_bytes(name)] = value;
  return renamed;
}

std::map<std::string, double> numbers(const Json& json) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : json.items()) values[bytes_of_text(name)] = number(value);
  return values;
}

Json point_json(const ResultPoint& point) {
  Json accuracy = Json::object();
  for (const auto& [name, value] : point.accuracy) {
    accuracy[text_of_bytes(name)] = {{"linear_top1", value.linear_top1},
                                     {"linear_top5", value.linear_top5},
                                     {"knn_top1", value.knn_top1}};
  }
  return {{"update", point.update},
          {"samples_seen", point.samples_seen},
          {"accuracy", accuracy},
          {"share", with_text_keys(point.share)}};
}

ResultPoint point_of(const Json& json) {
  ResultPoint point;
  point.update = count(json.at("update"));
  point.samples_seen = count(json.at("samples_seen"));
  for (const auto& [name, value] : json.at("accuracy").items()) {
    point.accuracy[bytes_of_text(name)] = {number(value.at("linear_top1")),
                                           number(value.at("linear_top5")),
                                           number(value.at("knn_top1"))};
  }
  point.share = numbers(json.at("share"));
  return point;
}

}  // namespace

void write_result(const std::filesystem::path& path, const RunResult& result) {
  Json points = Json::array();
  for (const auto& point : result.points) points.push_back(point_json(point));
  Json order = Json::array();
  for (const auto& label : result.order) order.push_back(text_of_bytes(label));
  Json json = {{"values", with_text_keys(result.values)},
               {"points", points},
               {"order", order},
               {"recipes", with_text_keys(result.recipes)},
               {"probe", text_of_bytes(result.probe)},
               {"config", result.config}};
  if (!result.turns.empty()) json["turns"] = result.turns;
  if (!result.first.empty()) json["first"] = result.first;
  if (!result.machine.empty()) json["machine"] = result.machine;
  write_atomically(path, json.dump(2) + '\n');
}

RunResult read_result(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  const auto refuse = [&](const std::exception& error) {
    return Error(cat(path.string(), " is not the result of a run (", error.what(),
                     "); remove it to make it again"));
  };
  try {
    const Json json = Json::parse(text);
    RunResult result;
    result.config = json.at("config");
    result.probe = bytes_of_text(json.at("probe"));
    result.first = json.value("first", "");
    result.machine = json.value("machine", "");
    for (const auto& turn : json.value("turns", Json::array())) result.turns.push_back(count(turn));
    for (const auto& [set, recipe] : json.at("recipes").items()) {
      result.recipes[bytes_of_text(set)] = recipe;
    }
    for (const auto& label : json.at("order")) result.order.push_back(bytes_of_text(label));
    for (const auto& point : json.at("points")) result.points.push_back(point_of(point));
    result.values = numbers(json.at("values"));
    return result;
  } catch (const Json::exception& error) {
    throw refuse(error);
  } catch (const Error& error) {
    throw refuse(error);
  }
}

}  // namespace riffle
