"""Types commands at the prompt of a lab and draws the session: docs/images/prompt.svg (`make prompt-picture`).

The lines are those of a real session in engine live, so round trips and rates differ a little each time. They light up
one after the other where a viewer plays CSS animations; anywhere else the picture stands still.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "prompt.svg"
PROMPT = "scpslab> "
COMMANDS = ("h1 ping -c 2 h2", "iperf h1 h2", "link hop forward ber 1e-5", "link", "iperf h1 h2", "exit")
# What ping and iperf say besides their answers.
LEFT_OUT = ("PING ", "--- ", "rtt min", "*** Iperf: ")
WIDTH, LINE, MARGIN, TOP = 720, 21, 18, 64
TYPED_S, PRINTED_S = 0.9, 0.25
STYLE = (
    "text{font:13.5px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#dfe3ee;white-space:pre}"
    ".typed{fill:#9fd8ff;font-weight:bold}.prompt{fill:#8f9ad6}.title{fill:#9aa3b8;font-size:12px}"
    "@keyframes show{from{opacity:.3}to{opacity:1}}.line{animation:show .2s both}"
    "@media(prefers-reduced-motion:reduce){.line{animation:none}}"
)


def session() -> list[str]:
    """The lines of a session, from its first prompt on."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(ROOT / "scpslab"), "shell", "point_to_point"],
            input="\n".join(COMMANDS) + "\n",
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    lines = done.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(PROMPT))
    return [line.rstrip() for line in lines[first:] if line.strip() and not line.startswith(LEFT_OUT)]


def drawn(lines: list[str]) -> Iterator[str]:
    """The picture's lines of SVG."""
    height = TOP + LINE * len(lines) + MARGIN // 2
    words = escape("A session at the prompt: " + "; ".join(COMMANDS), quote=False)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t">'
    yield f'<title id="t">{words}</title><style>{STYLE}</style>'
    yield f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#1f2433"/>'
    yield "".join(f'<circle cx="{22 + 20 * n}" cy="20" r="6" fill="#4a5270"/>' for n in range(3))
    yield f'<text x="{WIDTH // 2}" y="25" text-anchor="middle" class="title">scpslab shell point_to_point</text>'
    after_s = 0.0
    for number, line in enumerate(lines):
        typed = line.startswith(PROMPT)
        after_s += TYPED_S if typed else PRINTED_S
        text = escape(line, quote=False)
        if typed:
            words = escape(line.removeprefix(PROMPT), quote=False)
            text = f'<tspan class="prompt">{escape(PROMPT)}</tspan><tspan class="typed">{words}</tspan>'
        place = f'x="{MARGIN}" y="{TOP + LINE * number}"'
        yield f'<text {place} class="line" xml:space="preserve" style="animation-delay:{after_s:.2f}s">{text}</text>'
    yield "</svg>"


def main() -> None:
    """Draws the picture anew."""
    PICTURE.write_text("\n".join(drawn(session())) + "\n", encoding="utf-8")
    sys.stdout.write(f"{PICTURE}\n")


if __name__ == "__main__":
    main()
