# SPDX-License-Identifier: Apache-2.0
"""Checks that what the server sent is what the SDK's own types say, with nothing left over but the
fields that docs/api.md names."""
import pydantic

# Beyond OpenAI's types: reasoning under both names that clients look for, and what a model's card
# tells.
EXTRAS = {"reasoning", "reasoning_content", "max_model_len", "context_length", "root",
          "default_sampling"}


def leftovers(value, path=""):
    """Names that the SDK's types do not know, wherever they are."""
    found = []
    if isinstance(value, pydantic.BaseModel):
        found += [f"{path}.{name}" for name in (value.model_extra or {}) if name not in EXTRAS]
        for name in type(value).model_fields:
            found += leftovers(getattr(value, name, None), f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += leftovers(item, f"{path}[{index}]")
    return found


def strictly(kind, raw):
    """`raw` JSON as the SDK's type `kind`, refusing what lenient parsing lets through."""
    value = kind.model_validate_json(raw, strict=True)
    extra = leftovers(value)
    if extra:
        raise AssertionError(f"fields unknown to {kind.__name__}: {extra}")
    return value
