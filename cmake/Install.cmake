# What `cmake --install` and `make package` hand out: headers, the static libraries of the rooms, the program, find_package(kizzasi).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY KIZZASI_ROOM_NAMES)
list(TRANSFORM rooms PREPEND kizzasi_ OUTPUT_VARIABLE room_targets)

# kizzasi::kizzasi is the whole house for those who do not want to pick rooms.
add_library(kizzasi_all INTERFACE)
add_library(kizzasi::kizzasi ALIAS kizzasi_all)
set_target_properties(kizzasi_all PROPERTIES EXPORT_NAME kizzasi)
target_link_libraries(kizzasi_all INTERFACE ${room_targets})
if(EXISTS ${PROJECT_SOURCE_DIR}/kizzasi/kizzasi.h)
  target_sources(kizzasi_all INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${PROJECT_SOURCE_DIR}/kizzasi/kizzasi.h)
endif()

install(TARGETS ${room_targets} kizzasi_all EXPORT kizzasi
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kizzasi)
install(EXPORT kizzasi NAMESPACE kizzasi:: FILE kizzasiTargets.cmake DESTINATION ${config_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kizzasiConfig.cmake.in ${CMAKE_BINARY_DIR}/kizzasiConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kizzasiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kizzasiConfig.cmake ${CMAKE_BINARY_DIR}/kizzasiConfigVersion.cmake DESTINATION ${config_folder})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kizzasi)
set(CPACK_PACKAGE_CONTACT "The Kizzasi authors <kizzasi@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Autoregressive prediction of signals that obeys its limits")
set(CPACK_PACKAGE_FILE_NAME kizzasi-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
include(CPack)
