"""The regressor."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _convgp
from ._compat import RegressorMixin
from ._estimator import ConvGP


class ConvGPRegressor(RegressorMixin, ConvGP):
    """Convolutional Gaussian process regressor: Gaussian noise around a function. Targets are standardised for the model; predictions are
    in their units.

    Parameters and attributes are those of :class:`ConvGPClassifier`, without classes.
    """

    _numeric_targets = True

    def _first_data(self, X: np.ndarray, y: np.ndarray) -> _convgp.Data:
        self._units = {"offset": float(np.mean(y)), "scale": float(np.std(y)) or 1.0}
        return self._with_targets(X, y)

    def _with_targets(self, X: np.ndarray, y: np.ndarray) -> _convgp.Data:
        return _convgp.Data(X, self.image_shape_, values=np.ascontiguousarray(y, dtype=np.float64))

    def _likelihood(self) -> dict[str, Any]:
        units = getattr(self, "_units", None)
        return {"type": "gaussian", "units": units} if units else {"type": "gaussian"}

    def partial_fit(self, X: Any, y: Any, *, n_total: int | None = None) -> ConvGPRegressor:
        """Adds images, or takes steps on a stream of them: see :meth:`ConvGPClassifier.partial_fit`. Targets are standardised by those of the
        first call.
        """
        first = not self.__sklearn_is_fitted__()
        X, y = self._training_rows(X, y, reset=first)
        self._partial_fit(X, y, self._first_data(X, y) if first else self._with_targets(X, y), n_total)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means of the targets; with ``return_std`` also their standard deviations, noise included."""
        mean, variance = self._ask("mean_and_variance", X)
        return (mean, np.sqrt(variance)) if return_std else mean

    def _take(self, native: _convgp.Model) -> None:
        super()._take(native)
        if native.class_names:
            raise ValueError("the model predicts classes; load it with ConvGPClassifier")
