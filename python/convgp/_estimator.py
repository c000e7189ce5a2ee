"""What classifier and regressor share."""

from __future__ import annotations

import json
import math
import warnings
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Callable, Iterable

import numpy as np

from . import _convgp
from ._compat import BaseEstimator, NotFittedError, validate, validate_images
from ._explain import Explanation, explanations
from ._history import History
from ._progress import progress
from ._report import Figure, Report

#: Images behind ``component_shares_``.
SHARE_IMAGES = 200
#: Images of one exact evaluation of the bound that are in memory together.
CHUNK = 256
#: Training sets of at most so many numbers get so many steps; larger ones what their model's settings say.
SMALL_STEPS = ((10_000, 100), (100_000, 300))

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(time: float | str | None) -> float | None:
    """A time as seconds: a number, or text such as ``"90s"``, ``"10m"``, ``"2h"``."""
    if time is None:
        return None
    value = math.nan
    if isinstance(time, str):
        number, unit = time.strip()[:-1], time.strip()[-1:]
        try:
            value = float(number) * _SECONDS[unit]
        except (KeyError, ValueError):
            pass
    elif isinstance(time, Real) and not isinstance(time, bool):
        value = float(time)
    if not (value > 0.0 and math.isfinite(value)):
        raise ValueError(f"time is {time!r}; it is a positive number of seconds, or text such as '90s', '10m', '2h'")
    return value


def threads(n_jobs: int | None) -> int | None:
    """Threads to use; ``None`` for all cores."""
    if n_jobs is None or n_jobs == -1:
        return None
    if not isinstance(n_jobs, Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs is {n_jobs!r}; it is a positive number, -1 or None for all cores")
    return int(n_jobs)


def seed(random_state: Any) -> int:
    """A whole number is its own seed, the same as the command line's; anything else draws one."""
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}; a seed is at least 0")
        return int(random_state)
    if random_state is None:
        random_state = np.random.mtrand._rand
    draw = getattr(random_state, "integers", None) or getattr(random_state, "randint", None)
    if draw is None:
        raise ValueError(f"random_state is {random_state!r}; it is a seed, a generator of numpy, or None")
    return int(draw(2**31 - 1))


def square_images(features: int) -> tuple[int, int, int] | None:
    """The shape of square grey images of so many pixels; fewer than 8x8 are taken for vectors of numbers."""
    side = math.isqrt(features)
    return (side, side, 1) if side >= 8 and side * side == features else None


def image_shape(shape: Any) -> tuple[int, int, int]:
    """Height, width and channels from ``(H, W)`` or ``(H, W, C)``."""
    try:
        sides = tuple(int(side) for side in shape)
    except TypeError:
        sides = ()
    if len(sides) not in (2, 3) or min(sides) < 1:
        raise ValueError(f"image_shape is {shape!r}; it is (height, width) or (height, width, channels)")
    return (*sides, 1) if len(sides) == 2 else sides  # type: ignore[return-value]


