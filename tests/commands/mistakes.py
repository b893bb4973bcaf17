# SPDX-License-Identifier: Apache-2.0
"""The usual mistakes of a newcomer, as tables: what is done, and which words of the answer say what
was wrong and what to do next. mistakes_test.py makes them all with the real program."""
import dataclasses


@dataclasses.dataclass
class Typed:
    """A command line. {folder} holds the files of mistakes_test.py, {model} is a good one, {port} a
    port that somebody has. `code`: 2 for a line that cannot be understood, 1 for work that failed."""

    what: str
    words: str
    said: list
    code: int = 1
    stdin: str = ""
    as_nobody: bool = False
    memory: int = 0  # bytes of address space that it may have; 0: as many as it likes
    varies: bool = False  # numbers of this machine are in the message: the page leaves them out


@dataclasses.dataclass
class Sent:
    """A request to a server. `at` names one of the servers of mistakes_test.py."""

    what: str
    path: str
    body: object
    status: int
    said: list
    at: str = "open"
    method: str = "POST"
    headers: dict = dataclasses.field(default_factory=dict)
    varies: bool = False


SERVE = "serve --model {model} --port 0 "

STARTING = [
    Typed("no command", "", ["a command is missing", "hearth run MODEL", "--help"], 2),
    Typed("a mistyped command", "srve --model {model}",
          ['unknown command "srve"; did you mean "serve"?', "--help"], 2),
    Typed("a mistyped flag", "serve --modle {model}",
          ['unknown flag "--modle"; did you mean "--model"?', "--help"], 2),
    Typed("a flag without its value", "serve --model", ["--model: its value is missing", "--help"], 2),
    Typed("no model, and none on this machine", "serve --port 0", ["`hearth pull smollm2`"]),
    Typed("a command without its argument", "inspect", ["MODEL is missing", "--help"], 2),
    Typed("a port that is no number", "serve --model {model} --port http",
          ["--port", "from 0 to 65535", '"http"'], 2),
    Typed("a port that is too large", "serve --model {model} --port 99999",
          ["--port", "from 0 to 65535"], 2),
    Typed("a setting out of its range", SERVE + "--context 5", ["--context", "from 16"], 2),
    Typed("no threads", SERVE + "--threads 0", ["--threads", "from 1 to 1024"], 2),
    Typed("a word that is none of the choices", SERVE + "--neutralise some",
          ["--neutralise", "expected one of all,headers,none"], 2),
    Typed("a size that is none", SERVE + "--kv-memory lots", ["--kv-memory", 'expected a size such as 512MiB or 4GiB, found "lots"'], 2),
    Typed("a size without a number", SERVE + "--kv-memory GiB",
          ["--kv-memory", "expected a size such as 512MiB or 4GiB"], 2),
    Typed("a date that is none", SERVE + "--date tomorrow", ["expected a date like 2026-01-31"], 2),
    Typed("a date that is none, in a chat", "run --model {model} --date 2026-13-01 --prompt hi",
          ['expected a date like 2026-01-31, found "2026-13-01"'], 2),
    Typed("a temperature that is no number", "run --model {model} --temperature hot --prompt hi",
          ["--temperature", "from 0 to 10"], 2),
    Typed("a machine without its memory", "plan {model} --machine 8cores",
          ["the memory is missing", "8ch DDR5-4800"]),
    Typed("a machine in other words", "plan {model} --machine fast", ['"fast" is not understood', "2x8 cores"]),
    Typed("a trace collector without http", SERVE + "--trace-endpoint 127.0.0.1:4318",
          ["--trace-endpoint", "http://127.0.0.1:4318"]),
    Typed("two flags that exclude each other", "bench --model {model} --phases --roofline",
          ["--phases", "--roofline"], 2),
]

