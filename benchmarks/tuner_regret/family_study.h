// study_families(): what tunings choose for problems of every family, next to the rest of what is valid.
#pragma once

#include "benchmarks/tuner_regret/options.h"

namespace hone::benchmarks {

/// The part "families". Tunes problems of every family in streams and graphs from nothing, as `hone tune` would tune
/// them alone. Then valid policies that a search would prune are measured like others: all of them where the time
/// suffices, else as many as it allows, drawn at random without regard to the model. The time that is left is always
/// divided by the problems that are left, so that small spaces leave theirs to large ones. At last the choices are
/// measured side by side with the fastest of what was found. Returns false if a comparison failed. Throws Error.
bool study_families(const RegretOptions& options);

}  // namespace hone::benchmarks
