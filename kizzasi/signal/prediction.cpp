#include "kizzasi/signal/prediction.h"

namespace kizzasi {

const char* to_string(StepStatus status) {
  switch (status) {
    case StepStatus::kOk:
      return "ok";
    case StepStatus::kNotFinite:
      return "not_finite";
    case StepStatus::kInfeasible:
      return "infeasible";
    case StepStatus::kRejected:
      return "rejected";
    case StepStatus::kLate:
      return "late";
  }
  return "ok";
}

}  // namespace kizzasi
