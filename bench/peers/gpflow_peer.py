"""GPflow's convolutional SVGP: seconds per step (bound, all gradients, Adam), peak memory, predictions.

One process, one configuration: `python gpflow_peer.py --config M1 [--best]`, one JSON line.
Default: double precision, tf.function. --best: single precision and XLA (without XLA for RBF, where it is slower).
--curve SECONDS trains on all images for so long instead (R and M1s), and prints test error and NLPP on the way, one JSON
line each; compiling and evaluating are not counted.
"""
import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import settings  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--best", action="store_true")
parser.add_argument("--curve", type=float, metavar="SECONDS")
parser.add_argument("--evaluations", type=int, default=10, help="along the curve")
parser.add_argument("--rate", type=float, default=settings.LEARNING_RATE, help="Adam's step size")
parser.add_argument("--seed", type=int, default=0, help="of the curve's minibatches")

options = settings.arguments(parser).parse_args()
config = settings.CONFIGS[options.config]
if config["colour"] not in ("pooled", None):
    raise SystemExit(f"GPflow's Convolutional kernel cannot express {options.config}")

import gpflow  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from gpflow.keras import tf_keras  # noqa: E402

real = np.float32 if options.best else np.float64
xla = True if options.best and options.config != "RBF" else None
gpflow.config.set_default_float(real)
gpflow.config.set_default_jitter(1e-4 if options.best else 1e-6)

if options.curve:
    images, labels, test, test_labels = settings.whole(config["data"], options.data)
    tested = settings.TESTED.get(config["data"])
    test, test_labels = test[:tested], test_labels[:tested]
else:
    images, labels = settings.load(config, options.data)
z = settings.inducing(config, images).astype(real)
images = images.astype(real)
targets = labels[:, None].astype(real if config["classes"] == 2 else np.int64)

base = gpflow.kernels.SquaredExponential(lengthscales=real(settings.LENGTHSCALE.get(options.config, 1.0)))
if config["patch"] is None:
    kernel, z = base, gpflow.inducing_variables.InducingPoints(z)
else:
    rows, cols, channels = config["shape"]
    side = config["patch"]
    kernel = gpflow.kernels.Convolutional(base, [rows, cols], [side, side], colour_channels=channels)
    z = gpflow.inducing_variables.InducingPatches(z)
if config["classes"] == 2:
    likelihood = gpflow.likelihoods.Bernoulli()
else:
    likelihood = gpflow.likelihoods.MultiClass(config["classes"])
model = gpflow.models.SVGP(
    kernel, likelihood, z, num_latent_gps=settings.latents(config), whiten=True, num_data=config["N"]
)
variables = model.trainable_variables
adam = tf_keras.optimizers.Adam(real(options.rate))


@tf.function(jit_compile=xla)
def gradients(x, y):
    with tf.GradientTape() as tape:
        loss = model.training_loss((x, y))
    return loss, tape.gradient(loss, variables)


def step(i):
    size = config["B"]
    start = i * size % (len(images) - size)
    move(slice(start, start + size))


def move(batch):
    loss, grads = gradients(tf.constant(images[batch]), tf.constant(targets[batch]))
    adam.apply_gradients(zip(grads, variables))
    if not np.isfinite(float(loss)):
        raise SystemExit("the loss is not finite")


posterior = None  # made once after training, as its caching is meant to be used


@tf.function(jit_compile=xla)
def probabilities(x):
    mean, var = posterior.predict_f(x)
    return model.likelihood.predict_mean_and_var(x, mean, var)[0]


def predict():
    global posterior
    posterior = posterior or model.posterior()
    for start in range(0, settings.PREDICT, settings.PREDICT_BATCH):
        probabilities(tf.constant(images[start : start + settings.PREDICT_BATCH])).numpy()


@tf.function(jit_compile=xla)
def answers(x):
    return model.predict_y(x)[0]  # without a cache: parameters have moved since the last time


def judged():
    """Error and NLPP on the test images."""
    parts = np.split(test.astype(real), range(settings.PREDICT_BATCH, len(test), settings.PREDICT_BATCH))
    p = np.concatenate([answers(tf.constant(part)).numpy() for part in parts]).astype(float)
    p = np.hstack([1 - p, p]) if p.shape[1] == 1 else p
    likelihood = np.maximum(p[np.arange(len(p)), test_labels], 1e-300)
    return dict(error=float((p.argmax(1) != test_labels).mean()), nlpp=float(-np.log(likelihood).mean()))


def curve():
    rng = np.random.default_rng(options.seed)
    taken, spent, evaluations = 0, 0.0, 0
    gradients(tf.constant(images[: config["B"]]), tf.constant(targets[: config["B"]]))  # compiles
    while evaluations < options.evaluations:
        start = time.perf_counter()
        move(rng.integers(len(images), size=config["B"]))
        taken, spent = taken + 1, spent + time.perf_counter() - start
        if spent >= (evaluations + 1) * options.curve / options.evaluations:
            evaluations += 1
            print(json.dumps(dict(step=taken, seconds=spent, **judged())), flush=True)


if options.curve:
    curve()
    raise SystemExit
settings.measure(step, predict, options, f"GPflow {gpflow.__version__}, TensorFlow {tf.__version__}")
