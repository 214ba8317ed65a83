#include "riffle/study/run_result.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/json_number.h"

namespace riffle {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

std::int64_t count(const Json& json) {
  const auto whole = whole_number(json);
  if (!whole) throw Error(cat("'", json.dump(), "' is not a whole number"));
  return *whole;
}

std::map<std::string, double> numbers(const Json& json) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : json.items()) values[name] = number(value);
  return values;
}

Json point_json(const ResultPoint& point) {
  Json accuracy = Json::object();
  for (const auto& [name, value] : point.accuracy) {
    accuracy[name] = {{"linear_top1", value.linear_top1},
                      {"linear_top5", value.linear_top5},
                      {"knn_top1", value.knn_top1}};
  }
  return {{"update", point.update},
          {"samples_seen", point.samples_seen},
          {"accuracy", accuracy},
          {"share", point.share}};
}

ResultPoint point_of(const Json& json) {
  ResultPoint point;
  point.update = count(json.at("update"));
  point.samples_seen = count(json.at("samples_seen"));
  for (const auto& [name, value] : json.at("accuracy").items()) {
    point.accuracy[name] = {number(value.at("linear_top1")), number(value.at("linear_top5")),
                            number(value.at("knn_top1"))};
  }
  point.share = numbers(json.at("share"));
  return point;
}

}  // namespace

void write_result(const std::filesystem::path& path, const RunResult& result) {
  Json points = Json::array();
  for (const auto& point : result.points) points.push_back(point_json(point));
  Json json = {{"values", result.values},   {"points", points},      {"order", result.order},
               {"recipes", result.recipes}, {"probe", result.probe}, {"config", result.config}};
  if (!result.turns.empty()) json["turns"] = result.turns;
  if (!result.first.empty()) json["first"] = result.first;
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
    result.probe = json.at("probe");
    result.first = json.value("first", "");
    for (const auto& turn : json.value("turns", Json::array())) result.turns.push_back(count(turn));
    result.recipes = json.at("recipes").get<std::map<std::string, std::string>>();
    result.order = json.at("order").get<std::vector<std::string>>();
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
