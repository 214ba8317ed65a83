#include "riffle/stream/testing/generated_video.h"

#include <algorithm>
#include <stdexcept>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/opt.h>
}

#include <gtest/gtest.h>

#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/video/messages.h"

namespace riffle {
namespace {

constexpr int kBits = 8, kBlock = 8;

void require(bool well, const char* what) {
  if (!well) throw std::runtime_error(cat("cannot make a film: ", what));
}

// Draws a row of blocks, white for the ones of the number, and below it a ramp that moves.
void draw(AVFrame& frame, const GeneratedVideo& video, int number) {
  Random random(1, Purpose("generated film"), static_cast<std::uint64_t>(number));
  for (int y = 0; y < video.height; ++y) {
    std::uint8_t* row = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    for (int x = 0; x < video.width; ++x) {
      const bool in_number = y < kBlock && x < kBits * kBlock;
      const int ramp = 60 + (x + 2 * y + 3 * number) % 120;
      const int noise = video.rough ? static_cast<int>(random.below(40)) : 0;
      row[x] = static_cast<std::uint8_t>(in_number ? (number >> (x / kBlock) & 1 ? 235 : 16)
                                                   : ramp + noise);
    }
  }
  for (int plane = 1; plane < 3; ++plane) {
    for (int y = 0; y < video.height / 2; ++y) {
      std::fill_n(frame.data[plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[plane],
                  video.width / 2, static_cast<std::uint8_t>(118 + plane * 5));
    }
  }
}

struct Writer {
  AVFormatContext* format = nullptr;
  AVCodecContext* codec = nullptr;
  AVStream* stream = nullptr;
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();

  ~Writer() {
    av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&codec);
    if (format != nullptr && format->pb != nullptr) avio_closep(&format->pb);
    avformat_free_context(format);
  }

  void write_packets() {
    while (avcodec_receive_packet(codec, packet) == 0) {
      packet->duration = 1;
      av_packet_rescale_ts(packet, codec->time_base, stream->time_base);
      packet->stream_index = 0;
      require(av_interleaved_write_frame(format, packet) == 0, "a packet is refused");
    }
  }
};

void open_codec(Writer& out, const GeneratedVideo& video) {
  const AVCodec* encoder = avcodec_find_encoder_by_name(video.codec.c_str());
  require(encoder != nullptr, "no such encoder");
  out.codec = avcodec_alloc_context3(encoder);
  out.codec->width = video.width;
  out.codec->height = video.height;
  out.codec->pix_fmt = video.codec == "mjpeg" ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUV420P;
  out.codec->time_base = {1, video.fps};
  out.codec->framerate = {video.fps, 1};
  out.codec->gop_size = video.key_every;
  out.codec->max_b_frames = video.b_frames;
  out.codec->thread_count = 1;
  if ((out.format->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
    out.codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  }
  AVDictionary* options = nullptr;
  if (video.codec == "libx264") {
    av_dict_set(&options, "preset", "veryfast", 0);
    av_dict_set(&options, "crf", "18", 0);
    av_dict_set(
        &options, "x264-params",
        cat("scenecut=0:b-adapt=0:b-pyramid=2:open-gop=", video.open_groups ? 1 : 0).c_str(), 0);
  } else {
    out.codec->flags |= AV_CODEC_FLAG_QSCALE;
    out.codec->global_quality = 4 * FF_QP2LAMBDA;
    if (!video.open_groups && video.b_frames > 0) {
      out.codec->flags |= AV_CODEC_FLAG_CLOSED_GOP;
      av_dict_set(&options, "sc_threshold", "1000000000", 0);  // or the flag is refused
    }
  }
  const int error = avcodec_open2(out.codec, encoder, &options);
  av_dict_free(&options);
  require(error == 0, "the encoder does not open");
}

}  // namespace

bool can_make(const std::string& codec) {
  return avcodec_find_encoder_by_name(codec.c_str()) != nullptr;
}

void make_video(const std::filesystem::path& path, const GeneratedVideo& video) {
  const VideoMessages quiet;
  Writer out;
  require(avformat_alloc_output_context2(&out.format, nullptr, nullptr, path.c_str()) >= 0,
          "no container of that ending");
  open_codec(out, video);
  out.stream = avformat_new_stream(out.format, nullptr);
  avcodec_parameters_from_context(out.stream->codecpar, out.codec);
  out.stream->time_base = out.codec->time_base;
  if (video.turned != 0) {
    // Of the container, which older FFmpeg keeps with the stream and newer with the codec.
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
    auto* matrix = av_packet_side_data_new(&out.stream->codecpar->coded_side_data,
                                           &out.stream->codecpar->nb_coded_side_data,
                                           AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(std::int32_t), 0)
                       ->data;
#else
    auto* matrix =
        av_stream_new_side_data(out.stream, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(std::int32_t));
#endif
    av_display_rotation_set(reinterpret_cast<std::int32_t*>(matrix), video.turned);
  }
  require(avio_open(&out.format->pb, path.c_str(), AVIO_FLAG_WRITE) >= 0, "no such folder");
  AVDictionary* options = nullptr;
  av_dict_set(&options, "movflags", "+faststart", 0);
  const int begun = avformat_write_header(out.format, &options);
  av_dict_free(&options);
  require(begun >= 0, "the container does not take it");

  out.frame->format = out.codec->pix_fmt;
  out.frame->width = video.width;
  out.frame->height = video.height;
  require(av_frame_get_buffer(out.frame, 0) == 0, "no memory");
  for (int number = 0; number < video.frames; ++number) {
    require(av_frame_make_writable(out.frame) == 0, "no memory");
    draw(*out.frame, video, number);
    out.frame->pts = number;
    out.frame->quality = out.codec->global_quality;
    require(avcodec_send_frame(out.codec, out.frame) == 0, "a frame is refused");
    out.write_packets();
  }
  avcodec_send_frame(out.codec, nullptr);
  out.write_packets();
  require(av_write_trailer(out.format) == 0, "it cannot be finished");
}

int shown_number(const Picture& frame) {
  if (frame.width < kBits * kBlock || frame.height < kBlock) return -1;
  int number = 0;
  for (int bit = 0; bit < kBits; ++bit) {
    const int level = frame.at(bit * kBlock + kBlock / 2, kBlock / 2)[1];
    if (level > 80 && level < 175) return -1;
    if (level >= 175) number |= 1 << bit;
  }
  return number;
}

}  // namespace riffle
