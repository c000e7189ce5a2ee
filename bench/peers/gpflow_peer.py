"""GPflow's convolutional SVGP: seconds per step (bound, all gradients, Adam), peak memory, predictions.

One process, one configuration: `python gpflow_peer.py --config M1 [--best]`, one JSON line.
Default: double precision, tf.function. --best: single precision and XLA (without XLA for RBF, where it is slower).
"""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
parser = argparse.ArgumentParser()
parser.add_argument("--best", action="store_true")

import settings  # noqa: E402

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
adam = tf_keras.optimizers.Adam(real(settings.LEARNING_RATE))


@tf.function(jit_compile=xla)
def gradients(x, y):
    with tf.GradientTape() as tape:
        loss = model.training_loss((x, y))
    return loss, tape.gradient(loss, variables)


def step(i):
    size = config["B"]
    start = i * size % (len(images) - size)
    loss, grads = gradients(tf.constant(images[start : start + size]), tf.constant(targets[start : start + size]))
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


settings.measure(step, predict, options, f"GPflow {gpflow.__version__}, TensorFlow {tf.__version__}")
