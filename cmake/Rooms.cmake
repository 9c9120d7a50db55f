# The house, floor by floor. A room may include only the rooms that it names here.
kizzasi_room(base LIBS tl::expected PRIVATE_LIBS fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> Threads::Threads)
# GCC below 12.3 makes Highway fall back to its SCALAR target, which lacks much; EMU128 is right there (checked by the kernel tests).
# The vectors of Arm's SVE have no size that is known when compiling, and so cannot stand in arrays as the kernels keep them; NEON serves there.
set(kernel_targets HWY_BROKEN_EMU128=0)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND kernel_targets HWY_DISABLED_TARGETS=0xF000000)  # HWY_SVE, HWY_SVE2, HWY_SVE_256, HWY_SVE2_128
endif()
kizzasi_room(kernels PRIVATE_LIBS hwy::hwy PRIVATE_DEFINES ${kernel_targets} TEST_LIBS hwy::hwy)

kizzasi_room(signal DEPS base PRIVATE_LIBS fmt::fmt)
kizzasi_room(tensor DEPS base kernels PRIVATE_LIBS fmt::fmt ZLIB::ZLIB)

kizzasi_room(autograd DEPS base kernels TEST_LIBS kizzasi_allocation_count)
kizzasi_room(solve DEPS base PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)
kizzasi_room(logic DEPS base solve signal PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)
kizzasi_room(penalty DEPS base autograd solve signal logic PRIVATE_LIBS fmt::fmt)
kizzasi_room(tokenizer DEPS base PRIVATE_LIBS fmt::fmt)
kizzasi_room(decode DEPS base signal PRIVATE_LIBS fmt::fmt)
kizzasi_room(io DEPS base signal PRIVATE_LIBS fmt::fmt ZLIB::ZLIB PkgConfig::sndfile tomlplusplus::tomlplusplus yaml-cpp)

kizzasi_room(data DEPS base signal io PRIVATE_LIBS fmt::fmt)
kizzasi_room(model DEPS base kernels signal tensor autograd PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)

kizzasi_room(engine DEPS base kernels signal tensor logic decode model PRIVATE_LIBS fmt::fmt TEST_LIBS kizzasi_allocation_count)
kizzasi_room(train DEPS base kernels signal tensor autograd decode data model PRIVATE_LIBS fmt::fmt)

kizzasi_room(forecast DEPS base kernels signal tensor autograd logic penalty decode data model engine train PRIVATE_LIBS fmt::fmt)

kizzasi_write_layers(${CMAKE_BINARY_DIR}/layers.txt)
