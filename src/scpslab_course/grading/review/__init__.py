"""Pages for who marks: one for each submission, one for the class. Order of reading: overview.py (the content), pages.py (its form), the templates."""

from scpslab_course.grading.review.pages import write_review

__all__ = ["write_review"]
