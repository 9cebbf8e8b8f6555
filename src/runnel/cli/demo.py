"""demo stub"""


def demo() -> None:
    """x"""
