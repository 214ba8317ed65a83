// For tests: generated films, each frame of which shows its number.
#pragma once

#include <filesystem>
#include <string>

#include "riffle/image/picture.h"

namespace riffle {

struct GeneratedVideo {
  int width = 64;  // 64 or more, for the number
  int height = 48;
  int frames = 50;  // up to 256
  int fps = 25;
  std::string codec = "libx264";
  int b_frames = 2;
  int key_every = 12;
  bool open_groups = false;  // frames shown before a key frame refer to it
  int turned = 0;            // degrees clockwise that a player has to turn it
  bool rough = false;        // noise, so that frames take some bytes
};

// Returns whether FFmpeg here has this encoder.
bool can_make(const std::string& codec);

// Writes a film, in the container that the path's ending names.
void make_video(const std::filesystem::path& path, const GeneratedVideo& video);

// Returns the number a frame shows, or -1 if it shows none. Requires an upright frame at least as
// large as GeneratedVideo's default.
int shown_number(const Picture& frame);

}  // namespace riffle
