// Many small pictures on one page, in reading order.
#pragma once

#include <span>

#include "riffle/image/picture.h"

namespace riffle {

// Returns a page of cells of `cell` px (each picture fitted to a square) in `columns` columns with
// a thin border, on a neutral ground. With fewer pictures than columns the page is as wide as they
// need; without pictures it is one bare cell.
Picture contact_sheet(std::span<const Picture> pictures, int columns, int cell);

}  // namespace riffle
