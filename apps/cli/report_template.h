// The page of the report with @TITLE@ and @CONTENT@ still open; its definition is made from web/report when the program is built.
#pragma once

namespace kizzasi::cli {

extern const char kReportTemplate[];

}  // namespace kizzasi::cli
