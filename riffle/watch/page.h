// The page itself: one HTML file, one script, one style sheet, all our own. They ask this server
// alone for anything. Names and labels enter the page as text, never as markup.
#pragma once

#include <string>
#include <string_view>

namespace riffle {

std::string_view page_html();
std::string_view page_script();
std::string page_css();

}  // namespace riffle
