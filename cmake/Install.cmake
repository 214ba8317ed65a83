# make install PREFIX=...: the program, the libraries and headers, and what find_package(riffle) needs.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(RIFFLE_ROOMS base image stream tensors buffer augment model train eval run report pages study)
list(TRANSFORM RIFFLE_ROOMS PREPEND riffle_ OUTPUT_VARIABLE room_targets)

# The program can be moved with its folder. It takes the LibTorch beside it where there is one (BUNDLE=1 puts it there),
# and otherwise the one it was built against.
set(riffle_torch_folder ${CMAKE_INSTALL_LIBDIR}/riffle)
set_target_properties(riffle PROPERTIES INSTALL_RPATH
  "$ORIGIN/../${riffle_torch_folder};${TORCH_INSTALL_PREFIX}/lib")
file(GLOB riffle_torch_files ${TORCH_INSTALL_PREFIX}/lib/libtorch.so ${TORCH_INSTALL_PREFIX}/lib/libtorch_cpu.so
  ${TORCH_INSTALL_PREFIX}/lib/libc10.so ${TORCH_INSTALL_PREFIX}/lib/libgomp*.so*)
install(FILES ${riffle_torch_files} DESTINATION ${riffle_torch_folder} COMPONENT libtorch EXCLUDE_FROM_ALL)
set_target_properties(riffle_options PROPERTIES EXPORT_NAME options)
set_target_properties(riffle_torch PROPERTIES EXPORT_NAME torch)

install(TARGETS riffle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${room_targets} riffle_options riffle_torch EXPORT riffle
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(CODE "set(RIFFLE_SOURCE_DIR \"${CMAKE_SOURCE_DIR}\")
  set(RIFFLE_INCLUDE_DIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/InstallHeaders.cmake)
install(DIRECTORY studies DESTINATION ${CMAKE_INSTALL_DATADIR}/riffle)
install(EXPORT riffle NAMESPACE riffle:: FILE riffle-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
configure_file(${CMAKE_CURRENT_LIST_DIR}/riffle-config.cmake.in ${CMAKE_BINARY_DIR}/riffle-config.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/riffle-config.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/riffle-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/riffle-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
