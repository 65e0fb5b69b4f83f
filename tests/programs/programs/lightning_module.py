"""A classifier as a module of PyTorch Lightning: trainer, callbacks, checkpoint, logged figures.

needs: pytorch_lightning
"""

import logging
import tempfile
import warnings

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self, width=24, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(8, width), nn.GELU(), nn.Linear(width, 4))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        out = self(x)
        self.log("val_loss", nn.functional.cross_entropy(out, y))
        self.log("val_accuracy", (out.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]


pl.seed_everything(7, verbose=False)
x = torch.randn(320, 8)
y = (x @ torch.randn(8, 4)).argmax(1)
train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
validation = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=64)
with tempfile.TemporaryDirectory() as folder:
    best = ModelCheckpoint(folder, monitor="val_loss", save_top_k=1)
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        callbacks=[best, EarlyStopping("val_loss", patience=3)],
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        gradient_clip_val=1.0,
    )
    trainer.fit(Classifier(), train, validation)
    model = Classifier.load_from_checkpoint(best.best_model_path, weights_only=False)
    scores = trainer.validate(model, validation, verbose=False)[0]
figures = trainer.callback_metrics
print(
    f"width {model.hparams.width} loss {scores['val_loss']:.4f} "
    f"accuracy {scores['val_accuracy']:.4f} epochs {trainer.current_epoch}"
)
