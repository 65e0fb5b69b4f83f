"""The Trainer of transformers on a data set of datasets: collator, evaluation, resuming.

needs: transformers, datasets, accelerate
"""

import tempfile

import numpy as np
from datasets import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

set_seed(0)
draws = np.random.RandomState(0)
labels = draws.randint(2, size=64)
rows = [draws.randint(1 + 10 * label, 21 + 10 * label, size=12) for label in labels]
data = Dataset.from_dict({"input_ids": rows, "labels": labels})
data = data.map(lambda row: {"attention_mask": [1] * len(row["input_ids"])})
parts = data.train_test_split(0.25, seed=0)
model = DistilBertForSequenceClassification(
    DistilBertConfig(
        vocab_size=40, dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=16
    )
)


def scores(predictions):
    return {"accuracy": float((predictions.predictions.argmax(1) == predictions.label_ids).mean())}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=3,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=2e-3,
        warmup_steps=2,
        lr_scheduler_type="cosine",
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
    )
    options = dict(
        args=arguments,
        train_dataset=parts["train"],
        eval_dataset=parts["test"],
        data_collator=default_data_collator,
        compute_metrics=scores,
    )
    trainer = Trainer(model, **options)
    loss = trainer.train().training_loss
    told = trainer.evaluate()
    resumed = Trainer(model, **options)
    steps = resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-6").global_step
print(
    f"loss {loss:.4f} accuracy {told['eval_accuracy']:.4f} eval {told['eval_loss']:.4f} "
    f"steps {steps} again {resumed.evaluate()['eval_loss']:.4f}"
)
