#include <hone/kernel_family.h>

#include "cache/digest.h"

namespace hone {

std::string family_digest(const KernelFamily& family) {
  cache::Digest digest;
  digest.add("name", family.name()).add("version", std::int64_t{family.version()});
  for (const Parameter& parameter : family.space().parameters()) {
    digest.add("parameter", parameter.name);
    for (std::int32_t value : parameter.values) digest.add("value", parameter.spell(value));
  }
  for (const SourceFile& source : family.sources()) digest.add("file", source.name).add("text", source.text);
  return digest.hex();
}

}  // namespace hone
