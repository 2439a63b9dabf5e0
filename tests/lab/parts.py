"""Whether this machine's kernel and guest are those that the project's published numbers were made with."""

from scpslab.setup import images


def not_published() -> str:
    """What differs, in words; "" if all is as published.

    Debian's mirrors keep one version of a package: a later build may have others (decision 21).
    """
    verdicts = (images.compare(part, images.cache_dir()) for part in images.PARTS)
    return "; ".join(verdict.text for verdict in verdicts if verdict and verdict.same is False)
