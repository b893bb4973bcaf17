# SPDX-License-Identifier: Apache-2.0
"""Files and batches through the real OpenAI SDK: every line has exactly one result, equal to what the
synchronous API answers, also when the server is killed again and again in the middle."""
import argparse
import io
import json
import pathlib
import signal
import subprocess
import tempfile
import threading

import openai

from serving import Server, children, expect, new_key, same, serving, work_model

CHAT = "/v1/chat/completions"


def line(number, **members):
    body = {"model": "any", "messages": [{"role": "user", "content": f"line {number}"}],
            "max_tokens": 8, "temperature": 0, **members}
    return {"custom_id": f"id-{number}", "method": "POST", "url": CHAT, "body": body}


def as_file(lines, name="in.jsonl"):
    return name, io.BytesIO("".join(json.dumps(each) + "\n" for each in lines).encode())


def client_of(server, key="none"):
    return openai.OpenAI(base_url=server.address + "/v1", api_key=key, max_retries=0, timeout=120)


def begin(client, lines, **members):
    file = client.files.create(file=as_file(lines), purpose="batch")
    return client.batches.create(**{"input_file_id": file.id, "endpoint": CHAT,
                                    "completion_window": "24h", **members})


def wait_for(client, batch, *statuses):
    pause = threading.Event()
    while (now := client.batches.retrieve(batch.id)).status not in statuses:
        expect(now.status not in ("completed", "failed", "expired", "cancelled"), f"{now}")
        pause.wait(0.05)
    return now


def results(client, file_id):
    """By custom_id; none twice."""
    found = {}
    for text in client.files.content(file_id).text.splitlines():
        each = json.loads(text)
        expect(each["custom_id"] not in found, f"{each['custom_id']} once")
        found[each["custom_id"]] = each
    return found


def check_result(client, lines, got):
    """The results are those of the synchronous API."""
    same(set(got), {each["custom_id"] for each in lines}, "a result for every line")
    for each in lines:
        result = got[each["custom_id"]]
        same((result["error"], result["response"]["status_code"]), (None, 200), "a good answer")
        body = result["response"]["body"]
        now = client.chat.completions.create(**each["body"]).model_dump()
        same(body["choices"][0]["message"]["content"], now["choices"][0]["message"]["content"],
             f"{each['custom_id']}, as it is answered at once")
        same(body["usage"]["completion_tokens"], now["usage"]["completion_tokens"], "its length")


def check_whole(client):
    lines = [line(i) for i in range(20)] + [line(20, max_tokens=-3)]
    file = client.files.create(file=as_file(lines, "my lines.jsonl"), purpose="batch")
    same((file.filename, file.purpose, file.object), ("my lines.jsonl", "batch", "file"), "the file")
    batch = client.batches.create(input_file_id=file.id, endpoint=CHAT, completion_window="24h",
                                  metadata={"what": "test"})
    same((batch.object, batch.metadata["what"]), ("batch", "test"), "the batch")
    done = wait_for(client, batch, "completed")
    same((done.request_counts.total, done.request_counts.completed, done.request_counts.failed),
         (21, 20, 1), "the counts")
    check_result(client, lines[:20], results(client, done.output_file_id))
    failed = results(client, done.error_file_id)
    same(failed["id-20"]["response"]["status_code"], 400, "its own error")
    expect("max_tokens" in json.dumps(failed["id-20"]), "which names the field")
    listed = [each.id for each in client.batches.list(limit=1)]
    expect(batch.id in listed, "among the batches")
    same([each.id for each in client.files.list(purpose="batch")], [file.id], "among the files")
    same(client.files.content(file.id).content, as_file(lines)[1].read(), "the input as it came")
    same(client.files.delete(done.output_file_id).deleted, True, "deleted")
    for gone in (client.files.retrieve, client.files.content):
        try:
            gone(done.output_file_id)
            expect(False, "an error")
        except openai.NotFoundError:
            pass


def check_mistakes(client):
    batch = wait_for(client, begin(client, [line(1), line(1)]), "failed")
    same((batch.errors.data[0].code, batch.errors.data[0].line), ("duplicate_custom_id", 2),
         "what is wrong")
    for wrong in ({"endpoint": "/v1/responses"}, {"completion_window": "soon"},
                  {"input_file_id": "file-none"}):
        try:
            begin(client, [line(1)], **wrong)
            expect(False, f"{wrong} refused")
        except openai.BadRequestError as error:
            same(error.param, next(iter(wrong)), "the field")
    for purpose, content in (("assistants", b"{}\n"), ("batch", None)):
        try:
            client.files.create(file=("x", content or b""), purpose=purpose)
            expect(purpose == "batch", "another purpose refused")
        except openai.BadRequestError as error:
            same(error.param, "purpose", "the field")


