#include "riffle/stream/synthetic/scene.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace riffle {
namespace {

// Ranges of what varies between clips. Lengths are in half sides of the picture.
constexpr float kObjectCycles[] = {1.0f, 1.3f};
constexpr float kBackgroundCycles[] = {1.3f, 1.7f};
constexpr float kObjectSize[] = {0.5f, 0.65f};
constexpr float kZoom = 0.1f;
constexpr float kMoveAmplitude[] = {0.05f, 0.2f};
constexpr float kMoveCycles[] = {0.25f, 1.0f};
constexpr float kSpin = 0.16f;
constexpr float kTurn = 0.03f;
constexpr float kDrift = 0.3f;
constexpr float kBrightness = 0.15f;
constexpr float kColourSpread = 0.03f;
constexpr float kNoise = 0.035f;

// The dark and the light tone, the same for all clips but for kColourSpread. Object and background
// have the same mean: seen from afar all pictures look alike, and neither a colour nor a silhouette
// tells one clip from another. With free colours, or an object that stands out from its background,
// a learner takes those for the content, not the texture.
constexpr float kObjectTones[] = {0.15f, 0.85f};
constexpr float kBackgroundTones[] = {0.3f, 0.7f};

// Half the width of the soft edge between two tones, as a share of the texture's values: about a
// pixel at 32 px.
constexpr float kEdge = 0.15f;

constexpr float kPi = 3.14159265f;

// Returns the sine of an angle in turns, to 1e-6. The library's may differ in the last bit between
// machines.
float sine(float turns) {
  const float x = turns - std::floor(turns + 0.5f);
  const float folded = std::min(std::abs(x), 0.5f - std::abs(x));
  const float square = folded * folded;
  const float value =
      folded * (6.2831676f + square * (-41.337517f + square * (81.351638f - square * 71.086924f)));
  return x < 0 ? -value : value;
}
float cosine(float turns) { return sine(turns + 0.25f); }

// Clamps to [0, 1] without a branch: with one, the compiler does not vectorise the loops over
// pixels.
inline float clamp(float x) { return 0.5f * (std::abs(x) - std::abs(x - 1.0f) + 1.0f); }

// A wave between 0 and 1 of period 1, even in x. Its values are spread uniformly.
inline float wave(float x) {
  const float magnitude = std::abs(x);
  return std::abs(1.0f - 2.0f * (magnitude - static_cast<float>(static_cast<int>(magnitude))));
}

// A wave of period 1 between -1 and 1 with round crests.
inline float round_wave(float x) {
  const float straight = 2.0f * wave(x) - 1.0f;
  return straight * (1.5f - 0.5f * straight * straight);
}

struct Polar {
  float radius, turns;
};

inline Polar polar(float x, float y) {
  const float ax = std::abs(x);
  const float ay = std::abs(y);
  const float large = std::max(ax, ay) + 1e-6f;
  const float ratio = std::min(ax, ay) / large;
  const float s = ratio * ratio;
  float turns = ratio * (0.15903837f + s * (-0.05115695f + s * (0.02333379f - s * 0.00622788f)));
  turns = std::abs((ay > ax ? 0.25f : 0.0f) - turns);
  turns = std::copysign(std::abs((x < 0 ? 0.5f : 0.0f) - turns), y);
  return {large * (1.0f + s * (0.49755258f + s * (-0.10825505f + s * 0.0250013f))), turns};
}

// Returns the value of a texture at a point, (u, v) in cycles. Over a random phase it is uniform
// over [0, 1] wherever it matters, that is near 1/2: every texture has as much of the dark tone, of
// the light tone and of what lies between.
template <Texture texture>
inline float texture_value(float u, float v, const Surface& surface) {
  const float pu = surface.phase_u;
  const float pv = surface.phase_v;
  if constexpr (texture == Texture::kStripes) {
    return wave(u + pu);
  } else if constexpr (texture == Texture::kChecker) {
    const float a = 2.0f * wave(u * 0.75f + pu) - 1.0f;
    const float b = 2.0f * wave(v * 0.75f + pv) - 1.0f;
    const float m = std::min(std::abs(a), std::abs(b));
    const float half = m - 0.5f * m * m;
    return 0.5f + std::copysign(half, a * b);
  } else if constexpr (texture == Texture::kDots) {
    const float a = wave(u + pu);
    const float b = wave(v + pv);
    return kPi / 4 * (a * a + b * b);
  } else if constexpr (texture == Texture::kRings) {
    return wave(polar(u, v).radius + pu);
  } else if constexpr (texture == Texture::kZigzag) {
    return wave(u * 0.8f + 0.7f * wave(v * 0.7f + pv) + pu);
  } else if constexpr (texture == Texture::kRays) {
    const Polar p = polar(u, v);
    const float value = wave(p.turns * surface.arms + pu);
    // Where the rays are thinner than a pixel they fade into the mean.
    return 0.5f + (value - 0.5f) * clamp(3.0f * p.radius);
  } else {
    return wave(0.5f * round_wave(u * 0.6f + pu) + 0.5f * round_wave(v * 0.6f + pv) +
                surface.phase_w);
  }
}

inline float tone(float value) {
  const float t = clamp((value - (0.5f - kEdge)) * (0.5f / kEdge));
  return t * t * (3.0f - 2.0f * t);
}

// Fills a plane with one value for each pixel of a picture, taken where `map` leads from there.
template <typename Value>
inline void draw(const TextureMap& map, int size, float* out, Value value) {
  const float step = 2.0f / static_cast<float>(size);
  const float first = 0.5f * step - 1.0f;
  for (int row = 0; row < size; ++row) {
    const float y = first + step * static_cast<float>(row);
    const float u0 = map.u0 + map.uy * y + map.ux * first;
    const float v0 = map.v0 + map.vy * y + map.vx * first;
    const float du = map.ux * step;
    const float dv = map.vx * step;
    float* line = out + static_cast<std::size_t>(row) * static_cast<std::size_t>(size);
    for (int column = 0; column < size; ++column) {
      const float c = static_cast<float>(column);
      line[column] = value(u0 + du * c, v0 + dv * c);
    }
  }
}

template <Texture texture>
void fill(const Surface& surface, const TextureMap& map, int size, float* out) {
  // A copy nobody else can write to: the loop must vectorise.
  draw(map, size, out,
       [s = surface](float u, float v) { return tone(texture_value<texture>(u, v, s)); });
}

void fill(const Surface& surface, const TextureMap& map, int size, float* out) {
  switch (surface.texture) {
    case Texture::kStripes:
      return fill<Texture::kStripes>(surface, map, size, out);
    case Texture::kChecker:
      return fill<Texture::kChecker>(surface, map, size, out);
    case Texture::kDots:
      return fill<Texture::kDots>(surface, map, size, out);
    case Texture::kRings:
      return fill<Texture::kRings>(surface, map, size, out);
    case Texture::kZigzag:
      return fill<Texture::kZigzag>(surface, map, size, out);
    case Texture::kRays:
      return fill<Texture::kRays>(surface, map, size, out);
    case Texture::kIslands:
      return fill<Texture::kIslands>(surface, map, size, out);
  }
  throw std::logic_error("no such texture");
}

// Returns how far (x, y) lies outside a shape of area pi: negative inside, exact enough near the
// border.
template <Scene::Shape shape>
inline float outside(float x, float y) {
  const float ax = std::abs(x);
  const float ay = std::abs(y);
  if constexpr (shape == Scene::Shape::kDisc) {
    return 0.5f * (x * x + y * y - 1.0f);
  } else if constexpr (shape == Scene::Shape::kSquare) {
    return std::max(ax, ay) - 0.886f;
  } else if constexpr (shape == Scene::Shape::kTriangle) {
    return std::max(0.8660254f * ax + 0.5f * y, -y) - 0.777f;
  } else {
    return std::max(std::min(ax, ay) - 0.46f, std::max(ax, ay) - 1.08f);
  }
}

// Fills a plane with the share of each pixel that the object covers. `map` leads from the picture
// to the shape.
template <Scene::Shape shape>
void cover(const TextureMap& map, float pixels, int size, float* out) {
  draw(map, size, out, [pixels](float u, float v) {
    return std::max(0.0f, std::min(1.0f, 0.5f - outside<shape>(u, v) * pixels));
  });
}

void cover(Scene::Shape shape, const TextureMap& map, float pixels, int size, float* out) {
  switch (shape) {
    case Scene::Shape::kDisc:
      return cover<Scene::Shape::kDisc>(map, pixels, size, out);
    case Scene::Shape::kSquare:
      return cover<Scene::Shape::kSquare>(map, pixels, size, out);
    case Scene::Shape::kTriangle:
      return cover<Scene::Shape::kTriangle>(map, pixels, size, out);
    case Scene::Shape::kCross:
      return cover<Scene::Shape::kCross>(map, pixels, size, out);
  }
  throw std::logic_error("no such shape");
}

// Moves the origin to (x, y), turns by `angle` turns and scales.
TextureMap map_around(float x, float y, float angle, float scale) {
  const float c = cosine(angle) * scale;
  const float s = sine(angle) * scale;
  return {-c * x - s * y, c, s, s * x - c * y, -s, c};
}

float draw(Random& random, const float (&range)[2]) { return random.uniform(range[0], range[1]); }
float draw_around_zero(Random& random, float reach) { return random.uniform(-reach, reach); }

Surface draw_surface(Random& random, Texture texture, const float (&cycles)[2],
                     const float (&tones)[2], std::uint64_t fewest_arms) {
  Surface surface{};
  surface.texture = texture;
  surface.cycles = draw(random, cycles);
  surface.angle = random.uniform();
  surface.phase_u = random.uniform();
  surface.phase_v = random.uniform();
  surface.phase_w = random.uniform();
  surface.arms = static_cast<float>(fewest_arms + random.below(3));
  for (std::size_t channel = 0; channel < 3; ++channel) {
    surface.dark[channel] = tones[0] + draw_around_zero(random, kColourSpread);
    surface.light[channel] = tones[1] + draw_around_zero(random, kColourSpread);
  }
  return surface;
}

Swing draw_swing(Random& random, float centre, float amplitude) {
  return {centre, amplitude, draw(random, kMoveCycles), random.uniform()};
}

}  // namespace

