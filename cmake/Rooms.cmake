# The house, floor by floor. A room may include only the rooms that it names here.
kizzasi_room(base LIBS tl::expected PRIVATE_LIBS fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> Threads::Threads)
# GCC below 12.3 makes Highway fall back to its SCALAR target, which lacks much; EMU128 is right there (checked by the kernel tests).
kizzasi_room(kernels PRIVATE_LIBS hwy::hwy PRIVATE_DEFINES HWY_BROKEN_EMU128=0 TEST_LIBS hwy::hwy)

kizzasi_room(signal DEPS base PRIVATE_LIBS fmt::fmt)
kizzasi_room(tensor DEPS base kernels PRIVATE_LIBS fmt::fmt ZLIB::ZLIB)

kizzasi_room(autograd DEPS base kernels TEST_LIBS kizzasi_allocation_count)
kizzasi_room(solve DEPS base PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)
kizzasi_room(logic DEPS base solve signal PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)
kizzasi_room(decode DEPS base signal PRIVATE_LIBS fmt::fmt)
kizzasi_room(io DEPS base signal PRIVATE_LIBS fmt::fmt ZLIB::ZLIB PkgConfig::sndfile tomlplusplus::tomlplusplus yaml-cpp)

kizzasi_room(data DEPS base signal io PRIVATE_LIBS fmt::fmt)
kizzasi_room(model DEPS base kernels signal tensor autograd PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)

kizzasi_room(engine DEPS base kernels signal tensor logic decode model PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)
kizzasi_room(train DEPS base kernels signal tensor autograd decode data model PRIVATE_LIBS fmt::fmt)

kizzasi_room(forecast DEPS base kernels signal tensor autograd logic decode data model engine train PRIVATE_LIBS fmt::fmt)

kizzasi_write_layers(${CMAKE_BINARY_DIR}/layers.txt)
