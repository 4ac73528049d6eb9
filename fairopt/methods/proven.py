"""What rounding can change, for bounds that count it."""

import numpy as np

#: Half the distance between 1 and the next float: a rounded result is off by at most this part of itself.
ROUNDING = float(np.finfo(float).eps) / 2
