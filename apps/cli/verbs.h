// The verbs, each in the file of its name (check.cpp, train.cpp, ...). A verb declares its options, parses, and runs.
#pragma once

#include "apps/cli/options.h"
#include "apps/cli/verb.h"

namespace kizzasi::cli {

Result<int> check(Options& options, const Context& context);
Result<int> train(Options& options, const Context& context);
Result<int> backtest(Options& options, const Context& context);
Result<int> forecast(Options& options, const Context& context);
Result<int> stream(Options& options, const Context& context);
Result<int> detect(Options& options, const Context& context);
Result<int> constraints(Options& options, const Context& context);
Result<int> guard(Options& options, const Context& context);
Result<int> monitor(Options& options, const Context& context);
Result<int> solve(Options& options, const Context& context);
Result<int> inspect(Options& options, const Context& context);
Result<int> convert(Options& options, const Context& context);
Result<int> verify(Options& options, const Context& context);
Result<int> bench(Options& options, const Context& context);
Result<int> demo(Options& options, const Context& context);

}  // namespace kizzasi::cli
