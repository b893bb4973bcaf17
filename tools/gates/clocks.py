# SPDX-License-Identifier: Apache-2.0
"""The clock on the wall jumps: people and the network set it. What is kept, ended or deleted goes by a
steady clock or by base/age_clock.h; the date is read in these files alone, each for a reason."""
import re

import tree

# Why a date is right there.
MAY = {
    "src/base/clocks.h": "the door",
    "src/base/clocks.cc": "the door",
    "src/batch/batch_runner.h": "handed to the store's age; dates of jobs for showing",
    "src/server/turns/response_store.h": "handed to the store's age",
    "src/batch/postgres_store.cc": "the database's date, handed to the store's age",
    "src/batch/postgres_store_jobs.cc": "claims, by the database's clock: one that jumps ends or keeps a claim, "
                                        "and a line is answered once all the same",
    "src/tiers/age_file.h": "handed to the directory's age",
    "src/tiers/age_file.cc": "times of files, which are ages there",
    "src/tiers/cache_directory.h": "handed to the directory's age",
    "src/tiers/journal_files.h": "handed to the directory's age",
    "src/app/today.cc": "the date in names and headings",
    "src/app/doctor_tls.cc": "whether a certificate is valid today, as clients will find",
    "src/app/model_digest.cc": "whether a file changed: equal or not",
    "src/app/model_facts.cc": "the date of a file, for showing",
    "src/events/zmq_publisher.cc": "the time in an event, for showing",
    "src/hub/retry.cc": "Retry-After as a date; bounded",
    "src/server/dialects/ollama/ollama_writer.cc": "the date of a reply",
    "src/server/dialects/ollama/ollama_models.cc": "when a model will leave, for showing",
    "src/server/observe/log.cc": "the date of a line",
    "src/server/observe/metrics.cc": "the date of the start",
    "src/server/turns/reply_journal.cc": "records in memory, kept for an hour: still by the date (issue 33)",
    "src/server/turns/turn_resume.cc": "the date of a reply; the same records",
    "src/store/discovery.cc": "which of several snapshots is newest, by their dates alone",
    "src/supervise/supervisor.cc": "the date of a worker's end, for showing",
    "src/trace/tracer.cc": "the dates of spans",
}

READ = re.compile(
    r"\b(?:system_clock::now|utc_clock::now|file_clock::now|file_time_type::clock::now|CLOCK_REALTIME\w*"
    r"|gettimeofday|timespec_get|WallSeconds|ReadClocks|st_mtime?|last_write_time"
    r"|(?:std::)?time\(\s*(?:nullptr|NULL|0|&))")
# In the text of a statement.
SQL = re.compile(r'"[^"]*(?<![\w:.>])(now\(\)|clock_timestamp|current_timestamp|datetime\(|julianday|unixepoch)', re.IGNORECASE)


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path in tree.cpp_files(root, ("src",)):
        if path.stem.endswith(("_test", "_bench")):
            continue
        count += 1
        if str(path) in MAY:
            continue
        text = tree.read(root, path)
        for number, line in enumerate(tree.code_only(text).splitlines(), 1):
            for match in READ.finditer(line):
                bad.append(f"{path}:{number}: {match.group(0)} is the clock on the wall, which jumps: use a steady "
                           "one, or base/age_clock.h (tools/gates/clocks.py lists who may)")
        for number, line in enumerate(text.splitlines(), 1):
            for match in SQL.finditer(line):
                bad.append(f"{path}:{number}: {match.group(1)} is the database's clock on the wall, which jumps")
    tree.report(bad, f"{count} files, {len(MAY)} of which read the clock on the wall")


if __name__ == "__main__":
    main()
