"""Courses: assignments, a variant for every student, and the student's folder.

Order of reading: formulas.py, model.py (the forms of the two files), assignment.py (loads them), instructors.py (where
the second one is, apart from a clone), variant.py (the secret
and what it signs), answers.py (answers, and what is right), runs.py, folder.py (the course's folder), workspace.py (the
student's) and check.py.

assignment.load_assignment, assignment.load_marking   the two files of an assignment
folder.plan_issue, folder.write_issue                 variants for a roster
variant.verify                                        a variant, if the course has signed it
workspace.open_workspace                              a student's folder
"""
