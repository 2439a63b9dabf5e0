"""Grading: submissions, and grades that come from running them again (decisions 0703, 0704).

grader.grade(paths, settings)       the grades of a class, as values (grade.py)
formats.FORMATS                     the forms in which platforms take them

submission.pack(workspace)          the file that a student hands in
submission.read(path)               what is in such a file; safe for files of strangers
course.variant.verify(content, key) the variant in it, if the course has signed it
compare.runs_of(assignment, variant) the plans of its runs, from the instructor's files alone
course.answers                      what is right for a variant, and how much of an answer is right
"""
