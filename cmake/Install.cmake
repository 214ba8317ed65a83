# make install PREFIX=...: the program, the libraries and headers, and what find_package(riffle) needs.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(RIFFLE_ROOMS base image stream buffer augment model train eval run report study)
list(TRANSFORM RIFFLE_ROOMS PREPEND riffle_ OUTPUT_VARIABLE room_targets)

# The program finds LibTorch where it was built against it.
set_target_properties(riffle PROPERTIES INSTALL_RPATH "${TORCH_INSTALL_PREFIX}/lib")
set_target_properties(riffle_options PROPERTIES EXPORT_NAME options)
set_target_properties(riffle_torch PROPERTIES EXPORT_NAME torch)

install(TARGETS riffle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${room_targets} riffle_options riffle_torch EXPORT riffle
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY riffle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
  PATTERN testdata EXCLUDE)
install(EXPORT riffle NAMESPACE riffle:: FILE riffle-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
configure_file(${CMAKE_CURRENT_LIST_DIR}/riffle-config.cmake.in ${CMAKE_BINARY_DIR}/riffle-config.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/riffle-config.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/riffle-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/riffle-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