MODELS = [
    Typed("a path that does not exist", "serve --model {folder}/none.gguf",
          ["none.gguf: no such file", "has: ", "half.gguf"]),
    Typed("a mistyped name", "serve smolm2-135m --port 0", ["did you mean smollm2-135m?"]),
    Typed("a model that is not downloaded", "serve smollm2-135m --port 0",
          ["hearth pull smollm2-135m"]),
    Typed("a name that nobody knows", "run nothing-like-it --prompt hi", ["hearth list --all"]),
    Typed("removing what is not there", "rm smollm2-135m", ["smollm2-135m"]),
    Typed("a text file", "serve --model {folder}/notes.txt",
          ["notes.txt", "expected a GGUF file", 'starts with "Dear"']),
    Typed("a web page in place of the download", "serve --model {folder}/page.gguf",
          ["this is a web page: download the file itself"]),
    Typed("a Git LFS pointer", "serve --model {folder}/pointer.gguf",
          ["a Git LFS pointer, not the file itself: run `git lfs pull`"]),
    Typed("a PyTorch file", "serve --model {folder}/torch.bin", ["convert it to GGUF"]),
    Typed("an empty file", "serve --model {folder}/empty.gguf",
          ["the file is empty; download it again"]),
    Typed("a directory without a model", "serve --model {folder}/nothing",
          ["this folder has no model: expected a GGUF file"]),
    Typed("a directory of GGUF files", "serve --model {folder}/ggufs",
          ["model.gguf", "other.gguf"]),
    Typed("a Hugging Face directory without config.json", "serve --model {folder}/bare",
          ["config.json: cannot open", "download the model's config.json"]),
    Typed("a download that broke off", "serve --model {folder}/half.gguf",
          ["is the download complete?"]),
    Typed("a download that broke off early", "inspect {folder}/head.gguf", ["head.gguf", "left; is the file complete?"]),
    Typed("a device", "inspect /dev/null", ["/dev/null: not a regular file"]),
    Typed("a file that may not be read", "inspect {folder}/secret.gguf",
          ["Permission denied; change its mode or owner"], as_nobody=True),
    Typed("an architecture that is not supported", "inspect {folder}/bert.gguf",
          ['architecture "bert" is not supported', "supported: "]),
    Typed("a model without a tokenizer", "serve --model {folder}/tiny.gguf --port 0",
          ["the file has no tokenizer"]),
    Typed("packing what is packed", "pack {folder}/small.packed {folder}/again.packed",
          ["already a packed file: use it as it is"]),
    Typed("more context than the model has", SERVE + "--context 1000000",
          ["--context 1000000 is more than the model's maximum of 8192 tokens"]),
    Typed("more memory for the KV cache than there is", SERVE + "--kv-memory 900TiB",
          ["not enough memory for a KV cache", "lower --kv-memory"], varies=True),
    Typed("less memory for the KV cache than a request needs", SERVE + "--kv-memory 1MiB",
          ["cannot hold one sequence", "raise --kv-memory"]),
    Typed("less address space than the file needs (ulimit -v)", "inspect {model}",
          ["cannot map: Cannot allocate memory; raise the limit on address space (ulimit -v)"],
          memory=120 << 20),
    Typed("less address space than a server needs (ulimit -v)", SERVE,
          ["not enough memory for a server: ", " are usable, and beside its models it needs ",
           "raise the limit of the process or its cgroup, or lower --request-memory"], memory=180 << 20),
    Typed("a device that does not exist", SERVE + "--device gpu",
          ['--device: expected cpu, auto or cuda:0, cuda:1 ..., found "gpu"'], 2),
    Typed("a GPU and the confinement", SERVE + "--device cuda:0",
          ["needs --confine off"]),
    Typed("an instruction set that does not exist", SERVE + "--isa neon",
          ['--isa "neon": expected scalar, avx2, avxvnni, avx512vnni, avx512 or amx']),
]

