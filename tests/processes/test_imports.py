"""Each module of src can be the first that somebody imports."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
# As Python does it for `import a.b.c`: a, then a.b, then a.b.c, but each package once, with a process of its own for
# each of its modules. What others have written is there from the beginning.
PROGRAM = """
import gc, os
from pathlib import Path
import numpy, pydantic, typer, typing, yaml

# They do their work when they are loaded: nobody imports them.
PROGRAMS = ("__main__", "run_lab", "policy_runner")
# What is there before: for a kind's file of a layer the package of that layer, which it imports first of all; for the
# packages above all others one of those that cannot know them.
BEFORE = {"scenario": "scpslab.scenario", "metrics": "scpslab.analysis", "scpslab.cli": "scpslab.running"}

gc.disable()

def alone(module, then=lambda: None):
    if os.fork() == 0:
        try:
            __import__(BEFORE.get(module, module))
            __import__(module)
        except ImportError as error:
            # Mininet is where labs run.
            if error.name != "mininet":
                print(f"{module}: {error}", flush=True)
        then()
        os._exit(0)
    os.wait()

def below(folder, package):
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in ("kinds", "__pycache__"):
            alone(f"{package}.{path.name}", lambda: below(path, f"{package}.{path.name}"))
        elif path.suffix == ".py" and path.stem not in ("__init__", *PROGRAMS):
            alone(f"{package}.{path.stem}")

def kinds(layer):
    for path in sorted(Path("scpslab/kinds").glob(f"*/*/{layer}.py")):
        alone(".".join(path.with_suffix("").parts))

alone("scpslab", lambda: below(Path("scpslab"), "scpslab"))
alone("scpslab.running", lambda: below(Path("scpslab_course"), "scpslab_course"))
for layer in ("plan", "lab", "scenario", "metrics"):
    alone(BEFORE.get(layer, "scpslab"), lambda: kinds(layer))
"""


def test_every_module_can_be_imported_alone():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=SOURCE, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("", "")
