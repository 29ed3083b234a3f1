"""Run the Dockerfile's first stage and the image's commands without a container engine.

The base image and its Python are not checked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def follow(folder: Path) -> None:
    """Run the Dockerfile's instructions, using `folder` in place of `/`."""
    here, stage = folder, 0
    environment = dict(os.environ)
    command: list[str] = []
    for line in (ROOT / "Dockerfile").read_text("utf-8").splitlines():
        instruction, _, rest = line.partition(" ")
        inside = rest.replace("/opt/", f"{folder}/opt/")
        if instruction == "FROM":
            stage += 1
        elif instruction == "WORKDIR" and stage == 1:
            here = folder / rest.lstrip("/")
            here.mkdir(parents=True)
        elif instruction == "ENV":
            values = dict(value.split("=", 1) for value in inside.split())
            values["PATH"] = values["PATH"].replace("$PATH", environment["PATH"])
            environment |= values
        elif instruction == "COPY" and stage == 1:
            *sources, target = rest.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, here / target, ignore=shutil.ignore_patterns("__pycache__", "_sync"))
                else:
                    shutil.copy(ROOT / source, here / target)
        elif instruction == "RUN" and stage == 1:
            subprocess.run(["sh", "-ec", inside], cwd=here, env=environment, check=True, stdout=subprocess.DEVNULL)
        elif instruction in ("ENTRYPOINT", "CMD"):
            command += json.loads(rest)
    program = shutil.which(command[0], path=environment["PATH"])
    if not program or not program.startswith(str(folder)):
        sys.exit(f"{command[0]} is not in the image")
    for words in ([*command[1:], "--help"], ["worker", "--help"], ["version"]):
        subprocess.run([program, *words], cwd="/", env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    follow(Path(sys.argv[1]).resolve())