def check_cancel(client):
    batch = begin(client, [line(i, max_tokens=2000, ignore_eos=True) for i in range(30)])
    wait_for(client, batch, "in_progress")
    expect(client.batches.cancel(batch.id).status in ("cancelling", "cancelled"), "it ends")
    done = wait_for(client, batch, "cancelled")
    expect(done.request_counts.completed < 30, f"before it was done: {done.request_counts}")


def check_beside(client):
    """A long batch does not keep a chat waiting for its lines."""
    batch = begin(client, [line(i, max_tokens=1500, ignore_eos=True) for i in range(8)])
    wait_for(client, batch, "in_progress")
    for _ in range(3):
        client.chat.completions.create(**line(0)["body"])
    counts = client.batches.retrieve(batch.id).request_counts
    expect(counts.completed < 8, f"answered before the batch was done: {counts}")
    client.batches.cancel(batch.id)


def kill(server):
    for pid in [server.process.pid, *children(server.process.pid)]:
        subprocess.run(["kill", f"-{int(signal.SIGKILL)}", str(pid)], check=False,
                       stderr=subprocess.DEVNULL)
    server.process.wait()
    server.process.stderr.close()


def check_kills(program, model, flags, count, kills):
    """kill -9 of everything whenever another part of the job is done."""
    lines = [line(i) for i in range(count)]
    server = Server(program, model, *flags)
    client = client_of(server)
    batch = begin(client, lines)
    for number in range(1, kills + 1):
        pause = threading.Event()
        while client.batches.retrieve(batch.id).request_counts.completed < number * count / (kills + 1):
            pause.wait(0.01)
        kill(server)
        server = Server(program, model, *flags)
        client = client_of(server)
    done = wait_for(client, batch, "completed")
    same((done.request_counts.total, done.request_counts.completed), (count, count), "all lines")
    check_result(client, lines[:: max(1, count // 50)],
                 {name: each for name, each in results(client, done.output_file_id).items()
                  if int(name[3:]) % max(1, count // 50) == 0})
    same(len(results(client, done.output_file_id)), count, "one result per line")
    same(server.stop()[0], 0, "the exit code")
    print(f"{count} lines over {kills} kills: each answered exactly once")


def check_tenants(program, model, folder):
    (one, first), (two, second) = new_key(program, "one"), new_key(program, "two")
    keys = pathlib.Path(folder, "keys.json")
    keys.write_text(json.dumps({"keys": [first, second]}), encoding="utf-8")
    with serving(program, model, "--batches", f"{folder}/tenants.db", "--keys", str(keys)) as server:
        batch = begin(client_of(server, one), [line(1)])
        wait_for(client_of(server, one), batch, "completed")
        other = client_of(server, two)
        same(list(other.batches.list()) + list(other.files.list()), [], "nothing of another's")
        for ask, name in ((other.batches.retrieve, batch.id), (other.batches.cancel, batch.id),
                          (other.files.content, batch.input_file_id)):
            try:
                ask(name)
                expect(False, "an error")
            except openai.NotFoundError:
                pass


def check_sizes(client, server):
    """Uploads have a bound of their own, and other bodies keep theirs."""
    padding = "x" * 1000
    lines = [line(i, user=padding) for i in range(6000)]  # beyond the 4 MiB of other bodies
    file = client.files.create(file=as_file(lines), purpose="batch")
    expect(file.bytes > 5 << 20, f"{file.bytes} bytes")
    status, _, _ = server.request("POST", CHAT, b"x" * (5 << 20))
    same(status, 413, "a body of another route")
    status, _, _ = server.request("POST", "/v1/files", b"", {"content-length": str(1 << 30)})
    same(status, 413, "a file beyond all bounds")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    model = work_model("tiny-chatml.gguf")
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--batches", f"{folder}/batches.db", "--served-name", "*", "--threads", "1")
        with serving(options.program, model, *flags) as server:
            client = client_of(server)
            check_whole(client)
            check_mistakes(client)
            check_cancel(client)
            check_beside(client)
            check_sizes(client, server)
        check_kills(options.program, model, flags, options.lines, options.kills)
        check_tenants(options.program, model, folder)
    with serving(options.program, model) as server:
        same(server.request("GET", "/v1/batches")[0], 501, "not set up")
    print("batches are answered")


if __name__ == "__main__":
    main()