SERVING = [
    Typed("a port that another program has", "serve --model {model} --port {port}",
          ["Address already in use; stop the program that has this port"]),
    Typed("the same for the control port", SERVE + "--control-port {port}",
          ["Address already in use; stop the program that has this port"]),
    Typed("a name in place of an address", SERVE + "--host example --keys {folder}/keys.json",
          ['"example" is not a valid address; expected one like 127.0.0.1']),
    Typed("an address of another machine", SERVE + "--host 192.0.2.1 --keys {folder}/keys.json",
          ["this machine does not have this address"]),
    Typed("open to the network without keys", SERVE + "--host 0.0.0.0",
          ["make keys with `hearth key`", "or listen on 127.0.0.1"]),
    Typed("a keys file that does not exist", SERVE + "--keys {folder}/no.json",
          ["No such file or directory; make it with `hearth key ID --keys"]),
    Typed("a keys file that is no JSON", SERVE + "--keys {folder}/notes.txt",
          ["notes.txt: JSON near byte 0", "that `hearth key ID --keys FILE` made"]),
    Typed("a keys file without keys", SERVE + "--keys {folder}/nokeys.json",
          ["contains no keys; add one with `hearth key ID --keys FILE`"]),
    Typed("a TLS key without its certificate", SERVE + "--tls-key {folder}/key.pem",
          ["--tls-certificate and --tls-key go together"]),
    Typed("a certificate that does not exist",
          SERVE + "--tls-certificate {folder}/no.pem --tls-key {folder}/key.pem",
          ["TLS certificate", "no.pem", "No such file", "in a PEM file"]),
    Typed("a certificate that is none",
          SERVE + "--tls-certificate {folder}/notes.txt --tls-key {folder}/key.pem",
          ["TLS certificate", "notes.txt", "expected a chain of certificates in a PEM file"]),
    Typed("a key of another certificate",
          SERVE + "--tls-certificate {folder}/certificate.pem --tls-key {folder}/other.pem",
          ["TLS key", "other.pem", "expected the certificate's private key"]),
    Typed("a log below a file", SERVE + "--log {folder}/notes.txt/log.json",
          ["notes.txt/log.json"]),
    Typed("stored responses in a folder that does not exist",
          SERVE + "--responses {folder}/gone/r.db", ["gone/r.db", "cannot open"]),
    Typed("a socket where a file is", SERVE + "--unix {folder}/notes.txt",
          ["notes.txt", "a file is there: choose another path"]),
    Typed("a socket with too long a path", SERVE + "--unix {folder}/" + "s" * 120,
          ["the limit is 100"], varies=True),
]