class ConvGP(BaseEstimator):
    """Common part of :class:`ConvGPClassifier` and :class:`ConvGPRegressor`."""

    _numeric_targets: bool
    _native: Any
    _stepper: Any

    def __init__(
        self,
        model: str | PathLike[str] | dict[str, Any] | Any | None = None,
        *,
        image_shape: tuple[int, ...] | None = None,
        recipe: str = "fast",
        inducing: int | None = None,
        patch: int | tuple[int, int] | None = None,
        batch_size: int | None = None,
        time: float | str | None = None,
        steps: int | None = None,
        evaluate_every: int | None = None,
        warm_start: bool = False,
        keep_statistics: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.model = model
        self.image_shape = image_shape
        self.recipe = recipe
        self.inducing = inducing
        self.patch = patch
        self.batch_size = batch_size
        self.time = time
        self.steps = steps
        self.evaluate_every = evaluate_every
        self.warm_start = warm_start
        self.keep_statistics = keep_statistics
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Images in.

    def _flat(self, X: Any, *, reset: bool = False) -> tuple[Any, tuple[int, int, int] | None]:
        """Images as rows, and their shape where the array says it; with ``reset`` they may be of another kind than those before."""
        if isinstance(X, (list, tuple)):
            X = np.asarray(X)
        if not isinstance(X, np.ndarray):
            return X, None
        if X.ndim > 0 and len(X) == 0:
            raise ValueError("X holds no images; at least one is needed")
        if not reset and not self._vectors and X.shape in (self.image_shape_, self.image_shape_[:2]) and len(X) > 1:
            if X.ndim == 3 or X.shape[1] != math.prod(self.image_shape_):
                raise ValueError(f"X is one image of shape {X.shape}; give several, such as X[np.newaxis]")
        if X.ndim not in (3, 4):
            return X, None
        if X.ndim == 4 and self._is_channels_first(X.shape[1:]):
            X = np.moveaxis(X, 1, -1)
        if X.ndim == 4 and X.shape[-1] == 3 and self._is_grey(X, reset):
            X = X[..., :1]
        return np.ascontiguousarray(X).reshape(len(X), -1), image_shape(X.shape[1:])

    @property
    def _vectors(self) -> bool:
        """Whether images are rows of numbers, which may have any range."""
        return self.image_shape_[0] == 1

    def _is_channels_first(self, shape: tuple[int, ...]) -> bool:
        """Whether images are (C, H, W): the first side is a number of channels and the last is none, as the readers of files decide."""
        if self.image_shape is not None and tuple(self.image_shape) == shape:
            return False
        return shape[0] in (1, 3, 4) and shape[2] not in (1, 3, 4)

    def _is_grey(self, X: np.ndarray, reset: bool) -> bool:
        """Whether these are grey images stored as RGB, for a model that takes grey ones or has yet to see any."""
        if reset:
            wanted = self.image_shape is None or image_shape(self.image_shape)[2] == 1
        else:
            wanted = self.image_shape_[2] == 1
        return wanted and bool(np.all(X == X[..., :1]))

    def _settle_shape(self, features: int, found: tuple[int, int, int] | None) -> None:
        """From now on images have this shape."""
        asked = None if self.image_shape is None else image_shape(self.image_shape)
        if found is not None and asked is not None and found != asked:
            raise ValueError(f"X holds images of shape {found}, but image_shape is {asked}")
        shape = found or asked or square_images(features)
        if shape is not None and math.prod(shape) != features:
            raise ValueError(f"image_shape {shape} needs {math.prod(shape)} features, but X has {features} features")
        self.image_shape_ = shape or (1, features, 1)

    def _training_rows(self, X: Any, y: Any, *, reset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        X, found = self._flat(X, reset=reset)
        X, y = validate(self, X, y, reset=reset, numeric=self._numeric_targets)
        if reset:
            self._settle_shape(X.shape[1], found)
        elif found is not None and found != self.image_shape_:
            raise ValueError(f"X holds images of shape {found}, but those before had {self.image_shape_}")
        return X, y

    def _data(self, X: Any) -> _convgp.Data:
        """New images for a fitted model."""
        self._check_fitted()
        X, found = self._flat(X)
        if found is not None and found != self.image_shape_:
            name = type(self).__name__
            raise ValueError(f"X holds images of shape {found}, but {name} was fitted on {self.image_shape_}")
        return self._on_scale(_convgp.Data(validate_images(self, X, reset=False), self.image_shape_))

    def _on_scale(self, data: _convgp.Data) -> _convgp.Data:
        """The same; images in other units than those of the first training are converted with a warning, or refused."""
        conversion = None if self._vectors else self._native.check_scale(data)
        if conversion is not None:
            warnings.warn(conversion, stacklevel=3)
        return data

    def _with_targets(self, X: np.ndarray, y: np.ndarray) -> _convgp.Data:
        """Checked images with checked targets."""
        raise NotImplementedError

    def _judged_data(self, X: Any, y: Any) -> _convgp.Data:
        """Images with targets for a fitted model."""
        X, y = self._training_rows(X, y, reset=False)
        return self._on_scale(self._with_targets(X, y))

    # Training.

    def _create(self, data: _convgp.Data, time: float | None) -> _convgp.Model:
        patch: Any = (self.patch, self.patch) if isinstance(self.patch, Integral) else self.patch
        return _convgp.Model.create(
            data,
            **self._structure(),
            recipe=self.recipe,
            inducing=self.inducing,
            patch=patch,
            batch_size=self.batch_size,
            steps=self.steps,
            seconds=time,
            seed=seed(self.random_state),
            threads=threads(self.n_jobs),
        )

    def _structure(self) -> dict[str, Any]:
        """What ``model`` asks for: a name, a TOML file, or a spec."""
        model = self.model
        if model is None:
            return {}
        if isinstance(model, (str, PathLike)):
            text = fspath(model)
            names = [name for name, _ in _convgp.model_names()] + _convgp.paper_names()
            if text in names:
                return {"name": text}
            if text.endswith(".toml") or Path(text).exists():
                return {"toml": Path(text).read_text(encoding="utf-8")}
            raise ValueError(f"model is {text!r}; it is one of {', '.join(names)}, or the path of a TOML file")
        spec = model.to_dict() if hasattr(model, "to_dict") else model
        if not isinstance(spec, dict):
            raise ValueError(f"model is {model!r}; it is a name, the path of a TOML file, or a spec")
        return {"spec": json.dumps(self._complete(spec))}

    def _complete(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The spec with what the data say filled in where it says nothing."""
        if "model" in spec:
            return {**spec, "model": self._complete(spec["model"])}
        height, width, channels = self.image_shape_
        filled = {"image": {"height": height, "width": width, "channels": channels}, "likelihood": self._likelihood()}
        return {**filled, **spec}

    def _likelihood(self) -> dict[str, Any]:
        raise NotImplementedError

    def _plan(self, X: np.ndarray) -> int | None:
        """Steps to take; ``None`` where the model's own settings or the time decide."""
        if self.steps is not None or self.time is not None or self.model is not None:
            return self.steps
        return next((steps for size, steps in SMALL_STEPS if X.size <= size), None)

    def fit(
        self,
        X: Any,
        y: Any,
        eval_set: tuple[Any, Any] | None = None,
        callbacks: Callable[[dict[str, Any]], Any] | Iterable[Callable[[dict[str, Any]], Any]] | None = None,
    ) -> Any:
        """Trains.

        Ctrl-C ends training and raises ``KeyboardInterrupt``; the estimator is then fitted as far as it came.

        Parameters
        ----------
        X : array of shape (n, H, W), (n, H, W, C), (n, C, H, W) or (n, features)
            Images; RGB images without colour are taken as grey ones. Pixels may have any units: the smallest pixel becomes 0, the largest 1. The model keeps the scale: it
            converts between 0 to 1 and 0 to 255 with a warning, and refuses images that are on another. Contiguous uint8, uint16, float32 and float64 are used without a copy and must not be changed meanwhile.
        y : array of shape (n,)
            Targets.
        eval_set : (X, y), optional
            Images that are not trained on, evaluated on the way: the columns ``held_out_error`` and ``held_out_nlpp`` of ``history_``.
        callbacks : callable or list of callables, optional
            Called after every evaluation with the newest row of ``history_``; one that returns true ends training.

        Returns
        -------
        self
        """
        counts = {name: getattr(self, name) for name in ("steps", "inducing", "batch_size", "evaluate_every")}
        for name, value in counts.items():
            if value is not None and (not isinstance(value, Integral) or value < 1):
                raise ValueError(f"{name} is {value!r}; it is a whole number of at least 1, or None")
        if self.steps is not None and self.time is not None:
            raise ValueError(f"steps is {self.steps} and time is {self.time!r}; give one of them")
        again = self.warm_start and self.__sklearn_is_fitted__()
        X, y = self._training_rows(X, y, reset=not again)
        time = seconds(self.time)
        if again:
            data = self._on_scale(self._with_targets(X, y))
        else:
            data = self._first_data(X, y)
            self._begin(self._create(data, time))
        held_out = None if eval_set is None else self._judged_data(*eval_set)
        self._stepper = None
        self._train(data, held_out, callbacks, time, self._plan(X), self.keep_statistics)
        return self

    def _first_data(self, X: np.ndarray, y: np.ndarray) -> _convgp.Data:
        """The same as ``_with_targets`` for data that say what targets there are."""
        raise NotImplementedError

    def _begin(self, native: _convgp.Model) -> None:
        """From now on it is about this model, which is not trained yet."""
        if self.keep_statistics and not native.is_closed_form:
            raise ValueError(
                "keep_statistics is True, but this model is trained in steps and has no statistics; "
                "leave out steps and batch_size, or choose a closed-form model such as 'pooled'"
            )
        self._native, self._stepper = native, None
        self.history_, self.n_iter_ = History(), 0

    def _train(
        self, data: Any, held_out: Any, callbacks: Any, time: float | None, steps: int | None, keep: bool
    ) -> None:
        calls = [callbacks] if callable(callbacks) else list(callbacks or ())
        shown = progress(self.verbose)
        shown.say(f"data: {self._native.pixel_scale}")
        for reason in self._native.reasons:
            shown.say(reason)
        before, past = self.n_iter_, self.history_[-1]["seconds"] if self.history_ else 0.0

        def on_row(row: dict[str, Any]) -> bool:
            row = {**row, "step": row["step"] + before, "seconds": row["seconds"] + past}
            self.history_.append(row)
            return any([call(row) for call in calls])

        def on_tick(step: int, total: int, bound: float | None) -> None:
            self.n_iter_ = before + step
            shown.tick(step, total, bound)

        try:
            self._native.fit(
                data,
                held_out,
                steps=steps,
                seconds=time,
                evaluate_every=self.evaluate_every,
                keep_statistics=keep,
                threads=threads(self.n_jobs),
                on_row=on_row,
                on_tick=on_tick,
            )
        finally:
            shown.close()
            self._note(data)

    def _note(self, data: _convgp.Data) -> None:
        """Attributes that follow from a model and its data."""
        bounds = [row["bound"] for row in self.history_ if row["bound"] is not None]
        self.elbo_ = bounds[-1] if bounds else math.nan
        self.component_shares_ = self._shares(data.first(SHARE_IMAGES))

    def _shares(self, data: _convgp.Data) -> dict[str, dict[str, float]]:
        shares: dict[str, dict[str, float]] = {}
        for component, _, prior, explained in self._native.shares(data, threads=threads(self.n_jobs)):
            row = shares.setdefault(component, {"prior": 0.0, "explained": 0.0})
            row["prior"] += prior
            row["explained"] += explained
        return shares

    def _partial_fit(
        self, X: np.ndarray, y: np.ndarray, data: _convgp.Data, n_total: int | None, declared: bool = True
    ) -> None:
        """A closed-form model takes the images in; another takes one step per slice of ``batch_size`` images."""
        first = not self.__sklearn_is_fitted__()
        native = self._create(data, None) if first else self._native
        if native.is_closed_form and n_total is not None:
            raise ValueError("n_total is for models that are trained in steps; a closed-form model counts its images")
        if not (declared or native.is_closed_form):
            raise ValueError("classes must be given at the first call of partial_fit")
        if first:
            self._begin(native)
        if native.is_closed_form:
            if first:
                self._train(data, None, None, None, None, True)
            else:
                self._change(data, remove=False)
                self._note(data)
            return
        if getattr(self, "_stepper", None) is None:
            self._stepper = _convgp.Stepper(self._native)
            self._seen = 0
        self._seen += len(X)
        size = json.loads(self._native.spec)["train"]["batch_size"]
        for start in range(0, len(X), size):
            part = self._with_targets(X[start : start + size], y[start : start + size])
            count = max(n_total or self._seen, len(part))
            bound, expectation, kl = self._stepper.step(self._native, part, count, threads=threads(self.n_jobs))
            self.n_iter_ += 1
            self.elbo_ = bound

    def _change(self, data: _convgp.Data, *, remove: bool) -> None:
        """Adds images to a closed-form model, or removes them."""
        if not self._native.has_statistics:
            raise ValueError(
                "the statistics of the training images were not kept, so images can be neither added nor removed; "
                "fit with keep_statistics=True, or begin with partial_fit"
            )
        if self._native.update(self._on_scale(data), remove=remove, threads=threads(self.n_jobs)):
            warnings.warn("the answer rule was set for the old model and is gone; call calibrate again", stacklevel=4)

    def remove_images(self, X: Any, y: Any) -> Any:
        """Takes images out of a closed-form model: it becomes the one that a fit to the other images gives, with the same kernels and
        inducing inputs. It needs ``keep_statistics=True`` at ``fit``, or a start by ``partial_fit``.

        Parameters
        ----------
        X, y : arrays
            Images and targets, all of which were trained on; otherwise nothing is changed.
        """
        self._check_fitted()
        X, y = self._training_rows(X, y, reset=False)
        if not self._native.is_closed_form:
            raise ValueError("the model was trained in steps; only closed-form models can be updated")
        self._change(self._with_targets(X, y), remove=True)
        return self

    # Looking in.

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_native", None) is not None

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet; call 'fit' or 'load' first")

    def predict_f(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the latent functions, each of shape (n, latents)."""
        return self._ask("latent_marginals", X)

    def sample_f(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of the latent functions at the images: (n_samples, n, latents). Memory and time grow with n squared and cubed."""
        return self._ask("sample", X, int(n_samples), seed(random_state))

    def _ask(self, method: str, X: Any, *arguments: Any) -> Any:
        data = self._data(X)
        return getattr(self._native, method)(data, *arguments, threads=threads(self.n_jobs))

    def elbo(self, X: Any, y: Any) -> float:
        """The bound on the log evidence of these images, were they all the data: exact, not from a minibatch."""
        self._check_fitted()
        X, y = self._training_rows(X, y, reset=False)
        expectation, kl = 0.0, 0.0
        for start in range(0, len(X), CHUNK):
            part = self._with_targets(X[start : start + CHUNK], y[start : start + CHUNK])
            _, value, kl = self._native.elbo(part, threads=threads(self.n_jobs))
            expectation += value
        return expectation - kl

    def nlpp(self, X: Any, y: Any) -> float:
        """Mean negative log predictive probability (density) of the targets."""
        self._check_fitted()
        return self._native.nlpp(self._judged_data(X, y), threads=threads(self.n_jobs))

    def explain(self, X: Any) -> list[Explanation]:
        """The latent means of every image as sums over its views."""
        return explanations(self._ask("explain", X))

    def component_shares(self, X: Any) -> dict[str, dict[str, float]]:
        """How much of the function every component is over these images: its fraction of the prior variance and of the explained."""
        return self._shares(self._data(X))

    @property
    def inducing_patches_(self) -> dict[str, np.ndarray]:
        """Inducing inputs of every component as pictures: (M, height, width, channels)."""
        self._check_fitted()
        return {c["name"]: c["inducing"] for c in self._native.components()}

    @property
    def patch_weights_(self) -> dict[str, np.ndarray]:
        """Weights of the views of every component: (responses, planes, rows, columns)."""
        self._check_fitted()
        return {c["name"]: c["weights"] for c in self._native.components()}

    @property
    def spec_(self) -> dict[str, Any]:
        """Model and training as the spec that a TOML file would hold."""
        self._check_fitted()
        return json.loads(self._native.spec)

    @property
    def reasons_(self) -> list[str]:
        """What was chosen for the data, and why."""
        self._check_fitted()
        return self._native.reasons

    @property
    def model_(self) -> Any:
        """The model for research: :class:`convgp.core.Model`. It is the estimator's own; what is changed there is changed here."""
        from . import core

        self._check_fitted()
        return core.Model._of(self._native, threads(self.n_jobs))

    # Reports.

    def report(self, X: Any = None, y: Any = None, *, title: str = "convgp") -> Report:
        """Figures and a page about the model, how its training went and, if given, what it says about images with targets."""
        self._check_fitted()
        held_out = None if X is None else self._judged_data(X, y)
        facts = [("model", self._native.describe())]
        if self.history_:
            last = self.history_[-1]
            facts.append(("training", f"{last['step']} steps in {last['seconds']:.1f} s"))
        points = [self._point(row) for row in self.history_]
        native = _convgp.Report(self._native, title, facts, points, held_out, threads=threads(self.n_jobs))
        return Report(native)

    def _point(self, row: dict[str, Any]) -> tuple[Any, ...]:
        error, rmse = row["held_out_error"], None
        if self._numeric_targets:
            error, rmse = None, error
        return row["step"], row["seconds"], row["bound"], error, rmse, row["held_out_nlpp"]

    def figure(self, name: str, X: Any = None, y: Any = None) -> Figure:
        """One figure of the report as the bytes of a PNG file."""
        return self.report(X, y).figure(name)

    # Files.

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a model file, the same as the command line's. A file that is there is replaced as a whole."""
        self._check_fitted()
        self._native.save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Any:
        """Reads a model file, written here or by the command line."""
        estimator = cls()
        estimator._take(_convgp.Model.load(path))
        return estimator

    def _take(self, native: _convgp.Model) -> None:
        """Becomes a fitted estimator around a model."""
        self._native = native
        self.image_shape_ = native.image_shape
        self.n_features_in_ = math.prod(self.image_shape_)
        self.image_shape = None if self._vectors else self.image_shape_
        self.history_, self.n_iter_, self._stepper = History(), 0, None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_stepper", None)
        if state.get("_native") is not None:
            state["_native"] = state["_native"].to_bytes()
            # The file does not say how training goes on.
            state["_settings"] = json.dumps(self.spec_["train"])
            state["_statistics"] = self._native.statistics_to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        settings, statistics = state.pop("_settings", None), state.pop("_statistics", None)
        if state.get("_native") is not None:
            state["_native"] = _convgp.Model.from_bytes(state["_native"])
            state["_native"].set_train(settings)
            if statistics is not None:
                state["_native"].set_statistics(statistics)
        super().__setstate__(state)
