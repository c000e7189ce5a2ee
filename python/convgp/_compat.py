"""scikit-learn where it is installed, and the little of it that is needed where it is not."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

#: What the native half takes as it is; anything else becomes the first.
DTYPES = [np.float64, np.float32, np.uint8, np.uint16]

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data as _validate_data

    HAVE_SKLEARN = True

    def validate(estimator: Any, X: Any, y: Any = None, *, reset: bool, numeric: bool = False) -> Any:
        """Checked ``X``, two-dimensional and contiguous, and ``y`` if there is one."""
        settings = {"reset": reset, "dtype": DTYPES, "order": "C"}
        if y is _NO_TARGETS:
            return _validate_data(estimator, X, **settings)
        return _validate_data(estimator, X, y, y_numeric=numeric, **settings)

except ImportError:
    HAVE_SKLEARN = False

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """Something was asked of an estimator before ``fit``."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by name, as scikit-learn has them."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Parameters and their values."""
            names = list(inspect.signature(type(self).__init__).parameters)[1:]
            return {name: getattr(self, name) for name in names}

        def set_params(self, **params: Any) -> Any:
            """Sets parameters by name."""
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(f"Invalid parameter {name!r}; valid ones are {sorted(known)}")
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            defaults = inspect.signature(type(self).__init__).parameters
            params = self.get_params().items()
            shown = [f"{k}={v!r}" for k, v in params if v is not defaults[k].default]
            return f"{type(self).__name__}({', '.join(shown)})"

        def __getstate__(self) -> dict[str, Any]:
            return dict(self.__dict__)

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__.update(state)

    class ClassifierMixin:  # type: ignore[no-redef]
        """What makes an estimator a classifier."""

        _estimator_type = "classifier"

        def score(self, X: Any, y: Any) -> float:
            """Fraction of right answers."""
            return float(np.mean(np.asarray(self.predict(X)) == np.asarray(y)))  # type: ignore[attr-defined]

    class RegressorMixin:  # type: ignore[no-redef]
        """What makes an estimator a regressor."""

        _estimator_type = "regressor"

        def score(self, X: Any, y: Any) -> float:
            """Coefficient of determination."""
            y = np.asarray(y, dtype=float)
            residual = np.sum((y - self.predict(X)) ** 2)  # type: ignore[attr-defined]
            return float(1.0 - residual / np.sum((y - y.mean()) ** 2))

    def check_classification_targets(y: Any) -> None:
        """Refuses targets that are no labels."""
        y = np.asarray(y)
        if y.dtype.kind == "f" and np.any(y != np.floor(y)):
            raise ValueError("Unknown label type: y holds fractions; a regressor may be what is wanted")

    def validate(estimator: Any, X: Any, y: Any = None, *, reset: bool, numeric: bool = False) -> Any:
        """Checked ``X``, two-dimensional and contiguous, and ``y`` if there is one."""
        name = type(estimator).__name__
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; {name} takes 2, or images (n, H, W) or (n, H, W, C)")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X is {X.dtype}; {name} takes numbers")
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in DTYPES else DTYPES[0])
        if reset:
            estimator.n_features_in_ = X.shape[1]
        elif X.shape[1] != estimator.n_features_in_:
            expected = estimator.n_features_in_
            raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input")
        if y is _NO_TARGETS:
            return X
        if y is None:
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")
        y = np.asarray(y, dtype=float if numeric else None)
        if y.ndim != 1 or len(y) != len(X):
            raise ValueError(f"y has shape {y.shape}; {len(X)} images need one target each")
        return X, y


class _NoTargets:
    """Stands for targets that were not even looked for."""


_NO_TARGETS: Any = _NoTargets()


def validate_images(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Checked ``X`` without targets."""
    return validate(estimator, X, _NO_TARGETS, reset=reset)
