// All that a program needs to run a trained model: load a Predictor, prepare a Session for each stream, step.
//
//   auto predictor = kizzasi::Predictor::load("traffic.kz");
//   if (!predictor) return complain(predictor.error().text());
//   auto session = kizzasi::Session::prepare(*predictor);
//   const kizzasi::Prediction& next = session.step(frame);      // next.value obeys every limit of the model
//
// Reading recordings (io, data), training (train) and measuring (forecast) have headers of their own.
#pragma once

#include "kizzasi/base/error.h"                  // IWYU pragma: export
#include "kizzasi/engine/forecast.h"             // IWYU pragma: export
#include "kizzasi/engine/predictor.h"            // IWYU pragma: export
#include "kizzasi/engine/session.h"              // IWYU pragma: export
#include "kizzasi/signal/prediction.h"           // IWYU pragma: export
#include "kizzasi/signal/series.h"               // IWYU pragma: export
#include "kizzasi/solve/barrier.h"               // IWYU pragma: export
#include "kizzasi/solve/model_predictive.h"      // IWYU pragma: export
#include "kizzasi/solve/nonlinear_predictive.h"  // IWYU pragma: export
#include "kizzasi/solve/polytope_projection.h"   // IWYU pragma: export
#include "kizzasi/solve/projection.h"            // IWYU pragma: export
#include "kizzasi/solve/quadratic_program.h"     // IWYU pragma: export
#include "kizzasi/solve/quadric_projection.h"    // IWYU pragma: export
#include "kizzasi/tokenizer/tokenizer.h"         // IWYU pragma: export
