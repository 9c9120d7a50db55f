// "Did you mean ...?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kizzasi {

// The candidate nearest to `word` by edits (insert, delete, replace, swap of neighbours), or "" where none is near enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "Did you mean 'x'?", or "" where nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace kizzasi