std::string_view texture_name(Texture texture) {
  constexpr std::string_view kNames[kTextures] = {"stripes", "checker", "dots",   "rings",
                                                  "zigzag",  "rays",    "islands"};
  return kNames[static_cast<int>(texture)];
}

float Swing::at(float time) const { return centre + amplitude * sine(cycles * time + phase); }

Scene::Scene(Random random, Texture object_texture, Texture background_texture) {
  shape = static_cast<Shape>(random.below(4));
  object = draw_surface(random, object_texture, kObjectCycles, kObjectTones, 4);
  background = draw_surface(random, background_texture, kBackgroundCycles, kBackgroundTones, 9);
  x = draw_swing(random, 0.0f, draw(random, kMoveAmplitude));
  y = draw_swing(random, 0.0f, draw(random, kMoveAmplitude));
  const float mean_size = draw(random, kObjectSize);
  size = draw_swing(random, mean_size, mean_size * random.uniform(0.0f, kZoom));
  brightness = draw_swing(random, 0.0f, random.uniform(0.0f, kBrightness));
  angle = random.uniform();
  spin = draw_around_zero(random, kSpin);
  ground_x = draw_around_zero(random, 0.5f);
  ground_y = draw_around_zero(random, 0.5f);
  drift_x = draw_around_zero(random, kDrift);
  drift_y = draw_around_zero(random, kDrift);
  turn = draw_around_zero(random, kTurn);
}

