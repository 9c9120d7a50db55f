// The sizes of an array: a short list that never touches the heap, since every recorded operation carries one.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace kizzasi::autograd {

// At most eight dimensions. Behaves as a std::vector<std::size_t> where it can.
class Dims {
 public:
  using value_type = std::size_t;
  static constexpr std::size_t kMax = 8;

  Dims() = default;
  Dims(std::initializer_list<std::size_t> sizes) : Dims(sizes.begin(), sizes.end()) {}
  Dims(const std::vector<std::size_t>& sizes) : Dims(sizes.begin(), sizes.end()) {}
  template <typename Iterator>
  Dims(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  std::size_t& operator[](std::size_t i) noexcept { return sizes_[i]; }
  std::size_t operator[](std::size_t i) const noexcept { return sizes_[i]; }
  std::size_t& front() noexcept { return sizes_[0]; }
  std::size_t front() const noexcept { return sizes_[0]; }
  std::size_t& back() noexcept { return sizes_[count_ - 1]; }
  std::size_t back() const noexcept { return sizes_[count_ - 1]; }
  std::size_t* begin() noexcept { return sizes_.data(); }
  std::size_t* end() noexcept { return sizes_.data() + count_; }
  const std::size_t* begin() const noexcept { return sizes_.data(); }
  const std::size_t* end() const noexcept { return sizes_.data() + count_; }
  void push_back(std::size_t size) noexcept {
    assert(count_ < kMax);
    sizes_[count_++] = size;
  }
  void pop_back() noexcept { --count_; }

  friend bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<std::size_t, kMax> sizes_{};
  std::size_t count_ = 0;
};

inline std::size_t elements(const Dims& dims) noexcept {
  std::size_t product = 1;
  for (const std::size_t size : dims) product *= size;
  return product;
}

// The dimensions without the last one.
inline Dims leading(Dims dims) noexcept {
  dims.pop_back();
  return dims;
}

}  // namespace kizzasi::autograd
