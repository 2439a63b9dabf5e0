"""Autograders: archives for platforms that build a container of their own, and what that container runs."""
