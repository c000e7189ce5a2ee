"""Exceptions of our own."""


class NumericalError(ArithmeticError):
    """Numbers went wrong, and the remedies were tried: a matrix that is not positive definite, a bound that is not finite."""


NumericalError.__module__ = "convgp"
