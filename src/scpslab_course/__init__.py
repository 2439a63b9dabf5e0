"""Courses beside the laboratory: assignments and variants (course/), grades (grading/), an autograder (autograder/),
and their commands (cli/).
"""
