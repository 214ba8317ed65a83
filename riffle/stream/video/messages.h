// What FFmpeg's libraries have to say about one input, kept for the log instead of printed.
//
// FFmpeg prints through one function of the whole process. The first VideoMessages replaces it:
// messages of contexts whose `opaque` points to a VideoMessages go there, the rest is dropped.
// Thread-safe. Must outlive the contexts that point to it.
#pragma once

#include <mutex>
#include <string>

namespace riffle {

class VideoMessages {
 public:
  VideoMessages();
  ~VideoMessages();
  VideoMessages(const VideoMessages&) = delete;
  VideoMessages& operator=(const VideoMessages&) = delete;

  void add(int level, std::string text);
  // Returns the gravest message since the last call, the first of several as grave, or "" if there
  // was none.
  std::string take();

 private:
  std::mutex mutex_;
  std::string text_;
  int level_ = 0;
};

}  // namespace riffle
