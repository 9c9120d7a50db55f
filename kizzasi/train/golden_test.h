// Reference values that published packages computed, as committed under tests/golden/training.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {

class Golden {
 public:
  explicit Golden(const std::string& topic) {
    auto file = read_safetensors(KIZZASI_SOURCE_DIR "/tests/golden/training/" + topic + ".io.safetensors");
    if (!file) {
      ADD_FAILURE() << file.error().text();
      return;
    }
    file_ = std::move(*file);
  }
  bool has(const std::string& name) const { return file_.wide.count(name) != 0; }
  const std::vector<double>& values(const std::string& name) const {
    static const std::vector<double> none;
    if (has(name)) return file_.wide.at(name);
    ADD_FAILURE() << "no tensor '" << name << "'";
    return none;
  }
  // Of a tensor that is f32 in the file.
  const std::vector<float>& narrow(const std::string& name) const { return file_.tensors.at(name).values; }
  const Shape& shape(const std::string& name) const { return file_.tensors.at(name).shape; }

 private:
  SafetensorsFile file_;
};

// Every element within `tolerance` of max(1, its size).
template <typename A>
void expect_near(std::span<const A> got, const std::vector<double>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << what << "[" << i << "]";
  }
}

}  // namespace kizzasi
