"""Fourier transforms: of powers of two, other products and primes; of one and more dimensions."""

from bench.kernels.common import In, K, Table


def transforms():
    table = Table("fft")

    def case(label, inputs, function, **options):
        table.add(label, inputs, function, **options)

    def fft(m, x):
        return m.fft.fft(x)

    for n in (64, K, 16 * K, 1024 * K):
        case("fft", [In((n,), "complex64")], fft, full=n == 64)
    for shape in ((4096, 16), (512, 256), (64, K), (64, 1000), (64, 1009), (64, 1155)):
        case("fft", [In(shape, "complex64")], fft)
    case("fft", [In((64, K), "complex128")], fft)
    case("fft columns", [In((K, 64), "complex64")], lambda m, x: m.fft.fft(x, dim=0))
    for shape in ((512, 512), (16, 100, 100)):
        case("fft2", [In(shape, "complex64")], lambda m, x: m.fft.fft2(x))
    case("fftn", [In((64, 64, 64), "complex64")], lambda m, x: m.fft.fftn(x), full=True)
    for shape in ((K,), (256 * K,), (64, K), (64, 1000), (64, 1009)):
        case("rfft", [In(shape)], lambda m, x: m.fft.rfft(x))
    case("irfft", [In((64, 513), "complex64")], lambda m, x: m.fft.irfft(x))
    case("rfft2", [In((16, 256, 256))], lambda m, x: m.fft.rfft2(x))
    table.backward("rfft abs", [In((64, K))], lambda m, x: m.fft.rfft(x).abs(), full=True)

    def stft(m, x):
        window = m.hann_window(512)
        return m.stft(x, 512, 128, 512, window, return_complex=True)

    def back(m, x):
        return m.istft(stft(m, x), 512, 128, 512, m.hann_window(512))

    case("stft", [In((8, 16 * K))], stft)
    case("stft and istft", [In((8, 16 * K))], back, full=True)
    return table.cases
