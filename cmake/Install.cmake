# make install PREFIX=...: the program (component `program`), the libraries and headers to build a program around them with
# find_package(riffle) (`development`), and on request LibTorch (`libtorch`).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(PublicHeaders)

# The installed folder can be moved. The program uses the libraries in it if there are any (BUNDLE=1 and the packages install
# them), and otherwise those it was built with. RPATH, not RUNPATH: it also applies to the libraries that those need.
set(riffle_private lib/riffle)
set(riffle_rpath "$ORIGIN/../${riffle_private}")
set(riffle_built_with ${TORCH_INSTALL_PREFIX}/lib)
if(RIFFLE_NCCL_LIBRARY)
  get_filename_component(nccl_folder ${NCCL_LIBRARY} DIRECTORY)
  list(APPEND riffle_built_with ${nccl_folder})
endif()
set_target_properties(riffle PROPERTIES INSTALL_RPATH "${riffle_rpath};${riffle_built_with}")
target_link_options(riffle PRIVATE -Wl,--disable-new-dtags)
install(TARGETS riffle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY studies DESTINATION ${CMAKE_INSTALL_DATADIR}/riffle COMPONENT program)

file(GLOB riffle_torch_files ${TORCH_INSTALL_PREFIX}/lib/libtorch.so ${TORCH_INSTALL_PREFIX}/lib/libtorch_cpu.so
  ${TORCH_INSTALL_PREFIX}/lib/libc10.so ${TORCH_INSTALL_PREFIX}/lib/libgomp*.so*)
install(FILES ${riffle_torch_files} DESTINATION ${riffle_private} COMPONENT libtorch EXCLUDE_FROM_ALL)

list(TRANSFORM RIFFLE_PUBLIC_ROOMS PREPEND riffle_ OUTPUT_VARIABLE public_libraries)
set_target_properties(riffle_options PROPERTIES EXPORT_NAME options)
set_target_properties(riffle_torch PROPERTIES EXPORT_NAME torch)
install(TARGETS ${public_libraries} riffle_options riffle_torch EXPORT riffle
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
foreach(header ${RIFFLE_PUBLIC_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
endforeach()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
install(EXPORT riffle NAMESPACE riffle:: FILE riffle-targets.cmake DESTINATION ${package} COMPONENT development)
configure_file(${CMAKE_CURRENT_LIST_DIR}/riffle-config.cmake.in ${CMAKE_BINARY_DIR}/riffle-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/riffle-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/riffle-config.cmake ${CMAKE_BINARY_DIR}/riffle-config-version.cmake
  DESTINATION ${package} COMPONENT development)
