#include "riffle/stream/source_part.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

void SourcePart::throw_none(std::size_t files, const std::string& source) const {
  throw Error(cat(source, ": part=", index, '/', parts, " has nothing to read: N must be at most ",
                  files, ", the number of files"));
}

SourcePart read_part(Uri& uri) {
  const std::string text = uri.get("part", "0/1");
  const auto words = split(text, '/');
  const auto refuse = [&] {
    return Error(cat("part must be I/N with I from 0 to N-1, such as part=0/4, not '", text,
                     "' in ", uri.text()));
  };
  if (words.size() != 2) throw refuse();
  try {
    const auto index = parse_integer(words[0], "part"), parts = parse_integer(words[1], "part");
    if (index < 0 || index >= parts) throw refuse();
    return {static_cast<std::size_t>(index), static_cast<std::size_t>(parts)};
  } catch (const Error&) {
    throw refuse();
  }
}

}  // namespace riffle
