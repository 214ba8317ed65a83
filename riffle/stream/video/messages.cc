#include "riffle/stream/video/messages.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <set>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
}

namespace riffle {
namespace {

// No single piece of memory that FFmpeg asks for may be larger, whatever a file claims.
constexpr std::size_t kMaxAllocation = std::size_t{512} << 20;

// A program that embeds riffle may use FFmpeg too, with an `opaque` of its own.
struct Known {
  std::mutex mutex;
  std::set<const void*> messages;
};
Known& known() {
  static Known* const instance = new Known;  // FFmpeg's threads may still speak at exit
  return *instance;
}

// The `opaque` of the codec or format context that speaks, or that the speaker belongs to.
void* opaque_of(void* speaker) {
  constexpr int kMaxDepth = 8;
  for (int depth = 0; speaker != nullptr && depth < kMaxDepth; ++depth) {
    const AVClass* kind = *static_cast<const AVClass**>(speaker);
    if (kind == nullptr) return nullptr;
    if (kind == avcodec_get_class()) return static_cast<AVCodecContext*>(speaker)->opaque;
    if (kind == avformat_get_class()) return static_cast<AVFormatContext*>(speaker)->opaque;
    if (kind->parent_log_context_offset == 0) return nullptr;
    speaker =
        *reinterpret_cast<void**>(static_cast<char*>(speaker) + kind->parent_log_context_offset);
  }
  return nullptr;
}

void receive(void* speaker, int level, const char* format, va_list values) {
  level &= 0xff;  // the rest is a colour
  if (level > AV_LOG_WARNING) return;
  void* const opaque = opaque_of(speaker);
  if (opaque == nullptr) return;
  std::array<char, 256> text{};
  std::vsnprintf(text.data(), text.size(), format, values);
  const std::lock_guard lock(known().mutex);
  if (known().messages.contains(opaque)) {
    static_cast<VideoMessages*>(opaque)->add(level, text.data());
  }
}

}  // namespace

VideoMessages::VideoMessages() {
  static std::once_flag once;
  std::call_once(once, [] {
    av_log_set_callback(receive);
    av_max_alloc(kMaxAllocation);
  });
  const std::lock_guard lock(known().mutex);
  known().messages.insert(this);
}

VideoMessages::~VideoMessages() {
  const std::lock_guard lock(known().mutex);
  known().messages.erase(this);
}

void VideoMessages::add(int level, std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  // It may quote the file.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!text_.empty() && level >= level_) return;
  level_ = level;
  text_ = std::move(text);
}

std::string VideoMessages::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(text_, {});
}

}  // namespace riffle
