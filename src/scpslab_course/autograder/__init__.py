"""Autograders: archives for platforms that build a container of their own (build.py), and what it runs (__main__.py).

Names inside an archive and its container, by Gradescope's convention (its repository autograder_samples, January 2025).
"""

from pathlib import Path

# In the container: the archive is unpacked in SOURCE, the student's files are in SUBMISSION.
ROOT = Path("/autograder")
SOURCE, SUBMISSION, METADATA, RESULTS = "source", "submission", "submission_metadata.json", "results/results.json"
# In the archive.
SETUP, RUN = "setup.sh", "run_autograder"
WHEELS, REQUIREMENTS, PYTHONS = "wheels", "requirements.txt", "pythons"
COURSE, STUDENTS = "course", "students.csv"