ScenePainter::ScenePainter(int size) : size_(size) {
  const std::size_t pixels = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  object_.resize(pixels);
  background_.resize(pixels);
  cover_.resize(pixels);
  noise_.resize((3 * pixels + 3) / 4);
}

Picture ScenePainter::paint(const Scene& scene, float time, Random noise) {
  const float x = scene.x.at(time);
  const float y = scene.y.at(time);
  const float scale = scene.size.at(time);
  const float angle = scene.angle + scene.spin * time;
  cover(scene.shape, map_around(x, y, angle, 1.0f / scale),
        scale * 0.5f * static_cast<float>(size_), size_, cover_.data());
  fill(scene.object, map_around(x, y, angle + scene.object.angle, scene.object.cycles / scale),
       size_, object_.data());
  fill(scene.background,
       map_around(scene.ground_x + scene.drift_x * (time - 0.5f),
                  scene.ground_y + scene.drift_y * (time - 0.5f),
                  scene.background.angle + scene.turn * time, scene.background.cycles),
       size_, background_.data());
  for (std::uint32_t& word : noise_) word = noise.bits();

  Picture picture(size_, size_);
  const float shift = scene.brightness.at(time) - kNoise;
  const std::size_t pixels = object_.size();
  std::uint8_t* rgb = picture.rgb.data();
  std::memcpy(rgb, noise_.data(), 3 * pixels);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const float ground = (scene.background.dark[channel] + shift) * 255.0f;
    const float ground_span =
        (scene.background.light[channel] - scene.background.dark[channel]) * 255.0f;
    const float front = (scene.object.dark[channel] + shift) * 255.0f;
    const float front_span = (scene.object.light[channel] - scene.object.dark[channel]) * 255.0f;
    for (std::size_t i = 0; i < pixels; ++i) {
      const float behind = ground + ground_span * background_[i];
      const float before = front + front_span * object_[i];
      const float value = behind + cover_[i] * (before - behind) +
                          static_cast<float>(rgb[3 * i + channel]) * (2.0f * kNoise) + 0.5f;
      rgb[3 * i + channel] =
          static_cast<std::uint8_t>(static_cast<int>(std::max(0.0f, std::min(255.0f, value))));
    }
  }
  return picture;
}

}  // namespace riffle
