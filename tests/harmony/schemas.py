# SPDX-License-Identifier: Apache-2.0
"""Random JSON schemas of tool parameters: the words the official renderer knows, and others."""

PROPERTIES = ["city", "unit", "n", "Query", "x-y", "from", "läng", "a b", "items", "type", "null",
              "$id", "opts", "when"]
ENUMS = [["a", "b"], ["celsius", "fahrenheit"], ["x", 1, None], [1, 2], [], ["null"], ["q\"q"], [""]]
NUMBERS = [0, -1, 7, 2**53, 2**63, 2**64 - 1, 2**64, -2**63, -2**63 - 1, 10**30, 0.0, -0.0, 1.0,
           0.5, -2.25, 1e15, 1e16, 1.5e16, 123456789012345680.0, 1e-4, 1e-5, 1.25e-5, 1e-6, 1e-7,
           1e21, 1.7976931348623157e308, 5e-324, 3.141592653589793, 100.0, 0.1, 12345.678]


class Schemas:
    def __init__(self, rng, text):
        self.rng = rng
        self.text = text

    def value(self, depth=0):
        rng = self.rng
        kind = rng.randint(0, 6 if depth < 2 else 4)
        if kind == 0:
            return rng.choice([True, False, None])
        if kind in (1, 2):
            return rng.choice(NUMBERS)
        if kind in (3, 4):
            return self.text()
        if kind == 5:
            return [self.value(depth + 1) for _ in range(rng.randint(0, 3))]
        return {self.text() + str(i): self.value(depth + 1) for i in range(rng.randint(0, 3))}

    def number_value(self):
        if self.rng.random() < 0.5:
            return self.rng.choice(NUMBERS)
        # At most 12 digits: the official package misreads longer ones (docs/harmony.md).
        return float(f"{self.rng.randint(-10**12, 10**12)}e{self.rng.randint(-22, 10)}")

    def parameters(self):
        if self.rng.random() < 0.1:
            return self.rng.choice([{}, {"type": "object"}, {"type": "object", "properties": {}},
                                    {"type": "string"}, {"properties": {"a": {"type": "string"}}}])
        schema = self.object(0)
        if self.rng.random() < 0.15:
            schema["description"] = self.text()
        return schema

    def object(self, depth):
        rng = self.rng
        names = rng.sample(PROPERTIES, rng.randint(0, 5 if depth < 2 else 2))
        schema = {"type": "object", "properties": {n: self.schema(depth + 1) for n in names}}
        if rng.random() < 0.7:
            schema["required"] = rng.sample(names, rng.randint(0, len(names))) + rng.choice(
                [[], [], ["missing"], [3]])
        if rng.random() < 0.2:
            schema["additionalProperties"] = False
        return schema

    def base(self, depth):
        rng = self.rng
        kind = rng.randint(0, 11 if depth < 4 else 5)
        if kind <= 1:
            schema = {"type": "string"}
            if rng.random() < 0.5:
                schema["enum"] = rng.choice(ENUMS)
            return schema
        if kind == 2:
            return {"type": rng.choice(["number", "integer", "boolean", "null", "date", "any"])}
        if kind == 3:
            return {"type": rng.choice([["string", "null"], ["integer", "string"], [], [3],
                                        ["null"], ["object", "array"], ["boolean", 1, "number"]])}
        if kind == 4:
            return rng.choice([{}, {"anyOf": [{"type": "string"}, {"type": "null"}]},
                               {"$ref": "#/x"}, {"allOf": []}, {"enum": ["a"]}, {"const": 3},
                               {"oneOf": {}}, {"oneOf": None, "type": "string"}, True, "string"])
        if kind == 5:
            return {"type": "array"}
        if kind <= 7:
            return {"type": "array", "items": self.schema(depth + 1)}
        if kind <= 9:
            return self.object(depth)
        variants = [self.schema(depth + 1) for _ in range(rng.randint(0, 3))]
        schema = {"oneOf": variants}
        if rng.random() < 0.2:
            schema["type"] = "string"
        return schema

    def schema(self, depth):
        rng = self.rng
        schema = self.base(depth)
        if not isinstance(schema, dict):
            return schema
        if rng.random() < 0.4:
            schema["description"] = rng.choice([self.text(), "one", "same words", 5])
        if rng.random() < 0.15:
            schema["title"] = rng.choice([self.text(), None])
        if rng.random() < 0.25:
            schema["default"] = rng.choice([self.value, self.text, self.number_value])()
        if rng.random() < 0.15:
            schema["examples"] = rng.choice([[], [self.text(), 3, self.text()], "x"])
        if rng.random() < 0.15:
            schema["nullable"] = rng.choice([True, True, False, "yes"])
        keys = list(schema.items())
        if rng.random() < 0.3:
            rng.shuffle(keys)
        return dict(keys)
