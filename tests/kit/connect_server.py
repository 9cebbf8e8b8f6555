"""A Spark Connect server of its own process, so that clients can start fast and die freely."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark

import runnel
from kit.uncompiled import uncompiled
from runnel.api import Lake
from runnel.lake.session import server_settings

# It is gone before code that Java's second compiler has made would pay.
_SHORT_LIVED = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class ConnectServer:
    """Runs while the `with` block does; `master` is what the server itself runs on."""

    def __init__(self, folder: Path, master: str = "local[2]") -> None:
        self.folder = folder
        self.port = _free_port()
        self.url = f"sc://localhost:{self.port}"
        self._master = master

    def __enter__(self) -> ConnectServer:
        home = Path(pyspark.__file__).parent
        conf = {
            **server_settings(self.folder, self._master),
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.memory": "2g",
            "spark.driver.extraJavaOptions": _SHORT_LIVED,
            **uncompiled(),
        }
        command = [str(home / "bin" / "spark-submit"), "--master", self._master]
        for name, value in conf.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        log = (self.folder / "server.log").open("w")
        self._process = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=log, stderr=log, env={**os.environ, "SPARK_HOME": str(home)},
        )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)

    def lake(self, folder: Path, **options: Any) -> Lake:
        """A lake of this process through the server."""
        return runnel.connect(folder, spark_conf={"spark.master": self.url}, **options)

    def _wait(self, seconds: float = 180) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError((self.folder / "server.log").read_text()[-3000:])
            with closing(socket.socket()) as probe:
                probe.settimeout(1)
                if probe.connect_ex(("localhost", self.port)) == 0:
                    return
            time.sleep(0.3)
        raise RuntimeError("the Connect server did not start")


def own_spark_environment(**more: str) -> dict[str, str]:
    """For a process that starts a Spark of its own, whatever PySpark has noted in this one's."""
    foreign = ("RUNNEL_", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    return {k: v for k, v in os.environ.items() if not k.startswith(foreign)} | more


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])
