# SPDX-License-Identifier: Apache-2.0
"""Random JSON schemas that a client could send, made from a seed: nested, recursive, with enums,
formats, patterns and ranges. Each can be satisfied."""
import random

PATTERNS = ["^[a-z]{2,5}$", "^\\d{3}-\\d{4}$", "^(foo|bar)+$", "[A-Z]", "^#[0-9a-fA-F]{6}$",
            "^v\\d+\\.\\d+$", "^a.c", "^[^\\s]{1,8}$", "^(?:[a-z]+/)*[a-z]+$", "^\\w+@\\w+\\.com$"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "duration",
           "uri", "int32"]
NAMES = ["id", "name", "city", "a b", "ключ", "tags", "x", "unit", "value", "child", "über", "q\"t",
         "back\\slash", "line\nbreak", "count", "options", "path", "type", "$ref_", "ok"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.definitions = {}

    def make(self):
        kind = self.random.random()
        schema = self.object(0) if kind < 0.8 else self.any(0)
        if self.random.random() < 0.25 and "properties" in schema:
            schema["properties"]["tree"] = self.recursive()
        if self.definitions:
            schema["$defs"] = self.definitions
        if self.random.random() < 0.2:
            schema["description"] = "what a client says about it"
        if self.random.random() < 0.1:
            schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        return schema

    def any(self, depth):
        makers = [self.string, self.string, self.number, self.integer, self.boolean, self.enum,
                  self.const, self.null]
        if depth < 4:
            makers += [self.object, self.object, self.array, self.array, self.any_of, self.one_of,
                       self.types, self.all_of, self.reference]
        return self.random.choice(makers)(depth)

    def string(self, _):
        schema = {"type": "string"}
        kind = self.random.random()
        if kind < 0.25:
            schema["pattern"] = self.random.choice(PATTERNS)
        elif kind < 0.5:
            schema["format"] = self.random.choice(FORMATS)
        elif kind < 0.75:
            low = self.random.randint(0, 8)
            schema["minLength"] = low
            if self.random.random() < 0.7:
                schema["maxLength"] = low + self.random.randint(0, 30)
        return schema

    def bounds(self, schema, scale):
        low = self.random.randint(-scale, scale)
        high = low + self.random.randint(3, scale)
        for bound, key in ((low, "inimum"), (high, "aximum")):
            letter = "m"
            if self.random.random() < 0.6:
                exclusive = self.random.random() < 0.3
                name = ("exclusive" + letter.upper() if exclusive else letter) + key
                schema[name] = bound
        return schema

    def number(self, _):
        schema = self.bounds({"type": "number"}, 1000)
        if self.random.random() < 0.2:
            return {"type": "number", "multipleOf": self.random.choice([0.5, 0.25, 2, 10])}
        return schema

    def integer(self, _):
        if self.random.random() < 0.2:
            return {"type": "integer", "multipleOf": self.random.choice([2, 3, 5, 7])}
        return self.bounds({"type": "integer"}, 10 ** self.random.randint(1, 9))

    def boolean(self, _):
        return {"type": "boolean"}

    def null(self, _):
        return {"type": "null"}

    def value(self):
        return self.random.choice(["red", "gr\"een", "bl\\ue", "", "日本", 1, -2.5, True, None,
                                   {"k": [1, "v"]}, [], 1e3, "new\nline"])

    def enum(self, _):
        values = []
        for _ in range(self.random.randint(1, 6)):
            value = self.value()
            if not any(value == old and type(value) is type(old) for old in values):
                values.append(value)
        return {"enum": values}

    def const(self, _):
        return {"const": self.value()}

    def object(self, depth):
        names = self.random.sample(NAMES, self.random.randint(0, 5))
        properties = {name: self.any(depth + 1) for name in names}
        schema = {"type": "object", "properties": properties}
        if names:
            schema["required"] = self.random.sample(names, self.random.randint(0, len(names)))
        kind = self.random.random()
        if kind < 0.3:
            schema["additionalProperties"] = False
        elif kind < 0.4:
            schema["additionalProperties"] = self.any(depth + 2)
        elif kind < 0.45:
            schema["additionalProperties"] = True
        elif kind < 0.5:
            schema["patternProperties"] = {"^x-": self.any(depth + 2)}
        return schema

    def array(self, depth):
        schema = {"type": "array", "items": self.any(depth + 1)}
        kind = self.random.random()
        if kind < 0.3:
            schema["minItems"] = self.random.randint(0, 3)
            schema["maxItems"] = schema["minItems"] + self.random.randint(0, 4)
        elif kind < 0.45:
            schema["prefixItems"] = [self.any(depth + 1) for _ in range(2)]
            if self.random.random() < 0.5:
                schema["items"] = False
        return schema

    def any_of(self, depth):
        return {"anyOf": [self.any(depth + 1) for _ in range(self.random.randint(1, 4))]}

    def one_of(self, depth):
        """A tagged union: the only kind that can be told apart while it is written."""
        tags = self.random.sample(["circle", "square", "line", "text"], 2)
        return {"oneOf": [{"type": "object", "required": ["type"], "additionalProperties": False,
                           "properties": {"type": {"const": tag}, "size": self.any(depth + 1)}}
                          for tag in tags]}

    def types(self, _):
        return {"type": self.random.sample(["string", "number", "integer", "boolean", "null"], 2)}

    def all_of(self, depth):
        name, other = self.random.sample(NAMES, 2)
        return {"allOf": [{"type": "object", "properties": {name: self.any(depth + 1)},
                           "required": [name]},
                          {"type": "object", "properties": {other: self.any(depth + 1)}}]}

    def reference(self, depth):
        name = f"d{len(self.definitions)}"
        self.definitions[name] = True  # reserve the name
        self.definitions[name] = self.any(depth + 1)
        return {"$ref": f"#/$defs/{name}"}

    def recursive(self):
        name = f"tree{len(self.definitions)}"
        kind = self.random.random()
        if kind < 0.5:
            self.definitions[name] = {
                "type": "object", "required": ["value"], "additionalProperties": False,
                "properties": {"value": self.any(3),
                               "children": {"type": "array",
                                            "items": {"$ref": f"#/$defs/{name}"}}}}
        else:
            self.definitions[name] = {
                "type": ["object", "null"], "required": ["next"],
                "properties": {"next": {"$ref": f"#/$defs/{name}"}, "value": self.any(3)}}
        return {"$ref": f"#/$defs/{name}"}


def make(seed):
    return Maker(seed).make()


def tool_set(seed):
    """1 to 12 tools, named and shaped as agents have them."""
    chooser = random.Random(seed * 7919 + 1)
    words = ["get", "set", "run", "search", "list", "weather", "file", "web", "email", "order",
             "user", "shell", "mcp__server", "v2", "Query", "delete"]
    tools = {}
    for i in range(chooser.randint(1, 12)):
        name = chooser.choice("_-").join(chooser.sample(words, chooser.randint(1, 3)))
        maker = Maker(seed * 100 + i)
        schema = maker.object(1)
        if maker.definitions:
            schema["$defs"] = maker.definitions
        function = {"name": name, "description": "does it"}
        if chooser.random() < 0.9:
            function["parameters"] = schema
        tools[name] = {"type": "function", "function": function}
    return list(tools.values())
