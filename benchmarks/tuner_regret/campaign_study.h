// study_campaigns(): what campaigns of `hone tune` choose for reductions of arrays, next to what more effort finds.
#pragma once

#include "benchmarks/tuner_regret/options.h"

namespace hone::benchmarks {

/// All parts but "families". Prints findings as they come, and the table at the end; false if a campaign or a
/// comparison failed. Throws Error.
bool study_campaigns(const RegretOptions& options);

}  // namespace hone::benchmarks
