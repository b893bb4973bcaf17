// SPDX-License-Identifier: Apache-2.0
// Where spans lie, and what attention cut between spans leaves of each. Included by each kernel
// file inside its unnamed namespace, after canon.inl.

inline int FirstVisible(const AttendArgs& a, int position) {
  return a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
}

// The spans that a call is to take, of those its tokens [first, first + count) see.
struct SpanRange {
  int begin, end;
};
inline SpanRange SpansOf(const AttendArgs& a, int first, int count) {
  const int last = a.first_position + first + count - 1;
  SpanRange range{FirstVisible(a, a.first_position + first) / kSpan, last / kSpan + 1};
  if (a.parts != nullptr) {
    if (range.begin < a.span_begin) range.begin = a.span_begin;
    if (range.end > a.span_end) range.end = a.span_end;
  }
  return range;
}

// What a span contributes to one KV head: rows are heads of tokens, as many as the group has per
// token; values are padded to whole AVX-512 vectors.
struct SpanPart {
  float *top, *weight;  // [rows]
  float* value;         // [rows, padded]
};
inline SpanPart PartOf(const AttendArgs& a, int span, int kv_head, int row) {
  const int64_t rows = int64_t{a.count} * (a.n_heads / a.n_kv_heads);
  const int64_t padded = (a.d_head + 15) / 16 * 16;
  const int first = FirstVisible(a, a.first_position) / kSpan;
  const int64_t index = int64_t{span - first} * a.n_kv_heads + kv_head;
  float* at = a.parts + index * rows * (padded + 2);
  return {at + row, at + rows + row, at + 2 * rows + row * padded};
}
