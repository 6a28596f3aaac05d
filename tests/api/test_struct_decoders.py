"""A server decodes no struct that it imports after its threads have started."""

import subprocess
import sys
import textwrap

# Starts ``roost up``. After a line of input, it imports all modules that a server can need, and prints the structs that
# are newer than the decoders.
_SCRIPT = """
    import importlib
    import os
    import pkgutil
    import signal
    import sys
    import threading

    import roost.app.server_process as server_process
    from roost.cli import main
    from roost.model.struct_decoders import find_structs

    def import_all(prepared):
        sys.stdin.readline()
        for name in ("api", "conductor", "engine", "fleet", "model", "observe", "placement", "scheduler", "store"):
            package = importlib.import_module(f"roost.{name}")
            for module in pkgutil.walk_packages(package.__path__, f"roost.{name}."):
                if ".migrations." not in module.name:
                    importlib.import_module(module.name)
        for kind in find_structs():
            if kind not in prepared:
                print("late", kind.__module__, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    prepare, calls = server_process.prepare_decoders, []

    def count_calls():
        calls.append(prepare())
        if len(calls) == 2:
            threading.Thread(target=import_all, args=(set(find_structs()),), daemon=True).start()

    server_process.prepare_decoders = count_calls
    sys.argv = ["roost", "up", "--data", sys.argv[1], "--listen", "127.0.0.1:0"]
    try:
        main()
    finally:
        print("prepared", len(calls), all(calls), flush=True)
"""
# Backups are another command, and answers are documents of commands.
_OF_COMMANDS = {"late roost.store.backup_file", "late roost.model.documents.answer"}


def test_server_imports_all_structs_before_its_threads_decode_any(tmp_path):
    words = [sys.executable, "-c", textwrap.dedent(_SCRIPT), tmp_path]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        first = process.stdout.readline()
        output, errors = process.communicate("\n", timeout=120)
    assert first.startswith("listening on "), errors
    lines = output.splitlines()
    assert lines[-1] == "prepared 2 True", errors
    assert {line for line in lines if line.startswith("late")} == _OF_COMMANDS