COMMANDS = [
    Typed("reasoning effort for a model that has none",
          "run --model {model} --reasoning-effort high --prompt hi",
          ["leave out --reasoning-effort"]),
    Typed("quantizing onto the model itself", "quantize {model} {model} --to int8",
          ["is the model itself: give the result another name"]),
    Typed("quantizing to a format that does not exist", "quantize {model} {folder}/small.gguf --to int3",
          ["--to", "expected one of keep, int8, int4"]),
    Typed("packing into a directory", "pack {model} {folder}",
          ["is a directory: expected the name of a file"]),
    Typed("packing into a folder that does not exist", "pack {model} {folder}/gone/x.packed",
          ["cannot create", "make the folder first"]),
    Typed("no tokenizer named", "tokenize", ["--model", "--tokenizer"], 2),
    Typed("plain text for tokenize", "tokenize --model {model}", ['line 1: expected a JSON string such as "hello"'],
          stdin="hello\n"),
    Typed("text for tokenize --decode", "tokenize --model {model} --decode",
          ["line 1: expected a JSON array of token ids"], stdin='"hello"\n'),
    Typed("a token id that the model does not have", "tokenize --model {model} --decode",
          ["below 49152"], stdin="[99999999]\n"),
    Typed("a conversation without messages", "render --model {model}", ["line 1: ", "messages"],
          stdin="{}\n"),
    Typed("a text file that does not exist", "eval perplexity --model {model} --text {folder}/gone",
          ["cannot open: No such file"]),
    Typed("an empty text", "eval perplexity --model {model} --text {folder}/empty.gguf",
          ["the text is too short"]),
    Typed("an output without its ending",
          "eval logits --model {model} --tokens {folder}/empty.gguf --out {folder}/x",
          ["expected a name that ends in .f32 or .f64"]),
    Typed("a benchmark of nothing", "bench --model {model} --decode 0 --prefill 0",
          ["nothing to measure"]),
    Typed("load on nothing", "bench load", ["expected --model or --url"]),
    Typed("load on a URL without http", "bench load --url 127.0.0.1:8080",
          ["expected a URL that starts with http://"]),
    Typed("a cache that is not there", "cache info {folder}/gone", ["gone: no such directory"]),
    Typed("a directory that is no cache", "cache clear {folder}", ["is not a cache of Hearth"]),
    Typed("top without a server", "top --once --url http://127.0.0.1:1",
          ["is `hearth serve` running there?"]),
    Typed("top with a URL without http", "top --once --url 127.0.0.1:8080",
          ["expected a URL that starts with http://"]),
    Typed("a key file that does not exist", "top --once --key-file {folder}/gone",
          ["gone: cannot open"]),
    Typed("a key whose name is taken", "key ada --keys {folder}/keys.json", ["ada is taken; choose another one"]),
    Typed("keys in a file that is none", "key bob --keys {folder}/notes.txt",
          ["notes.txt", "that `hearth key ID --keys FILE` made"]),
]

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]


def chat(**more):
    return {"messages": HI, "max_tokens": 4, **more}


