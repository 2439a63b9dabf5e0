"""The SCPS reference implementation as an image of a node, built from a copy of its source that the user has. Nothing of that source is part of this project.

The copy is compared with the known version, edited in a scratch folder, and compiled together with programs of this project (images/scps-ri/adapter).
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scpslab.errors import CapabilityError, UsageError
from scpslab.lab import docker
from scpslab.scratch import scratch
from scpslab.setup.images import PROJECT, cache_dir
from scpslab.setup.job import Job
from scpslab.version import version

RECIPE = "images/scps-ri"
VERSION = "1.1.146"
FOLDERS = ("FP", "apps", "include", "source")
# What stands for the known version: the hash of its C files (`source_hash`).
KNOWN_SOURCE = "ac0bb9edc37d4016a7c7fcce3f92d48ed12c8e39675f4d32cb9e9a34ffe434e1"
TERMS = (
    f"The SCPS reference implementation {VERSION} is not part of this project. A public mirror is the repository qiuchengxuan/SCPS_Project on GitHub. "
    "The notices in its files are its terms: the transport, network and security protocols and the gateway are (c) 1999 The MITRE Corporation, made for "
    "the U.S. Government, without a grant to pass them on and subject to U.S. export control; the file protocol is available for public use. "
    "Read them before you build. What is built stays on this machine: do not pass the image on."
)
# The library: those of its files that every program needs.
LIBRARY = (
    *("buffer", "compress", "create_rules_tap", "create_rules_tun", "errors", "get_local_internet_addr", "icmp", "ip", "ipv6", "ll_support", "new_compress"),
    *("nl_protocol", "other_proto_handler", "q", "rs_config", "rt_alloc", "scmp", "scps_globali", "scps_np", "scps_ri_console", "tap", "thread", "tp"),
    *("tp_checksum", "tp_handler", "tp_output", "tp_outseq", "tp_process", "tp_socket", "tp_sockopt", "tp_timers", "tp_utility", "tp_utility2"),
    *("udp_handler", "udp_output", "udp_socket", "udp_utility", "wheel_timers"),
)
# The file protocol in its largest build, without its files for options, defaults and dates: adapter/fp has those.
FILE_PROTOCOL = {
    "fp": ("sfp", "cmdca", "cmdcb", "cmdcc", "libc", "sortupdt", "rp", "edit", "autopa", "rx_avail", "crcst", "logc"),
    "fpd": ("server", "cmdsa", "cmdsb", "cmdsc", "libs", "rp", "edit", "rx_avail", "crcst"),
}
# As its own configuration sets them where nobody says otherwise. -DAmd64 tells it the order of octets, no more: the assembler is taken out.
SETTINGS = (
    *("-DAmd64", "-DLINUX", "-DNL_DEFAULT_IPV4", "-DSYS_MEMORY=10000000", "-DLL_BUFFER=51968", "-DSET_INITIAL_CWND=0", "-DASSUME_CORRUPT"),
    *("-DOPT_SCPS", "-DOPT_SCALE", "-DOPT_SNACK1", "-DOPT_BETS", "-DOPT_TSTMP", "-DOPT_COMPRESS", "-DOPT_NEW_COMPRESS", "-DOPT_RECORD_BOUNDARY"),
    *("-DCONGEST", "-DVJ_CONGEST", "-DCWND_INFLATE_THROTTLE", "-DINIT_CWND_INCR", "-DLINUX_STYLE_FIRST_DATA_RTO", "-DIP_ICMP"),
)
# What carries its packets: the datagrams of UDP, or IP with protocol numbers of their own.
DRIVERS = {"udp": "-DENCAP_UDP", "raw": "-DLL_RAWIP"}
# It was written for compilers that knew less of what C does not define, and keeps pointers in 32 bits: its programs lie below 2 GB.
FLAGS = ("-fcommon", "-fno-pie", "-fno-strict-aliasing", "-fwrapv", "-fno-aggressive-loop-optimizations", "-fno-delete-null-pointer-checks")
OLD, OURS = ("-std=gnu89", "-w", "-O1", *FLAGS), ("-std=gnu11", "-Wall", "-Wno-unused", "-O2", *FLAGS)
FP_SETTINGS = {"fp": ("-DLARGE",), "fpd": ("-DLARGE", "-DFP_SERVER")}
LINKING = ("-static", "-no-pie", "-Wl,--wrap=select,--wrap=sendmsg,--wrap=scps_read,--wrap=scps_write")


@dataclass(frozen=True)
class Edit:
    """One change of the copy: in a file, what a pattern finds exactly once becomes `text` (re.sub's)."""

    file: str
    pattern: str
    text: str


EDITS = (
    # The switch between threads is assembler for old stacks; adapter/threads.c has another.
    Edit("source/thread.c", r"^(?=void\s+threadHandoffCPU\s*\()", "#if 0\n"),
    Edit("source/thread.c", r"^(?=void\s+threadExit\s*\()", "#endif\n"),
    # Each of the client's files has a table of its own by this name.
    Edit("FP/libc.h", r"^extern struct cmd cmdtab\[\];", ""),
    # An accepted connection does not learn which network protocol it has, and then sends its SYN-ACK without a checksum.
    Edit("source/tp_handler.c", r"new_socket->np_rqts\.nl_protocol = (rqts->nl_protocol);", r"\g<0> new_socket->nl_protocol_id = \1;"),
)


def image_name() -> str:
    """The image's name in this machine's Docker."""
    return f"scpslab/scps-ri:{version()}"


def source_hash(source: Path) -> str:
    """What stands for the content of a source folder: its C files with their names."""
    whole = hashlib.sha256()
    for file in sorted(file for folder in FOLDERS for file in (source / folder).glob("*.[ch]")):
        whole.update(f"{file.parent.name}/{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def check_source(source: Path) -> None:
    """Refuses a folder that is not the source of the known version.

    Raises:
        UsageError: it is none; the message says where the source is published, and under which terms.
    """
    missing = [folder for folder in FOLDERS if not (source / folder).is_dir()]
    if missing:
        raise UsageError(f"{source}: found no folder {', '.join(missing)}; expected the source of the SCPS reference implementation {VERSION}.\n{TERMS}")
    found = source_hash(source)
    if found != KNOWN_SOURCE:
        raise UsageError(
            f"{source}: found C files with the hash {found}; expected {KNOWN_SOURCE}, which is version {VERSION} as the mirror has it. "
            f"Give an unchanged copy of it.\n{TERMS}"
        )


def prepare(source: Path, target: Path) -> None:
    """Copies the source's folders to `target`, and edits the copy.

    Raises:
        CapabilityError: a place that an edit changes is not there exactly once.
    """
    for folder in FOLDERS:
        shutil.copytree(source / folder, target / folder)
    for edit in EDITS:
        path = target / edit.file
        # The files' encoding is older than UTF-8; in this one every byte is a character.
        text, count = re.subn(edit.pattern, edit.text, path.read_text(encoding="latin-1"), flags=re.MULTILINE)
        if count != 1:
            raise CapabilityError(f"{edit.file}: found {count} places that {edit.pattern!r} matches; expected one. This is another version of the source.")
        path.write_text(text, encoding="latin-1")


def compile_programs(copy: Path, recipe: Path, programs: Path, job: Job) -> None:
    """Compiles a prepared copy and the adapter into the folder `programs`.

    There is a program of transfers for each driver; client and server of the file protocol for each driver and for the kernel's TCP.
    """
    adapter = recipe / "adapter"
    # No folder's name is in the programs: the same source gives the same image.
    places = (f"-I{copy / 'source'}", f"-I{copy / 'include'}", f"-I{adapter}", f"-ffile-prefix-map={copy}=.", f"-ffile-prefix-map={recipe}=.")
    version_file = copy / "source" / "version.c"
    version_file.write_text(f'char scps_version[] = "{VERSION}";\n')
    for driver, setting in DRIVERS.items():
        objects = copy / driver
        objects.mkdir()
        with job.step(f"compile for {driver}"):
            settings: tuple[str, ...] = (*SETTINGS, *places, setting)
            old = [str(copy / "source" / f"{name}.c") for name in LIBRARY]
            job.run(["gcc", "-c", *OLD, *settings, *old, str(version_file)], cwd=objects)
            for file in sorted(adapter.glob("*.c")):
                # By names of their own: the library has a file of the same name.
                job.run(["gcc", "-c", *OURS, *settings, str(file), "-o", f"adapter-{file.stem}.o"], cwd=objects)
            parts = sorted(path.name for path in objects.glob("*.o"))
            job.run(["gcc", *LINKING, "-o", str(programs / f"scps-ri-{driver}"), *parts, "-lm"], cwd=objects)
            library = [name for name in parts if name != "adapter-transfer.o"]
            _compile_file_protocol(copy, adapter, objects, (*settings, f"-I{copy / 'FP'}"), (*LINKING, *library, "-lm"), programs, driver, job)
    with job.step("compile for tcp"):
        objects = copy / "tcp"
        objects.mkdir()
        settings = ("-DLINUX", "-DNOTTP", *places, f"-I{copy / 'FP'}")
        job.run(["gcc", "-c", *OURS, *settings, str(adapter / "environment.c"), str(adapter / "fp/wait.c")], cwd=objects)
        _compile_file_protocol(copy, adapter, objects, settings, ("-static", "-no-pie", "environment.o", "wait.o"), programs, "tcp", job)


def _compile_file_protocol(
    copy: Path, adapter: Path, objects: Path, settings: tuple[str, ...], linking: tuple[str, ...], programs: Path, carrier: str, job: Job
) -> None:
    """Client and server of the file protocol over what `carrier` names."""
    for program, names in FILE_PROTOCOL.items():
        folder = objects / program
        folder.mkdir()
        words = (*settings, *FP_SETTINGS[program])
        job.run(["gcc", "-c", *OLD, "-include", str(adapter / "fp/names.h"), *words, *(str(copy / "FP" / f"{name}.c") for name in names)], cwd=folder)
        job.run(["gcc", "-c", *OURS, *words, str(adapter / "fp/fp.c"), "-o", "adapter-fp.o"], cwd=folder)
        parts = sorted(f"{program}/{path.name}" for path in folder.glob("*.o"))
        job.run(["gcc", "-o", str(programs / f"scps-ri-{program}-{carrier}"), *parts, *linking], cwd=objects)


def build(source: Path, say: Callable[[str], None]) -> str:
    """Builds the image, and returns its name.

    Raises:
        UsageError: the folder is not the source of the known version.
        CapabilityError: there is no Docker Engine, or no image to build upon, or a program of the build failed.
    """
    check_source(source)
    say(TERMS)
    base, name = f"scpslab/scps-host:{version()}", image_name()
    try:
        docker.ask("GET", f"/images/{base}/json")
    except docker.DockerError as error:
        raise CapabilityError(f"image {base}: found none ({error}); expected this machine's Docker to have it. Run: make docker-images.") from error
    with scratch() as folder:
        context, copy = folder / "context", folder / "copy"
        log = cache_dir() / "scps-ri.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        job = Job("image scps-ri", PROJECT / RECIPE, folder / "image", log, say)
        with job.step("prepare the source"):
            prepare(source, copy)
            shutil.copytree(job.recipe, context, ignore=shutil.ignore_patterns("adapter", "*.md"))
        compile_programs(copy, job.recipe, context, job)
        with job.step("docker build"):
            job.run(["docker", "build", "--tag", name, "--build-arg", f"BASE={base}", str(context)])
    return name
