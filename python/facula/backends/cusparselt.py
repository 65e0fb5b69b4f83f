"""cuSPARSELt: this build has none."""


def is_available():
    """Whether cuSPARSELt is there: False in this build."""
    return False


def version():
    """The version of cuSPARSELt: None in this build."""
    return None


def get_max_alg_id():
    """The number of its algorithms: None in this build."""
    return None
