"""A network in a scikit-learn pipeline by skorch: scaling, cross-validation and a grid search.

needs: skorch, sklearn
"""

import numpy as np
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from torch import nn


class Net(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 3))

    def forward(self, X):
        return torch.softmax(self.layers(X), -1)


torch.manual_seed(0)
X, y = load_iris(return_X_y=True)
X, y = X.astype(np.float32), y.astype(np.int64)
order = np.random.RandomState(0).permutation(len(y))
X, y = X[order], y[order]
net = NeuralNetClassifier(
    Net,
    max_epochs=8,
    lr=0.1,
    optimizer=torch.optim.Adam,
    optimizer__lr=0.02,
    iterator_train__shuffle=True,
    train_split=None,
    verbose=0,
)
pipeline = Pipeline([("scale", StandardScaler()), ("net", net)])
scores = cross_val_score(pipeline, X, y, cv=3)
search = GridSearchCV(pipeline, {"net__module__hidden": [4, 12]}, cv=2, scoring="accuracy")
search.fit(X, y)
loss = search.best_estimator_["net"].history[-1, "train_loss"]
print(
    f"scores {scores.mean():.4f} best {search.best_score_:.4f} "
    f"hidden {search.best_params_['net__module__hidden']} loss {loss:.4f}"
)
