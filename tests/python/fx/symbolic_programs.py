"""Functions that are traced with symbolic sizes, for a framework: with a sample and other sizes."""


def build(torch):
    """name -> (function, arguments of the trace, arguments of another call)"""

    def numbers(*shape):
        count = 1
        for n in shape:
            count *= n
        return torch.arange(float(count)).reshape(shape) / 7

    def gradient(x):
        return torch.autograd.grad((x * x).sum(), x)[0]

    def leaf(*shape):
        return numbers(*shape).requires_grad_()

    a, b = (3, 4), (6, 5)
    pairs = {
        "sum_of_two": (lambda x, y: x + y, (a, a), (b, b)),
        "size_as_number": (lambda x: x.view(-1) + x.shape[0], (a,), (b,)),
        "product_of_sizes": (lambda x: x.reshape(x.shape[0] * x.shape[1]), (a,), (b,)),
        "factory": (lambda x: torch.zeros(x.shape[0], 2) + x.sum(), (a,), (b,)),
        "joined": (lambda x, y: torch.cat([x, y]), (a, (5, 4)), (b, (2, 5))),
        "expanded": (lambda x: x.sum(0).expand(x.shape), (a,), (b,)),
        "sizes_returned": (lambda x: (x.shape[0], x.t().size(0), x.mean()), (a,), (b,)),
        "softmax": (lambda x: torch.nn.functional.softmax(x, 1).mean(), (a,), (b,)),
        "branch_on_a_size": (lambda x: x[1:, :2] if x.shape[0] > 2 else x, (a,), (b,)),
        "linear": (torch.nn.functional.linear, (a, (5, 4)), (b, (2, 5))),
        "repeated": (
            lambda x: x[None].repeat(2, 1, 1).view(-1, x.shape[1]),
            ((6, 4),),
            ((3, 5),),
        ),
        "divided_by_a_size": (lambda x: (x / x.shape[0], x == x.shape[1]), (a,), (b,)),
        "arithmetic_of_sizes": (lambda x: torch.ones(x.shape[0] + 2 * x.shape[1]), (a,), (b,)),
    }
    programs = {
        name: (f, tuple(numbers(*s) for s in first), tuple(numbers(*s) for s in second))
        for name, (f, first, second) in pairs.items()
    }
    programs["number_among_arguments"] = (lambda x, n: x * n, (numbers(3), 4), (numbers(5), 7))
    programs["gradient"] = (gradient, (leaf(3, 4),), (leaf(6, 5),))
    return programs
