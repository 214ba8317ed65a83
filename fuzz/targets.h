// Every parser that riffle gives the bytes of others to, as a function of those bytes.
//
// A target may refuse its input with riffle::Error. Any other exception, a crash, a sanitizer's
// report, or time and memory out of proportion to the input is a finding. Used by one thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace riffle::fuzz {

using Bytes = std::span<const std::byte>;

struct Target {
  // The folder of its inputs in fuzz/corpus.
  const char* name;
  void (*read)(Bytes);
};

const std::vector<Target>& targets();
// Throws Error, listing the names, if there is no such target.
const Target& find_target(const std::string& name);

// Gives the target the bytes. Lets everything but riffle::Error through.
void fuzz_one(const Target& target, Bytes bytes);

// Pictures (pictures.cc).
void read_picture(Bytes bytes);
void read_exif(Bytes bytes);
// Sources and what they are told (streams.cc).
void read_shard(Bytes bytes);
void read_film(Bytes bytes);
void read_uri(Bytes bytes);
void read_shapes(Bytes bytes);
void read_position(Bytes bytes);
void read_url_list(Bytes bytes);
void read_wordnet(Bytes bytes);
void read_labels(Bytes bytes);
// The same from files on disk (source_positions.cc).
void read_source_position(Bytes bytes);
// What comes over a network (network.cc).
void read_http_request(Bytes bytes);
void read_address(Bytes bytes);
// Files of weights and run folders (run_files.cc).
void read_tensors(Bytes bytes);
void read_torch_tensors(Bytes bytes);
void read_weights(Bytes bytes);
void read_a_manifest(Bytes bytes);
void read_state_file(Bytes bytes);
void read_picture_log(Bytes bytes);
void read_metrics_file(Bytes bytes);
void read_status_and_probes(Bytes bytes);
void read_run_result(Bytes bytes);
void read_config(Bytes bytes);
void read_study(Bytes bytes);
// What a selection continues from (curate_files.cc).
void read_curate_state(Bytes bytes);
void read_repeats(Bytes bytes);

}  // namespace riffle::fuzz
