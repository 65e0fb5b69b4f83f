"""Epochs of a DataLoader with workers: an augmenting pipeline, large batches, and the start."""

from bench.harness import Case

WORKERS = 2


def augmented_images(m):
    """512 images of 3x96x96 bytes: a random crop and flip, then normalised floats."""
    images = m.randint(0, 256, (64, 3, 96, 96), dtype=m.uint8)
    mean, scale = (
        m.tensor([0.48, 0.46, 0.41]).view(3, 1, 1),
        m.tensor([4.4, 4.5, 4.4]).view(3, 1, 1),
    )

    class Images(m.utils.data.Dataset):
        def __len__(self):
            return 512

        def __getitem__(self, i):
            top, left = m.randint(0, 17, (2,)).tolist()
            image = images[i % 64, :, top : top + 80, left : left + 80]
            if m.rand(()).item() < 0.5:
                image = image.flip(2)
            return (image.float() / 255 - mean) * scale, i % 10

    return epochs(m, Images(), batch_size=64, shuffle=True)


def large_batches(m):
    """16 batches of 19 MB that are there already: what it costs to hand them over."""
    batch = m.ones(32, 3, 224, 224)

    class Batches(m.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, i):
            return batch.clone()

    return epochs(m, Batches(), batch_size=None)


def epochs(m, dataset, **options):
    """A function that runs an epoch with workers that persist."""
    loader = m.utils.data.DataLoader(
        dataset, num_workers=WORKERS, persistent_workers=True, **options
    )

    def run():
        for batch in loader:
            first = batch[0] if isinstance(batch, list) else batch
        return first.sum()

    run()
    return run


def fresh_workers(m):
    """An epoch of four small batches with new processes."""
    data = m.utils.data
    dataset = data.TensorDataset(m.arange(64))

    def run():
        for batch in data.DataLoader(dataset, batch_size=16, num_workers=WORKERS):
            first = batch[0]
        return first

    return run


CASES = [
    Case("loader: augmented images", augmented_images, rounds=5, family="loader", seconds=1.0),
    Case("loader: 19 MB batches", large_batches, rounds=5, family="loader", seconds=1.0),
    Case("loader: new workers", fresh_workers, rounds=5, family="loader", seconds=0.5),
]
