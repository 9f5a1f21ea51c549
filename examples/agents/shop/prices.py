"""What things cost in this shop, in cents."""


def total(price: int, count: int) -> int:
    return price * count
