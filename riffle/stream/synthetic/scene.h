// What a clip of the synthetic stream shows: one textured object that moves over a textured
// background.
//
// A Scene is one clip's random choices; a ScenePainter draws its frames. What a class is made of,
// the two textures, is passed in; everything else is drawn from the given random numbers and tells
// nothing about the class. Textures have two tones in equal shares with equally soft edges, so that
// the colours of a picture tell nothing about it either.
//
// Pictures are drawn with additions, multiplications, divisions and comparisons alone, so that they
// are the same on every machine whose compiler does not fuse multiply and add. A frame of 32 px
// takes under 20 us.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "riffle/base/random.h"
#include "riffle/image/picture.h"

namespace riffle {

enum class Texture { kStripes, kChecker, kDots, kRings, kZigzag, kRays, kIslands };
constexpr int kTextures = 7;
std::string_view texture_name(Texture texture);

// Where a texture lies: cycles (u, v) at a point (x, y) of the picture, whose sides run from -1
// to 1.
struct TextureMap {
  float u0, ux, uy;
  float v0, vx, vy;
};

struct Surface {
  Texture texture;
  float cycles;  // per unit of length
  float angle;   // in turns
  float phase_u, phase_v, phase_w;
  float arms;  // of rays: a whole number
  std::array<float, 3> dark, light;
};

// Values that swing: centre + amplitude * sin(cycles * time + phase), in turns.
struct Swing {
  float centre, amplitude, cycles, phase;
  float at(float time) const;
};

struct Scene {
  Scene(Random random, Texture object_texture, Texture background_texture);

  enum class Shape { kDisc, kSquare, kTriangle, kCross };
  Shape shape;
  Surface object, background;
  Swing x, y, size, brightness;
  float angle, spin;             // of the object, in turns and turns a clip
  float ground_x, ground_y;      // where the background's texture has its centre
  float drift_x, drift_y, turn;  // of the background, a clip
};

// Draws square pictures of one size. Keeps its planes between pictures. Not thread-safe.
class ScenePainter {
 public:
  explicit ScenePainter(int size);

  // `time` runs from 0 to 1 within a clip; `noise` gives the pixel noise.
  Picture paint(const Scene& scene, float time, Random noise);

 private:
  int size_;
  std::vector<float> object_, background_, cover_;
  std::vector<std::uint32_t> noise_;
};

}  // namespace riffle
