"""What the lab hears of programs: their last line too, with or without a line feed."""

import subprocess

from scpslab.lab.loop import Loop


def test_the_last_line_counts_without_a_line_feed_and_comes_before_the_program_s_end():
    loop, heard = Loop(), []
    process = subprocess.Popen(["sh", "-c", r"printf 'one\ntwo'"], stdout=subprocess.PIPE)
    loop.on_lines(process.stdout, heard.append)
    loop.on_exit(process, heard.append)
    assert loop.run_until(lambda: 0 in heard, None)
    assert heard == ["one", "two", 0]
