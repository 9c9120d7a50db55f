// A peer in C++: ggml's product of rows with a matrix of 768 outputs and 256 inputs, in its formats, one thread. Prints one line of JSON.
//
// Built by hand, out of the project's own build, against an installed static ggml (G its prefix; -DGGML_OPENMP=OFF):
//   g++ -O2 -std=c++17 -I$G/include bench/peers/ggml_products.cpp -o ggml_products -L$G/lib -lggml -lggml-cpu -lggml-base -lpthread -ldl
#include <ggml-cpu.h>
#include <ggml.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "best_of.h"

namespace {

constexpr std::int64_t kInputs = 256, kOutputs = 768;

int product(ggml_type type, const char* name, std::int64_t rows, double seconds) {
  const ggml_init_params sizes{64u << 20, nullptr, false};
  ggml_context* context = ggml_init(sizes);
  ggml_tensor* w = ggml_new_tensor_2d(context, type, kInputs, kOutputs);
  ggml_tensor* x = ggml_new_tensor_2d(context, GGML_TYPE_F32, kInputs, rows);
  std::mt19937 rng(3);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(kInputs * kOutputs));
  for (float& value : numbers) value = normal(rng);
  ggml_quantize_chunk(type, numbers.data(), w->data, 0, kOutputs, kInputs, nullptr);
  for (std::int64_t i = 0; i < kInputs * rows; ++i) static_cast<float*>(x->data)[i] = normal(rng);
  ggml_cgraph* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, ggml_mul_mat(context, w, x));
  ggml_cplan plan = ggml_graph_plan(graph, 1, nullptr);
  std::vector<std::uint8_t> work(plan.work_size + 1);
  plan.work_data = work.data();
  const double best = best_of(seconds, [&] { ggml_graph_compute(graph, &plan); });
  std::printf("{\"rows\":%lld,\"format\":\"%s\",\"linear_us\":%.3f}\n", static_cast<long long>(rows), name, best * 1e6);
  ggml_free(context);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "", format = count > 2 ? words[2] : "";
  const std::pair<const char*, ggml_type> formats[] = {
      {"f32", GGML_TYPE_F32}, {"f16", GGML_TYPE_F16}, {"bf16", GGML_TYPE_BF16}, {"q8_0", GGML_TYPE_Q8_0}, {"q4_0", GGML_TYPE_Q4_0}};
  for (const auto& [name, type] : formats) {
    if (what == "product" && count == 5 && format == name) return product(type, name, std::atoll(words[3]), std::atof(words[4]));
  }
  std::fprintf(stderr, "usage: ggml_products product f32|f16|bf16|q8_0|q4_0 ROWS SECONDS\n");
  return 2;
}
