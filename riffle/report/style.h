// The look of pages and charts: one style sheet for light, dark and print.
#pragma once

#include <string>
#include <string_view>

namespace riffle {

// Returns colours as CSS variables, light with dark overriding on screens that ask for it. Print is
// always light.
std::string_view colour_style();
// Returns the style of everything inside a chart's <svg>.
std::string_view chart_style();
// Returns the style of the page around it.
std::string_view page_style();

// Returns a chart's <svg> as a file of its own, for a README or a slide.
std::string standalone_svg(const std::string& svg);

}  // namespace riffle
