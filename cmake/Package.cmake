# make package: a .deb and a .tar.gz with the program and LibTorch for CPUs. The .deb depends on Debian's packages for the
# other libraries; the .tar.gz holds them too, except the C and C++ libraries that every Debian has.

# Runs after the program was installed, in this folder or (.tar.gz) that of its component: removes the folders of the build
# machine from its RPATH.
set(rpath_of_build "${riffle_rpath}:${TORCH_INSTALL_PREFIX}/lib")
install(CODE "set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(GLOB installed \"\${prefix}/${CMAKE_INSTALL_BINDIR}/riffle\" \"\${prefix}/../../program/*/${CMAKE_INSTALL_BINDIR}/riffle\")
  file(RPATH_CHANGE FILE \"\${installed}\" OLD_RPATH [==[${rpath_of_build}]==] NEW_RPATH [==[${riffle_rpath}]==])"
  COMPONENT packaged EXCLUDE_FROM_ALL)

# Copies what the program needs. Its RPATH applies to these libraries too once they have none of their own.
install(CODE "file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:riffle>\"
    RESOLVED_DEPENDENCIES_VAR needed DIRECTORIES \"${TORCH_INSTALL_PREFIX}/lib\"
    PRE_EXCLUDE_REGEXES \"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|stdc\\\\+\\\\+|gcc_s)\\\\.so.*)\$\"
    POST_EXCLUDE_REGEXES \"^${TORCH_INSTALL_PREFIX}/\")
  set(folder \"\${CMAKE_INSTALL_PREFIX}/${riffle_private}\")
  foreach(library \${needed})
    file(INSTALL \${library} DESTINATION \${folder} FOLLOW_SYMLINK_CHAIN MESSAGE_NEVER)
    file(REAL_PATH \${library} real)
    get_filename_component(name \${real} NAME)
    file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${folder}/\${name}\")
  endforeach()" COMPONENT libraries EXCLUDE_FROM_ALL)

install(FILES LICENSE README.md DESTINATION share/doc/riffle COMPONENT program)

set(CPACK_PACKAGE_NAME riffle)
set(CPACK_PACKAGE_VENDOR riffle)
set(CPACK_PACKAGE_CONTACT "the authors of riffle <riffle@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Learns representations of pictures from endless streams")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/package-config.cmake)
file(WRITE ${CPACK_PROJECT_CONFIG_FILE} [=[
set(CPACK_COMPONENTS_ALL program libtorch packaged)
if(CPACK_GENERATOR STREQUAL "TGZ")
  list(APPEND CPACK_COMPONENTS_ALL libraries)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
]=])
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${TORCH_INSTALL_PREFIX}/lib)
include(CPack)
