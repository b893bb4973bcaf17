// SPDX-License-Identifier: Apache-2.0
// What a model's files or its publisher say about sampling, for requests that leave it open.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "app/text_source.h"
#include "base/result.h"
#include "sampling/sampling_defaults.h"
namespace hearth {

// GGUF's general.sampling.*, or the generation_config.json beside a Hugging Face directory's
// weights (a packed file keeps either). kCorrupt with file and key when a value is outside what a
// request may ask for: a recommendation that cannot be followed is not guessed at.
// A GGUF file that recommends nothing is sampled as its publisher documents, when its name is known
// (sampling/published_sampling.h).
Result<SamplingDefaults> OpenSamplingDefaults(const TextSource& source);

// Those that are recommended, under the names of a request's fields.
std::vector<std::pair<const char*, double>> NamedSettings(const SamplingDefaults& sampling);
// "temperature 0.2 top_p 0.9 (SmolLM2's model card)"; empty where nothing is recommended.
std::string DescribeSampling(const SamplingDefaults& sampling);

}  // namespace hearth
