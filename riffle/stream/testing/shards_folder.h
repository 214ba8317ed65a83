// A test fixture with a temporary folder, and tar files to put there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "riffle/base/text.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/testing/generated_tar.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/uri.h"

namespace riffle {

class ShardsFolder : public PictureFolder {
 protected:
  void put(const std::string& name, const GeneratedTar& tar) const {
    put_bytes(name, tar.finished());
  }

  std::unique_ptr<Stream> open(const std::string& options = "", const std::string& glob = "*") {
    return open_stream(cat("shards:", encode_percent((folder_ / glob).string()), "?", options));
  }
  static std::vector<std::string> labels(Stream& stream) {
    std::vector<std::string> all;
    while (const auto sample = stream.next()) all.push_back(sample->label);
    return all;
  }
};

}  // namespace riffle
