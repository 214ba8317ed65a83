# What a program around riffle sees: these headers are installed, and no others. docs/install.md says what they are for.
set(RIFFLE_PUBLIC_HEADERS
  # Where to begin.
  riffle/base/error.h             # what riffle throws
  riffle/stream/stream.h          # where pictures come from: yours is a Stream
  riffle/train/learner.h          # learns from a stream
  riffle/eval/embedding.h         # features of pictures
  riffle/model/encoder_weights.h  # the encoder to and from a file
  # What those include.
  riffle/augment/augment_config.h
  riffle/base/fields.h
  riffle/base/random.h
  riffle/base/text.h
  riffle/base/thread_pool.h
  riffle/buffer/buffer_config.h
  riffle/buffer/buffer_state.h
  riffle/buffer/policy.h
  riffle/buffer/replay_buffer.h
  riffle/buffer/store.h
  riffle/dist/ranks.h
  riffle/image/picture.h
  riffle/model/encoder.h
  riffle/model/model_config.h
  riffle/model/objective.h
  riffle/model/state.h
  riffle/stream/divided_reader.h
  riffle/tensors/named_tensors.h
  riffle/tensors/side_copy.h
  riffle/train/device.h
  riffle/train/intake.h
  riffle/train/shared_stream.h
  riffle/train/train_config.h
  riffle/train/updater.h)

# The libraries to link: riffle::train and riffle::eval, and what they use.
set(RIFFLE_PUBLIC_ROOMS base image stream tensors dist buffer augment model train eval)

# Every header must be there, and what it includes must be among them: otherwise a program does not compile.
foreach(header ${RIFFLE_PUBLIC_HEADERS})
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${header})
    message(FATAL_ERROR "cmake/PublicHeaders.cmake: there is no ${header}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
  file(STRINGS ${CMAKE_SOURCE_DIR}/${header} lines REGEX "^#include \"riffle/")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    if(NOT included IN_LIST RIFFLE_PUBLIC_HEADERS)
      message(FATAL_ERROR "${header} includes ${included}: add it to cmake/PublicHeaders.cmake, "
        "or move the include to a .cc file")
    endif()
  endforeach()
endforeach()
