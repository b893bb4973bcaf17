// SPDX-License-Identifier: Apache-2.0
// Finds a model's weights by the names each layout gives them, and checks every shape.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "weights/weight_file.h"
namespace hearth {

// The checks all layouts share. Each function returns views into one named tensor and refuses a
// tensor that is missing, of another shape, or in a format that is no weight.
class Binder {
 public:
  explicit Binder(const WeightFile& file) : file_(file) {}
  bool Has(const std::string& name) const { return file_.Has(name); }
  Result<MatView> Matrix(const std::string& name, int rows, int cols) const;
  Result<MatView> Vector(const std::string& name, int size) const;
  Result<MatView> VectorIfAny(const std::string& name, int size) const;  // absent: not present()
  // `count` matrices, or rows of a matrix, stacked in one tensor.
  Result<std::vector<MatView>> Stack(const std::string& name, int count, int rows, int cols) const;
  Result<std::vector<MatView>> VectorStack(const std::string& name, int count, int size) const;
  // A stack whose matrices are stored transposed, [count, cols, rows].
  Result<std::vector<MatView>> TransposedStack(const std::string& name, int count, int rows,
                                               int cols) const;
  // MXFP4 as two tensors: nibbles [count, rows, cols / 32, 16] and exponents [count, rows,
  // cols/32].
  Result<std::vector<MatView>> PlanesStack(const std::string& blocks, const std::string& scales,
                                           int count, int rows, int cols) const;

 private:
  Result<TensorView> Weight(const std::string& name, std::vector<int64_t> shape) const;
  Result<TensorView> Bytes(const std::string& name, std::vector<int64_t> shape) const;
  const WeightFile& file_;
};

// GGUF's tensor names (bind_gguf.cc), where families differ in them.
struct GgufNaming {
  const char* ffn_norm = "ffn_norm.weight";
  const char* other_ffn_norm = "ffn_norm.weight";  // looked for where the first is absent
  // Gate and up of an expert alternate in one tensor, as OpenAI published them; elsewhere a fused
  // tensor of that name has gate before up, and guessing would be wrong half of the time.
  bool interleaves_gate_up = false;
};
Status BindGguf(const Binder& binder, const GgufNaming& naming, Model& model);
Status BindGgufUsual(const Binder& binder, Model& model);  // with the names most families have

// Hugging Face's tensor names (bind_hugging_face.cc). `bind_experts` finds router and experts of a
// layer whose network lies under `prefix`; null for a family without experts.
using ExpertBinder = Status (*)(const Binder& binder, const ModelSpec& spec,
                                const std::string& prefix, LayerWeights& w);
Status BindHuggingFace(const Binder& binder, ExpertBinder bind_experts, Model& model);
Status BindHuggingFaceDense(const Binder& binder, Model& model);  // for families without experts
// A gated network with its biases, if any, under the names Hugging Face gives the three matrices.
Result<FfnWeights> BindGlu(const Binder& binder, const std::string& prefix, int d_model, int d_ff);

// Interleaved [gate0, up0, gate1, up1, ...] taken apart: rows of a matrix, columns of a bias.
void SplitGateUp(const MatView& both, const MatView& both_bias, FfnWeights& ffn);
// One entry per expert in each list; gate and up come interleaved.
void SetExperts(const std::vector<MatView>& gate_up, const std::vector<MatView>& gate_up_bias,
                const std::vector<MatView>& down, const std::vector<MatView>& down_bias,
                LayerWeights& w);

// One bias for q, k and v together, taken apart.
void SplitQkvBias(const MatView& all, int q_rows, int kv_rows, LayerWeights& w);

}  // namespace hearth
