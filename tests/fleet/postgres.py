# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL of a test's own, at a socket in a folder of its own."""
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import threading

from fleet import free_port
from serving import expect


def programs():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    expect(found, "PostgreSQL is missing: run ./dev setup")
    return found[-1]


class Postgres:
    """A database that can be restarted, also as a crash would. PostgreSQL does not run as root: then
    it runs as the user that Debian made for it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="hearth-pg-")
        self.port = free_port()
        self.user = {}
        if os.geteuid() == 0:
            postgres = pwd.getpwnam("postgres")
            os.chown(self.folder, postgres.pw_uid, postgres.pw_gid)
            self.user = {"user": postgres.pw_uid, "group": postgres.pw_gid, "extra_groups": []}
        self.data = f"{self.folder}/data"
        self.run("initdb", "-D", self.data, "-U", "hearth", "-A", "trust", "-E", "UTF8",
                 "--locale", "C", "--no-sync")
        self.start()

    def run(self, program, *arguments):
        subprocess.run([programs() / program, *arguments], check=True, cwd=self.folder, **self.user,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def start(self):
        options = (f"-c listen_addresses=127.0.0.1 -c port={self.port} -c fsync=on "
                   f"-c unix_socket_directories={self.folder} -c max_connections=40")
        self.run("pg_ctl", "-D", self.data, "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self, mode="immediate"):
        """`immediate` is what a crash leaves; the next start repairs."""
        self.run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    @property
    def url(self):
        return f"postgresql://hearth@127.0.0.1:{self.port}/postgres"

    def ask(self, sql):
        return subprocess.run(
            [programs() / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "hearth", "-Atc",
             sql, "postgres"], check=True, capture_output=True, text=True).stdout.strip()

    def close(self):
        self.stop()
        threading.Event().wait(0.1)
        shutil.rmtree(self.folder, ignore_errors=True)