REQUESTS = [
    Sent("a path without /v1", "/chat/completions", chat(), 404, ["did you mean /v1/chat/"]),
    Sent("a mistyped path", "/v1/chat/completion", chat(), 404,
         ["did you mean /v1/chat/completions?"]),
    Sent("a path that other servers have", "/v1/images/generations", {}, 501, ["not implemented"]),
    Sent("GET in place of POST", CHAT, None, 405, ["this path accepts POST"], method="GET"),
    Sent("no body", CHAT, b"", 400, ["the request body is empty; expected a JSON object"]),
    Sent("a body that is no JSON", CHAT, b"hello", 400, ["JSON near byte"]),
    Sent("single quotes, as some shells leave them", CHAT, b"{'messages': []}", 400,
         ["JSON near byte"]),
    Sent("a comma too many", CHAT, b'{"messages": [],}', 400, ["JSON near byte"]),
    Sent("a body that breaks off", CHAT, b'{"messages": [', 400, ["JSON near byte"]),
    Sent("a list in place of an object", CHAT, [], 400, ["the body must be a JSON object"]),
    Sent("the same field twice", CHAT, b'{"n": 1, "n": 2}', 400, ['"n" appears twice']),
    Sent("a body of 5 MiB", CHAT, b'"' + b"x" * (5 << 20) + b'"', 413, ["longer than the"]),
    Sent("no messages", CHAT, {}, 400, ["messages"]),
    Sent("an empty list of messages", CHAT, {"messages": []}, 400, ["messages"]),
    Sent("messages that are a string", CHAT, {"messages": "hi"}, 400,
         ["messages: must be of type array"]),
    Sent("a message without a role", CHAT, {"messages": [{"content": "hi"}]}, 400,
         ["messages[0].role"]),
    Sent("a role that does not exist", CHAT, {"messages": [{"role": "bot", "content": "hi"}]}, 400,
         ["messages[0].role", '"user"']),
    Sent("an image", CHAT, {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:"}}]}]}, 400,
        ['only "text" parts are supported']),
    Sent("another model's name", CHAT, chat(model="gpt-4o"), 404,
         ['"gpt-4o" not found', "available: smollm2"]),
    Sent("a mistyped field", CHAT, chat(max_token=4), 400,
         ['Unknown field "max_token"', 'did you mean "max_tokens"?']),
    Sent("a number as a string", CHAT, chat(temperature="0.7"), 400,
         ["temperature: must be of type number"]),
    Sent("a temperature that is too high", CHAT, chat(temperature=9), 400,
         ["temperature: its value must be between 0 and 2, found 9"]),
    Sent("a stream that is a word", CHAT, chat(stream="yes"), 400,
         ["stream: must be of type boolean"]),
    Sent("a hundred choices", CHAT, chat(n=100), 400, ["n: its value must be between 1 and 16"]),
    Sent("a prompt that is too long", CHAT, {"messages": [
        {"role": "user", "content": "long " * 20000}]}, 400,
        ["maximum context length is 8192 tokens", "Shorten the messages"]),
    Sent("a reply that is too long", CHAT, chat(max_tokens=100000), 400,
         ["maximum context length is 8192 tokens", "ask for fewer tokens"]),
    Sent("functions of before tools", CHAT, chat(functions=[]), 400,
         ["functions: not supported: use tools instead"]),
    Sent("a call that is required, of no tools", CHAT, chat(tool_choice="required"), 400,
         ["tool_choice: a call is required, but there are no tools"]),
    Sent("a format that does not exist", CHAT, chat(response_format={"type": "yaml"}), 400,
         ["must be text, json_object or json_schema"]),
    Sent("a schema that is a number", CHAT, chat(response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": 5}}), 400,
        ["must be a JSON schema, which is an object"]),
    Sent("log-probabilities of nothing", CHAT, chat(top_logprobs=3), 400, ["logprobs"]),
    Sent("completions without a prompt", "/v1/completions", {"max_tokens": 4}, 400,
         ["prompt"]),
    Sent("embeddings of nothing", "/v1/embeddings", {}, 400, ["input"]),
    Sent("a response that is not stored", "/v1/responses", {
        "input": "hi", "previous_response_id": "resp_0"}, 404, ["resp_0"]),
    Sent("messages without max_tokens", "/v1/messages", {"messages": HI}, 400, ["max_tokens"]),
    Sent("a role that Anthropic's API does not have", "/v1/messages", {"max_tokens": 4, "messages": [
        {"role": "bot", "content": "hi"}]}, 400, ["role", "user"]),
    Sent("a web page of another site", CHAT, chat(), 403, ["see --allow-origin"],
         headers={"origin": "http://example.com"}),
    Sent("another host's name", CHAT, chat(), 403, ["see --host-name"],
         headers={"host": "hearth.example.com"}),
    Sent("a form in place of JSON, from a browser", CHAT, b"messages=hi", 415,
         ["content-type must be application/json"],
         headers={"content-type": "application/x-www-form-urlencoded", "cookie": "a=b"}),
    Sent("no key", CHAT, chat(), 401, ["an API key is required", "Authorization: Bearer KEY"],
         at="keyed"),
    Sent("a wrong key", CHAT, chat(), 401, ["invalid API key", "`hearth key`"], at="keyed",
         headers={"authorization": "Bearer hearth-wrong"}),
    Sent("a key without the word Bearer", CHAT, chat(), 401, ["Authorization: Bearer KEY"],
         at="keyed", headers={"authorization": "{key}"}),
    Sent("a user's key for the admin's page", "/metrics", None, 403,
         ["an admin key is required: make one with `hearth key ID --admin`"], at="keyed",
         method="GET", headers={"authorization": "Bearer {key}"}),
    Sent("the second request of a key that has one a minute", CHAT, chat(), 429,
         ["this key may use 1 requests per minute", "try again in"], at="keyed",
         headers={"authorization": "Bearer {limited}"}, varies=True),
    Sent("http to a port that speaks https", CHAT, chat(), 400, ["use https://"], at="tls"),
]
