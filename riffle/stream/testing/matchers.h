// For tests: the matchers that tests of streams use, without their namespace.
#pragma once

#include <gmock/gmock.h>

namespace riffle {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::ThrowsMessage;

}  // namespace riffle
