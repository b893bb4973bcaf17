# SPDX-License-Identifier: Apache-2.0
"""That the comparison of logits can fail: on a NaN, on a small error in any column, on columns or
rows exchanged, on missing rows."""
import pathlib
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "oracle"))
import compare  # noqa: E402  (the path is set above)

VOCAB = 1000


def rows():
    return np.random.default_rng(3).normal(size=(5, VOCAB)) * 4 - 7


def golden_of(values, columns):
    return {"vocab": VOCAB, "columns": columns, "logits": values[:, columns],
            "sums": values @ compare.signs(VOCAB).T, "argmax": values.argmax(axis=1)}


class Golden(unittest.TestCase):
    def setUp(self):
        self.columns = np.arange(0, VOCAB, 50)
        self.golden = golden_of(rows(), self.columns)

    def problem(self, values, max_nmse=1e-20):
        return compare.with_golden(values, self.golden).problem(max_nmse, 1.0)

    def test_accepts_itself(self):
        self.assertIsNone(self.problem(rows()))

    def test_sees_one_small_error_in_any_column(self):
        for column in range(VOCAB):
            values = rows()
            values[2, column] += 1e-6
            self.assertIn("NMSE", self.problem(values), column)

    def test_sees_exchanged_columns_it_does_not_store(self):
        values = rows()
        values[:, [1, 2]] = values[:, [2, 1]]
        self.assertIn("NMSE", self.problem(values))

    def test_sees_exchanged_rows(self):
        self.assertIn("NMSE", self.problem(rows()[[1, 0, 2, 3, 4]]))

    def test_refuses_nan_even_in_columns_it_does_not_store(self):
        for column in (0, 1):
            values = rows()
            values[0, column] = np.nan
            self.assertIsNotNone(self.problem(values, max_nmse=float("inf")))

    def test_refuses_missing_rows(self):
        with self.assertRaises(SystemExit):
            self.problem(rows()[:4])

    def test_sees_a_new_argmax(self):
        values = rows()
        values[0, 1] = 1000.0
        self.assertIn("argmax", self.problem(values, max_nmse=float("inf")))


class Whole(unittest.TestCase):
    def test_nmse_is_relative_to_the_reference(self):
        want = rows()
        difference = compare.whole(want * 1.001, want)
        self.assertAlmostEqual(difference.nmse, 1e-6, delta=1e-12)
        self.assertEqual(difference.argmax, 1.0)

    def test_refuses_nan(self):
        got = rows()
        got[4, 4] = np.nan
        self.assertIn("NaN", compare.whole(got, rows()).problem(float("inf"), 0.0))


if __name__ == "__main__":
    unittest.main()
