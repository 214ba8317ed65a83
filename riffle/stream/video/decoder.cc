#include "riffle/stream/video/decoder.h"

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/dict.h>
#include <libavutil/display.h>
}

#include "riffle/base/text.h"

namespace riffle {
namespace {

// Films of some kinds never mark a key frame; waiting for one ends after this many packets.
constexpr int kMaxWaitForKey = 600;
// A file may claim packets without end that hold nothing.
constexpr int kMaxUnanswered = 20'000;
constexpr double kFallbackRate = 25;

bool is_key(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
  return (frame.flags & AV_FRAME_FLAG_KEY) != 0;
#else
  return frame.key_frame != 0;
#endif
}

bool is_damaged(const AVFrame& frame) {
  return frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0;
}

const std::int32_t* display_matrix(const AVStream& stream) {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  const auto* found =
      av_packet_side_data_get(stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX);
  if (found != nullptr) {
    data = found->data;
    size = found->size;
  }
#else
  data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
#endif
  return size < 9 * sizeof(std::int32_t) ? nullptr : reinterpret_cast<const std::int32_t*>(data);
}

std::string size_text(int width, int height) { return cat(width, " x ", height, " pixels"); }

bool is_too_large(int width, int height) { return std::int64_t{width} * height > kMaxVideoPixels; }

// Options of FFmpeg by name.
class Dictionary {
 public:
  Dictionary() = default;
  ~Dictionary() { av_dict_free(&entries); }
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;
  void set(const char* key, const std::string& value) {
    av_dict_set(&entries, key, value.c_str(), 0);
  }

