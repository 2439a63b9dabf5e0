"""Courses: assignments, a variant for every student, and the student's folder.

Order of reading: decision 0701 lists the modules.

assignment.load_assignment, assignment.load_marking   the two files of an assignment
folder.plan_issue, folder.write_issue                 variants for a roster
variant.verify                                        a variant, if the course has signed it
workspace.open_workspace                              a student's folder
"""
