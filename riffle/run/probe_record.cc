#include "riffle/run/probe_record.h"

#include <filesystem>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/json_number.h"

namespace riffle {

void append_probe(const RunFolder& folder, const ProbeRecord& record) {
  const nlohmann::ordered_json line = {{"update", record.update},
                                       {"linear_top1", record.linear_top1},
                                       {"linear_top5", record.linear_top5},
                                       {"knn_top1", record.knn_top1},
                                       {"recipe", record.recipe},
                                       {"train", record.train},
                                       {"val", record.val}};
  AppendFile(folder.probes())
      .append(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

std::vector<ProbeRecord> read_probes(const RunFolder& folder) {
  constexpr std::size_t kMostBytes = 64 << 20;
  std::map<std::pair<std::int64_t, std::string>, ProbeRecord> by_update;
  if (!std::filesystem::exists(folder.probes())) return {};
  for (const auto& text : split(read_text(folder.probes(), kMostBytes), '\n')) {
    const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    try {
      const auto update = whole_number(line.at("update"));
      if (!update) continue;
      ProbeRecord record = {
          *update,           line.at("linear_top1"), line.at("linear_top5"), line.at("knn_top1"),
          line.at("recipe"), line.at("train"),       line.at("val")};
      by_update.insert_or_assign({*update, record.val}, std::move(record));
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  std::vector<ProbeRecord> records;
  for (auto& [key, record] : by_update) records.push_back(std::move(record));
  return records;
}

}  // namespace riffle
