#include "riffle/run/yaml.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::size_t kMostNodes = 100'000;
constexpr std::size_t kMostDepth = 64;

// Measures a document without building it; refuses what is too much.
class YamlLimits : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override { add_leaf(anchor); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                const std::string&) override {
    add_leaf(anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto named = named_.find(anchor);
    if (named == named_.end()) {
      throw Error(cat("line ", mark.line + 1, ": an alias leads back to itself"));
    }
    add(named->second);
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  // Of a node, with aliases written out.
  struct Extent {
    std::size_t nodes = 1;
    std::size_t depth = 1;
  };

  void begin(YAML::anchor_t anchor) {
    open_.emplace_back(anchor, Extent());
    if (open_.size() > kMostDepth) refuse_depth();
  }

  void end() {
    const auto [anchor, extent] = open_.back();
    open_.pop_back();
    if (anchor != YAML::NullAnchor) named_[anchor] = extent;
    add(extent);
  }

  void add_leaf(YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) named_[anchor] = {};
    add({});
  }

  // Adds a node to the one that it is in.
  void add(const Extent& part) {
    if (open_.empty()) return;
    Extent& whole = open_.back().second;
    whole.nodes += part.nodes;
    whole.depth = std::max(whole.depth, part.depth + 1);
    if (whole.nodes > kMostNodes) {
      throw Error(cat("it has more than ", kMostNodes, " values, aliases written out"));
    }
    if (open_.size() + part.depth > kMostDepth) refuse_depth();
  }

  [[noreturn]] static void refuse_depth() {
    throw Error(cat("its values are nested more than ", kMostDepth, " deep"));
  }

  std::vector<std::pair<YAML::anchor_t, Extent>> open_;
  std::map<YAML::anchor_t, Extent> named_;
};

}  // namespace

YAML::Node parse_yaml(const std::string& text) {
  if (text.size() > kMostYamlBytes) {
    throw Error(cat("it has ", bytes_text(text.size()), "; at most ", bytes_text(kMostYamlBytes),
                    " are read"));
  }
  std::istringstream in(text);
  YAML::Parser parser(in);
  YamlLimits limits;
  parser.HandleNextDocument(limits);
  return YAML::Load(text);
}

}  // namespace riffle
