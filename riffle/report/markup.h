// The small pieces every page and chart is made of: escaped text, embedded bytes, colours by
// number.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace riffle {

// Returns text made safe inside an element or a quoted attribute. Control characters that neither
// HTML nor XML allows become U+FFFD.
std::string escape(std::string_view text);

std::string base64(std::span<const std::byte> bytes);

// Colours are numbers, so that one thing keeps its colour through all charts and tables of a page.
// The first kPaletteSize stay apart for people who see few colours, on light and dark ground;
// higher ones begin again, and line charts dash them.
using Colour = int;
// By the place in the chart.
inline constexpr Colour kAutoColour = -1;
// Grey: a reference.
inline constexpr Colour kNeutralColour = -2;
inline constexpr int kPaletteSize = 6;

// Returns the CSS class that sets --c. `place` counts for kAutoColour.
std::string colour_class(Colour colour, std::size_t place);

// The size of a chart's text.
inline constexpr double kFont = 12;

// Returns the width of a text in the charts' font, in px: an estimate on the generous side, for
// margins.
double text_width(std::string_view text, double font_size);

// Returns the text, or as much of its beginning as has room in `width`, and an ellipsis.
std::string text_within(std::string_view text, double font_size, double width);

}  // namespace riffle
