"""Run a command on a host of the cluster, in the place of ssh for launchers.

``agent.py FOLDER [-OPTION...] HOST COMMAND...``: as ssh does, the words are joined and given to a shell. With
``--exec`` before HOST they are executed as they are. Standard input, output and error, the environment and the folder
are the agent's. A host that has vanished answers nothing, and the agent waits, as ssh does; it ends with its
parent, and with the cluster.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path


def main() -> int:
    """Return the command's exit status."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    folder, words, exact = sys.argv[1], sys.argv[2:], False
    while words and words[0].startswith("-"):
        exact |= words.pop(0) == "--exec"
    if len(words) < 2:
        print("usage: agent.py FOLDER [-OPTION...] HOST COMMAND...", file=sys.stderr)
        return 2
    host, command = words[0], words[1:] if exact else ["/bin/sh", "-c", " ".join(words[1:])]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"{folder}/{host}.socket")
    except OSError as error:
        print(f"{host}: {error}", file=sys.stderr)
        return 255
    text = json.dumps({"words": command, "environment": dict(os.environ), "folder": str(Path.cwd())}) + "\n"
    data = text.encode()
    held = array.array("i", [0, 1, 2])
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, held)])
    if sent < len(data):  # else the command may have ended already
        connection.sendall(data[sent:])
    answer = b""
    while not answer.endswith(b"\n"):
        part = connection.recv(64)
        if not part:
            while Path(folder).exists():  # until the launcher ends this, or the whole cluster has gone
                time.sleep(0.2)
            return 255
        answer += part
    return int(answer)


if __name__ == "__main__":
    sys.exit(main())
