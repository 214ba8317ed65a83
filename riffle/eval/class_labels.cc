#include "riffle/eval/class_labels.h"

#include <algorithm>
#include <map>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::size_t kNamedInMessage = 5;

[[noreturn]] void refuse_unseen(const std::map<std::string, std::int64_t>& unseen,
                                std::size_t val_count) {
  std::int64_t pictures = 0;
  std::vector<std::string> named;
  for (const auto& [label, count] : unseen) {
    pictures += count;
    if (named.size() < kNamedInMessage) named.push_back(cat('\'', label, "' (", count, ')'));
  }
  if (unseen.size() > named.size()) named.push_back(cat(unseen.size() - named.size(), " more"));
  throw Error(
      cat(pictures, " of ", val_count,
          " validation pictures have a label that no training picture has: ", join(named, ", ")));
}

}  // namespace

ClassLabels class_labels(const std::vector<std::string>& train,
                         const std::vector<std::string>& val) {
  ClassLabels classes;
  classes.names = train;
  std::sort(classes.names.begin(), classes.names.end());
  classes.names.erase(std::unique(classes.names.begin(), classes.names.end()), classes.names.end());
  if (classes.names.size() < 2) {
    throw Error(cat("a probe needs training pictures of two or more labels, not ",
                    classes.names.empty() ? "none" : cat("only '", classes.names.front(), '\'')));
  }
  std::map<std::string, std::int64_t> unseen;
  const auto numbers = [&](const std::vector<std::string>& labels) {
    const at::Tensor result = torch::zeros({std::ssize(labels)}, torch::kInt64);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto place = std::lower_bound(classes.names.begin(), classes.names.end(), labels[i]);
      if (place == classes.names.end() || *place != labels[i]) {
        ++unseen[labels[i]];
      } else {
        result.data_ptr<std::int64_t>()[i] = place - classes.names.begin();
      }
    }
    return result;
  };
  classes.train = numbers(train);
  classes.val = numbers(val);
  if (!unseen.empty()) refuse_unseen(unseen, val.size());
  return classes;
}

}  // namespace riffle
