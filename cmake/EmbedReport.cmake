# cmake -DWEB=folder -DOUT=file.cpp -P EmbedReport.cmake: the report page, its style and its scripts as one C++ text.
foreach(part STYLE:report.css PLOT:plot.js PAGE:page.js PAGE_FRAME:report.html)
  string(REPLACE ":" ";" part "${part}")
  list(GET part 0 name)
  list(GET part 1 file)
  file(READ "${WEB}/${file}" ${name})
endforeach()
foreach(name STYLE PLOT PAGE)
  string(REPLACE "@${name}@" "${${name}}" PAGE_FRAME "${PAGE_FRAME}")
endforeach()
file(WRITE "${OUT}" "// Made from web/report by cmake/EmbedReport.cmake.\n#include \"apps/cli/report_template.h\"\n\n"
     "namespace kizzasi::cli {\nconst char kReportTemplate[] = R\"KIZZASI(${PAGE_FRAME})KIZZASI\";\n}\n")
