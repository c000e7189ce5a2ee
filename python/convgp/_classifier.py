"""The classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _convgp
from ._compat import ClassifierMixin, check_classification_targets
from ._estimator import ConvGP, threads


class ConvGPClassifier(ClassifierMixin, ConvGP):
    """Convolutional Gaussian process classifier.

    Parameters
    ----------
    model : str, path, dict, :class:`convgp.core.ModelSpec` or None
        What to train: a name such as ``"weighted"`` or ``"rbf"`` (:func:`convgp.models` lists them), one of the paper's experiments such
        as ``"mnist-weighted"``, the path of a TOML file, or a spec. Chosen from the data if ``None``.
    image_shape : (H, W) or (H, W, C), optional
        Shape of images given as rows. Without it, rows of 64, 81, 100, ... numbers are square grey images, others vectors of numbers, and so are all with ``(1, W)``.
    recipe : {"fast", "paper"}
        Whose likelihood and training settings a named model gets.
    inducing : int, optional
        Inducing inputs of every component.
    patch : int or (int, int), optional
        Patch size.
    batch_size : int, optional
        Images per step.
    time : float or str, optional
        Train for so long: seconds, or text such as ``"10m"``.
    steps : int, optional
        Train for so many steps. Without ``time`` and ``steps`` the size of the data decides.
    evaluate_every : int, optional
        Steps between rows of ``history_``; a twentieth of the run if ``None``.
    warm_start : bool
        Whether ``fit`` goes on from the parameters there are.
    keep_statistics : bool
        Whether a closed-form model keeps what it was solved from, so that ``partial_fit`` can add images and ``remove_images`` remove
        some; pickles hold it, model files do not.
    random_state : int, numpy generator or None
        Seed of initial parameters and minibatches; a whole number gives the same model as the command line's ``--seed``.
    n_jobs : int or None
        Threads; all cores if ``None`` or -1. Results do not depend on it.
    verbose : bool
        Whether progress is shown, by tqdm if it is installed.

    Attributes
    ----------
    classes_ : array
        Classes, sorted.
    n_features_in_ : int
        Numbers in an image.
    image_shape_ : (H, W, C)
        Shape of the images.
    elbo_ : float
        The last bound that training computed, on a minibatch; ``elbo(X, y)`` is exact.
    history_ : :class:`convgp.History`
        What training looked like.
    n_iter_ : int
        Steps taken.
    component_shares_ : dict
        Every component's fraction of the prior and of the explained variance, over the first 200 images of the last ``fit`` or ``partial_fit``.

    Examples
    --------
    >>> import convgp
    >>> X, y = convgp.rectangles(200, seed=0)
    >>> model = convgp.ConvGPClassifier(steps=100, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (200, 2)
    """

    _numeric_targets = False

    def _first_data(self, X: np.ndarray, y: np.ndarray) -> _convgp.Data:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_.tolist()[0]!r}; classification needs at least 2 classes")
        return self._with_targets(X, y)

    def _with_targets(self, X: np.ndarray, y: np.ndarray) -> _convgp.Data:
        names = [str(c) for c in self.classes_]
        return _convgp.Data(X, self.image_shape_, labels=self._labels(y), class_names=names)

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """Numbers of the classes; refuses others."""
        order = np.argsort(self.classes_, kind="stable")
        place = np.searchsorted(self.classes_, y, sorter=order)
        labels = order[np.minimum(place, len(order) - 1)]
        strange = self.classes_[labels] != y
        if np.any(strange):
            raise ValueError(f"y has the class {y[strange].tolist()[0]!r}; the classes are {self.classes_.tolist()}")
        return labels.astype(np.uint32)

    def _likelihood(self) -> dict[str, Any]:
        classes = len(self.classes_)
        return {"type": "probit"} if classes == 2 else {"type": "softmax", "classes": classes}

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, n_total: int | None = None) -> ConvGPClassifier:
        """Adds images. The first call fits, and later ones add images to a closed-form model exactly: it becomes the one that a fit to all of
        them gives, with the kernels and inducing inputs of the first call. After ``fit`` that needs ``keep_statistics=True``. A model
        that is trained in steps takes one step for every ``batch_size`` of these images: training on a stream.

        Parameters
        ----------
        X, y : arrays
            Images, as for ``fit``. Inducing inputs, lengthscales and the scale of pixels are taken from the first.
        classes : array, optional
            All classes there will be, at the first call; those of ``y`` if ``None``, for closed-form models only.
        n_total : int, optional
            For training in steps: images the stream will have, which weighs data against prior; those seen so far if ``None``.
        """
        first = not self.__sklearn_is_fitted__()
        X, y = self._training_rows(X, y, reset=first)
        if first:
            check_classification_targets(y)
            self.classes_ = np.unique(y if classes is None else classes)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"there is one class, {self.classes_.tolist()[0]!r}; give all classes there will be as classes= at the first call"
                )
        elif classes is not None and not np.array_equal(np.unique(classes), np.sort(self.classes_)):
            raise ValueError(f"classes are {list(classes)}; those of the first call were {self.classes_.tolist()}")
        strange = y[~np.isin(y, self.classes_)]
        if len(strange) > 0:
            raise ValueError(
                f"y has the class {strange.tolist()[0]!r}; the classes are {self.classes_.tolist()}, and all that will come must be "
                "given as classes= at the first call of partial_fit"
            )
        self._partial_fit(X, y, self._with_targets(X, y), n_total, not first or classes is not None)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, of shape (n, classes), in the order of ``classes_``."""
        return self._ask("probabilities", X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every image."""
        numbers = self._ask("classes", X)
        return self.classes_[numbers]

    def calibrate(self, X: Any, y: Any, *, risk: float = 0.01) -> ConvGPClassifier:
        """Sets the confidence from which on ``answer`` answers, so that on these images at most a fraction ``risk`` of the answers is
        wrong. Use images that were not trained on. The model file remembers it.
        """
        self._check_fitted()
        self._native.calibrate(self._judged_data(X, y), risk, threads=threads(self.n_jobs))
        return self

    @property
    def answer_rule_(self) -> dict[str, float] | None:
        """What ``calibrate`` found: risk, images, threshold, coverage, error, upper_error."""
        self._check_fitted()
        return self._native.answer_rule

    def answer(self, X: Any, unknown: Any = "unknown") -> np.ndarray:
        """The class of every image, or ``unknown`` where a calibrated model is not sure enough; an array of objects."""
        probabilities = self.predict_proba(X)
        answers = self.classes_[probabilities.argmax(axis=1)].astype(object)
        rule = self.answer_rule_
        if rule is not None:
            answers[probabilities.max(axis=1) < rule["threshold"]] = unknown
        return answers

    def _take(self, native: _convgp.Model) -> None:
        super()._take(native)
        names = native.class_names
        if not names:
            raise ValueError("the model predicts real numbers; load it with ConvGPRegressor")
        numbers = all(name.lstrip("-").isdecimal() and str(int(name)) == name for name in names)
        self.classes_ = np.array([int(name) for name in names] if numbers else names)
