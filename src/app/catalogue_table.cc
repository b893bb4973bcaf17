// SPDX-License-Identifier: Apache-2.0
#include "app/catalogue_table.h"

#include <fmt/format.h>

#include "app/print.h"
#include "store/catalogue.h"
#include "store/inventory.h"

namespace hearth {

std::string CatalogueTable(uint64_t usable_memory_bytes) {
  std::string table = fmt::format("{:<18} {:<20} {:>8}  {:<20} {}\n", "NAME", "PARAMETERS", "SIZE",
                                  "LICENCE", "MEMORY");
  for (const CatalogueEntry& entry : Catalogue()) {
    const bool is_known = entry.about_bytes > 0;
    const uint64_t bytes = is_known ? entry.about_bytes : EstimatedBytes(entry);
    const char* fits = MemoryFor(bytes) <= usable_memory_bytes ? "fits" : "too large";
    table += fmt::format("{:<18} {:<20} {:>8}  {:<20} {}\n", entry.name, entry.parameters,
                         (is_known ? "" : "~") + HumanBytes(bytes), entry.licence, fits);
  }
  return table;
}

void PrintCatalogue(uint64_t usable_memory_bytes) {
  PrintOut(
      "{}\nDownload one with `hearth pull NAME`. Sizes with ~ are estimates; the Hub is asked for "
      "the exact one, and disk\nand memory are checked before the download. Any other model of "
      "the Hub: `hearth pull OWNER/REPO:QUANT`.\n",
      CatalogueTable(usable_memory_bytes));
}

}  // namespace hearth
