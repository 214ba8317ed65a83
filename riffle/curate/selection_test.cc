#include "riffle/curate/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(SelectionCsv, SaysWhenALiveSourceGaveAPictureAndWhenAFilmShowsIt) {
  Kept live, frame;
  live.label = "a, b";
  live.time = 1772366400250;
  frame.index = 7;
  frame.clip = 3;
  frame.key = "film.mp4#31";
  frame.shown_at = 1240;
  frame.count = 3;
  const std::string table =
      selection_csv({{.kept = live, .nearest = 0.5, .alone = true}, {.kept = frame}}, 4);
  EXPECT_EQ(table,
            "file,index,clip,label,key,time,seconds,count,share,nearest,alone\n"
            ",0,,\"a, b\",,2026-03-01T12:00:00.250Z,,1,0.25,0.5,1\n"
            ",7,3,,film.mp4#31,,1.240,3,0.75,2,0\n");
}

}  // namespace
}  // namespace riffle
