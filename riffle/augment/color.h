// The colour changes of a view, in place, as torchvision defines them for float images in [0, 1].
//
// `planes` are the red, green and blue planes one after the other, `pixels` values each. Every
// function leaves values in [0, 1]. A factor of 1, and a shift of 0, keep the picture.
#pragma once

namespace riffle {

// How much each channel counts in a pixel's gray: the weights of ITU-R 601 as torchvision rounds
// them.
inline constexpr float kGrayRed = 0.2989f;
inline constexpr float kGrayGreen = 0.587f;
inline constexpr float kGrayBlue = 0.114f;

void adjust_brightness(float* planes, int pixels, float factor);
// Moves pixels away from, or towards, the mean gray of the whole picture.
void adjust_contrast(float* planes, int pixels, float factor);
// Moves each pixel away from, or towards, its own gray.
void adjust_saturation(float* planes, int pixels, float factor);
// Turns the hue of every pixel by `shift` of the colour circle, in [-0.5, 0.5].
void adjust_hue(float* planes, int pixels, float shift);
// Sets all three channels to the pixel's gray.
void to_grayscale(float* planes, int pixels);

}  // namespace riffle
