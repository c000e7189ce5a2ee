"""A new user's first try: scikit-learn's digits as they come, 8x8 pixels from 0 to 16, and in other units."""

import numpy as np
from convgp import ConvGPClassifier
from sklearn import datasets, model_selection


def test_digits_as_they_come_and_in_other_units():
    X, y = datasets.load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = model_selection.train_test_split(
        X, y, test_size=0.3, random_state=0, stratify=y
    )
    model = ConvGPClassifier(random_state=0).fit(X_train, y_train)
    assert 1.0 - model.score(X_test, y_test) <= 0.015
    expected = model.predict_proba(X_test)
    for factor, constant in [(16.0, 0.0), (255.0, 7.0), (1e-3, -2.0)]:
        other = ConvGPClassifier(random_state=0).fit(factor * X_train + constant, y_train)
        found = other.predict_proba(factor * X_test + constant)
        np.testing.assert_allclose(found, expected, atol=2e-3)
        np.testing.assert_array_equal(found.argmax(1), expected.argmax(1))
