#include "kizzasi/train/early_stopping.h"

#include <gtest/gtest.h>

#include <vector>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

TEST(EarlyStopping, StopsWhereALookBackOverTheMeasuresSaysSo) {
  Rng rng(1);
  for (int i = 0; i < 500; ++i) {
    const auto patience = static_cast<std::int64_t>(rng.below(6));
    std::vector<double> measures;
    EarlyStopping watch(patience);
    for (std::int64_t step = 0; step < 60 && !watch.should_stop(); ++step) {
      measures.push_back(rng.below(10) == 0 ? std::nan("") : static_cast<double>(rng.below(40)));
      watch.observe(measures.back(), step);
      // Brute force: the first place of the smallest.
      std::size_t best = 0;
      bool any = false;
      for (std::size_t k = 0; k < measures.size(); ++k) {
        if (!std::isnan(measures[k]) && (!any || measures[k] < measures[best])) best = k, any = true;
      }
      const std::int64_t since = any ? step - static_cast<std::int64_t>(best) : step + 1;
      ASSERT_EQ(watch.stale(), since);
      ASSERT_EQ(watch.should_stop(), since > patience);
      if (any) {
        ASSERT_EQ(watch.best(), measures[best]);
        ASSERT_EQ(watch.best_step(), static_cast<std::int64_t>(best));
      }
    }
  }
}

TEST(EarlyStopping, SmallChangesDoNotCountAndNegativePatienceIsEndless) {
  EarlyStopping watch(-1, 0.1);
  EXPECT_TRUE(watch.observe(1, 0));
  EXPECT_FALSE(watch.observe(0.95, 1));
  EXPECT_TRUE(watch.observe(0.85, 2));
  for (std::int64_t step = 3; step < 1000; ++step) watch.observe(2, step);
  EXPECT_FALSE(watch.should_stop());
  EarlyStopping resumed(3, 0.1);
  resumed.restore(watch.best(), watch.best_step(), 3);
  EXPECT_FALSE(resumed.should_stop());
  resumed.observe(0.8, 1000);
  EXPECT_TRUE(resumed.should_stop());
}

}  // namespace
}  // namespace kizzasi