  AVDictionary* entries = nullptr;
};

}  // namespace

VideoDecoder::VideoDecoder(const VideoInput& input, const VideoDecoderOptions& options)
    : input_(input), options_(options), packet_(av_packet_alloc()), frame_(av_frame_alloc()) {
  begin_anew();
}

VideoDecoder::~VideoDecoder() {
  avcodec_free_context(&codec_);
  avformat_close_input(&format_);
  av_packet_free(&packet_);
  av_frame_free(&frame_);
}

std::unique_ptr<VideoDecoder> VideoDecoder::open(const VideoInput& input,
                                                 const VideoDecoderOptions& options,
                                                 DecodeFailure& failure) {
  std::unique_ptr<VideoDecoder> decoder(new VideoDecoder(input, options));
  if (decoder->open_input() && decoder->find_stream() && decoder->open_codec()) return decoder;
  failure = std::move(decoder->failure_);
  return nullptr;
}

bool VideoDecoder::open_input() {
  format_ = avformat_alloc_context();
  format_->opaque = &messages_;
  format_->interrupt_callback = {gives_up, this};
  if (input_.live) format_->max_analyze_duration = AV_TIME_BASE;  // a second
  Dictionary options;
  options.set("protocol_whitelist", input_.protocols);
  if (!input_.formats.empty()) options.set("format_whitelist", input_.formats);
  options.set("rtsp_flags", "prefer_tcp");  // of RTSP: what is sent so is not lost on the way
  options.set("overrun_nonfatal", "1");     // of UDP: a slow reader loses packets, not the source
  const auto* kind = input_.format.empty() ? nullptr : av_find_input_format(input_.format.c_str());
  begin_wait();
  const int error = avformat_open_input(&format_, input_.address.c_str(), kind, &options.entries);
  if (error == 0) return true;
  const bool no_film = !input_.live || error == AVERROR_INVALIDDATA;
  failure_ = why(no_film ? "not a video" : "cannot connect", error);
  // FFmpeg's own words are the whole list.
  const bool refused = error == AVERROR(EINVAL) && !input_.formats.empty();
  if (refused) failure_.detail = "not a container of a film, such as MP4, Matroska or AVI";
  return false;
}

bool VideoDecoder::find_stream() {
  std::vector<AVDictionary*> limits(format_->nb_streams, nullptr);
  for (auto& limit : limits) av_dict_set_int(&limit, "max_pixels", kMaxVideoPixels, 0);
  begin_wait();
  const int error = avformat_find_stream_info(format_, limits.empty() ? nullptr : limits.data());
  for (auto& limit : limits) av_dict_free(&limit);
  if (error < 0) {
    failure_ = why(input_.live ? "cannot connect" : "corrupt", error);
    return false;
  }
  const int index = av_find_best_stream(format_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  // The cover of a sound file is not a film.
  if (index < 0 || (format_->streams[index]->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
    failure_ = {"no video stream", messages_.take()};
    return false;
  }
  stream_ = format_->streams[index];
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if (format_->streams[i] != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  }
  return true;
}

bool VideoDecoder::open_codec() {
  const auto& parameters = *stream_->codecpar;
  if (is_too_large(parameters.width, parameters.height)) {
    failure_ = {"too large", cat("claims ", size_text(parameters.width, parameters.height))};
    return false;
  }
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr) {
    failure_ = {"unsupported", cat("no decoder for ", avcodec_get_name(parameters.codec_id))};
    return false;
  }
  codec_ = avcodec_alloc_context3(codec);
  codec_->opaque = &messages_;
  int error = avcodec_parameters_to_context(codec_, &parameters);
  codec_->pkt_timebase = stream_->time_base;
  // Several threads may paint over damage each in its way, and in FFmpeg 5.1 end the program over
  // it.
  codec_->thread_count = 1;
  codec_->max_pixels = kMaxVideoPixels;
  // Frames that refer to others not decoded come out, with a mark. Otherwise the decoder keeps them
  // back, and with them, in FFmpeg 5.1, whole ones at the end of a film sought to there.
  codec_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
  // Damage is an error. Otherwise it would be painted over.
  codec_->err_recognition |= AV_EF_EXPLODE;
  if (error >= 0) error = avcodec_open2(codec_, codec, nullptr);
  if (error < 0) failure_ = why("unsupported", error);
  messages_.take();  // what did not keep it from opening does not explain what comes later
  return error >= 0;
}

VideoDecoder::Event VideoDecoder::read() {
  while (!ended_) {
    int error = avcodec_receive_frame(codec_, frame_);
    if (error == 0) {
      packets_unanswered_ = 0;
      if (is_lead_in(*frame_)) continue;
      if (!is_damaged(*frame_)) {
        if (is_next(*frame_)) return Event::frame;
        continue;
      }
      error = AVERROR_INVALIDDATA;
    }
    if (error == AVERROR_EOF) {
      failure_ = std::exchange(pending_, {});
      ended_ = input_ended_;
      if (ended_) return Event::end;
      avcodec_flush_buffers(codec_);
      begin_anew();
      return Event::damage;
    }
    if (error == AVERROR(EAGAIN)) error = feed();
    if (error < 0 && std::exchange(frames_for_key_, kMaxWaitForKey) == 0) {
      failure_ = why("corrupt", error);
      return Event::damage;
    }
  }
  return Event::end;
}

// Starts the decoder without a past.
void VideoDecoder::begin_anew() {
  packets_for_key_ = frames_to_begin_ = kMaxWaitForKey;
  begins_at_ = AV_NOPTS_VALUE;  // before all others
}

// Returns whether a frame is shown before the first that can be decoded from where reading began.
// With open groups of pictures, some that follow a key frame in the file refer to what lies before
// it.
bool VideoDecoder::is_lead_in(const AVFrame& frame) {
  if (frames_to_begin_ == 0) return false;
  const bool early = frame.pts != AV_NOPTS_VALUE && frame.pts < begins_at_;
  const bool without_past = is_damaged(frame) && frame.decode_error_flags == 0;
  frames_to_begin_ = early || without_past ? frames_to_begin_ - 1 : 0;
  return frames_to_begin_ > 0;
}

// Returns whether to give a decoded frame.
bool VideoDecoder::is_next(const AVFrame& frame) {
  if (frames_for_key_ > 0) {
    frames_for_key_ = is_key(frame) ? 0 : frames_for_key_ - 1;
    if (frames_for_key_ > 0) return false;
  }
  if (width_ == 0) {
    width_ = frame.width;
    height_ = frame.height;
  }
  if (frame.width == width_ && frame.height == height_) return true;
  failure_ = {"changes size", cat("from ", size_text(width_, height_), " to ",
                                  size_text(frame.width, frame.height))};
  ended_ = true;
  return false;
}

// Hands the decoder one more packet. Returns the decoder's result, below 0 for damage.
int VideoDecoder::feed() {
  while (true) {
    begin_wait();
    // FFmpeg asks only when it needs more bytes, and has many packets in memory.
    int error = gives_up(this) != 0 ? AVERROR_EXIT : av_read_frame(format_, packet_);
    while (error == AVERROR(EAGAIN) && gives_up(this) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a device without data yet
      error = av_read_frame(format_, packet_);
    }
    if (error < 0) return drain(why_input_ended(error), true);
    const bool ours = packet_->stream_index == stream_->index;
    const bool key = (packet_->flags & AV_PKT_FLAG_KEY) != 0;
    const bool damaged = (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0;
    if (ours && !damaged && (key || packets_for_key_ == 0)) {
      if (std::exchange(packets_for_key_, 0) > 0) begins_at_ = packet_->pts;
      error = avcodec_send_packet(codec_, packet_);
      av_packet_unref(packet_);
      if (++packets_unanswered_ <= kMaxUnanswered) return error;
    } else {
      av_packet_unref(packet_);
      if (!ours) continue;
      if (packets_for_key_ > 0) --packets_for_key_;
      ++packets_unanswered_;
    }
    if (packets_unanswered_ > kMaxUnanswered) {
      return drain({"corrupt", cat("no frame in ", kMaxUnanswered, " packets")}, true);
    }
    if (damaged) {
      // What comes before it is whole, and is given first.
      const bool last = !input_.live && format_->pb != nullptr && avio_feof(format_->pb) != 0;
      return drain(why(last ? "truncated" : "corrupt", 0), last);
    }
  }
}

int VideoDecoder::drain(DecodeFailure why_drained, bool input_ended) {
  pending_ = std::move(why_drained);
  input_ended_ = input_ended;
  avcodec_send_packet(codec_, nullptr);
  return 0;
}

DecodeFailure VideoDecoder::why(std::string reason, int error) {
  std::string detail = messages_.take();
  if (error < 0) {
    std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
    av_strerror(error, text.data(), text.size());
    detail += cat(detail.empty() ? "" : "; ", text.data());
  }
  if (error == AVERROR_EXIT) {
    detail = cat("nothing came for ", options_.timeout, " s");
    if (!input_.live) reason = "too slow";
  }
  if (error == AVERROR(ENOMEM)) reason = "too large";
  return {std::move(reason), std::move(detail)};
}

DecodeFailure VideoDecoder::why_input_ended(int error) {
  if (error == AVERROR_EOF && (!input_.live || knows_length())) return {};
  if (input_.live) return why("connection lost", error);
  const bool at_end = format_->pb != nullptr && avio_feof(format_->pb) != 0;
  return why(at_end ? "truncated" : "corrupt", error);
}

std::optional<Picture> VideoDecoder::picture() {
  return convert_.convert(*frame_, options_.short_side, orientation());
}

int VideoDecoder::orientation() const {
  constexpr std::size_t kEntries = 9;
  const std::int32_t* matrix = display_matrix(*stream_);
  const auto* of_frame = av_frame_get_side_data(frame_, AV_FRAME_DATA_DISPLAYMATRIX);
  if (of_frame != nullptr && of_frame->size >= kEntries * sizeof(std::int32_t)) {
    matrix = reinterpret_cast<const std::int32_t*>(of_frame->data);
  }
  if (matrix == nullptr) return 1;
  return video_orientation(std::span<const std::int32_t, kEntries>(matrix, kEntries));
}

std::optional<std::int64_t> VideoDecoder::time_stamp() const {
  if (frame_->pts == AV_NOPTS_VALUE) return std::nullopt;
  return frame_->pts;
}

double VideoDecoder::seconds(std::int64_t number) const {
  if (frame_->pts != AV_NOPTS_VALUE) {
    const double start =
        stream_->start_time == AV_NOPTS_VALUE ? 0 : static_cast<double>(stream_->start_time);
    return (static_cast<double>(frame_->pts) - start) * av_q2d(stream_->time_base);
  }
  const AVRational rate = stream_->avg_frame_rate;
  return static_cast<double>(number) /
         (rate.num > 0 && rate.den > 0 ? av_q2d(rate) : kFallbackRate);
}

bool VideoDecoder::seek(std::int64_t time_stamp) {
  if (av_seek_frame(format_, stream_->index, time_stamp, AVSEEK_FLAG_BACKWARD) < 0) return false;
  avcodec_flush_buffers(codec_);
  pending_ = failure_ = {};
  input_ended_ = ended_ = false;
  frames_for_key_ = packets_unanswered_ = 0;
  begin_anew();
  return true;
}

std::int64_t VideoDecoder::second() const {
  return av_rescale_q(1, AVRational{1, 1}, stream_->time_base);
}

bool VideoDecoder::knows_length() const {
  return format_->pb != nullptr && avio_size(format_->pb) > 0;
}

void VideoDecoder::begin_wait() {
  if (options_.timeout <= 0) return;
  const std::chrono::duration<double> timeout(options_.timeout);
  give_up_at_ = std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(timeout);
}

int VideoDecoder::gives_up(void* self) {
  const auto& decoder = *static_cast<const VideoDecoder*>(self);
  if (decoder.options_.leave != nullptr && *decoder.options_.leave) return 1;
  return decoder.options_.timeout > 0 && std::chrono::steady_clock::now() >= decoder.give_up_at_;
}

}  // namespace riffle
